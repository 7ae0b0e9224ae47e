"""A notice command receives the events of a run, and the search does not wait for the command."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.toy import CONFIG, ToyRepository
from tests.waiting import until
from treewright.tree.run import command_files
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.faults import Paused
from treewright.tree.run.open import RunRequest, open_run

EVENTS = '["new_best", "paused", "steered", "cap_reached", "finished"]'


def run(
    toy: ToyRepository,
    command: str,
    more: str = "",
    policy: str | None = None,
    wanted: str = "boost n0099",
    leaves: str = "",
    **shape: Any,
) -> None:
    text = f'{CONFIG}\n[[on_event]]\ncommand = "{command}"\nevents = {EVENTS}\n{more}'
    toy.write("treewright.toml", text)
    toy.commit("a command that is told")
    settings = {"sweep_config_limit": 8, "ideas_per_node": 2, "max_depth": 2, **shape}
    request = RunRequest(
        toy.path,
        "run",
        shape=Shape(**settings),
        choosing=PolicyChoice(policy),
        preflight=False,
    )
    action, _, node = wanted.partition(" ")
    with open_run(request) as coordinator:
        letter = command_files.parse_command(action, node or None, {}, spell_option=str)
        command_files.submit(coordinator.store.run_dir, letter)
        coordinator.finish()
        until(lambda: (toy.path / leaves).exists(), what="the command has begun")


def test_a_notice_receives_the_facts_of_an_event(toy: ToyRepository, tmp_path: Path) -> None:
    told = tmp_path / "told"
    run(toy, f"cat >> {told}")
    documents = [json.loads(line) for line in told.read_text().splitlines()]
    assert [document["event"] for document in documents] == [
        "steered", "new_best", "new_best", "finished",
    ]  # fmt: skip
    steered, first, _, last = documents
    assert steered["steering"]["refused"] == "there is no node n0099"
    assert first["best"]["node_id"] == "n0001"
    assert last["stop_reason"] == "max_depth_reached"
    assert {document["payload_version"] for document in documents} == {1}
    keys = {"tree_run_id", "depth", "evaluations", "nodes", "best", "spent", "dropped"}
    assert all(keys <= document.keys() for document in documents)


def test_an_outage_starts_a_notice(toy: ToyRepository, tmp_path: Path) -> None:
    told = tmp_path / "told"
    more = '[agents.planner]\nbackend = "command"\ncommand = ["false"]\n'
    with pytest.raises(Paused) as raised:
        run(toy, f"cat >> {told}", more, ideas_per_node=1)
    *_, last = [json.loads(line) for line in told.read_text().splitlines()]
    assert (last["event"], last["message"]) == ("paused", str(raised.value))
    assert last["stop_reason"] is None


def test_a_reached_cap_starts_a_notice(toy: ToyRepository, tmp_path: Path) -> None:
    told = tmp_path / "told"
    paid = [{"role": "planner", "text": "do it", "usage": {"prompt_tokens": 100}}]
    toy.write("script.json", json.dumps(paid))
    more = '[agents.planner]\nbackend = "scripted"\nscript = "script.json"\n'
    run(toy, f"cat >> {told}", more, caps={"tokens": {"all": 150.0}})
    events = [json.loads(line)["event"] for line in told.read_text().splitlines()]
    assert events == ["steered", "cap_reached"]


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_ending_a_run_starts_one_notice(
    toy: ToyRepository, tmp_path: Path, policy: str | None
) -> None:
    told = tmp_path / "told"
    most = 3 if policy else None
    run(
        toy, f"cat >> {told}", policy=policy, wanted="stop", dry_run=True, max_total_idea_evals=most
    )
    documents = [json.loads(line) for line in told.read_text().splitlines()]
    assert [document["event"] for document in documents] == ["steered", "finished"]
    assert documents[-1]["stop_reason"] == "stopped"


def test_each_evaluation_and_each_depth_can_start_a_notice(
    toy: ToyRepository, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    more = f'[[on_event]]\ncommand = "cat >> {told}"\nevents = ["evaluated", "depth_done"]\n'
    run(toy, "true", more, max_depth=1)
    documents = [json.loads(line) for line in told.read_text().splitlines()]
    assert [d["event"] for d in documents] == ["evaluated", "evaluated", "depth_done"]
    first, _, done = documents
    assert first["evaluation"]["eval_id"] == "e000001"
    assert first["evaluation"]["status"] == "completed"
    assert isinstance(first["evaluation"]["score"], float)
    assert first["stop_reason"] is None
    assert done["run_dir"] == str(toy.run_dir("run"))


def test_a_command_that_fails_or_is_missing_is_a_warning(toy: ToyRepository, caplog) -> None:
    run(toy, "exit 7", max_depth=1)
    assert "exited with 7" in caplog.text


def test_the_search_does_not_wait_for_a_command_that_hangs(toy: ToyRepository) -> None:
    began = time.monotonic()
    limits = "timeout_seconds = 900\nfinish_seconds = 0.1\n"
    run(toy, "echo $$ > p; mv p pid; exec sleep 1000", limits, leaves="pid", max_depth=1)
    assert time.monotonic() - began < 300
    pid = int((toy.path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists(), "it was ended with the call"
