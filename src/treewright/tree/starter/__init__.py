"""`treewright init`: looks at a repository and writes a first treewright.toml for it; or makes
one, with its sweep, of a task that another program was written for."""

from __future__ import annotations

from treewright.tree.starter.survey import Survey, survey
from treewright.tree.starter.template import render

__all__ = ["Survey", "render", "survey"]
