"""`python -m benchmarks.lessons [SET…]`: whether lessons pay on goals that they are not of.

The halves of all sets that rules were tuned on are searched first, and teach. Then every goal of
the halves put aside is searched twice, without lessons and with them, in turns. A search is the
same up to its end whatever its limit, so one run says what each smaller limit would have given.
Not part of `make bench`: it takes an hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
from tests.proving.bank import Sessions, bank, proved

from benchmarks.levels import LEVELS, Level, levels, read_lessons, refused, searched
from benchmarks.prove_bank import RUNNERS
from treewright.lean import sorries
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import StepResult
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving.environment import LeanEnvironment
from treewright.proving.learning import LearnedPriors, Lesson, merge_lessons, select_lessons

BENCH = LEVELS.parent
SETS = ("natural_numbers", "structures", "predicates", "further")
BUDGETS = (5, 10, 25, 50)
_RESAMPLES = 4000


@dataclass(frozen=True)
class Task:
    """A goal of a set, a level or a statement, and how it is opened."""

    of: str
    name: str
    held_out: bool
    open: Callable[[HostSession], StepResult]
    level: Level | None = None
    statement: str = ""


class Tried(msgspec.Struct):
    """What a search came to: how many simulations and tactics until the proof, if there is one."""

    proved: bool
    simulations: int
    tactics: int


Scripts = dict[bool, dict[str, tuple[Task, str]]]
"""The proofs that were found, without lessons and with them, by the name of the goal."""


def tasks(name: str) -> Iterator[Task]:
    path = LEVELS / f"{name}.lean"
    if path.exists():
        yield from (_of_level(name, level) for level in levels(path))
        return
    for goal in bank(BENCH / f"{name}.jsonl"):
        yield _of_statement(name, goal.id, goal.text, goal.held_out)


def _of_level(name: str, level: Level) -> Task:
    return Task(
        name,
        level.name,
        level.held_out,
        lambda session: sorries.extract(session, level.text, until=level.name)[-1].states[0],
        level,
    )


def _of_statement(name: str, identity: str, text: str, held_out: bool) -> Task:
    return Task(name, identity, held_out, lambda session: session.start(text), statement=text)


def search(
    sessions: Sessions,
    task: Task,
    learned: LearnedPriors | None,
    most: int,
    options: argparse.Namespace,
) -> tuple[Tried, str | None, list[Lesson]]:
    environment = LeanEnvironment(sessions, task.open, step_seconds=options.step_seconds)
    try:
        expander, script, done = searched(environment, learned, options.mode, most)
        return Tried(script is not None, done, expander.attempts), script, expander.lessons()
    finally:
        environment.close()


def teach(sessions: Sessions, chosen: Sequence[Task], options: argparse.Namespace) -> list[Lesson]:
    known: list[Lesson] = []
    for task in chosen:
        tried, _, lessons = search(sessions, task, None, options.teaching_simulations, options)
        known = merge_lessons(known, lessons)
        print(f"teaches: {task.of} {task.name} {_said(tried)}", flush=True)
    return known


def compare(
    sessions: Sessions, chosen: Sequence[Task], learned: LearnedPriors, options: argparse.Namespace
) -> tuple[list[tuple[Task, Tried, Tried]], Scripts]:
    rows: list[tuple[Task, Tried, Tried]] = []
    scripts: Scripts = {False: {}, True: {}}
    for number, task in enumerate(chosen):
        results: dict[bool, Tried] = {}
        for given in (False, True) if number % 2 else (True, False):
            results[given], script, _ = search(
                sessions, task, learned if given else None, max(BUDGETS), options
            )
            if script is not None:
                scripts[given][task.name] = (task, script)
        rows.append((task, results[False], results[True]))
        without, with_them = _said(results[False]), _said(results[True])
        print(f"{task.of} {task.name}: without {without}, with {with_them}", flush=True)
    return rows, scripts


def check(
    sessions: Sessions,
    replayer: Replayer,
    rows: Sequence[tuple[Task, Tried, Tried]],
    scripts: Scripts,
) -> None:
    """Takes back what the replay check refuses; the levels of a set are checked as one file."""
    for given, found in scripts.items():
        wrong = {
            task.name
            for task, script in found.values()
            if task.level is None and not proved(replayer, task.statement, script)
        }
        for name in {task.of for task, _ in found.values() if task.level is not None}:
            proofs = {
                task.level: script
                for task, script in found.values()
                if task.level is not None and task.of == name
            }
            path = LEVELS / f"{name}.lean"
            wrong |= {level.name for level in refused(replayer, sessions, path, proofs)}
        for task, without, with_them in rows:
            if task.name in wrong:
                print(f"refused: {task.of} {task.name}", flush=True)
                (with_them if given else without).proved = False


def show(rows: Sequence[tuple[Task, Tried, Tried]]) -> None:
    for budget in BUDGETS:
        without = sum(one.proved and one.simulations <= budget for _, one, _ in rows)
        given = sum(two.proved and two.simulations <= budget for _, _, two in rows)
        print(f"  at most {budget:3} simulations: without {without}, with {given} of {len(rows)}")
    both = [(one, two) for _, one, two in rows if one.proved and two.proved]
    if not both:
        return
    for what in ("simulations", "tactics"):
        pairs = [(getattr(one, what), getattr(two, what)) for one, two in both]
        low, high = _interval([two - one for one, two in pairs])
        print(
            f"  {what} to the proof of the {len(both)} that both prove: without "
            f"{sum(one for one, _ in pairs)}, with {sum(two for _, two in pairs)}; "
            f"a goal {low:+.2f} to {high:+.2f} (95 %)"
        )


def _interval(differences: Sequence[float]) -> tuple[float, float]:
    """Of the mean difference, by drawing goals again."""
    rng = Random(0)
    count = len(differences)
    means = sorted(sum(rng.choices(differences, k=count)) / count for _ in range(_RESAMPLES))
    return means[round(0.025 * _RESAMPLES)], means[round(0.975 * _RESAMPLES) - 1]


def _said(tried: Tried) -> str:
    what = "proved" if tried.proved else "open"
    return f"{what} ({tried.simulations} simulations, {tried.tactics} tactics)"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lessons", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--mode", choices=RUNNERS, default="mcts")
    parser.add_argument("--taught", type=Path, help="lessons: written if the file is not there")
    parser.add_argument("--teaching-simulations", type=int, default=60)
    parser.add_argument("--step-seconds", type=float, default=5.0)
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th goal")
    options = parser.parse_args()
    names = options.sets or SETS
    aside = [task for name in names for task in tasks(name) if task.held_out][:: options.every]
    home = ensure_installed()
    sessions = Sessions(home)
    try:
        if options.taught and options.taught.exists():
            lessons = read_lessons(options.taught)
        else:
            tuned = [task for name in SETS for task in tasks(name) if not task.held_out]
            lessons = teach(sessions, tuned[:: options.every], options)
            if options.taught:
                options.taught.write_bytes(msgspec.json.encode(lessons))
        given = LearnedPriors(select_lessons(lessons))
        with Replayer(home) as replayer:
            rows, scripts = compare(sessions, aside, given, options)
            check(sessions, replayer, rows, scripts)
    finally:
        sessions.close()
    for name in names:
        print(f"{name}, {options.mode}")
        show([row for row in rows if row[0].of == name])
    print(f"all, {options.mode}")
    show(rows)


if __name__ == "__main__":
    main()
