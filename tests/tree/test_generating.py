"""Ideas for several nodes are generated concurrently, with the same result as one after the
other."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parallel.harness import Shuffled
from tests.toy import ToyRepository
from tests.tree.steady.running import DRY, POLICIES, as_bytes, steady
from treewright.kernel.executors.protocol import Done
from treewright.llm.usage import Usage
from treewright.tree.ideas.idea_source import (
    DirectorySource,
    GeneratorFailure,
    IdeaSourceError,
    Proposals,
)
from treewright.tree.records import usage_log
from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

LONG = 120
"""The wait after which a thread that did not come counts as missing, in seconds."""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    return ToyRepository.create(tmp_path_factory.mktemp("generating") / "repo")


def beam(toy: ToyRepository, run_id: str, workers: int, **shape) -> Manifest:
    request = RunRequest(
        toy.path,
        run_id,
        shape=Shape(**{"ideas_per_node": 5, "beam_width": 3, "max_depth": 2, "dry_run": True,
                       "sweep_config_limit": 8, "dedupe_scope": "none", **shape}),
        preflight=False,
        parallelism=Parallelism(max_evals=workers),
    )  # fmt: skip
    with open_run(request) as coordinator:
        coordinator.finish()
        return coordinator.manifest


class Sources:
    """Idea sources that count concurrent calls; each call waits until `company` others are
    running."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, company: int = 1) -> None:
        self.most = 0
        self.asked: list[str] = []
        self._company = company
        self._now: set[str] = set()
        self._changed = threading.Condition()
        real = DirectorySource.propose

        def propose(source: DirectorySource, context, taken) -> Proposals:
            with self._changed:
                self.asked.append(context.node_id)
                self._now.add(context.node_id)
                self.most = max(self.most, len(self._now))
                self._changed.notify_all()
                if context.node_id != "n0000":
                    assert self._changed.wait_for(lambda: self.most >= self._company, LONG)
            try:
                return real(source, context, taken)
            finally:
                with self._changed:
                    self._now.remove(context.node_id)

        monkeypatch.setattr(DirectorySource, "propose", propose)


def test_the_nodes_of_a_beam_are_expanded_concurrently(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = beam(toy, "beam-1", 1)
    assert len(alone.depths[1].frontier) == 2
    sources = Sources(monkeypatch, company=2)
    beam(toy, "beam-3", 3)
    assert sources.most == 2
    assert as_bytes(toy.run_dir("beam-3")) == as_bytes(toy.run_dir("beam-1"))
    assert validate(toy.run_dir("beam-3"), toy.path) == []


@pytest.mark.parametrize(
    "shape",
    [{"dedupe_scope": "global"}, {"caps": {"tokens": {"all": 1e9}}}],
    ids=["global", "caps"],
)
def test_a_source_that_depends_on_earlier_ideas_waits_for_them(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, shape: dict
) -> None:
    name = "-".join(shape)
    beam(toy, f"{name}-1", 1, **shape)
    sources = Sources(monkeypatch)
    beam(toy, f"{name}-3", 3, **shape)
    assert sources.most == 1
    assert as_bytes(toy.run_dir(f"{name}-3")) == as_bytes(toy.run_dir(f"{name}-1"))


def test_a_budget_that_ends_within_a_depth_is_shared_in_order(toy: ToyRepository) -> None:
    for workers in (1, 3):
        found = beam(toy, f"budget-{workers}", workers, max_total_idea_evals=12)
        assert found.spent.evals == 12
    assert as_bytes(toy.run_dir("budget-3")) == as_bytes(toy.run_dir("budget-1"))


def test_after_a_failed_expansion_the_following_nodes_are_expanded_again(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    beam(toy, "whole", 1)
    real = DirectorySource.propose
    others = threading.Event()

    def failing(source: DirectorySource, context, taken) -> Proposals:
        if context.node_id == "n0001":
            assert others.wait(LONG)
            raise IdeaSourceError("the source is away")
        others.set()
        return real(source, context, taken)

    with monkeypatch.context() as patch:
        patch.setattr(DirectorySource, "propose", failing)
        with pytest.raises(IdeaSourceError, match="the source is away"):
            beam(toy, "away", 2)
    beam(toy, "away", 2)
    assert as_bytes(toy.run_dir("away")) == as_bytes(toy.run_dir("whole"))


def test_a_generator_that_fails_for_one_node_does_not_end_the_run(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next source is called; without one the search continues with the other nodes. If no node
    has ideas, the run pauses and calls the generator again when it is resumed."""
    real = DirectorySource.propose
    failing = {"n0001"}

    def propose(source: DirectorySource, context, taken) -> Proposals:
        if context.node_id in failing:
            (context.scratch / "llm.log").write_text("I would rather not.")
            raise GeneratorFailure(f"it refused (log: {context.scratch}/llm.log)", Usage(7, 3))
        return real(source, context, taken)

    monkeypatch.setattr(DirectorySource, "propose", propose)
    done = beam(toy, "one", 1)
    assert done.nodes["n0001"].expanded_for_depth == 2
    assert done.nodes["n0001"].ideas == []
    assert done.nodes["n0002"].ideas
    assert done.spent.prompt_tokens + done.spent.completion_tokens == 10
    log = toy.run_dir("one") / "node_ideas/n0001/failed_source_0/llm.log"
    assert log.read_text() == "I would rather not."
    assert f"it refused (log: {log})" in (toy.run_dir("one") / "events.jsonl").read_text()
    assert validate(toy.run_dir("one"), toy.path) == []
    failing |= {"n0000", "n0002"}
    with pytest.raises(IdeaSourceError, match="paused: no ideas for n0000: it refused"):
        beam(toy, "none", 1)
    failing.clear()
    assert beam(toy, "none", 1).stop_reason is not None


@pytest.mark.parametrize("order", ["fixed", "live"])
def test_a_failing_generator_without_a_barrier_affects_only_its_node(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    real = DirectorySource.propose
    failing = {"n0002"}

    def propose(source: DirectorySource, context, taken) -> Proposals:
        if context.node_id in failing:
            raise GeneratorFailure("it refused", Usage(7, 3))
        return real(source, context, taken)

    monkeypatch.setattr(DirectorySource, "propose", propose)
    done = steady(toy.path, f"refused-{order}", "mcts", order=order)
    assert done.policy_record is not None
    assert "n0002" in {each.node_id for each in done.policy_record.exhausted}
    assert done.spent.evals == DRY.max_total_idea_evals
    assert validate(toy.run_dir(f"refused-{order}"), toy.path) == []
    failing.add("n0000")
    with pytest.raises(IdeaSourceError, match="paused: no ideas for n0000: it refused"):
        steady(toy.path, f"none-{order}", "mcts", order=order)
    failing.clear()
    assert steady(toy.path, f"none-{order}", None).spent.evals == DRY.max_total_idea_evals


def test_the_next_source_is_called_after_a_failed_one(tmp_path: Path) -> None:
    """The failed source is a user's program that is tried three times; each retry receives the
    previous error."""
    toy = ToyRepository.create(tmp_path / "repo")
    said = 'echo "before: $TREEWRIGHT_PREVIOUS_FAILURE" >> "$0.log"; echo \'no more\' >&2; exit 3\n'
    toy.write("no.sh", said)
    config = (toy.path / "treewright.toml").read_text()
    command = f'command = "sh {toy.path}/no.sh"'
    first = f'[[ideas]]\nsource = "command"\n{command}\npass_arguments = false\n\n'
    toy.write("treewright.toml", config.replace("[[ideas]]", first + "[[ideas]]", 1))
    toy.write(".gitignore", "no.sh.log\n")
    toy.commit()
    done = beam(toy, "next", 1, dry_run=False, max_total_idea_evals=1)
    assert done.spent.evals == 1
    log = toy.run_dir("next") / "node_ideas/n0000/failed_source_0/generator.log"
    assert log.read_text() == "no more\n"
    tries = (toy.path / "no.sh.log").read_text().splitlines()
    assert tries[0] == "before: "
    assert len(tries) == 3
    assert tries[1].startswith("before: the idea generator exited with code 3: no more (log: ")


class Waiting:
    """Idea sources that return when the search is blocked until one of them does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tokens: int = 0) -> None:
        self._tokens = tokens
        self.most, self.asked = 0, 0
        self._now = 0
        self._gate = threading.Event()
        self._lock = threading.Lock()
        real = DirectorySource.propose

        def propose(source: DirectorySource, context, taken) -> Proposals:
            with self._lock:
                self._now += 1
                self.asked += 1
                self.most = max(self.most, self._now)
                gate = self._gate
            assert gate.wait(LONG)
            cost = Usage(prompt_tokens=self._tokens)
            usage_log.add(context.scratch.parent, cost, usage_log.of_expansion(context.round))
            with self._lock:
                self._now -= 1
            return Proposals(real(source, context, taken).ideas, cost)

        monkeypatch.setattr(DirectorySource, "propose", propose)

    def let_through(self) -> None:
        with self._lock:
            self._gate.set()
            self._gate = threading.Event()

    def executor(self, work) -> Shuffled:
        waiting = self

        class Letting(Shuffled):
            def next_done(self, timeout: float | None = None) -> Done | None:
                waiting.let_through()
                return super().next_done(timeout)

        return Letting(work, 5, 4, 0.0)


FEW = replace(DRY, ideas_per_node=1, max_total_idea_evals=30)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_search_without_a_barrier_generates_ideas_concurrently(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """There are few ideas, so that nodes run out of them while ideas for other nodes are
    generated."""
    steady(toy.path, f"{policy}-alone", policy, FEW, lookahead=8)
    waiting = Waiting(monkeypatch)
    found = steady(
        toy.path, f"{policy}-many", policy, FEW, lookahead=8,
        parallelism=Parallelism(max_evals=8), make_executor=waiting.executor,
    )  # fmt: skip
    alone, many = toy.run_dir(f"{policy}-alone"), toy.run_dir(f"{policy}-many")
    assert as_bytes(many) == as_bytes(alone)
    assert validate(many, toy.path) == []
    assert unrecorded(many, found) == []
    if policy != "best-first":  # best-first chooses the same node repeatedly
        assert waiting.most > 1


def test_unused_ideas_count_towards_the_cost(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch, tokens=1)
    found = steady(
        toy.path, "paid", "random", FEW, lookahead=8,
        parallelism=Parallelism(max_evals=8), make_executor=waiting.executor,
    )  # fmt: skip
    assert found.policy_record is not None
    assert found.policy_record.exhausted
    assert found.spent.prompt_tokens == waiting.asked > found.policy_record.expansions


@pytest.mark.parametrize("order", ["fixed", "live"])
def test_ideas_generated_before_a_stop_are_paid_when_the_run_resumes(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """One source fails after its call was paid, while another is called for a later choice. In live
    order the next expansion is that of another node."""
    waiting = Waiting(monkeypatch, tokens=1)
    answer = DirectorySource.propose
    rounds: list[int] = []
    failed = threading.Event()

    def failing(source: DirectorySource, context, taken) -> Proposals:
        rounds.append(context.round)
        found = answer(source, context, taken)
        is_first = order == "live" or context.round < max(rounds)
        if is_first and context.node_id != "n0000" and not failed.is_set():
            failed.set()
            raise IdeaSourceError("the source is away")
        return found

    def go_on(policy: str | None) -> Manifest:
        return steady(
            toy.path, f"paid-{order}", policy, FEW, order=order if policy else None, lookahead=8,
            parallelism=Parallelism(max_evals=8), make_executor=waiting.executor,
        )  # fmt: skip

    monkeypatch.setattr(DirectorySource, "propose", failing)
    with pytest.raises(IdeaSourceError, match="the source is away"):
        go_on("random")
    if order == "live":  # as if another node had been chosen
        name = usage_log.of_expansion(rounds[-1])
        ideas = toy.run_dir("paid-live") / "node_ideas"
        (log,) = ideas.glob(f"*/{name}")
        others = (path for path in sorted(ideas.iterdir()) if path != log.parent)
        log.rename(next(others) / name)
    assert go_on(None).spent.prompt_tokens == waiting.asked == len(rounds)


@pytest.mark.parametrize("policy", [None, "mcts"], ids=["beam", "mcts"])
def test_a_search_resumes_after_any_part_of_an_expansion_was_recorded(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, policy: str | None
) -> None:
    """The directory also has the idea files of every pending expansion, which no journal line
    mentions."""
    name = f"cut-{policy}"
    run_dir = toy.run_dir(name)
    waiting = Waiting(monkeypatch) if policy is not None else None

    def go_on(policy: str | None, shape: Shape | None = None) -> Manifest:
        assert waiting is not None
        return steady(
            toy.path, name, policy, shape or FEW, lookahead=8,
            parallelism=Parallelism(max_evals=8), make_executor=waiting.executor,
        )  # fmt: skip

    if policy is None:
        beam(toy, name, 2)
    else:
        go_on(policy, replace(FEW, max_total_idea_evals=12))
    expected = as_bytes(run_dir)
    lines = (run_dir / "events.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in lines]
    ends = [place for place, kind in enumerate(kinds) if kind == "expanded"]
    assert len(ends) > 2
    for end in ends[:: 3 if policy else 1]:
        (run_dir / "manifest.json").unlink()
        (run_dir / "node_ideas" / "n0001" / "idea_999.md").write_text("# Of a killed owner\n")
        (run_dir / "events.jsonl").write_bytes(b"".join(lines[:end]))
        if policy is None:
            found = beam(toy, name, 2)
        else:
            found = go_on(None)
        assert unrecorded(run_dir, found) == []
        assert as_bytes(run_dir) == expected, f"cut before line {end}"
    assert validate(run_dir, toy.path) == []


def unrecorded(run_dir: Path, manifest: Manifest) -> list[str]:
    recorded = {idea.path for node in manifest.nodes.values() for idea in node.ideas}
    there = {str(path.relative_to(run_dir)) for path in run_dir.glob("node_ideas/*/idea_*.md")}
    return sorted(there - recorded)
