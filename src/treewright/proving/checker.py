"""From a script that closed a goal in the search to what may be said of it.

The scripts of a file are checked together with those that were found before. `Unchecked` is raised
where there is no answer: nothing may be said then.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from treewright.kernel.errors import TreewrightError
from treewright.lean import sorries
from treewright.lean.session.inputs import GOAL_NAME, theorem_texts
from treewright.lean.session.interface import LeanError
from treewright.lean.sorries import Sorry
from treewright.lean.verify.certificate import digest
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.proving.once_more import named_in, words_of
from treewright.proving.records import CheckAnswer, GoalStatus
from treewright.proving.settings import FileTarget, StatementTarget, Target
from treewright.proving.targets import GoalSpec, Negation


class Unchecked(TreewrightError):
    """Whether a script holds could not be found out. To be tried again, now or on resume."""


def verify_statement(replayer: Replayer, target: StatementTarget, proof: str) -> Verdict:
    return answered(lambda: replayer.theorem(target.statement, proof, imports=target.imports))


def verify_refutation(replayer: Replayer, negation: Negation, proof: str) -> Verdict:
    candidate = negation.with_proof(proof)
    return answered(lambda: replayer.text(negation.original, candidate, [negation.declaration]))


def checked_texts(target: StatementTarget, proof: str) -> tuple[str, str]:
    """The original and the candidate of the check of a statement."""
    return theorem_texts(target.statement, proof, imports=target.imports)


def as_recorded(verdict: Verdict, texts: tuple[str, str]) -> CheckAnswer:
    """An answer about an original and a candidate, as it stands in a trace."""
    original, candidate = map(digest, texts)
    return CheckAnswer(verdict.reason, original, candidate, verdict.detail)


def verify_file(replayer: Replayer, original: str, candidate: str, declaration: str) -> Verdict:
    return answered(lambda: replayer.text(original, candidate, [declaration]))


def answered(check: Callable[[], Verdict]) -> Verdict:
    """What a check says, at the second attempt if the first was lost or timed out."""
    verdict = check()
    if verdict.is_fault:
        verdict = check()
    if verdict.is_fault:
        raise Unchecked(f"the replay check came to no answer: {verdict.reason}: {verdict.detail}")
    return verdict


def with_proofs(source: str, proofs: Sequence[tuple[Sorry, str]]) -> str:
    """The text with scripts in the places of their sorries, from the last to the first."""
    for sorry, proof in sorted(proofs, key=lambda pair: -pair[0].start):
        source = sorries.replace(source, sorry, proof)
    return source


_MOST_ASKED = 400
_MOST_NAMED = 8


class Elaborator(Protocol):
    """The Lean of the search, asked about whole texts; it may raise LeanError."""

    def accepts(self, source: str, original: str) -> bool:
        """Whether a text elaborates as far as the original does, while sorries are open."""
        ...

    def unproved(self, source: str, asked: Sequence[str] = ()) -> tuple[str, ...]:
        """The declarations of a text that rest on `sorry`; of imported ones those `asked`."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a goal's status is, and why; `check` is what the replay check said, if it was asked."""

    status: GoalStatus
    detail: str = ""
    axioms: tuple[str, ...] = ()
    check: CheckAnswer | None = None


@dataclass(slots=True)
class Judge:
    """Asks the replay check about scripts, and keeps those of a file that closed their `sorry`.

    `imports`: whether the file imports modules of its project, where there may be sorries too.
    """

    target: Target
    replayer: Replayer
    specs: Sequence[GoalSpec]
    imports: bool = False
    _proofs: dict[int, tuple[Sorry, str]] = field(default_factory=dict, init=False)
    _last: tuple[tuple[object, ...], Verdict] | None = field(default=None, init=False)

    def indentation(self, spec: GoalSpec) -> int:
        """How far a block stands in around the goal."""
        if not isinstance(self.target, FileTarget) or spec.sorry is None:
            return sorries.USUAL_INDENT
        return sorries.indentation(self.target.source, spec.sorry)

    def remember(self, spec: GoalSpec, script: str) -> None:
        """A script of this file that an earlier process found."""
        if spec.sorry is not None:
            self._proofs[spec.number] = (spec.sorry, script)

    def forget(self, spec: GoalSpec) -> None:
        self._proofs.pop(spec.number, None)

    def script(self, spec: GoalSpec, script: str, lean: Elaborator) -> Judgement:
        """`lean` is asked about the file while other sorries are open."""
        if isinstance(self.target, StatementTarget):
            texts = checked_texts(self.target, script)
            verdict = self.check(*texts, [GOAL_NAME])
            return _judgement(verdict, as_recorded(verdict, texts))
        assert spec.sorry is not None
        self.remember(spec, script)
        try:
            judgement = self._in_file(spec.sorry.declaration, script, lean)
        except LeanError as error:
            self.forget(spec)
            raise Unchecked(str(error)) from None
        except Unchecked:
            self.forget(spec)
            raise
        if judgement.status == "rejected":
            self.forget(spec)
        return judgement

    def refutation(self, spec: GoalSpec, script: str) -> Judgement:
        """`false`, or `unproved` and why the proof of the negation was refused."""
        verdict = verify_refutation(self.replayer, spec.negation, script)
        texts = (spec.negation.original, spec.negation.with_proof(script))
        check = as_recorded(verdict, texts)
        if verdict.proved:
            what = f"what `{spec.sorry.declaration}` says is false: " if spec.sorry else ""
            return Judgement("false", f"{what}its negation is proved", verdict.axioms, check)
        detail = f"the proof of its negation was refused: {verdict.detail}"
        return Judgement("unproved", detail, check=check)

    def check(self, original: str, candidate: str, declarations: Sequence[str]) -> Verdict:
        """What the replay check says; what it said last, if that was asked. Raises Unchecked."""
        asked = (original, candidate, tuple(declarations))
        if self._last is None or self._last[0] != asked:
            verdict = answered(lambda: self.replayer.text(original, candidate, declarations))
            self._last = (asked, verdict)
        return self._last[1]

    def settles(self, spec: GoalSpec) -> Judgement | None:
        """Whether a script that was waiting for others is a proof now; None if it still waits."""
        if spec.sorry is None:
            return None
        asked = self._declaration(spec.sorry.declaration)
        return _judgement(*asked) if asked is not None and asked[0].proved else None

    def text(self) -> str | None:
        """The file with every script in it; None if there is no file, or no script."""
        if not isinstance(self.target, FileTarget) or not self._proofs:
            return None
        return with_proofs(self.target.source, list(self._proofs.values()))

    def text_with(self, numbers: Container[int]) -> str | None:
        """The file with the scripts of these goals only; None if there is no file, or no script."""
        if not isinstance(self.target, FileTarget):
            return None
        chosen = [proof for number, proof in self._proofs.items() if number in numbers]
        return with_proofs(self.target.source, chosen) if chosen else None

    def unproved(
        self, declaration: str, lean: Elaborator, words: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """What rests on `sorry` with every script so far in the file, but for this declaration.

        Of what the file imports, those among `words` are known. Raises LeanError.
        """
        assert isinstance(self.target, FileTarget)
        spaces = declaration.split(".")[:-1]
        inside = [".".join(spaces[:n]) + "." for n in range(len(spaces), 0, -1)]
        asked = [f"{space}{word}" for word in words[:_MOST_ASKED] for space in (*inside, "")]
        text = self.text() or self.target.source
        found = lean.unproved(text, asked if self.imports else ())
        return tuple(name for name in found if name != declaration)

    def waits_for_others(self, spec: GoalSpec) -> bool:
        """Whether another `sorry` of the same declaration has no script."""
        return any(s.number not in self._proofs for s in self._family(spec))

    def _in_file(self, declaration: str, script: str, lean: Elaborator) -> Judgement:
        assert isinstance(self.target, FileTarget)
        asked = self._declaration(declaration)
        if asked is None and not lean.accepts(self.text() or "", self.target.source):
            return Judgement(
                "rejected", "error: the file does not elaborate with this script in it"
            )
        if asked is None or asked[0].reason == "sorry":
            why = "other sorries that its declaration needs are open"
            if asked is not None:
                why = self._rests_on(script, declaration, lean) or why
            detail = f"it closes its goal; {why}"
            return Judgement("partial", detail, check=asked[1] if asked else None)
        return _judgement(*asked)

    def _rests_on(self, script: str, declaration: str, lean: Elaborator) -> str:
        """Which declarations a script names that are not proved so far, in words."""
        unproved = self.unproved(declaration, lean, words_of(script))
        named = named_in(script, unproved)
        if named:
            are = "which is" if len(named) == 1 else "which are"
            return f"it rests on {_quoted(named)}, {are} not proved"
        return f"it rests on a sorry that it does not name; not proved: {_quoted(unproved)}" * bool(
            unproved
        )

    def _family(self, spec: GoalSpec) -> list[GoalSpec]:
        """The sorries of the same declaration."""
        assert spec.sorry is not None
        name = spec.sorry.declaration
        return [s for s in self.specs if s.sorry and s.sorry.declaration == name]

    def _declaration(self, declaration: str) -> tuple[Verdict, CheckAnswer] | None:
        """The replay check of a declaration with every script so far; None if one is missing."""
        family = [s for s in self.specs if s.sorry and s.sorry.declaration == declaration]
        text = self.text()
        if text is None or any(s.number not in self._proofs for s in family):
            return None
        assert isinstance(self.target, FileTarget)
        verdict = self.check(self.target.source, text, [declaration])
        return verdict, as_recorded(verdict, (self.target.source, text))


def _quoted(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) + more


def _judgement(verdict: Verdict, check: CheckAnswer) -> Judgement:
    if verdict.proved:
        return Judgement("proved", "", verdict.axioms, check)
    return Judgement("rejected", f"{verdict.reason}: {verdict.detail}", check=check)
