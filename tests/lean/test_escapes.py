"""The quick filter for generated text; the replay check does not rely on it."""

from __future__ import annotations

import pytest

from treewright.lean.verify.restrictions import find_escapes


@pytest.mark.parametrize(
    "text",
    [
        "sorry",
        "exact sorry",
        "run_tac foo",
        "1run_tac",
        "exact unsafe x",
        "native_decide",
        "decide +native",
        "set_option debug.skipKernelTC true in rfl",
        "trivial\naxiom x : False",
        "#eval 1",
        "exact sorryAx _",
        "/- hi -/ sorry",
        "exact f --x\nsorry",
        '"/-" ; sorry -- -/"',
        "'\"' /- ' -/ sorry",
        "/- unterminated sorry",
        "exact (sorry)",
        "simp [sorry]",
        "@[implemented_by x]",
        "macro",
    ],
)
def test_found(text: str) -> None:
    assert find_escapes(text)


@pytest.mark.parametrize(
    "text",
    [
        "simp",
        "exact h.axiom'",
        "-- no axiom here\nrfl",
        "/- sorry /- nested -/ axiom -/ rfl",
        "rw [Nat.add_comm, h']",
        "set_option maxHeartbeats 400000 in simp",
        "exact foo.sorry_free",
        "intro axiom_of_choice",
    ],
)
def test_not_found(text: str) -> None:
    assert find_escapes(text) == ()


def test_positions() -> None:
    (escape,) = find_escapes("exact sorry")
    assert (escape.word, escape.position) == ("sorry", 6)
