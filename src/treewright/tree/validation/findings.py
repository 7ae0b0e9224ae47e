"""Findings: a stable code, the id or path it concerns, and a line with the problem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from treewright.tree.config import Config
from treewright.tree.records.model import Manifest


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a run. `subject` is an id or a path of the run; docs/validation.md lists the
    codes."""

    code: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Subject:
    """The run that a check examines."""

    run_dir: Path
    repo: Path
    manifest: Manifest
    config: Config
