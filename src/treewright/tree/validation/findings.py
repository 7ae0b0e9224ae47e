"""A finding is data: a stable code, what it is about, and one line that says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from treewright.tree.config import Config
from treewright.tree.records.model import Manifest


@dataclass(frozen=True, slots=True)
class Finding:
    """`subject` is an id or a path of the run; docs/validation.md lists the codes."""

    code: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What a check looks at."""

    run_dir: Path
    repo: Path
    manifest: Manifest
    config: Config
