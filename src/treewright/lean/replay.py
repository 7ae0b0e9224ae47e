"""The replay check: the only thing in treewright that may say "proved".

Given the original text, in which the theorem still has its `sorry`, and a candidate in which
something else stands in its place, two Lean processes work side by side:

- One reads the candidate. Lean's parser applies the policy of `escapes` to what the original has
  not, before anything of it is elaborated; the whole text must elaborate without an error. What it
  declares is exported as data: terms, and nothing else.
- The judge has never seen the candidate's text. It elaborates the original, and decides on the
  data: everything the original declares is there and means the same; what a target rests on has
  no `sorry`, no axiom outside the allow-list, nothing that is unsafe or runs code; and the kernel
  takes all of it on top of the bare imports.

Whatever a candidate does to the first process, the second decides.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, cast

import msgspec

from treewright import __version__
from treewright.lean import escapes
from treewright.lean.certificate import Certificate, digest, kernel_warnings
from treewright.lean.difference import difference
from treewright.lean.session import DEFAULT_CHECK_SECONDS, LeanError, MissingModule
from treewright.lean.types import CheckResult, Ruling, SessionLost, Timeout
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.judge import Judge, JudgeTimeout, OriginalError, Reference
from treewright.lean.wasm.manifest import home_digest
from treewright.lean.wasm.session import WasmSession, header_of

DEFAULT_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})
GOAL_NAME = "treewright_goal"
RECYCLE_AFTER = 200
RECYCLE_HEAP_BYTES = 1_200_000_000
LONGEST_DATA = 64 << 20
_SORRY = re.compile(r"[sS]orry|[aA]dmit")

Reason = Literal[
    "proved",
    "unchanged",
    "escape",
    "error",
    "sorry",
    "missing",
    "statement",
    "axiom",
    "unsafe",
    "kernel",
    "data",
    "timeout",
    "lost",
    "original",
]
FAULTS = frozenset({"timeout", "lost"})
"""Reasons that say nothing about the candidate: the same check may end otherwise."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it is proved, and if not why, in one line. Only `Replayer` makes these."""

    reason: Reason
    detail: str = ""
    axioms: tuple[str, ...] = ()
    ms: float = 0.0
    certificate: Certificate | None = None

    @property
    def proved(self) -> bool:
        return self.reason == "proved"

    @property
    def is_fault(self) -> bool:
        """Whether the check could not be made, so that there is no verdict at all."""
        return self.reason in FAULTS

    def __bool__(self) -> bool:
        return self.proved


def theorem_texts(
    statement: str,
    proof: str,
    *,
    name: str = GOAL_NAME,
    imports: Sequence[str] = ("Init",),
    preamble: str = "",
) -> tuple[str, str]:
    """A statement as an original, and with a tactic script as a candidate."""
    head = f"{header_of(imports)}\n{preamble}\ntheorem {name} : {statement} := by\n"
    script = "\n".join(f"  {line}" if line.strip() else "" for line in proof.splitlines())
    return f"{head}  sorry\n", f"{head}{script}\n"


class _Ended(Exception):
    """The check is over before the judge was asked."""

    def __init__(self, reason: Reason, detail: str, ms: float = 0.0) -> None:
        super().__init__(detail)
        self.verdict = Verdict(reason, detail, ms=ms)


class Replayer:
    """Runs replay checks in two Lean processes of its own. Not for use by two threads at once."""

    def __init__(self, home: LeanHome, *, axioms: frozenset[str] = DEFAULT_AXIOMS) -> None:
        self._home = home
        self._axioms = axioms
        self._reader = _Kept(lambda: WasmSession(home))
        self._judge = _Kept(lambda: Judge(home))
        self._side = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._runs = 0

    def __enter__(self) -> Replayer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends both processes. A check that runs in another thread ends as lost."""
        self._reader.close()
        self._judge.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the processes that run now."""
        return tuple(pid for kept in (self._reader, self._judge) if (pid := kept.pid) is not None)

    def warm_up(self) -> None:
        """Starts both processes, side by side, if they are not there."""
        judge = self._side.submit(self._judge.get)
        self._reader.get()
        judge.result()

    def theorem(
        self,
        statement: str,
        proof: str,
        *,
        name: str = GOAL_NAME,
        imports: Sequence[str] = ("Init",),
        preamble: str = "",
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> Verdict:
        """Whether a tactic script proves a statement."""
        texts = theorem_texts(statement, proof, name=name, imports=imports, preamble=preamble)
        return self.text(*texts, [name], timeout=timeout)

    def text(
        self,
        original: str,
        candidate: str,
        targets: Sequence[str] = (),
        *,
        declarations: bool = False,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> Verdict:
        """Whether a candidate text proves the targets that the original leaves open.

        Without targets, every declaration of the original that rests on `sorry` is one. What the
        candidate has and the original has not may contain commands only with `declarations`.
        """
        # Lean reads CRLF as LF; with both texts so, its positions are ours.
        original, candidate = (t.replace("\r\n", "\n") for t in (original, candidate))
        if original == candidate:
            return Verdict("unchanged", "the candidate is the original")
        if "\0" in candidate:
            return Verdict("escape", "the text contains a NUL character")
        changed = difference(original.encode(), candidate.encode())
        policy = escapes.policy(changed, commands=declarations)

        def work() -> Verdict:
            prepared = self._side.submit(self._reference, original, targets, timeout)
            try:
                read = self._read(candidate, policy, timeout)
            except _Ended:
                prepared.result()  # what is wrong with the original comes first
                raise
            reference = prepared.result()
            if reference.unknown:
                name = reference.unknown[0]
                return Verdict("original", f"the original has no declaration {name}")
            if not reference.open:
                return Verdict("original", "nothing in the original is left to prove")
            data = self._export(read, reference.targets, reference.stated, timeout)
            judge = reference.judge
            ruling = judge.rule(reference, data, self._axioms, timeout)
            return _verdict(ruling, read.ms, self._certificate(judge, original, candidate, ruling))

        return self._guarded(work)

    def declarations(
        self, text: str, names: Sequence[str], *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> dict[str, Verdict]:
        """Whether declarations of a text of one's own are proved: a verdict for each name.

        Errors elsewhere in the text do not count: what the kernel takes is proved.
        """
        verdicts: dict[str, Verdict] = {}

        def work() -> Verdict:
            read = self._read(text, None, timeout, with_errors=True)
            prepared = self._side.submit(self._reference, header_of(read.imports), (), timeout)
            data = self._export(read, msgspec.Raw(msgspec.json.encode(names)), _NOTHING, timeout)
            bare = prepared.result()
            rulings = bare.judge.rule_each(bare, data, self._axioms, timeout, names)
            verdicts.update({n: _verdict(r, read.ms) for n, r in zip(names, rulings, strict=True)})
            return Verdict("proved")

        overall = self._guarded(work) if names else Verdict("proved")
        return verdicts if overall.proved else dict.fromkeys(names, overall)

    # -- the two processes ----------------------------------------------------------------

    def _guarded(self, work: Callable[[], Verdict]) -> Verdict:
        """Runs a check; whatever happens to the processes ends as a fault, not as a verdict."""
        if self._runs >= RECYCLE_AFTER or self._reader.heap_bytes > RECYCLE_HEAP_BYTES:
            self._reader.close()
            self._runs = 0
        self._runs += 1
        try:
            verdict = work()
        except _Ended as ended:
            verdict = ended.verdict
        except OriginalError as error:
            verdict = Verdict("original", f"the original does not elaborate: {error}")
        except JudgeTimeout as error:
            verdict = Verdict("timeout", str(error))
        except MissingModule:
            raise
        except LeanError as error:
            verdict = Verdict("lost", str(error))
        if verdict.is_fault:
            self.close()  # the processes may be in any state: the next check gets others
        elif self._judge.is_spent:
            self._side.submit(self._judge.get)  # another one is there when it is needed
        return verdict

    def _certificate(
        self, judge: Judge, original: str, candidate: str, ruling: Ruling
    ) -> Certificate:
        return Certificate(
            lean=judge.lean,
            commit=judge.commit,
            treewright=__version__,
            original=digest(original),
            candidate=digest(candidate),
            home=home_digest(self._home),
            targets=ruling.names,
            axioms=ruling.axioms,
            allowed_axioms=tuple(sorted(self._axioms)),
            filled=ruling.filled,
            constants=ruling.constants,
            warnings=kernel_warnings(judge.lean),
        )

    def _reference(self, original: str, targets: Sequence[str], timeout: float) -> Reference:
        return self._judge.get().reference(original, targets, timeout)

    def _read(
        self,
        candidate: str,
        policy: dict[str, object] | None,
        timeout: float,
        *,
        with_errors: bool = False,
    ) -> CheckResult:
        """The candidate, elaborated under the policy in the process that is for that."""
        result = self._reader.get().check_file(candidate, keep=True, policy=policy, timeout=timeout)
        if isinstance(result, Timeout):
            raise _Ended("timeout", f"the candidate did not elaborate in {timeout:g} s", result.ms)
        if isinstance(result, SessionLost):
            raise _Ended("lost", f"the candidate: {result.reason}")
        if result.stopped:
            raise _stopped(result)
        if result.env is None or (result.errors and not with_errors):
            raise _Ended("error", result.errors[0].format("candidate"), result.ms)
        return result

    def _export(
        self, read: CheckResult, whole: msgspec.Raw, stated: msgspec.Raw, timeout: float
    ) -> msgspec.Raw:
        """The terms that are handed over to the judge."""
        assert read.env is not None
        reader = self._reader.get()
        data = reader.export(read.env, whole, stated, timeout)
        reader.free_environment(read.env)
        if len(data) > LONGEST_DATA:
            raise _Ended("data", f"what it rests on is more than {LONGEST_DATA >> 20} MB of terms")
        return data


_NOTHING = msgspec.Raw(b"[]")
_Process = TypeVar("_Process", WasmSession, Judge)


class _Kept(Generic[_Process]):
    """A process that is started when it is first needed, and again when it was lost."""

    def __init__(self, start: Callable[[], _Process]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def get(self) -> _Process:
        with self._lock:
            if self._process is not None and not self._process.alive:
                self._process.close()
                self._process = None
            if self._process is None:
                self._process = self._start()
            return self._process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    @property
    def is_spent(self) -> bool:
        """Whether there is a process, and it cannot be used again."""
        return self._process is not None and not self._process.alive

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def heap_bytes(self) -> int:
        return self._process.heap_bytes if self._process is not None else 0


def _verdict(ruling: Ruling, ms: float, certificate: Certificate | None = None) -> Verdict:
    reason = cast("Reason", ruling.reason)
    proved = reason == "proved"
    return Verdict(reason, ruling.detail, ruling.axioms, ms, certificate if proved else None)


def _stopped(after: CheckResult) -> _Ended:
    """The text ended early, or the policy stopped it."""
    detail = after.stopped.removeprefix("escape: ")
    if detail == after.stopped:
        return _Ended("error", detail, after.ms)
    if _SORRY.search(detail):
        return _Ended("sorry", "the text contains sorry", after.ms)
    return _Ended("escape", f"generated text may not contain {detail}", after.ms)
