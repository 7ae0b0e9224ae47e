"""The real Lean of `tests/lean`, for proof search."""

from tests.lean.conftest import _shared, home, lean, replayer

__all__ = ["_shared", "home", "lean", "replayer"]
