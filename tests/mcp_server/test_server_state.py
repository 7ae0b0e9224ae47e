"""State that tools share, without Lean: runs, places, goals, the premise index."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from treewright.cellview.experiment.layout import EXPERIMENTS_DIR, PLAN
from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.lean import processes
from treewright.lean.session.answers import ProofState
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.mcp_server import run_tools, server_state, source_tools, warm_lean
from treewright.mcp_server.call import Call, Stopped
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.tool import Answer, Arguments, tool
from treewright.mcp_server.warm_lean import LeanWorker, WarmLean

# -- runs -----------------------------------------------------------------------------------


def test_an_experiment_is_not_a_run(tmp_path: Path) -> None:
    plan = tmp_path / STATE_DIR / EXPERIMENTS_DIR / "grid" / PLAN
    plan.parent.mkdir(parents=True)
    plan.write_text("{}")
    server = ServerState([tmp_path])
    assert [run.key for run in server.runs.scan()] == ["experiment/0/grid"]
    assert run_tools.runs(server, run_tools.RunsArguments(), Call(1)).total == 0
    for name in ("grid", "experiment/0/grid"):
        with pytest.raises(UsageError, match="that is an experiment, and no run"):
            run_tools.status(server, run_tools.StatusArguments(name), Call(1))


# -- places ---------------------------------------------------------------------------------


class Toolchain:
    """A host that answers only whether it has changed."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.difference = ""

    def changed(self, modules: Iterable[str]) -> str:
        return self.difference


class Opening:
    def __init__(self, project: Path) -> None:
        self.project = project
        self.hosts: list[Toolchain] = []

    def __call__(self) -> Any:
        self.hosts.append(Toolchain(self.project))
        return self.hosts[-1], None


def test_a_changed_toolchain_or_package_is_opened_again(tmp_path: Path) -> None:
    opening = Opening(tmp_path)
    worker = LeanWorker(opening)
    worker.renew_if_outdated()
    assert worker.lean.host is opening.hosts[0]
    worker.renew_if_outdated()
    assert worker.lean.host is opening.hosts[0]
    opening.hosts[0].difference = "Dep.olean"
    worker.renew_if_outdated()
    assert worker.lean.host is opening.hosts[1]


def test_a_module_that_vanishes_during_a_comparison_counts_as_missing(tmp_path: Path) -> None:
    compiled = tmp_path / ".lake" / "build" / "lib"
    compiled.mkdir(parents=True)
    (compiled / "Gone.olean").symlink_to("nowhere")
    opening = Opening(tmp_path)
    worker = LeanWorker(opening)
    assert worker.lean.host is opening.hosts[0]
    (compiled / "Here.olean").touch()
    os.utime(compiled / "Here.olean", (1, 1))
    worker.renew_if_outdated()
    assert worker.lean.host is opening.hosts[1]


@pytest.mark.parametrize("axioms", [DEFAULT_AXIOMS, frozenset({"propext"})])
def test_a_place_is_reopened_after_a_stale_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axioms: frozenset[str]
) -> None:
    opening = Opening(tmp_path)

    def replayer(host: object, **_: object) -> SimpleNamespace:
        ended: list[int] = []
        return SimpleNamespace(
            host=host,
            stale=False,
            close=lambda: None,
            ended=ended,
            processes=SimpleNamespace(end_large=ended.append),
        )

    monkeypatch.setattr(processes, "Replayer", replayer)
    there = WarmLean(opening)
    with there.judging(Call(1), axioms) as first:
        first.stale = True
    assert vars(first)["ended"] == [warm_lean.MAX_HEAP_BYTES], (
        "what grew is looked for after a call"
    )
    with there.judging(Call(1), axioms) as second:
        assert vars(second)["host"] is opening.hosts[1]


def test_a_place_with_goals_is_never_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServerState([tmp_path])
    places: list[WarmLean] = []
    ended: list[int] = []
    for number in range(server_state.MAX_WARM_LEANS + 1):
        project = tmp_path / f"p{number}"
        project.mkdir()
        (project / "lakefile.toml").write_text(f'name = "p{number}"')
        places.append(server.lean_for(project))
        places[-1].used = number
        monkeypatch.setattr(places[-1], "close_if_idle", lambda number=number: ended.append(number))
        monkeypatch.setattr(places[-1], "close", lambda number=number: ended.append(-number))
    assert ended == [0]
    places[0].used = 9  # by a goal of it
    assert server.lean_for(tmp_path / "p3") is places[3]
    assert ended == [0, 1]
    ended.clear()
    server.tidy(idle=-1e18)
    assert sorted(ended) == [0, 1, 2, 3]
    ended.clear()
    server.close()
    assert sorted(ended) == [-3, -2, -1, 0]


def test_a_place_without_processes_reopens_its_project(tmp_path: Path) -> None:
    opening = Opening(tmp_path)
    there = WarmLean(opening)
    for expected in (1, 2):
        with there.judging(Call(1), DEFAULT_AXIOMS):
            assert len(opening.hosts) == expected
        there.close_if_idle()


# -- goals ----------------------------------------------------------------------------------


def test_states_are_freed_in_their_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_state, "MAX_GOALS", 1)
    kept = server_state.GoalStore()
    one, other, lost = (cast("Any", SimpleNamespace(alive=alive)) for alive in (True, True, False))
    states = [cast("ProofState", name) for name in ("in one", "in other", "in lost", "last")]
    for session, state in zip((one, other, lost, one), states, strict=True):
        kept.keep(cast("WarmLean", None), lambda session: states[0], session, state)
    assert kept.take_freed(one) == [states[0]]
    assert kept.take_freed(other) == [states[1]]
    assert kept.take_freed(other) == []
    assert kept.take_freed(lost) == []  # ended with its session


# -- premises -------------------------------------------------------------------------------


def test_an_index_is_not_closed_during_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServerState([tmp_path])
    closed: list[Path] = []

    class Index:
        """An index that receives another call during a search."""

        def __init__(self, path: Path) -> None:
            self.path = path

        def lexical(self, query: str, count: int) -> list[Any]:
            if self.path.name == "Init":
                with pytest.raises(Stopped, match="another call is using the premise index"):
                    ask("Std", Call(0))
            assert closed == ([] if self.path.name == "Init" else [tmp_path / "Init"])
            return []

        def close(self) -> None:
            closed.append(self.path)

    def ask(name: str, call: Call) -> None:
        source_tools.premises(server, source_tools.PremisesArguments("a", imports=(name,)), call)

    monkeypatch.setattr(server_state, "default_path", lambda names: tmp_path / names[0])
    monkeypatch.setattr(
        server_state, "ensure_index", lambda session, names, progress: (tmp_path / names[0]).touch()
    )
    monkeypatch.setattr(server_state, "PremiseIndex", SimpleNamespace(open=Index))
    ask("Init", Call(1))
    ask("Std", Call(1))


# -- time -----------------------------------------------------------------------------------


def test_the_error_of_a_slow_call_states_its_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treewright.mcp_server import server

    monkeypatch.setattr(server, "STARTING_SECONDS", 0.125)

    @tool("slow", lambda given: 0.125)
    def slow(server: ServerState, given: Arguments, call: Call) -> Answer:
        call.stop.wait()
        return Answer()

    params = server.mcp_types.CallToolRequestParams(name="slow", arguments={})
    tools = server.ToolServer(ServerState([tmp_path]), [slow])
    result = asyncio.run(tools._call(cast("Any", None), params))
    assert result.is_error
    assert "not finished after 0.25 s" in str(result.content[0])
