"""Which Lean processes a server has, and where it listens. Another Lean is at another address."""

from __future__ import annotations

import hashlib
from pathlib import Path

from treewright import __version__
from treewright.kernel.storage.user_directories import state_directory
from treewright.lean.hosts.wasm.home import LeanHome, node_version
from treewright.lean.hosts.wasm.manifest import home_digest


def identity(home: LeanHome) -> str:
    """This treewright, this Lean down to its files, this Node: nothing else may be handed over."""
    path = home.path.resolve()
    parts = (__version__, path.name, str(path), home_digest(home), str(home.node))
    return hashlib.sha256("\0".join((*parts, node_version(home.node))).encode()).hexdigest()


def directory() -> Path:
    return state_directory() / "warm"


def socket_name(home: LeanHome) -> str:
    return f"{identity(home)[:16]}.sock"
