"""The run tools: lists, decisions, diffs, and changes of a run where they are allowed."""

from __future__ import annotations

import pytest

from tests.mcp_server.agent import Agent, Failed
from tests.toy import ToyRepository
from tests.tree.runs import RUN_ID
from treewright.tree.records import store
from treewright.tree.run import command_files

pytestmark = pytest.mark.xdist_group("mcp")
BAD = [
    ("tree_runs", {"limit": 0}, "limit"),
    ("tree_runs", {"offset": -1}, "offset"),
    ("tree_runs", {"limits": 3}, "did you mean `limit`"),
    ("tree_status", {}, "missing key `run`"),
    ("tree_status", {"run": "../run"}, "no such run"),
    ("tree_status", {"run": "tree/1/../../etc"}, "no such run"),
    ("tree_status", {"run": "tree/9/run"}, "no such run"),
    ("tree_status", {"run": "x\u001b[2J"}, "\\x1b"),
    ("tree_show", {"run": RUN_ID, "show": "all"}, "is not one of"),
    ("tree_why", {"run": RUN_ID, "item": "n9999"}, "n9999"),
    ("tree_diff", {"run": RUN_ID, "item": "--output=/tmp/x"}, "no commit for"),
    ("tree_steer", {"run": RUN_ID, "action": "ban"}, "needs `what`"),
    ("tree_steer", {"run": RUN_ID, "action": "ban", "what": " "}, "the pattern is empty"),
    ("tree_steer", {"run": RUN_ID, "action": "pause", "now": True}, "`now` means nothing"),
    ("tree_steer", {"run": RUN_ID, "action": "budget"}, "budget needs a limit"),
    ("tree_steer", {"run": RUN_ID, "action": "delete"}, "is not one of"),
    ("tree_ideas", {}, "missing key `run`"),
    ("tree_ideas", {"run": "../run"}, "no tree run"),
    ("tree_ideas", {"run": RUN_ID, "limit": "all"}, "limit"),
    ("tree_ideas", {"run": RUN_ID, "offset": 10**10}, "offset"),
    ("tree_steering", {"run": RUN_ID, "item": "n0001"}, "`item`"),
    ("tree_steering", {"run": "r" * 301}, "run"),
    ("tree_steering", {"run": "tree/1/../../etc"}, "no tree run"),
]  # fmt: skip


def test_runs_are_listed_with_their_status(served: Agent) -> None:
    listed = served.call("tree_runs", limit=200)
    run = next(run for run in listed["runs"] if run["kind"] == "tree")
    assert run["run"] == f"tree/1/{RUN_ID}"
    assert run["state"] == "stopped"
    status = served.call("tree_status", run=RUN_ID)
    assert status == served.call("tree_status", run=run["run"])
    assert status["best"]["node"] == "n0001"
    assert status["best"]["gain"] > 0
    assert status["done"] == status["of"]


def test_the_tree_is_returned_in_pages_with_reasons(served: Agent) -> None:
    nodes = served.call("tree_show", run=RUN_ID)
    assert [row["id"] for row in nodes["rows"]] == ["n0000", "n0001"]
    evaluations = served.call("tree_show", run=RUN_ID, show="evaluations", limit=2)
    assert evaluations["left_out"] == evaluations["total"] - 2
    rejected = next(
        row
        for row in served.call("tree_show", run=RUN_ID, show="evaluations")["rows"]
        if row["fate"] != "promoted"
    )
    why = served.call("tree_why", run=RUN_ID, item=rejected["id"])
    assert why["why"]
    assert why["title"]
    ideas = served.call("tree_ideas", run=RUN_ID)
    assert ideas["total"] == evaluations["total"]
    assert ideas["ideas"][0]["fate"] == "promoted"
    assert "Be |<script> kind & *cheat*" in {idea["title"] for idea in ideas["ideas"]}


def test_the_diff_of_the_best_node_is_returned(served: Agent) -> None:
    found = served.call("tree_diff", run=RUN_ID)
    assert found["item"] == "n0001"
    assert "+++ b/params.txt" in found["diff"]
    rest = served.call("tree_diff", run=RUN_ID, offset=10)
    assert rest["diff"] == found["diff"][10:]
    assert served.call("tree_diff", run=RUN_ID, against="parent")["diff"] == found["diff"]


@pytest.mark.parametrize(("tool", "arguments", "says"), BAD)
def test_bad_input_is_said_in_one_line(
    served: Agent, tool: str, arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(Failed) as failed:
        served.call(tool, **arguments)
    assert says in str(failed.value)
    assert "\u001b" not in str(failed.value)


def test_steering_leaves_the_same_command_as_the_program(
    served: Agent, target: ToyRepository
) -> None:
    idea = "# Another one\n\nTry A at 2.\n"
    sent = served.call("tree_steer", run=RUN_ID, action="inject", what=idea, at="n0001", first=True)
    run_dir = target.run_dir(RUN_ID)
    waiting = command_files.list_commands(run_dir, store.load(run_dir)).waiting
    assert [command.command_id for command in waiting] == [sent["command_id"]]
    assert waiting[0].action == "inject"
    assert (waiting[0].node_id, waiting[0].first) == ("n0001", True)
    shown = served.call("tree_steering", run=RUN_ID)
    assert shown["waiting"] == [f"inject {sent['command_id']}"]
    for letter in (run_dir / "steering").iterdir():
        letter.unlink()
