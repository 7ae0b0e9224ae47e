"""The Lean tools: texts, goals, tactics and sorries, and their errors."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.lean.endless import SLOW
from tests.mcp_server.agent import Agent, Failed

pytestmark = pytest.mark.xdist_group("mcp")
BAD = [
    ("lean_check", {}, "one of `path` and `text`"),
    ("lean_check", {"path": "Laws.lean", "text": "x"}, "one of"),
    ("lean_check", {"path": "Nothing.lean"}, "inside the roots"),
    ("lean_check", {"path": "lake"}, "not a file"),
    ("lean_check", {"text": "x", "seconds": 1e9}, "seconds"),
    ("lean_check", {"text": "x", "seconds": 601}, "--max-seconds"),
    ("lean_check", {"text": "x", "seconds": 0}, "seconds"),
    ("lean_check", {"text": "x" * 1_000_001}, "text"),
    ("lean_check", {"text": 7}, "text"),
    ("lean_check", {"texts": "x"}, "did you mean `text`"),
    ("lean_check", {"text": "x", "limit": 1000}, "limit"),
    ("lean_check", {"text": "import Mathlib\n"}, "Mathlib"),
    ("lean_goals", {"text": "x", "column": 3}, "goes with `line`"),
    ("lean_goals", {"text": "x", "line": 99}, "no line 99"),
    ("lean_try", {"goal": "g0", "tactics": ["rfl"]}, "no goal 'g0'"),
    ("lean_try", {"statement": "1 = 1", "tactics": []}, "tactics"),
    ("lean_try", {"statement": "1 =", "tactics": ["rfl"]}, "refuses the statement"),
    ("lean_try", {"statement": "1 = 1)", "tactics": ["rfl"]}, "bracket"),
    ("lean_try", {"tactics": ["rfl"]}, "one of `goal` and `statement`"),
    ("lean_sorries", {"path": "lake/../.."}, "inside the roots"),
    ("lean_prove", {}, "one of `statement` and `path`"),
    ("lean_prove", {"statement": " "}, "empty"),
    ("lean_prove", {"path": "Wrong.lean"}, "Wrong.lean has no sorry that can be proved: "),
    ("lean_prove", {"path": "Laws.lean", "declaration": "x"}, "double_zero"),
    ("lean_verify", {"original": "x"}, "one of"),
    ("lean_verify", {"original": "x", "candidate": "y", "axioms": ["sorryAx"]}, "sorryAx"),
    ("lean_sorries", {"path": "lake"}, "no Lean file"),
    ("lean_sorries", {"seconds": "many"}, "seconds"),
    ("lean_prove", {"statement": "1 = 1", "declaration": "x"}, "goes with `path`"),
    ("lean_prove", {"statement": "1 = 1", "simulations": 0}, "simulations"),
    ("lean_verify", {"original": "x", "candidate_path": "../x"}, "inside the roots"),
    ("lean_premises", {"query": "x", "count": 0}, "count"),
    ("lean_premises", {"query": "x", "by": "luck"}, "is not one of"),
]  # fmt: skip


def test_a_text_and_a_file_are_checked(served: Agent) -> None:
    assert served.call("lean_check", text="theorem t : 1 = 1 := rfl\n") == {
        "ok": True, "errors": 0, "warnings": 0, "sorries": [], "messages": [],
    }  # fmt: skip
    laws = served.call("lean_check", path="Laws.lean")
    assert not laws["ok"]
    assert laws["errors"] == 0
    assert laws["sorries"] == ["double_zero", "swap"]
    wrong = served.call("lean_check", path="Wrong.lean")
    assert wrong["errors"] == 1
    assert wrong["messages"][0]["line"] == 1
    assert wrong["messages"][0]["column"] == 20
    assert "seven" in wrong["messages"][0]["text"]


def test_a_text_may_import_new_and_edited_modules_of_a_project(served: Agent, shelf: Path) -> None:
    new = shelf / "lake" / "Shelf" / "New.lean"
    given = {"text": "import Shelf.New\nexample : fresh = 1 := rfl\n", "project": "lake"}
    with pytest.raises(Failed, match=r"Shelf\.New"):
        served.call("lean_check", **given)
    new.write_text("def fresh : Nat := 1\n")
    assert served.call("lean_check", **given)["ok"]
    new.write_text("def fresh : Nat := 2\n")
    assert served.call("lean_check", **given)["errors"] == 1
    new.unlink()


def test_messages_come_in_pages(served: Agent) -> None:
    text = "".join(f'def a{n} : Nat := "x"\n' for n in range(5))
    first = served.call("lean_check", text=text, limit=2)
    assert first["errors"] == 5
    assert first["left_out"] == 3
    last = served.call("lean_check", text=text, limit=3, offset=first["next_offset"])
    assert [m["line"] for m in first["messages"] + last["messages"]] == [1, 2, 3, 4, 5]
    assert "next_offset" not in last


def test_goals_at_a_sorry_and_at_a_position_are_returned(served: Agent) -> None:
    found = served.call("lean_goals", path="Laws.lean")
    assert [(g["line"], g["column"], g["declaration"]) for g in found["goals"]] == [
        (2, 3, "double_zero"), (6, 5, "swap"),
    ]  # fmt: skip
    assert found["goals"][1]["text"].splitlines()[1:] == ["p q : Prop", "h : p ∧ q", "⊢ q"]
    before = served.call("lean_goals", path="Laws.lean", line=5)
    assert before["goals"][0]["text"].endswith("⊢ q ∧ p")
    second = served.call("lean_goals", path="Laws.lean", line=7, column=5)
    assert second["goals"][0]["text"].endswith("⊢ p")
    closed = served.call("lean_goals", text="theorem t : 1 = 1 := by\n  rfl\n  \n", line=3)
    assert closed["goals"] == []
    assert closed["closed"]
    with pytest.raises(Failed, match="no goal at line 1"):
        served.call("lean_goals", path="Laws.lean", line=1)


def test_tactics_are_tried_on_a_goal_and_on_the_remaining_goals(served: Agent) -> None:
    goal = served.call("lean_goals", path="Laws.lean", line=5)["goals"][0]["goal"]
    tactics = ["exact ⟨h.2, h.1⟩", "constructor", "exact h", "nonsense", "exact ⟨h.2, sorry⟩"]
    tried = served.call("lean_try", goal=goal, tactics=tactics)["tried"]
    assert [each["status"] for each in tried] == ["closes", "goals", "fails", "fails", "sorry"]
    assert tried[1]["goals"] == 2
    left = served.call("lean_try", goal=tried[1]["goal"], tactics=["exact h.2", "exact h.1"])
    assert [each["status"] for each in left["tried"]] == ["goals", "fails"]
    again = served.call("lean_try", goal=left["tried"][0]["goal"], tactics=["exact h.1"])
    assert again["tried"] == [{"tactic": "exact h.1", "status": "closes"}]
    assert served.call("lean_try", statement="∀ n : Nat, n = n", tactics=["simp"])["tried"] == [
        {"tactic": "simp", "status": "closes"}
    ]


def test_the_sorries_of_a_project_include_unreadable_files(served: Agent) -> None:
    found = served.call("lean_sorries", limit=1)
    assert found["sorries"][0]["file"] == "Laws.lean"
    assert found["sorries"][0]["declaration"] == "double_zero"
    assert (found["total"], found["left_out"], found["next_offset"]) == (2, 1, 1)
    assert found["files"] == 2
    assert not found["complete"]
    assert found["problems"][0]["file"] == "Wrong.lean"
    assert served.call("lean_sorries", path="Laws.lean", offset=1)["complete"]


def test_a_file_that_lean_did_not_read_does_not_count_as_closed(served: Agent, shelf: Path) -> None:
    file = shelf / "Half.lean"
    file.write_text("theorem t : 1 = 1 := rfl\n#exit\ntheorem u : 1 = 2 := by\n  sorry\n")
    try:
        with pytest.raises(Failed, match=r"Half\.lean: .*the text ends early"):
            served.call("lean_sorries", path="Half.lean")
    finally:
        file.unlink()


def test_premises_are_found(served: Agent) -> None:
    found = served.call("lean_premises", query="a + b = b + a", count=20)
    assert len(found["premises"]) == 20
    assert found["ranking"] == "words"
    assert "Nat.add_comm" in {premise["name"] for premise in found["premises"]}
    with pytest.raises(Failed, match="empty"):
        served.call("lean_premises", query=" ")
    with pytest.raises(Failed, match="not the name of a Lean module"):
        served.call("lean_premises", query="x", imports=["../x"])


@pytest.fixture(scope="module")
def kept(served: Agent) -> str:
    """Return a named goal, which no request of a client may lose."""
    return served.call("lean_goals", path="Laws.lean")["goals"][1]["goal"]


@pytest.mark.parametrize(("tool", "arguments", "says"), BAD)
def test_bad_input_is_said_in_one_line(
    served: Agent, kept: str, tool: str, arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(Failed) as failed:
        served.call(tool, **arguments)
    assert says in str(failed.value)
    assert "\n" not in str(failed.value)
    (tried,) = served.call("lean_try", goal=kept, tactics=["exact h.2"])["tried"]
    assert tried["status"] == "closes"


def test_a_timeout_is_an_error(served: Agent, shelf: Path) -> None:
    text = f"theorem t : ∀ n : Nat, n = n := by\n  {SLOW}\n"
    for tool in ("lean_check", "lean_goals"):
        with pytest.raises(Failed, match=r"timed out.*nothing is known"):
            served.call(tool, text=text, seconds=0.2)
    tried = served.call("lean_try", statement="∀ n : Nat, n = n", tactics=[SLOW], seconds=0.2)
    assert tried["tried"][0]["status"] == "timed_out"
    slow = shelf / "slow"
    slow.mkdir()
    (slow / "Slow.lean").write_text(text)
    with pytest.raises(Failed, match=r"Lean could read no file.*Slow\.lean: .*0\.2 s"):
        served.call("lean_sorries", path="slow", seconds=0.2)
    (slow / "Open.lean").write_text("theorem t : 1 = 1 := by\n  sorry\n")
    # Once without a limit: Lean reads a text faster the second time.
    assert served.call("lean_sorries", path="slow/Open.lean")["total"] == 1
    found = served.call("lean_sorries", path="slow", seconds=0.2)
    assert (found["total"], found["complete"]) == (1, False)
    assert [problem["file"] for problem in found["problems"]] == ["slow/Slow.lean"]
    shutil.rmtree(slow)


def test_a_killed_lean_is_an_error_and_its_goals_stay_valid(served: Agent) -> None:
    goal = served.call("lean_goals", path="Laws.lean", line=5)["goals"][0]["goal"]
    left = served.call("lean_try", goal=goal, tactics=["constructor"])["tried"][0]["goal"]

    def kill(done: float, total: float | None, text: str | None) -> None:
        for pid in served.leans:
            os.kill(pid, signal.SIGKILL)

    lost = served.result("lean_try", kill, goal=goal, tactics=[SLOW], seconds=300)
    assert lost.is_error
    assert "nothing is known" in lost.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
    assert served.call("lean_check", text="example : 1 = 1 := rfl")["ok"]
    tried = served.call("lean_try", goal=left, tactics=["exact h.2"])["tried"]
    assert tried[0]["status"] == "goals"


def test_a_cancelled_call_stops_lean(served: Agent) -> None:
    served.cancelled("lean_try", statement="∀ n : Nat, n = n", tactics=[SLOW], seconds=600)
    # If the cancelled call still ran, this call would wait for its session.
    assert served.call("lean_try", statement="1 = 1", tactics=["rfl"])["tried"]
