"""Scripts given to the replay check: their place in a file, and the result that a verdict gives.

A check that was lost or timed out says nothing about a script. It is run a second time; if that
fails too, `Unchecked` is raised, so that a fault is never taken as a verdict.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.lean import sorries
from treewright.lean.session.errors import LeanError
from treewright.lean.session.inputs import GOAL_NAME, theorem_texts
from treewright.lean.sorries import Sorry
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.proving.environment import LeanEnvironment
from treewright.proving.records import GoalResult
from treewright.proving.settings import FileTarget, StatementTarget, Target
from treewright.proving.tactics.exclusion import find_named, possible_names
from treewright.proving.targets import GoalSpec

MOST_NAMES_ASKED = 400
"""The most names of a script that Lean is asked about."""
MOST_NAMES_SHOWN = 8


class Unchecked(TreewrightError):
    """The replay check gave no answer. The goal has no verdict; `--resume` tries again."""


@dataclass(slots=True)
class ScriptChecker:
    """Checks the scripts of one run, and keeps those that closed a `sorry` of its file.

    The scripts of a file are checked together: a script may use what another script proves.

    Args:
        target: The statement or the file of the run.
        replayer: Makes the replay checks.
        specs: All goals of the run.
        has_project_imports: Whether the file imports modules of its project; they can have sorries.
    """

    target: Target
    replayer: Replayer
    specs: Sequence[GoalSpec]
    has_project_imports: bool = False
    _scripts: dict[int, tuple[Sorry, str]] = field(default_factory=dict, init=False)
    _last: tuple[tuple[object, ...], Verdict] | None = field(default=None, init=False)

    # -- the scripts of the file ----------------------------------------------------------

    def keep(self, spec: GoalSpec, script: str) -> None:
        """Put a script in the place of its goal's `sorry`."""
        if spec.sorry is not None:
            self._scripts[spec.number] = (spec.sorry, script)

    def drop(self, spec: GoalSpec) -> None:
        """Take the script of a goal out again."""
        self._scripts.pop(spec.number, None)

    def text(self, goals: Container[int] | None = None) -> str | None:
        """Return the file with its scripts, or only those of `goals`.

        Returns None for a statement, and if there is no script.
        """
        if not isinstance(self.target, FileTarget):
            return None
        chosen = [s for goal, s in self._scripts.items() if goals is None or goal in goals]
        return with_scripts(self.target.source, chosen) if chosen else None

    def indentation(self, spec: GoalSpec) -> int:
        """Return how many columns a block is indented where the goal stands."""
        if not isinstance(self.target, FileTarget) or spec.sorry is None:
            return sorries.USUAL_INDENT
        return sorries.indentation(self.target.source, spec.sorry)

    def family(self, spec: GoalSpec) -> list[GoalSpec]:
        """Return the goals that stand in the same declaration as this one."""
        name = spec.sorry.declaration if spec.sorry is not None else None
        return [s for s in self.specs if s.sorry is not None and s.sorry.declaration == name]

    def is_family_complete(self, spec: GoalSpec) -> bool:
        """Return whether every `sorry` of the goal's declaration has a script."""
        return all(s.number in self._scripts for s in self.family(spec))

    # -- checks ---------------------------------------------------------------------------

    def check_script(self, spec: GoalSpec, script: str, lean: LeanEnvironment) -> GoalResult:
        """Check a script that closed its goal in the search.

        The result is `proved` or `rejected`. It is `partial` if the goal's declaration still rests
        on another `sorry`; whether the file takes the script is then asked of `lean`.

        Raises:
            Unchecked: Lean gave no answer.
        """
        if isinstance(self.target, StatementTarget):
            texts = statement_texts(self.target, script)
            return _result(spec, script, self.check(*texts, [GOAL_NAME]))
        self.keep(spec, script)
        try:
            result = self._check_in_file(spec, script, lean)
        except (LeanError, Unchecked) as error:
            self.drop(spec)
            raise Unchecked(str(error)) from None
        if result.status == "rejected":
            self.drop(spec)
        return result

    def recheck_partial(self, spec: GoalSpec) -> GoalResult | None:
        """Return the result of a partial goal if its declaration is proved by now, else None.

        Raises Unchecked.
        """
        if spec.sorry is None:
            return None
        verdict = self._check_declaration(spec)
        if verdict is None or not verdict.proved:
            return None
        return _result(spec, self._scripts[spec.number][1], verdict)

    def check_refutation(self, spec: GoalSpec, script: str) -> GoalResult:
        """Check a proof of the goal's negation: `false`, or `unproved` if the proof is refused.

        Raises Unchecked.
        """
        negation = spec.negation
        texts = (negation.original, negation.with_proof(script))
        verdict = check_texts(self.replayer, *texts, [negation.declaration])
        check = without_certificate(verdict)
        if not verdict.proved:
            detail = f"the proof of its negation was refused: {verdict.detail}"
            return GoalResult(spec.number, spec.name, "unproved", detail=detail, check=check)
        what = f"what `{spec.sorry.declaration}` says is false: " if spec.sorry else ""
        return GoalResult(
            spec.number,
            spec.name,
            "false",
            detail=f"{what}its negation is proved",
            proof=script,
            axioms=verdict.axioms,
            check=check,
        )

    def check(self, original: str, candidate: str, declarations: Sequence[str]) -> Verdict:
        """Return the answer of the replay check; the last answer is kept for the same question.

        Raises Unchecked.
        """
        asked = (original, candidate, tuple(declarations))
        if self._last is None or self._last[0] != asked:
            self._last = (asked, check_texts(self.replayer, original, candidate, declarations))
        return self._last[1]

    def open_declarations(
        self, declaration: str, lean: LeanEnvironment, words: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Return the declarations other than this one that rest on `sorry`, with all scripts in.

        Of the declarations that the file imports, only those named by `words` are found. Raises
        LeanError.
        """
        assert isinstance(self.target, FileTarget)
        spaces = declaration.split(".")[:-1]
        inside = [".".join(spaces[:n]) + "." for n in range(len(spaces), 0, -1)]
        asked = [f"{space}{word}" for word in words[:MOST_NAMES_ASKED] for space in (*inside, "")]
        text = self.text() or self.target.source
        found = lean.unproved(text, asked if self.has_project_imports else ())
        return tuple(name for name in found if name != declaration)

    def _check_in_file(self, spec: GoalSpec, script: str, lean: LeanEnvironment) -> GoalResult:
        assert isinstance(self.target, FileTarget)
        assert spec.sorry is not None
        verdict = self._check_declaration(spec)
        if verdict is not None and verdict.reason != "sorry":
            return _result(spec, script, verdict)
        if verdict is None and not lean.accepts_file(self.text() or "", self.target.source):
            return GoalResult(
                spec.number,
                spec.name,
                "rejected",
                detail="error: the file does not elaborate with this script in it",
                proof=script,
            )
        why = "other sorries that its declaration needs are open"
        if verdict is not None:
            names = possible_names(script)
            unproved = self.open_declarations(spec.sorry.declaration, lean, names)
            if named := find_named(script, unproved):
                are = "which is" if len(named) == 1 else "which are"
                why = f"it rests on {_quoted(named)}, {are} not proved"
            elif unproved:
                shown = _quoted(unproved)
                why = f"it rests on a sorry that it does not name; not proved: {shown}"
        return GoalResult(
            spec.number,
            spec.name,
            "partial",
            detail=f"it closes its goal; {why}",
            proof=script,
            check=without_certificate(verdict) if verdict is not None else None,
        )

    def _check_declaration(self, spec: GoalSpec) -> Verdict | None:
        """Check the goal's declaration with all scripts in the file; None if one is missing."""
        assert isinstance(self.target, FileTarget)
        assert spec.sorry is not None
        text = self.text()
        if text is None or not self.is_family_complete(spec):
            return None
        return self.check(self.target.source, text, [spec.sorry.declaration])


def check_texts(
    replayer: Replayer, original: str, candidate: str, declarations: Sequence[str]
) -> Verdict:
    """Return the verdict on a candidate; a check that ended in a fault is run a second time.

    Raises Unchecked if the second check ends in a fault too.
    """
    verdict = replayer.text(original, candidate, declarations)
    if verdict.is_fault:
        verdict = replayer.text(original, candidate, declarations)
    if verdict.is_fault:
        raise Unchecked(f"the replay check gave no answer: {verdict.reason}: {verdict.detail}")
    return verdict


def statement_texts(target: StatementTarget, proof: str) -> tuple[str, str]:
    """Return the original and the candidate of the check of a statement."""
    return theorem_texts(target.statement, proof, imports=target.imports)


def without_certificate(verdict: Verdict) -> Verdict:
    """Return a verdict as the trace records it: without its certificate and its time."""
    return msgspec.structs.replace(verdict, certificate=None, ms=0.0)


def with_scripts(source: str, scripts: Sequence[tuple[Sorry, str]]) -> str:
    """Return the text with scripts in the places of their sorries."""
    for sorry, script in sorted(scripts, key=lambda pair: -pair[0].start):
        source = sorries.replace(source, sorry, script)
    return source


def _quoted(names: Sequence[str]) -> str:
    hidden = len(names) - MOST_NAMES_SHOWN
    more = f" and {hidden} more" if hidden > 0 else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_NAMES_SHOWN]) + more


def _result(spec: GoalSpec, script: str, verdict: Verdict) -> GoalResult:
    """Return the result that a verdict on the goal's script gives: `proved` or `rejected`."""
    return GoalResult(
        spec.number,
        spec.name,
        "proved" if verdict.proved else "rejected",
        detail="" if verdict.proved else f"{verdict.reason}: {verdict.detail}",
        proof=script,
        axioms=verdict.axioms if verdict.proved else (),
        check=without_certificate(verdict),
    )
