"""Does it pay to tell a generator what came of its ideas? Evaluations to the optimum, both ways.

Two scripted generators, on a task of modules to be chosen right (the score says how many are) and
one of numbers to be tuned. Both are told what a command is told, as JSON; one of them is kept from
the tries. Runs are real but for git and the measured code: the score is computed.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from tests.toy import ToyRepository

from benchmarks.measure import Row, Table
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.storage import artifacts
from treewright.tree.deciding.scoring import score_results
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.ideas import expansion, node_description
from treewright.tree.ideas.idea_source import Idea, NodeContext, Proposals
from treewright.tree.records import layout, summary
from treewright.tree.records.model import EvalOutcome
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run

BUDGET = 300
IDEAS_PER_NODE = 4
State = list[float]
Change = tuple[int, float]
CONFIG = """\
baseline_csv = "baseline.csv"
[sweep]
command = "true"
[[metrics]]
name = "quality"
direction = "maximize"
primary = true
deterministic = true
[[ideas]]
source = "directory"
path = "ideas"
"""


@dataclass(frozen=True)
class Modules:
    """Eight modules with five variants each; the score is the share that is right."""

    seed: int
    name: str = "k modules"
    target: float = 1.0

    def start(self) -> State:
        return [0.0] * 8

    def quality(self, state: State) -> float:
        rng = random.Random(self.seed)
        right = [rng.randrange(1, 5) for _ in state]
        return (1 + sum(a == b for a, b in zip(state, right, strict=True))) / (1 + len(state))

    def guess(self, state: State, rng: random.Random) -> Change:
        return rng.randrange(len(state)), float(rng.randrange(5))

    def learn(self, state: State, tries: list[tuple[Change, float, float]]) -> Iterator[Change]:
        """Which variants are still possible: a score that fell says that what was there is right,
        one that rose that what came is, one that stayed that neither is."""
        possible = [set(map(float, range(5))) for _ in state]
        for (place, value), old, gain in tries:
            if gain > 0:
                possible[place] = {value}
            elif gain < 0:
                possible[place] = {old}
            else:
                possible[place] -= {value, old}
        for place, variants in enumerate(possible):
            untried = sorted(variants - {state[place]})
            if untried and variants != {state[place]}:
                yield place, untried[0]


@dataclass(frozen=True)
class Numbers:
    """Three numbers, each with a best value of its own."""

    seed: int
    name: str = "numbers"
    target: float = 0.9999

    def start(self) -> State:
        return [0.0] * 3

    def quality(self, state: State) -> float:
        rng = random.Random(self.seed)
        goal = [rng.uniform(-2.0, 2.0) for _ in state]
        return 1.0 - math.dist(state, goal) ** 2 / 50.0

    def guess(self, state: State, rng: random.Random) -> Change:
        place = rng.randrange(len(state))
        return place, round(state[place] + rng.gauss(0.0, 0.5), 4)

    def learn(self, state: State, tries: list[tuple[Change, float, float]]) -> Iterator[Change]:
        """Two steps of one number say where a parabola has its top."""
        for place, now in enumerate(state):
            steps = [(old, value, gain) for (at, value), old, gain in tries if at == place]
            distinct = {value: (old, value, gain) for old, value, gain in steps if value != old}
            if len(distinct) < 2:
                yield place, round(now + (0.5, -0.5)[len(distinct)], 4)
                continue
            (a, b, gain), (c, d, other) = list(distinct.values())[:2]
            # gain = k (b - a) (2 g - a - b), and the same for the other: solved for g.
            left, right = gain * (d - c), other * (b - a)
            if left != right:
                top = (left * (c + d) - right * (a + b)) / (2 * (left - right))
                if abs(top - now) > 1e-4:
                    yield place, round(top, 4)


Task = Modules | Numbers


class Generator:
    """Proposes single changes. `told` is whether it is shown what came of earlier ones."""

    def __init__(self, task: Task, told: bool) -> None:
        self._task = task
        self._told = told

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        node: dict[str, Any] = json.loads(msgspec.json.encode(node_description.build_json(context)))
        states, state = self._states(node["path"])
        changes: list[Change] = []
        if self._told:
            changes += self._task.learn(state, list(self._tries(node["tries"], states)))
        rng = random.Random(f"{self._task.seed}:{context.node_id}:{context.round}")
        while len(changes) < context.wanted:
            guessed = self._task.guess(state, rng)
            if guessed[1] != state[guessed[0]]:
                changes.append(guessed)
        return Proposals([Idea(_text(state, change), "script") for change in changes])

    def _states(self, path: list[dict[str, Any]]) -> tuple[dict[str, State], State]:
        state, states = self._task.start(), {}
        for step in path:
            change = _change(step["idea"])
            if change is not None:
                state = _changed(state, change)
            states[step["node_id"]] = state
        return states, state

    def _tries(
        self, tries: list[dict[str, Any]], states: dict[str, State]
    ) -> Iterator[tuple[Change, float, float]]:
        """What was changed from what, and what it gained; of nodes on the path."""
        for found in tries:
            change = _change(found["idea"])
            if change is not None and found["node_id"] in states and found["gain"] is not None:
                yield change, states[found["node_id"]][change[0]], found["gain"]


def _text(state: State, change: Change) -> str:
    return f"# Set {change[0]} to {change[1]!r}\n\n{json.dumps(_changed(state, change))}\n"


def _change(title: str) -> Change | None:
    found = re.fullmatch(r"Set (\d+) to (\S+)", title)
    return (int(found[1]), float(found[2])) if found else None


def _changed(state: State, change: Change) -> State:
    return [change[1] if place == change[0] else value for place, value in enumerate(state)]


def evaluator(task: Task) -> Callable[[EvalRequest], EvalOutcome]:
    """Computes what a sweep would measure; everything after that is real."""

    def evaluate(request: EvalRequest) -> EvalOutcome:
        state = json.loads(request.idea.decode().split("\n\n")[1])
        run_dir = Path(request.run_dir)
        data = _csv(task.quality(state))
        kept = artifacts.keep(data, run_dir, layout.results(request.eval_id), "computed")
        parent, root = score_results(
            data, request.parent_baseline.data, request.root_baseline.data, request.expected_ids,
            request.config, request.seed,
        )  # fmt: skip
        outcome = EvalOutcome(
            candidate_commit=request.parent_commit,
            candidate_tree=hashlib.sha256(repr(state).encode()).hexdigest()[:40],
            results_csv=kept,
            parent_relative=parent.recommendation,
            root_relative=root.recommendation,
        )
        experiment = run_dir / layout.experiment(request.eval_id)
        experiment.mkdir(parents=True, exist_ok=True)
        summary.write(
            experiment / layout.SUMMARY, outcome, eval_id=request.eval_id,
            parent_node_id=request.parent_node_id, idea_path=request.idea_path,
            parent_commit=request.parent_commit, parent_relative=parent, root_relative=root,
        )  # fmt: skip
        return outcome

    return evaluate


def _csv(quality: float) -> bytes:
    return f"config_id,status,quality\n0,ok,{quality!r}\n".encode()


def evaluations_needed(directory: Path, task: Task, *, told: bool) -> int:
    """How many evaluations a search makes until one reaches the task's optimum."""
    name = f"{task.name}-{task.seed}-{told}".replace(" ", "-")
    toy = ToyRepository(directory / name)
    toy.path.mkdir()
    toy.git("init", "-q", "-b", "main")
    toy.write("treewright.toml", CONFIG)
    toy.write("baseline.csv", _csv(task.quality(task.start())).decode())
    toy.commit("a task")
    shape = Shape(
        ideas_per_node=IDEAS_PER_NODE, beam_width=1, max_depth=BUDGET, dry_run=True,
        max_total_idea_evals=BUDGET, stop_on_empty_frontier=False, dedupe_scope="none",
    )  # fmt: skip
    source = mock.patch.object(
        expansion, "make_rehearsal_source", return_value=Generator(task, told)
    )
    with source, open_run(RunRequest(toy.path, "run", shape=shape)) as coordinator:
        coordinator.make_executor = lambda _: InlineExecutor(evaluator(task))  # pyright: ignore[reportAttributeAccessIssue]
        while coordinator.advance():
            for number, found in enumerate(coordinator.manifest.evaluations.values(), start=1):
                if _quality(found.root_relative, task) >= task.target:
                    return number
    return BUDGET


def _quality(found: Any, task: Task) -> float:
    gain = found.primary_gain if found is not None else None
    return -math.inf if gain is None else task.quality(task.start()) + gain + 1e-12


def feedback(quick: bool) -> Table:
    """Median evaluations over seeds, and the ratio of the two generators."""
    seeds = range(3 if quick else 11)
    rows = []
    with tempfile.TemporaryDirectory(prefix="treewright-feedback-") as directory:
        for kind in (Modules, Numbers):
            needed = {
                told: statistics.median(
                    evaluations_needed(Path(directory), kind(seed), told=told) for seed in seeds
                )
                for told in (False, True)
            }
            name = kind(0).name
            rows += [
                Row(f"{name}: without feedback", needed[False], "evaluations"),
                Row(
                    f"{name}: with feedback", needed[True], "evaluations",
                    "without feedback", needed[True] / needed[False], 0.75,
                ),
            ]  # fmt: skip
    return Table(
        "feedback",
        "Evaluations to the optimum, by a generator that is told what came of its ideas",
        rows,
        f"median of {len(seeds)} seeds; at most {BUDGET}",
    )
