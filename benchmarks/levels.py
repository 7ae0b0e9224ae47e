"""`python -m benchmarks.levels [SET…]`: the levels of bench/levels, each given the earlier ones.

A level is a theorem of which the proof is taken away, in the file as far as it goes up to there.
Half of each set was put aside before anything was tuned on the other: those whose names have a
sha256 that begins with an odd digit. `--half` chooses. Not part of `make bench`: it takes minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
from tests.proving.bank import Sessions

from benchmarks.prove_bank import RUNNERS, STEP_HELP
from treewright.lean import sorries
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import StepResult
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving.checker import check_texts, with_scripts
from treewright.proving.environment import LeanEnvironment
from treewright.proving.expansion import Expander, estimate_provability
from treewright.proving.learning import LearnedPriors, Lesson, merge_lessons, tactic_shape
from treewright.proving.script import extraction
from treewright.proving.tactics.core import CoreTactics

LEVELS = Path(__file__).parents[1] / "bench" / "levels"
SIMULATIONS = 200
_CHECK_SECONDS = 900.0  # for a whole file; a busy machine is not a refusal
_THEOREM = re.compile(r"^theorem (\S+)", re.MULTILINE)
_OPEN = ":= by\n  sorry"
_NEXT = re.compile(r"^(?=\S)", re.MULTILINE)


@dataclass(frozen=True)
class Level:
    name: str
    text: str
    """The file up to it, without its proof."""
    proof: tuple[int, int]
    """Where its proof is in the file."""

    @property
    def held_out(self) -> bool:
        return int(hashlib.sha256(self.name.encode()).hexdigest()[0], 16) % 2 == 1


def levels(path: Path) -> Iterator[Level]:
    """From the first theorem behind the line `-- Tutorial`, or the first of all."""
    text = path.read_text("utf-8")
    begin = max(0, text.find("\n-- Levels"), text.find("\n-- Tutorial"))
    for found in _THEOREM.finditer(text, begin):
        following = _NEXT.search(text, found.end() + 1)
        whole = text[found.start() : following.start() if following else len(text)]
        statement = whole[: _proof_begins(whole)]
        name = ".".join([*_namespaces(text[: found.start()]), found.group(1)])
        proof = found.start() + len(statement), found.start() + len(whole.rstrip())
        yield Level(name, f"{text[: found.start()]}{statement}{_OPEN}\n", proof)


def _namespaces(before: str) -> list[str]:
    """Those that are open at the end of a text."""
    opened: list[str] = []
    for keyword, name in re.findall(r"^(namespace|end) (\S+)", before, re.MULTILINE):
        opened = [*opened, name] if keyword == "namespace" else opened[:-1]
    return opened


def _proof_begins(theorem: str) -> int:
    depth = 0
    for at, letter in enumerate(theorem):
        depth += (letter in "([{⟨") - (letter in ")]}⟩")
        if depth == 0 and theorem.startswith(":=", at):
            return at
    raise ValueError(f"no proof: {theorem}")


class Teaching:
    """Lessons that a measurement starts with, and those that it adds to a file."""

    def __init__(self, given: Path | None, into: Path | None) -> None:
        self.learned = LearnedPriors(read_lessons(given)) if given else None
        self.spent: dict[str, float] = defaultdict(float)
        self.count: Counter[str] = Counter()
        self._into = into
        self._kept = read_lessons(into) if into and into.exists() else []

    def add(self, lessons: list[Lesson]) -> None:
        if self._into is not None:
            self._kept = merge_lessons(self._kept, lessons)
            self._into.write_bytes(msgspec.json.encode(self._kept))


def read_lessons(path: Path) -> list[Lesson]:
    return msgspec.json.decode(path.read_bytes(), type=list[Lesson])


def search(
    sessions: Sessions, level: Level, teaching: Teaching, mode: str, options: argparse.Namespace
) -> tuple[str | None, int]:
    def opening(session: HostSession) -> StepResult:
        return sorries.extract(session, level.text, until=level.name)[-1].states[0]

    environment = LeanEnvironment(sessions, opening, step_seconds=options.step_seconds)
    try:
        expander, script, done = searched(environment, teaching.learned, mode, options.simulations)
        teaching.add(expander.lessons())
        for _, attempt, _ in expander.tries:
            teaching.spent[tactic_shape(attempt.tactic)] += attempt.ms / 1000
            teaching.count[tactic_shape(attempt.tactic)] += 1
        return script, done
    finally:
        environment.close()


def searched(
    environment: LeanEnvironment, learned: LearnedPriors | None, mode: str, most: int
) -> tuple[Expander, str | None, int]:
    """What tried the tactics, the script that was found, and the simulations until then."""
    expander = Expander(
        environment,
        CoreTactics(),
        estimate_provability,
        known=environment.knowledge,
        learned=learned,
        keeps_tries=True,
    )
    engine = RUNNERS[mode](expander)
    done = 0
    while not engine.finished and done < most:
        engine.step()
        done += 1
    engine.drain()
    root = engine.tree.root
    return expander, extraction.render(extraction.extract(root)) if root.solution else None, done


def measure(path: Path, mode: str, options: argparse.Namespace) -> None:
    half, only, verbose = options.half, options.only, options.verbose
    teaching = Teaching(options.given, options.teach)
    home = ensure_installed()
    sessions = Sessions(home)
    chosen = [
        level
        for level in levels(path)
        if half == "both" or level.held_out == (half == "held-out")
        if not only or re.search(only, level.name)
    ][:: options.every]
    solved: Counter[bool] = Counter()
    begun, cpu = time.perf_counter(), cpu_seconds()
    scripts: dict[Level, str] = {}
    with Replayer(home) as replayer:
        for level in chosen:
            start = time.perf_counter()
            script, simulations = search(sessions, level, teaching, mode, options)
            if script is not None:
                scripts[level] = script
            if verbose or script is None:
                said = "not proved: " if script is None else ""
                took = f"{simulations} simulations, {time.perf_counter() - start:.1f} s"
                print(f"{said}{level.name} ({took})", flush=True)
            if verbose and script:
                print("    " + script.replace("\n", "\n    "), flush=True)
        searched = time.perf_counter()
        rejected = refused(replayer, sessions, path, scripts)
        checking = time.perf_counter() - searched
        for level in rejected:
            print(f"refused: {level.name}", flush=True)
        for level in chosen:
            solved[level.held_out] += level in scripts and level not in rejected
        processor = cpu_seconds() - cpu
    sessions.close()
    seconds = time.perf_counter() - begun
    for aside in (False, True):
        count = sum(level.held_out == aside for level in chosen)
        if count:
            which = "held out" if aside else "tuned on"
            share = solved[aside] / count
            print(f"{path.stem:16} {mode:12} {which}: {solved[aside]} of {count}  {share:.0%}")
    tactics, tries = sum(teaching.spent.values()), sum(teaching.count.values())
    print(
        f"{path.stem:16} {mode:12} {seconds:.0f} s in all ({processor:.0f} of the processor), "
        f"{tactics:.0f} s in {tries} tactics, {checking:.0f} s in the replay check",
        flush=True,
    )
    longest = sorted(teaching.spent.items(), key=lambda item: -item[1])[: options.shapes]
    for shape, spent in longest:
        print(f"    {spent:7.1f} s in {teaching.count[shape]:5} tries of {shape}", flush=True)


def cpu_seconds() -> float:
    """Of this process and of those it started, also of those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = psutil.Process().children(recursive=True)
    times = [process.cpu_times() for process in living if process.is_running()]
    running = sum(spent.user + spent.system for spent in times)
    return time.process_time() + ended.ru_utime + ended.ru_stime + running


def refused(
    replayer: Replayer, sessions: Sessions, path: Path, scripts: dict[Level, str]
) -> list[Level]:
    """Those that the replay check does not take.

    All at once, as the sorries of one file, whose other proofs are there; one by one only if that
    fails: to read a file takes longer than to judge a proof.
    """
    text = path.read_text("utf-8")
    for level in sorted(scripts, key=lambda level: -level.proof[0]):
        start, end = level.proof
        text = f"{text[:start]}{_OPEN}{text[end:]}"
    places = {place.declaration: place for place in sorries.extract(sessions(), text)}
    filled = [(places[level.name], script) for level, script in scripts.items()]
    names = [level.name for level in scripts]
    if not names or _proves(replayer, text, with_scripts(text, filled), names):
        return []
    return [level for level in scripts if not _is_proved(replayer, sessions, level, scripts[level])]


def _proves(replayer: Replayer, original: str, candidate: str, names: list[str]) -> bool:
    return replayer.text(original, candidate, names, timeout=_CHECK_SECONDS).proved


def _is_proved(replayer: Replayer, sessions: Sessions, level: Level, script: str) -> bool:
    place = sorries.extract(sessions(), level.text, until=level.name)[-1]
    text = with_scripts(level.text, [(place, script)])
    return check_texts(replayer, level.text, text, [place.declaration]).proved


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levels", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", default=[])
    parser.add_argument("--mode", choices=RUNNERS, action="append")
    parser.add_argument("--half", choices=("tuned-on", "held-out", "both"), default="both")
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th level")
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--step-seconds", type=float, default=5.0, help=STEP_HELP)
    parser.add_argument("--given", type=Path, help="lessons to start with, as --teach writes them")
    parser.add_argument("--teach", type=Path, help="a file that takes what the searches teach")
    parser.add_argument(
        "--shapes", type=int, default=0, help="show the most expensive so many shapes"
    )
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    for name in options.sets or sorted(path.stem for path in LEVELS.glob("*.lean")):
        for mode in options.mode or ("mcts", "distributed"):
            measure(LEVELS / f"{name}.lean", mode, options)


if __name__ == "__main__":
    main()
