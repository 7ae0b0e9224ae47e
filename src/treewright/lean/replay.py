"""The replay check: the only thing in treewright that may say "proved".

Given the original text, in which the theorem still has its `sorry`, and a candidate in which
something else stands in its place, the candidate is accepted only if all of this holds:

1. Lean's parser reads what the candidate has and the original has not under the policy of
   `escapes`, before anything of it is elaborated.
2. The whole candidate elaborates, from a freshly imported environment, in a process that has
   run nothing but texts that passed this check's policy, without an error.
3. Everything the original declares is there and says the same: the type, and every definition
   of the text that the type mentions, compared as terms. So notation, instances, shadowed names
   or options that would change a statement's meaning are found by their effect.
4. Each target rests on no `sorry`, on no axiom outside the allow-list, on nothing unsafe.
5. The kernel takes everything the target rests on once more, on top of the bare imports.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from treewright.lean import escapes
from treewright.lean.session import DEFAULT_CHECK_SECONDS, LeanError
from treewright.lean.types import CheckResult, SessionLost, Statement, TacticError, Timeout
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.session import WasmSession, header_of

DEFAULT_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})
RECYCLE_AFTER = 200
RECYCLE_HEAP_BYTES = 1_200_000_000
_PRIVATE = re.compile(r"^_private\..*?\.0\.")
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
    "timeout",
    "lost",
    "original",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it is proved, and if not why, in one line. Only `Replayer` makes these."""

    reason: Reason
    detail: str = ""
    axioms: tuple[str, ...] = ()
    ms: float = 0.0

    @property
    def proved(self) -> bool:
        return self.reason == "proved"

    def __bool__(self) -> bool:
        return self.proved


class Replayer:
    """Runs replay checks in a Lean process of its own. Not for use by two threads at once."""

    def __init__(self, home: LeanHome, *, axioms: frozenset[str] = DEFAULT_AXIOMS) -> None:
        self._home = home
        self._axioms = axioms
        self._session: WasmSession | None = None
        self._runs = 0

    def __enter__(self) -> Replayer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    def theorem(
        self,
        statement: str,
        proof: str,
        *,
        name: str = "treewright_goal",
        imports: Sequence[str] = ("Init",),
        preamble: str = "",
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> Verdict:
        """Whether a tactic script proves a statement."""
        head = f"{header_of(imports)}\n{preamble}\ntheorem {name} : {statement} := by\n"
        script = "\n".join(f"  {line}" if line.strip() else "" for line in proof.splitlines())
        return self.text(f"{head}  sorry\n", f"{head}{script}\n", [name], timeout=timeout)

    def text(
        self,
        original: str,
        candidate: str,
        targets: Sequence[str] = (),
        *,
        fresh_process: bool = False,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> Verdict:
        """Whether a candidate text proves the targets that the original leaves open.

        Without targets, every declaration of the original that rests on `sorry` is one.
        """
        # Lean reads CRLF as LF; with both texts so, its positions are ours.
        original, candidate = (t.replace("\r\n", "\n") for t in (original, candidate))
        if original == candidate:
            return Verdict("unchanged", "the candidate is the original")
        if "\0" in candidate:
            return Verdict("escape", "the text contains a NUL character")
        changed = difference(original.encode(), candidate.encode())
        session = self._fresh_session(discard=fresh_process)
        try:
            verdict = self._judge(session, original, candidate, changed, targets, timeout)
        except LeanError as error:
            verdict = Verdict("lost", str(error))
        self._runs += 1
        # After a failure the process may be in any state: the next check gets another one.
        if fresh_process or verdict.reason in ("timeout", "lost", "original", "kernel"):
            self.close()
        return verdict

    def _fresh_session(self, *, discard: bool) -> WasmSession:
        used_up = self._session is not None and (
            discard
            or not self._session.alive
            or self._runs >= RECYCLE_AFTER
            or self._session.heap_bytes > RECYCLE_HEAP_BYTES
        )
        if used_up:
            self.close()
        if self._session is None:
            self._session = WasmSession(self._home)
            self._runs = 0
        return self._session

    def _judge(
        self,
        session: WasmSession,
        original: str,
        candidate: str,
        changed: tuple[tuple[int, int], ...],
        targets: Sequence[str],
        timeout: float,
    ) -> Verdict:
        before = session.check_file(original, keep=True, timeout=timeout)
        if not isinstance(before, CheckResult):
            return _unfinished(before, "the original")
        if before.env is None or before.errors:
            problem = before.errors[0].format("original") if before.errors else before.stopped
            return Verdict("original", f"the original does not elaborate: {problem}")
        wanted = {s.name: s for s in session.statements(before.env)}
        goals = list(targets) or [n for n in wanted if _rests_on_sorry(session, n, before.env)]
        # A target may be private to its text; the digest then carries its full name.
        for name in goals:
            found = session.statement(name, before.env)
            if found is None:
                return Verdict("original", f"the original has no declaration {name}")
        if not goals:
            return Verdict("original", "nothing in the original is left to prove")

        after = session.check_file(
            candidate, keep=True, policy=escapes.policy(changed), timeout=timeout
        )
        if not isinstance(after, CheckResult):
            return _unfinished(after, "the candidate")
        verdict = self._compare(session, before.env, after, wanted, goals, timeout)
        session.free_environment(before.env)
        if after.env is not None:
            session.free_environment(after.env)
        return verdict

    def _compare(
        self,
        session: WasmSession,
        original_env: int,
        after: CheckResult,
        wanted: dict[str, Statement],
        goals: Sequence[str],
        timeout: float,
    ) -> Verdict:
        if after.stopped:
            return _stopped(after)
        if after.errors or after.env is None:
            return Verdict("error", after.errors[0].format("candidate"), ms=after.ms)
        present = {s.name: s for s in session.statements(after.env)}
        asked = (session.statement(name, original_env) for name in goals)
        targets = {statement.name for statement in asked if statement is not None}
        for name, statement in wanted.items():
            if name not in present:
                return Verdict("missing", f"{_plain(name)} is not declared any more", ms=after.ms)
            same_body = present[name].body == statement.body or name in targets
            if present[name].digest != statement.digest or not same_body:
                return Verdict("statement", f"{_plain(name)} says something else now", ms=after.ms)
        used: set[str] = set()
        for name in goals:
            problem = self._audit(session, name, original_env, after, used, timeout)
            if problem is not None:
                return problem
        return Verdict("proved", axioms=tuple(sorted(used)), ms=after.ms)

    def _audit(
        self,
        session: WasmSession,
        name: str,
        original_env: int,
        after: CheckResult,
        used: set[str],
        timeout: float,
    ) -> Verdict | None:
        assert after.env is not None
        statement = session.statement(name, after.env)
        asked = session.statement(name, original_env)
        if statement is None or asked is None:
            return Verdict("missing", f"{name} is not declared", ms=after.ms)
        if statement.digest != asked.digest or statement.name != asked.name:
            return Verdict("statement", f"{name} says something else now", ms=after.ms)
        if statement.kind != asked.kind:
            return Verdict("statement", f"{name} is a {statement.kind} now", ms=after.ms)
        report = session.audit(name, after.env)
        if isinstance(report, TacticError):
            return Verdict("missing", report.message, ms=after.ms)
        if "sorryAx" in report.axioms:
            return Verdict("sorry", f"{name} rests on sorry", report.axioms, after.ms)
        if outside := report.outside(self._axioms):
            return Verdict("axiom", f"{name} rests on {', '.join(outside)}", outside, after.ms)
        if report.unsafe or report.missing:
            what = ", ".join(report.unsafe + report.missing)
            return Verdict("unsafe", f"{name} rests on {what}", ms=after.ms)
        if problem := session.recheck(name, after.env, timeout * 2):
            return Verdict("kernel", f"{name}: {problem.splitlines()[0]}", ms=after.ms)
        used.update(report.axioms)
        return None


def _stopped(after: CheckResult) -> Verdict:
    """The text ended early, or the policy stopped it."""
    detail = after.stopped.removeprefix("escape: ")
    if detail == after.stopped:
        return Verdict("error", detail, ms=after.ms)
    if _SORRY.search(detail):
        return Verdict("sorry", "the text contains sorry", ms=after.ms)
    return Verdict("escape", f"generated text may not contain {detail}", ms=after.ms)


def _plain(name: str) -> str:
    """A declaration's name as its author wrote it: without the prefix of a private one."""
    return _PRIVATE.sub("", name)


def _rests_on_sorry(session: WasmSession, name: str, env: int) -> bool:
    report = session.audit(name, env)
    return not isinstance(report, TacticError) and "sorryAx" in report.axioms


def _unfinished(result: Timeout | SessionLost, what: str) -> Verdict:
    if isinstance(result, Timeout):
        return Verdict("timeout", f"{what} did not elaborate in {result.seconds:g} s", ms=result.ms)
    return Verdict("lost", f"{what}: {result.reason}")


def difference(original: bytes, candidate: bytes) -> tuple[tuple[int, int], ...]:
    """The stretches [start, end) of the candidate that the original has not, as whole lines.

    Everything outside them is lines of the original in their order.
    """
    old = original.splitlines(keepends=True)
    new = candidate.splitlines(keepends=True)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    matcher = difflib.SequenceMatcher(
        a=old[head : len(old) - tail], b=new[head : len(new) - tail], autojunk=False
    )
    offsets = [0, *itertools.accumulate(len(line) for line in new)]
    return tuple(
        (offsets[head + start], offsets[head + end])
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
    )


def _common(first: list[bytes], second: list[bytes]) -> int:
    """How many lines two texts begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
