"""The user's cache for treewright: what can be made again, or is forgotten without harm."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "TREEWRIGHT_CACHE"


def cache_directory() -> Path:
    """TREEWRIGHT_CACHE, or as the XDG rules say."""
    if override := os.environ.get(CACHE_VARIABLE):
        return Path(override).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "treewright"
