"""`sorry` is found by what declarations rest on: no option, macro or detour hides it."""

from __future__ import annotations

from typing import Any

import pytest

from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import CheckResult, SessionLost, Timeout
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.process import hard_limit
from treewright.lean.session.protocol import Request

pytestmark = pytest.mark.xdist_group("lean-session")
QUIET = "set_option warn.sorry false\n"


def checked(lean: HostSession, text: str) -> CheckResult:
    result = lean.check(text)
    assert isinstance(result, CheckResult), result
    assert not result.errors, result.errors
    return result


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (QUIET + "theorem quiet : 1 = 2 := sorry", ("quiet",)),
        ("set_option warn.sorry false in theorem quiet : 1 = 2 := by sorry", ("quiet",)),
        (QUIET + "theorem a : 1 = 2 := sorryAx _ true\ntheorem b : 1 = 2 := a", ("a", "b")),
        (QUIET + 'macro "magic" : term => `(sorry)\ntheorem m : 1 = 2 := magic', ("m",)),
        (QUIET + "private theorem p : 1 = 2 := by\n  simp; sorry", ("p",)),
        (QUIET + "def f (n : Nat) : Nat := n\ninstance i : Inhabited Nat := ⟨sorry⟩", ("i",)),
        (QUIET + "theorem t : 1 = 2 := h where h : 1 = 2 := sorry", ("t", "t.h")),
        (QUIET + "def n : sorry := sorry", ("n",)),
        ("theorem fine : 1 = 1 := rfl\n" + QUIET, ()),
    ],
)
def test_uses_of_sorry_are_named(lean: HostSession, text: str, names: tuple[str, ...]) -> None:
    result = checked(lean, text)
    assert result.unproved == names
    assert result.ok == (not names)


@pytest.mark.parametrize(
    "text",
    [
        "example : 1 = 2 := sorry",
        QUIET + "example : 1 = 2 := sorry",
        "set_option warn.sorry false in example : 1 = 2 := by exact sorryAx _ true",
        QUIET + 'macro "magic" : command => `(example : 1 = 2 := sorry)\nmagic',
        'macro "m" : command => `(set_option warn.sorry false in example : 1 = 2 := sorry)\nm',
        "section\nopen Nat in\nset_option warn.sorry false in\nexample : 1 = 2 := by sorry\nend",
    ],
)
def test_an_example_leaves_nothing_but_its_warning(lean: HostSession, text: str) -> None:
    result = checked(lean, text)
    assert result.has_sorry
    assert not result.ok


def test_a_text_that_ends_early_is_not_fine(lean: HostSession) -> None:
    result = lean.check("theorem a : 1 = 1 := rfl\n#exit\ntheorem b : 1 = 2 := sorry")
    assert isinstance(result, CheckResult)
    assert "ends early" in result.stopped
    assert not result.ok


def test_the_limit_is_the_text_s_own_and_not_the_imports(home: LeanHome) -> None:
    """What Lean cannot interrupt ends with its process, soon after the limit."""
    with HostSession(home) as session:
        asked: list[tuple[str, float]] = []
        request = session._process.request

        def noting(sent: Request[Any], **limits: Any) -> Any:
            asked.append((type(sent).__name__.lower(), limits["hard"]))
            return request(sent, **limits)

        session._process.request = noting
        loop = "partial def f (n : Nat) : IO Unit := f (n + 1)\n#eval f 0"
        result = session.check(f"import Init\n{loop}", timeout=0.5)
        assert isinstance(result, SessionLost | Timeout), result
    assert asked[-1] == ("elaborate", hard_limit(0.5))
    assert hard_limit(6.0) < 12.0
