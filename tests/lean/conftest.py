"""Fixtures and helpers for the tests of Lean sessions."""

from __future__ import annotations

from tests.lean.hijacking import _hostile_projects, hostile  # noqa: F401 (fixtures)
from tests.lean.miniature import tarball  # noqa: F401 (a fixture)
from treewright.lean.session.answers import ProofState, StepResult


def state(result: StepResult) -> ProofState:
    """The result, which has to be a proof state."""
    assert isinstance(result, ProofState), result
    return result
