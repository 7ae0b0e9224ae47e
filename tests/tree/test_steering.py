"""Commands for a run: applied between steps, recorded, replayable."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toy import ToyRepository, set_parameter
from treewright.cli.tree_progress import describe_skipped
from treewright.tree.records import events as ev
from treewright.tree.records import store
from treewright.tree.records.model import Manifest, Unset
from treewright.tree.records.steering import Command, Steering, describe, new_command
from treewright.tree.run import command_effects, command_files
from treewright.tree.run.command_files import CommandFile
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

BEAM: dict[str, Any] = {"sweep_config_limit": 8, "ideas_per_node": 2, "max_depth": 3}
STEADY: dict[str, Any] = {**BEAM, "max_total_idea_evals": 8, "dedupe_scope": "none"}
Observer = Callable[[ev.Event], None]


def run(
    toy: ToyRepository,
    policy: str | None = None,
    observer: Observer = lambda _: None,
    *,
    workers: int = 1,
    most: int | None = None,
    **shape: Any,
) -> Manifest:
    """Search to the end, or for the given number of steps, and validate."""
    request = RunRequest(
        toy.path,
        "run",
        shape=Shape(**shape),
        choosing=PolicyChoice(policy),
        preflight=False,
        parallelism=Parallelism(workers),
    )
    with open_run(request, observer) as coordinator:
        steps = 0
        while steps != most and coordinator.advance():
            steps += 1
        found = coordinator.manifest
        run_dir = coordinator.store.run_dir
    assert validate(run_dir, toy.path) == []
    assert not list((run_dir / "steering").glob("*")) or most is not None
    return found


def steer(toy: ToyRepository, action: Any, text: str = "", **fields: Any) -> str:
    command = new_command(action, **fields)
    command_files.submit(toy.run_dir("run"), CommandFile(command, text))
    return command.command_id


def records(manifest: Manifest) -> list[Steering]:
    return [] if isinstance(manifest.steering, Unset) else manifest.steering


def after(toy: ToyRepository, count: int, action: Any, text: str = "", **fields: Any) -> Observer:
    """Steer once the given number of evaluations have an outcome."""
    seen = 0

    def observe(event: ev.Event) -> None:
        nonlocal seen
        if isinstance(event, ev.Completed | ev.Failed):
            seen += 1
            if seen == count:
                steer(toy, action, text, **fields)

    return observe


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_a_stopped_run_can_be_resumed(toy: ToyRepository, policy: str | None) -> None:
    shape = STEADY if policy else BEAM
    found = run(toy, policy, after(toy, 1, "stop"), **shape)
    assert found.stop_reason == "stopped"
    assert found.spent.evals < 8
    again = run(toy)
    assert again.stop_reason == "stopped", "it stays stopped"
    steer(toy, "resume")
    final = run(toy)
    assert final.stop_reason not in (None, "stopped")
    assert [r.command.action for r in records(final)] == ["stop", "resume"]
    assert all("@" in r.command.by and r.at for r in records(final))


@pytest.mark.parametrize("workers", [1, 2])
def test_stop_now_ends_running_evaluations(toy: ToyRepository, workers: int) -> None:
    """The sweep waits until the search ends it."""
    toy.write("sweep.sh", "sleep 1000\n")
    toy.commit("a sweep without end")

    def observe(event: ev.Event) -> None:
        if isinstance(event, ev.Started):
            steer(toy, "stop", now=True)

    found = run(toy, None, observe, workers=workers, **BEAM)
    assert found.stop_reason == "stopped"
    assert {e.status for e in found.evaluations.values()} == {"pending"}
    assert found.spent.evals == 2


def test_pause_holds_the_search_until_resume(toy: ToyRepository) -> None:
    timers: list[threading.Timer] = []

    def observe(event: ev.Event) -> None:
        if isinstance(event, ev.Completed) and not timers:
            steer(toy, "pause")
            timers.append(threading.Timer(0.0, lambda: None))
        if isinstance(event, ev.Steered) and event.record.command.action == "pause":
            timers.append(threading.Timer(0.1, steer, (toy, "resume")))
            timers[-1].start()

    found = run(toy, None, observe, **BEAM)
    assert found.stop_reason not in (None, "stopped")
    assert [r.command.action for r in records(found)] == ["pause", "resume"]


def test_a_paused_run_ends_at_the_first_signal(toy: ToyRepository) -> None:
    run(toy, most=0, **BEAM)
    steer(toy, "pause")
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    request = RunRequest(toy.path, "run")
    with (
        pytest.raises(KeyboardInterrupt),
        open_run(request, cancel=cancel) as coordinator,
    ):
        coordinator.advance()


@pytest.mark.parametrize("policy", [None, "best-first", "ab-mcts"])
@pytest.mark.parametrize("first", [False, True])
def test_an_injected_idea_is_tried(toy: ToyRepository, policy: str | None, first: bool) -> None:
    shape = STEADY if policy else BEAM
    text = set_parameter("A", 7.5)
    observe = after(toy, 2, "inject", text, node_id="n0000", first=first)
    found = run(toy, policy, observe, **shape)
    (record,) = records(found)
    assert record.refused is None, record.refused
    (tried,) = [e for e in found.evaluations.values() if e.idea_path == record.idea_path]
    assert tried.parent_node_id == "n0000"
    assert tried.decision is not None
    assert tried.decision.fate in ("promoted", "beyond_beam")
    if first:
        assert int(tried.eval_id[1:]) == record.evaluations + 1, "it comes next"


def test_a_depth_may_have_an_injected_idea_and_no_other(toy: ToyRepository) -> None:
    """No source is called: the node is not expanded, and all other nodes are banned."""
    shape: dict[str, Any] = {**BEAM, "max_depth": 2, "elites": 0}
    begun = run(toy, most=1, **shape)
    for node_id in begun.frontier:
        steer(toy, "ban", node_id=node_id)
    steer(toy, "inject", set_parameter("A", 8.5), node_id="n0000")
    depth = run(toy).depths[1]
    assert (len(depth.eval_ids), depth.frontier) == (1, [])


def test_a_finished_run_tries_an_injected_idea_and_goes_on(toy: ToyRepository) -> None:
    run(toy, None, **{**BEAM, "max_depth": 9})
    steer(toy, "inject", set_parameter("A", 8.5))
    found = run(toy)
    (record,) = records(found)
    assert record.refused is None
    assert any(e.idea_path == record.idea_path for e in found.evaluations.values())


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_a_banned_idea_is_not_tried(toy: ToyRepository, policy: str | None) -> None:
    run(toy, policy, most=0, **(STEADY if policy else BEAM))
    steer(toy, "ban", pattern="# set [ab] to")
    found = run(toy)
    titles = {
        (toy.run_dir("run") / e.idea_path).read_text().splitlines()[0]
        for e in found.evaluations.values()
    }
    assert titles
    assert not any(title.startswith(("# Set A", "# Set B")) for title in titles)
    dedupe = found.nodes["n0000"].dedupe
    assert dedupe is not None
    assert describe_skipped(dedupe.skipped[:1]) == ", 1 banned", "and no duplicate"


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_a_pattern_with_many_wildcards_does_not_delay_the_search(
    toy: ToyRepository, policy: str | None
) -> None:
    toy.write("ideas/00.md", set_parameter("A", 1.5) + "\n<!-- " + "a" * 5000 + "! -->\n")
    toy.commit("an idea with a long line")
    shape: dict[str, Any] = {**(STEADY if policy else BEAM), "dry_run": True}
    run(toy, policy, most=0, **shape)
    steer(toy, "ban", pattern="*a" * 40 + "b")
    assert run(toy).stop_reason is not None


def test_a_ban_does_not_block_on_an_idea_that_has_become_a_pipe(toy: ToyRepository) -> None:
    shape: dict[str, Any] = {**STEADY, "dry_run": True}
    # The next owner has untried ideas; a candidate replaced one of their files.
    found = run(toy, "best-first", most=1, **shape)
    tried = {e.idea_path for e in found.evaluations.values()}
    path = next(i.path for n in found.nodes.values() for i in n.ideas if i.path not in tried)
    idea = toy.run_dir("run") / path
    text = idea.read_bytes()
    idea.unlink()
    os.mkfifo(idea)
    writer = os.open(idea, os.O_RDWR)  # else a reader that opens the pipe would block for ever
    try:
        os.write(writer, text)
        command = new_command("ban", pattern="nothing")
        with pytest.raises(command_effects.Refused, match="a pipe, not a file"):
            command_effects._ban(found, command, toy.run_dir("run"))
    finally:
        os.close(writer)


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_a_banned_node_is_not_expanded(toy: ToyRepository, policy: str | None) -> None:
    shape = {**(STEADY if policy else BEAM), "ideas_per_node": 5}
    shape |= {} if policy else {"elites": 0}
    found = run(toy, policy, after(toy, 5, "ban", node_id="n0001"), **shape)
    (record,) = records(found)
    assert record.refused is None
    later = list(found.evaluations.values())[record.evaluations :]
    assert all(e.parent_node_id != "n0001" for e in later)
    if policy is None:
        assert found.stop_reason == "empty_frontier", "it was the only one"
    else:
        assert later


@pytest.mark.parametrize("order", ["fixed", "live"])
def test_a_boosted_node_is_expanded_next(toy: ToyRepository, order: Any) -> None:
    observe = after(toy, 3, "boost", node_id="n0000", times=2)
    request = RunRequest(
        toy.path,
        "run",
        shape=Shape(**STEADY),
        choosing=PolicyChoice("best-first", order=order),
        preflight=False,
    )
    with open_run(request, observe) as coordinator:
        coordinator.finish()
        found = coordinator.manifest
    assert validate(toy.run_dir("run"), toy.path) == []
    (record,) = records(found)
    assert record.refused is None
    later = list(found.evaluations.values())[record.evaluations :][:2]
    assert [e.parent_node_id for e in later] == ["n0000", "n0000"]


def test_a_boost_returns_a_node_to_the_frontier(toy: ToyRepository) -> None:
    found = run(toy, most=1, **BEAM)
    assert "n0000" not in found.frontier
    steer(toy, "boost", node_id="n0000")
    found = run(toy)
    assert "n0000" in found.depths[1].frontier
    assert any(e.depth == 2 and e.parent_node_id == "n0000" for e in found.evaluations.values())


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_the_budget_can_be_changed_during_a_run(toy: ToyRepository, policy: str | None) -> None:
    shape = {**(STEADY if policy else BEAM), "max_total_idea_evals": 4}
    observe = after(toy, 2, "budget", settings={"max_total_idea_evals": 6})
    found = run(toy, policy, observe, **shape)
    assert found.max_total_idea_evals == 6
    assert found.spent.evals > 4 or found.stop_reason == "no_new_ideas"


@pytest.mark.parametrize(
    ("action", "fields", "why"),
    [
        ("resume", {}, "the run is neither paused nor stopped"),
        ("boost", {"node_id": "n0099"}, "there is no node n0099"),
        ("boost", {"node_id": "n0000"}, "n0000 is expanded next in any case"),
        ("inject", {}, "the idea is empty"),
        ("ban", {"pattern": " "}, "the pattern is empty"),
        ("ban", {"pattern": "a\nb"}, "the pattern has more than one line"),
        ("ban", {"pattern": "a" * 10**6}, "the pattern has more than 1000 characters"),
        ("budget", {"settings": {"max_total_idea_evals": 1}}, None),
        ("budget", {"settings": {"seed": 1}}, "seed cannot be changed"),
        *(
            ("extend", {"settings": settings}, "the settings are not what they must be")
            for settings in (
                {"max_depth": "2"},
                {"max_depth": 1.5},
                {"max_depth": None},
                {"beam_width": 0},
                {"beam_width": 10**18},
                {"max_total_idea_evals": True},
                {"stop_on_empty_frontier": 3},
                {"patience": "a"},
                {"elites": -3},
                {"caps": "x"},
                {"caps": {"tokens": 1}},
                {"caps": {"cost_usd": {"all": "nan"}}},
            )
        ),
    ],
)
def test_a_command_that_cannot_be_applied_has_a_reason(
    toy, action: str, fields, why: str | None
) -> None:
    run(toy, most=0, **BEAM)
    steer(toy, action, **fields)
    found = run(toy, most=1)
    (record,) = records(found)
    if why is None:
        assert record.refused is None
    else:
        assert record.refused is not None
        assert record.refused.startswith(why)
    assert store.load(toy.run_dir("run")).spent == found.spent, "the run can still be opened"


def test_an_idea_that_was_chosen_before_is_refused(toy: ToyRepository) -> None:
    run(toy, most=1, **BEAM)
    steer(toy, "inject", set_parameter("A", 2.0), node_id="n0000")
    (record,) = records(run(toy, most=1))
    assert record.refused == "the idea was chosen before: node_ideas/n0000/idea_000.md"


def test_a_command_with_a_remaining_file_is_not_applied_twice(toy: ToyRepository) -> None:
    run(toy, most=0, **BEAM)
    name = steer(toy, "ban", pattern="nothing like it")
    path = toy.run_dir("run") / "steering" / f"{name}.json"
    data = path.read_bytes()
    run(toy, most=1)
    assert not path.exists()
    path.write_bytes(data)
    assert len(records(run(toy))) == 1


def test_a_file_that_is_not_a_command_is_left_alone(toy: ToyRepository) -> None:
    run(toy, most=0, **BEAM)
    place = toy.run_dir("run") / "steering"
    place.mkdir()
    (place / "a.json").write_text("{")
    (place / "b.json").symlink_to("/dev/zero")
    with pytest.raises(AssertionError):
        run(toy)  # logs the files that it skipped; the files stay
    assert {path.name for path in place.iterdir()} == {"a.json", "b.json"}


def test_steering_a_missing_run_is_an_error(treewright, toy: ToyRepository) -> None:
    result = treewright("steer", "none", "pause", "--repo", str(toy.path))
    assert result.returncode == 2
    assert "no tree run at" in result.stderr


def test_the_steer_command_submits_and_reports(
    treewright, toy: ToyRepository, tmp_path: Path
) -> None:
    run(toy, most=0, **BEAM)
    idea = tmp_path / "idea.md"
    idea.write_text(set_parameter("A", 7.5))
    at = ("--repo", str(toy.path))
    assert treewright("steer", "run", "inject", str(idea), "--at", "n0000", *at).returncode == 0
    wrong = treewright("steer", "run", "pause", "--now", *at)
    assert "--now means nothing with pause; it goes with stop" in wrong.stderr
    assert "boost needs NODE" in treewright("steer", "run", "boost", *at).stderr
    table = treewright("steer", "run", "show", *at).stdout.splitlines()
    assert table[0].split() == ["asked", "at", "state", "evaluation", "what"]
    assert "waiting" in table[1]
    assert "inject" in table[1]
    shown = json.loads(treewright("steer", "run", "show", "--json", *at).stdout)
    assert [command["action"] for command in shown["waiting"]] == ["inject"]
    run(toy)
    assert "applied  after 0" in treewright("steer", "run", "show", *at).stdout
    shown = json.loads(treewright("steer", "run", "show", "--json", *at).stdout)
    assert shown["waiting"] == []
    assert shown["applied"][0]["node_id"] == "n0000"


def test_changes_are_described_in_words() -> None:
    command = Command(
        command_id="1",
        action="budget",
        by="me@here",
        requested_at="now",
        settings={"max_depth": 3, "caps": {"cost_usd": {"all": 3.0, "coder": 2.0}}},
    )
    before = {"max_depth": 2, "caps": {"cost_usd": {"all": 0.9, "coder": 2.0}}}
    record = Steering(command=command, depth=1, evaluations=2, before=before)
    assert describe(record) == (
        "budget max_depth 3 (was 2), max_cost_usd 3 (was 0.9), "
        "max_cost_usd of the coder 2, by me@here"
    )
