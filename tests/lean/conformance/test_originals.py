"""An original is read once, however many candidates for it are judged."""

from __future__ import annotations

from typing import Any

import pytest

from treewright.lean.session.process import LeanProcess
from treewright.lean.session.protocol import R, Request
from treewright.lean.verify import originals
from treewright.lean.verify.replayer import Replayer

ORIGINAL = "theorem a : 1 + 1 = 2 := by\n  sorry\ntheorem b : True := by sorry\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that processes are asked for from now on."""
    ops: list[str] = []
    request = LeanProcess.request

    def recording(self: LeanProcess, asked: Request[R], **limits: Any) -> R:
        ops.append(type(asked).__name__.lower())
        return request(self, asked, **limits)

    monkeypatch.setattr(LeanProcess, "request", recording)
    return ops


def test_a_second_verdict_reads_the_original_no_more(check: Replayer, asked: list[str]) -> None:
    check.processes.warm_up()
    original = ORIGINAL.replace("1 + 1", "1 + 1 + 0")
    asked.clear()
    for proof, reason in (("rfl", "proved"), ("decide", "proved"), ("exact wrong", "error")):
        verdict = check.text(original, original.replace("sorry", proof, 1), ["a"])
        assert verdict.reason == reason, verdict
    assert (asked.count("reference"), asked.count("meaning")) == (1, 1)
    assert asked.count("judge") == 2


def test_another_target_is_another_answer_of_the_same_reading(check: Replayer) -> None:
    before = check.text(ORIGINAL, ORIGINAL.replace("sorry", "rfl", 1), ["a"])
    after = check.text(ORIGINAL, ORIGINAL.replace("by sorry", "trivial"), ["b"])
    none = check.text(ORIGINAL, ORIGINAL.replace("by sorry", "trivial"), ["c"])
    assert (before.reason, after.reason, none.reason) == ("proved", "proved", "original")
    assert after.certificate is not None
    assert after.certificate.targets == ("b",)
    other = ORIGINAL.replace("True", "1 = 1")
    assert check.text(other, other.replace("by sorry", "rfl"), ["b"]).proved
    assert check.text(ORIGINAL, ORIGINAL.replace("by sorry", "rfl"), ["b"]).reason == "error"


SPENT = """macro "stop" : tactic => `(tactic| skip)
def f (n : Nat) : Nat := if h : n = 0 then 0 else f (n / 2)
termination_by n
decreasing_by exact Nat.div_lt_self (Nat.pos_of_ne_zero h) (by decide)
theorem a : 1 = 1 := by sorry
theorem b : 2 = 2 := by sorry
"""


def test_a_process_for_one_original_is_reused_for_that_original_only(
    check: Replayer, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lean has started a thread for it, or has run its code: such a process is replaced."""
    check.text(ORIGINAL, ORIGINAL.replace("by sorry", "trivial"), ["b"])
    monkeypatch.setattr(originals, "WORTH_KEEPING_MS", 0.0)
    read = check.processes.original.get().pid
    for target in ("a", "b"):
        at = SPENT.index("by sorry", SPENT.index(f"theorem {target}"))
        candidate = SPENT[:at] + "rfl" + SPENT[at + len("by sorry") :]
        verdict = check.text(SPENT, candidate, [target])
        assert verdict.proved, verdict
        assert check.processes.original.pid == read
    assert check.text(ORIGINAL, ORIGINAL.replace("sorry", "rfl", 1), ["a"]).proved
    if check._host.backend == "native":
        other = ORIGINAL.replace("True", "3 = 3")
        assert check.text(other, other.replace("by sorry", "rfl"), ["b"]).proved
        assert check.processes.original.pid != read


def test_originals_are_forgotten_when_there_are_too_many(
    check: Replayer, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(originals, "MOST_ORIGINALS", 1)
    for number in (1, 2, 1):
        text = f"theorem a{number} : {number} = {number} := by sorry\n"
        assert check.text(text, text.replace("by sorry", "rfl")).proved
    assert asked.count("reference") == 3
