"""One searcher by any policy: the books, the end, the same again; recorded runs."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proving.runs import Prove, SessionFactory, resume
from tests.proving.synthetic import world_expander
from treewright.kernel.errors import StorageError, UsageError
from treewright.lean.verify.replayer import Replayer
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.records import Iteration
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.search import Stamp, iteration_line, make_runner
from treewright.proving.settings import Settings, read_run
from treewright.proving.tactics.factory import build_source
from treewright.proving.trace import read_trace, without_clock
from treewright.search.andor import policies
from treewright.search.andor.graph import Status

SAMPLES = Path(__file__).parent / "sample_runs"
NAMES = list(policies.known())
NEEDS_STEPS = "∀ p q : Prop, (∀ r : Prop, (p → q → r) → r) → p ∧ q"


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(NAMES),
    priors=st.booleans(),
    batch=st.integers(1, 3),
    size=st.integers(3, 80),
    closing=st.sampled_from([0.0, 0.05, 0.2]),
    backup=st.sampled_from(["product", "min"]),
)
def test_the_books_are_right_after_every_simulation(
    seed: int, name: str, priors: bool, batch: int, size: int, closing: float, backup: str
) -> None:
    expander = world_expander(seed, priors=priors, batch=batch, size=size, closing=closing)
    engine = CentralizedEngine(expander, policies.make(name, {"backup": backup}), seed)
    for _ in range(40):
        if engine.finished:
            break
        settled = {node.id for node in engine.tree.nodes if node.status is not Status.OPEN}
        turn = engine.step()
        assert turn.leaf is not None
        assert turn.leaf.id not in settled
        engine.tree.check()


@pytest.mark.parametrize("name", NAMES)
def test_the_search_ends_when_nothing_is_left(name: str) -> None:
    engine = CentralizedEngine(world_expander(3, size=5, closing=0.0), policies.make(name))
    steps = 0
    while not engine.finished:
        engine.step()
        steps += 1
        assert steps < 1000
    assert engine.tree.root.status is Status.DEAD


def test_mcts_makes_the_recorded_choices() -> None:
    """On worlds with priors and without."""
    digest = hashlib.sha256()
    for seed in range(20):
        for priors, batch, closing in ((True, 2, 0.0), (False, 1, 0.05)):
            expander = world_expander(seed, priors=priors, batch=batch, size=80, closing=closing)
            engine = CentralizedEngine(expander, policies.Mcts())
            for number in range(50):
                if engine.finished:
                    break
                line = iteration_line(
                    engine.step(), engine.tree, expander.attempts, Stamp(1, "", number, 0)
                )
                digest.update(msgspec.json.encode(line))
    assert digest.hexdigest() == (
        "9e3be9b32649a732ca60d791bbbbf4526568fdd4271a2e70e32bdbc4923a76cb"
    )


@pytest.mark.parametrize("kind", ["centralized", "distributed"])
def test_a_recorded_run_replays_and_its_settings_are_unchanged(kind: str) -> None:
    run = read_run(SAMPLES / kind / "run.json")
    assert run.settings.policy == policies.Mcts()
    found = replay_offline(SAMPLES / kind, build_source(run.settings))
    assert found.difference == ""
    assert found.iterations
    recorded = json.loads((SAMPLES / kind / "run.json").read_bytes())
    now = json.loads(msgspec.json.encode(run.settings))
    assert json.dumps(now) == json.dumps(recorded["settings"]), "also in order"


def changed(directory: Path, policy: object) -> Path:
    """A run.json with another policy in it."""
    document = json.loads((SAMPLES / "centralized" / "run.json").read_bytes())
    document["settings"]["policy"] = policy
    path = directory / "run.json"
    path.write_text(json.dumps(document))
    return path


def test_a_recorded_policy_that_is_not_here_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no policy 'deep'; there are mcts"):
        read_run(changed(tmp_path, {"type": "deep"}))
    with pytest.raises(StorageError, match="damaged"):
        read_run(changed(tmp_path, 3))
    beam = read_run(changed(tmp_path, {"type": "beam", "width": 3})).settings.policy
    assert beam == policies.Beam(width=3)


@pytest.mark.parametrize("name", ["format_version", "trace_version"])
@pytest.mark.parametrize("version", [None, 0, 2])
def test_a_run_of_another_version_is_refused(
    tmp_path: Path, name: str, version: int | None
) -> None:
    document = json.loads((SAMPLES / "centralized" / "run.json").read_bytes())
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document | {name: version}))
    said = f"{path} has {name} {version}, this treewright reads 1; use the treewright that wrote it"
    with pytest.raises(UsageError, match=re.escape(said)):
        read_run(path)


def test_cells_take_no_other_policy() -> None:
    settings = Settings(mode="distributed", policy=policies.Beam())
    with pytest.raises(UsageError, match="cells choose by their algotypes"):
        make_runner(settings, world_expander(1))


@pytest.mark.xdist_group("lean-session")
@pytest.mark.parametrize("name", ["best-first", "beam", "random"])
def test_each_policy_proves_resumes_and_replays(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, name: str
) -> None:
    asked = Settings(simulations=80, batch=4, step_timeout=20.0, policy=policies.make(name))
    result, directory = prove(NEEDS_STEPS, asked)
    assert [goal.status for goal in result.goals] == ["proved"], result.goals
    assert read_run(directory / "run.json").settings.policy == asked.policy
    trace = directory / "trace.jsonl"
    whole = [without_clock(line) for line in read_trace(trace)]
    found = replay_offline(directory, build_source(asked))
    assert (found.difference, found.iterations) == ("", result.goals[0].iterations)
    live = replay_live(directory, sessions, build_source(asked), replayer)
    assert live.difference == ""
    raw = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(raw[: len(raw) // 2]))
    (directory / "result.json").unlink()
    resume(directory, sessions, replayer)
    assert [without_clock(line) for line in read_trace(trace)] == whole


@pytest.mark.xdist_group("lean-session")
def test_the_negation_is_searched_by_the_policy_of_the_run(prove: Prove) -> None:
    asked = Settings(simulations=3, batch=2, step_timeout=20.0, policy=policies.Beam(width=2))
    result, directory = prove("∀ n : Nat, n + 0 = n ∧ n < n", asked)
    assert result.goals[0].status == "false"
    lines = read_trace(directory / "trace.jsonl")
    assert any(isinstance(line, Iteration) and line.phase == "negate" for line in lines)
    assert sum(isinstance(line, Iteration) and line.phase == "prove" for line in lines) == 3
    assert replay_offline(directory, build_source(asked)).difference == ""
