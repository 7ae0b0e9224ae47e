"""The real Lean of `tests/lean`, for proof search."""

from tests.lean.conftest import _shared, home, lean, replayer
from tests.mcts.proving import prove, sessions

__all__ = ["_shared", "home", "lean", "prove", "replayer", "sessions"]
