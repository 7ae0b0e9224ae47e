"""The directories of the user: the cache, which may be deleted, and the private state."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "TREEWRIGHT_CACHE"
STATE_VARIABLE = "TREEWRIGHT_STATE"


def cache_directory() -> Path:
    """Return `TREEWRIGHT_CACHE`, or the directory by the XDG rules."""
    return _directory(CACHE_VARIABLE, "XDG_CACHE_HOME", ".cache")


def state_directory() -> Path:
    """Return `TREEWRIGHT_STATE`, or the directory by the XDG rules."""
    return _directory(STATE_VARIABLE, "XDG_STATE_HOME", ".local/state")


def _directory(own: str, standard: str, below_home: str) -> Path:
    if override := os.environ.get(own):
        return Path(override).expanduser().absolute()
    base = os.environ.get(standard)
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / below_home
    return root / "treewright"
