"""Run `prove` on problems with one theorem each, and sum up what it decided.

`python -m benchmarks.external.scoreboard F.lean G.lean:name --out results.jsonl` measures Lean
files. The commands of the sets (`verina`, `tip`, `natural_numbers`) make the files from a
checkout and measure them in the same way.

Half of every set is held out: nothing was tuned on it. Single results of the held-out half are
written to the file of results, for their certificates, but never printed. A measurement that was
interrupted goes on where it ended.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from treewright.kernel.errors import TreewrightError
from treewright.lean.choice import choose, open_lean
from treewright.lean.hosts.host import Host
from treewright.lean.processes import LeanProcesses
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.proving.api import ProofService
from treewright.proving.run import RunResult
from treewright.proving.settings import Settings, SourceSettings
from treewright.proving.tactics.factory import add_library_index
from treewright.proving.targets import parse

Half = Literal["tuned", "held_out"]
Status = Literal["proved", "refuted", "open", "not_opened"]

SECONDS = 60.0
_POLL_SECONDS = 0.5  # between two looks at the processor time of a separate process
_GRACE_SECONDS = 120.0  # for a separate process to end after it was told to stop


@dataclass(frozen=True, slots=True)
class Problem:
    """A theorem that is to be proved: the only `sorry` of a file, or one that is named."""

    name: str
    path: Path
    half: Half
    theorem: str | None = None

    @property
    def target(self) -> str:
        """The argument of `treewright prove`."""
        return f"{self.path}:{self.theorem}" if self.theorem else str(self.path)


class Row(msgspec.Struct, frozen=True):
    """The result of one problem, a line of the file of results.

    `reason` says in one line why a problem is open or could not be opened. `processor_seconds` are
    those of this process and all its child processes during the problem, `seconds` those of the
    clock. `certificate` is the path of the certificate of a proof, and `certificate_sha256` the
    digest of that file; a refutation has none.
    """

    name: str
    half: Half
    status: Status
    reason: str
    processor_seconds: float
    seconds: float
    simulations: int = 0
    proof: str = ""
    certificate: str | None = None
    certificate_sha256: str | None = None


def sha256_half(name: str) -> Half:
    """Return the half of a problem by the sha256 of its name: even digests are held out.

    Example:
        >>> sha256_half("verina_basic_10")
        'tuned'
    """
    return "tuned" if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 else "held_out"


def processor_seconds() -> float:
    """Return the processor time of this process and of all its descendants, ended ones too."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = time.process_time() + ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            spent += sum(process.cpu_times()[:4])  # own and of children that have ended
    return spent


def row_of(problem: Problem, result: RunResult, spent: float, seconds: float, limit: float) -> Row:
    """Return the line for the result of a run.

    Args:
        problem: The problem.
        result: The result of its run, which has at most one goal.
        spent: Processor seconds.
        seconds: Seconds of the clock.
        limit: The processor seconds after which the run was stopped.
    """
    if not result.goals:
        if result.left_alone:
            status, reason = "not_opened", f"an error in the file concerns {result.left_alone[0]}"
        else:
            status, reason = "open", f"stopped after {limit:g} processor seconds"
        return Row(problem.name, problem.half, status, reason, spent, seconds)
    goal = result.goals[0]
    status: Status = "open"
    if goal.status == "proved":
        status = "proved"
    elif goal.status == "false":
        status = "refuted"
    elif goal.status == "ill_typed":
        status = "not_opened"
    certificate = Path(result.certificate) if result.certificate else None
    return Row(
        problem.name,
        problem.half,
        status,
        "" if status in ("proved", "refuted") else one_line(f"{goal.status}: {goal.detail}"),
        spent,
        seconds,
        goal.iterations,
        goal.proof or "",
        str(certificate) if certificate else None,
        hashlib.sha256(certificate.read_bytes()).hexdigest() if certificate else None,
    )


def one_line(text: str) -> str:
    """Return the first line of a text that says something, shortened."""
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")


class SharedProver:
    """Proves one problem after the other in this process, with the same Lean processes.

    Args:
        host: The Lean.
        lean: Its processes.
        settings: The settings of every run.
        runs: The directory below which the runs are kept.
        limit: The processor seconds for a problem.
    """

    def __init__(
        self, host: Host, lean: LeanProcesses, settings: Settings, runs: Path, limit: float
    ) -> None:
        self._settings = add_library_index(settings, host, _say)
        self._limit = limit
        self._deadline = self._looked_at = 0.0
        self._late = False
        runs.mkdir(parents=True, exist_ok=True)
        self._service = ProofService(lean, runs, stop_asked=self._is_late)

    def _is_late(self) -> bool:
        """Asked many times a second; looks at the processes at most twice a second."""
        if time.monotonic() - self._looked_at > _POLL_SECONDS:
            self._looked_at = time.monotonic()
            self._late = processor_seconds() > self._deadline
        return self._late

    def prove(self, problem: Problem) -> RunResult:
        """Return the result of a run on the problem.

        Raises:
            TreewrightError: The file cannot be opened.
        """
        self._deadline, self._late = processor_seconds() + self._limit, False
        return self._service.prove(parse(problem.target, None), self._settings)


class SeparateProver:
    """Proves each problem with a `treewright prove` of its own, as a user would.

    Args:
        arguments: Further arguments of the command.
        runs: The directory below which the runs are kept.
        limit: The processor seconds for a problem.
    """

    def __init__(self, arguments: Sequence[str], runs: Path, limit: float) -> None:
        self._command = [sys.executable, "-m", "treewright", "prove", "--json", *arguments]
        self._runs, self._limit = runs, limit
        runs.mkdir(parents=True, exist_ok=True)

    def prove(self, problem: Problem) -> RunResult:
        """Return the result of a run on the problem.

        Raises:
            TreewrightError: The file cannot be opened.
        """
        deadline = processor_seconds() + self._limit
        with subprocess.Popen(
            [*self._command, str(problem.target)],
            cwd=self._runs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while True:
                try:
                    out, errors = process.communicate(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if processor_seconds() > deadline:
                        process.send_signal(signal.SIGINT)
                        try:
                            out, errors = process.communicate(timeout=_GRACE_SECONDS)
                        except subprocess.TimeoutExpired:
                            process.kill()
                            out, errors = process.communicate()
                        break
        try:
            return msgspec.json.decode(out, type=RunResult)
        except msgspec.DecodeError:
            if processor_seconds() > deadline:
                return RunResult("", "", "", 0, 1, False, None, ())
            raise TreewrightError(one_line(errors) or "no result") from None


def measure(
    problems: Iterable[Problem], prove: Callable[[Problem], RunResult], limit: float
) -> Iterator[Row]:
    """Yield the result of each problem as soon as it is known."""
    for problem in problems:
        begun, clock = processor_seconds(), time.monotonic()
        try:
            result, trouble = prove(problem), ""
        except TreewrightError as error:
            result, trouble = None, one_line(str(error))
        spent = round(processor_seconds() - begun, 2)
        seconds = round(time.monotonic() - clock, 2)
        if result is not None:
            yield row_of(problem, result, spent, seconds, limit)
        elif spent >= limit:
            reason = f"stopped after {limit:g} processor seconds: {trouble}"
            yield Row(problem.name, problem.half, "open", reason, spent, seconds)
        else:
            yield Row(problem.name, problem.half, "not_opened", trouble, spent, seconds)


def table(rows: Sequence[Row]) -> str:
    """Return the sums for each half that has results, as a table in Markdown."""
    lines = [
        "| half | problems | decided | proved | refuted | open | not opened "
        "| median processor s | of decided | all |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for half in ("tuned", "held_out"):
        of_half = [row for row in rows if row.half == half]
        if not of_half:
            continue
        count = Counter(row.status for row in of_half)
        decided = [r.processor_seconds for r in of_half if r.status in ("proved", "refuted")]
        spent = [row.processor_seconds for row in of_half]
        of_decided = f"{statistics.median(decided):.1f}" if decided else "–"
        lines.append(
            f"| {half.replace('_', ' ')} | {len(of_half)} "
            f"| {len(decided)} ({len(decided) / len(of_half):.0%}) "
            f"| {count['proved']} | {count['refuted']} | {count['open']} | {count['not_opened']} "
            f"| {statistics.median(spent):.1f} | {of_decided} | {sum(spent):.0f} |"
        )
    return "\n".join(lines)


def read_rows(path: Path) -> list[Row]:
    """Return the results of a file; none if it does not exist. A broken last line is left out."""
    rows = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        with contextlib.suppress(msgspec.DecodeError):
            rows.append(msgspec.json.decode(line, type=Row))
    return rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every set has."""
    parser.add_argument("--out", type=Path, required=True, help="the file of results (JSON Lines)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="the most processor seconds for a problem, of all processes together",
    )
    parser.add_argument(
        "--half", choices=("tuned", "held_out", "both"), default="both", help="which problems"
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="K", help="only each K-th problem of a half"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these problems")
    parser.add_argument("--simulations", type=int, default=Settings().simulations)
    parser.add_argument(
        "--step-seconds",
        type=float,
        default=Settings().step_timeout,
        help="the most seconds for one tactic; more on a busy machine",
    )
    parser.add_argument(
        "--alone", action="store_true", help="a `treewright prove` of its own for each problem"
    )
    parser.add_argument("--lean", default="auto", help="the Lean backend")


def choose_problems(problems: Sequence[Problem], options: argparse.Namespace) -> list[Problem]:
    """Return the problems that the options ask for: each K-th of each half."""
    chosen = []
    for half in ("tuned", "held_out"):
        if options.half in (half, "both"):
            of_half = [problem for problem in problems if problem.half == half]
            chosen += of_half[:: options.every]
    return [problem for problem in chosen if not options.only or problem.name in options.only]


@contextlib.contextmanager
def open_prover(
    options: argparse.Namespace, runs: Path, axioms: Collection[str]
) -> Iterator[Callable[[Problem], RunResult]]:
    """Open what proves a problem as the options say."""
    allowed = sorted({*DEFAULT_AXIOMS, *axioms})
    if options.alone:
        flags = [f"--simulations={options.simulations}", f"--lean={options.lean}"]
        flags += [f"--step-timeout={options.step_seconds:g}", f"--axioms={','.join(allowed)}"]
        yield SeparateProver(flags, runs, options.seconds).prove
        return
    settings = Settings(
        simulations=options.simulations,
        step_timeout=options.step_seconds,
        sources=SourceSettings(known=True, strategies=True),
        axioms=tuple(allowed),
    )
    host, _ = open_lean(choose(options.lean, None, sandbox=False), None, _say)
    with LeanProcesses(host, axioms=frozenset(allowed)) as lean:
        yield SharedProver(host, lean, settings, runs, options.seconds).prove


def run(
    problems: Sequence[Problem], options: argparse.Namespace, axioms: Collection[str] = ()
) -> None:
    """Measure the problems that the options ask for, write their results and print the sums.

    Args:
        problems: All problems of the set, in its order.
        options: The options that `add_options` adds.
        axioms: Axioms that proofs may rest on besides Lean's own three.
    """
    chosen = choose_problems(problems, options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = {row.name: row for row in read_rows(options.out)}
    missing = [problem for problem in chosen if problem.name not in rows]
    runs = options.out.with_suffix(".runs").resolve()
    with contextlib.ExitStack() as stack:
        if missing:
            prove = stack.enter_context(open_prover(options, runs, axioms))
            out = stack.enter_context(options.out.open("ab"))
            if options.out.read_bytes()[-1:] not in (b"", b"\n"):
                out.write(b"\n")  # ends a line that was cut off
            for number, row in enumerate(measure(missing, prove, options.seconds), 1):
                out.write(msgspec.json.encode(row) + b"\n")
                out.flush()
                rows[row.name] = row
                _say(f"{number}/{len(missing)} {progress(row)}")
    print(table([rows[problem.name] for problem in chosen]))


def progress(row: Row) -> str:
    """Return the line that says that a problem is done, without results of the held-out half."""
    if row.half == "held_out":
        return "a problem of the held-out half"
    return f"{row.name}: {row.status}, {row.processor_seconds:.1f} s {row.reason}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.external.scoreboard", description=__doc__
    )
    parser.add_argument("targets", nargs="+", help="F.lean, or F.lean:theorem")
    add_options(parser)
    options = parser.parse_args()
    problems = []
    for target in options.targets:
        path, _, theorem = target.partition(".lean:")
        file = Path(f"{path}.lean" if theorem else path).resolve()
        name = f"{file.stem}:{theorem}" if theorem else file.stem
        problems.append(Problem(name, file, sha256_half(name), theorem or None))
    run(problems, options)


if __name__ == "__main__":
    main()
