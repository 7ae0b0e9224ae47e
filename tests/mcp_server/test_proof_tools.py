"""Proofs for an agent: found within a budget, verified with a certificate, never a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lean.endless import SLOW
from tests.mcp_server.agent import Agent, Failed
from treewright.lean.verify.verdict import digest

pytestmark = pytest.mark.xdist_group("mcp")


def test_a_declaration_is_proved_and_its_file_left_alone(served: Agent, shelf: Path) -> None:
    before = (shelf / "Laws.lean").read_text()
    found = served.call("lean_prove", path="Laws.lean", declaration="swap", seconds=120)
    assert (found["proved"], found["total"], found["complete"]) == (1, 1, True)
    assert found["goals"][0]["status"] == "proved"
    assert found["patch"].startswith("--- a/Laws.lean\n+++ b/Laws.lean\n")
    assert (shelf / "Laws.lean").read_text() == before
    assert list((shelf / found["run"]).rglob("*.certificate.json"))
    assert served.call("tree_status", run=Path(found["run"]).name)["proved"] == 1


def test_an_unproved_goal_is_not_reported_as_proved(served: Agent) -> None:
    given = {"statement": "∀ n : Nat, n = n + 1", "refute": False}
    found = served.call("lean_prove", **given, seconds=120, simulations=1, tactics=["skip"])
    assert (found["proved"], found["goals"][0]["status"]) == (0, "unproved")
    spent = served.call("lean_prove", **given, seconds=1e-9)
    assert (spent["proved"], spent["goals"][0]["status"]) == (0, "unproved")
    assert "time limit" in spent["goals"][0]["detail"]


def test_a_proof_is_verified_against_its_original(served: Agent) -> None:
    original = "theorem t : ∀ n : Nat, n + 0 = n := by\n  sorry\n"
    candidate = original.replace("sorry", "simp")
    found = served.call("lean_verify", original=original, candidate=candidate)
    assert found["proved"]
    assert found["certificate"]["candidate"] == digest(candidate)
    assert found["certificate"]["targets"] == ["t"]
    other = served.call("lean_verify", original=original, candidate="theorem t : True := trivial\n")
    assert not other["proved"]
    assert other["reason"] == "statement"
    assert "certificate" not in other
    same = served.call("lean_verify", original=original, candidate=original)
    assert same["reason"] == "unchanged"


def test_a_cancelled_search_ends_and_does_not_delay_the_next_one(
    served: Agent,
) -> None:
    given = {"statement": "∀ n : Nat, n = n + 1", "refute": False}
    served.cancelled("lean_prove", **given, seconds=600, simulations=100_000)
    found = served.call("lean_prove", **given, seconds=120, simulations=1, tactics=["skip"])
    assert found["goals"][0]["status"] == "unproved"


def test_an_unfinished_or_cancelled_check_gives_no_verdict(served: Agent) -> None:
    original = "theorem t : ∀ n : Nat, n = n := by\n  sorry\n"
    slow = {"original": original, "candidate": original.replace("sorry", SLOW)}
    with pytest.raises(Failed, match=r"no verdict \(timeout\): .*0\.2 s; call again"):
        served.call("lean_verify", **slow, seconds=0.2)
    served.cancelled("lean_verify", **slow, seconds=600)
    candidate = original.replace("sorry", "intro n; rfl")
    assert served.call("lean_verify", original=original, candidate=candidate)["proved"]
