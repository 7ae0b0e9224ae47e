"""Ordinary files are taken as they are: what Lean takes, the bundled Lean takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lean.snippets import Half, snippets
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession

AT_LEAST = 50  # of each half


@pytest.mark.parametrize("half", ["tuned", "held-out"])
def test_snippets_of_lean_users_are_checked_as_expected(
    lean_session: Callable[[], HostSession], half: Half
) -> None:
    chosen = [snippet for snippet in snippets() if snippet.half == half]
    assert len(chosen) >= AT_LEAST
    problems: list[str] = []
    for snippet in chosen:
        done = lean_session().check(snippet.text, timeout=120)
        if isinstance(done, CheckResult):
            problems += snippet.problems(done.diagnostics)
        else:
            problems.append(f"{snippet.name}: {done}")
    assert not problems, "\n".join(problems)
