"""One goal, from search to verdict: a script and its check, or the search for the negation."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from treewright.kernel.clock import timestamp
from treewright.lean.session.interface import LeanError, LeanSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving.checker import Judge, Judgement, Unchecked
from treewright.proving.lean_environment import GoalError, LeanEnvironment
from treewright.proving.once_more import (
    again_limits,
    again_opened,
    again_recording,
    again_sink,
    named_in,
    words_of,
)
from treewright.proving.records import VerdictReached
from treewright.proving.refutation import (
    NEGATION_SHARE,
    PROOF_SHARE,
    negation_limits,
    negation_recording,
    negation_sink,
)
from treewright.proving.run import ProofRun
from treewright.proving.runners import make_expander, make_runner
from treewright.proving.script import extraction
from treewright.proving.script.formatting import present
from treewright.proving.script.partial import best_partial
from treewright.proving.search import Runner, Search, Stop
from treewright.proving.stopping import cancelled_when
from treewright.proving.tactics.counterexamples import WithWitnesses
from treewright.proving.tactics.source import TacticSource, stop_when
from treewright.proving.targets import GoalSpec, Opening
from treewright.proving.trace import FedEnvironment

MINIMISING_SECONDS = 30.0
CHECK_PATIENCE_SECONDS = 5.0  # how long a replay check may go on when somebody asks to stop

SessionFactory = Callable[[], LeanSession]


@dataclass(slots=True)
class Spare:
    """The Lean session that all searches of a run share; another one is started if it ends."""

    start: SessionFactory
    session: LeanSession | None = None

    def take(self) -> LeanSession:
        if self.session is None or not self.session.alive:
            self.session = self.start()
        return self.session


@dataclass(slots=True)
class Searching:
    """A search with its runner. It can be paused for another search and continued."""

    search: Search
    runner: Runner
    source: TacticSource
    environment: LeanEnvironment
    ended: Stop | None = None

    def run(self, share: int | None = None) -> Stop | None:
        """None where the search pauses after `share` simulations."""
        stop_when(self.source, self.search.is_over)
        self.ended = self.search.run(self.runner, share)
        return self.ended


@dataclass(slots=True)
class Refutation:
    """The search for the negation of a goal, and what was said of the script that it found."""

    searching: Searching | None = None
    is_begun: bool = False
    judgement: Judgement | None = None
    script: str = ""

    @property
    def searched(self) -> list[Search]:
        return [self.searching.search] if self.searching is not None else []

    @property
    def ended(self) -> str:
        """How the search ended, for the verdict; '' if there was none."""
        return "" if self.searching is None else self.searching.ended or "simulations"

    @property
    def is_interrupted(self) -> bool:
        return self.ended == "interrupted"

    @property
    def is_proved(self) -> bool:
        return self.judgement is not None and self.judgement.status == "false"


@dataclass(slots=True)
class Pursuit:
    """The goals of one run. `verdicts` are those reached so far; nothing is recorded here."""

    run: ProofRun
    spare: Spare
    replayer: Replayer
    source: TacticSource
    judge: Judge
    verdicts: Mapping[int, VerdictReached]
    stop_asked: Callable[[], bool]
    on_negation: Callable[[GoalSpec, bool], None]
    on_again: Callable[[GoalSpec, Sequence[str]], None]

    def pursue(self, search: Search, spec: GoalSpec) -> VerdictReached | None:
        """Search for a proof of a goal and, early and again at the end, for one of its negation.

        None if it was interrupted before there was a verdict. Raises Unchecked.
        """
        with contextlib.ExitStack() as stack:
            environment = stack.enter_context(self._environment(spec.opening))
            try:
                proof = stack.enter_context(self._searching(search, environment, self.source))
            except GoalError as error:
                judgement = Judgement("ill_typed", str(error))
                return self._verdict(spec, judgement, "ill_typed", [search])
            negation = Refutation()
            stop = proof.run(PROOF_SHARE if self._may_refute(spec, early=True) else None)
            if stop is None:
                self._refute(spec, negation, stack, NEGATION_SHARE)
                if negation.is_interrupted:
                    return None
                if negation.is_proved:
                    return self._unsolved(spec, "refuted", search, negation)
                stop = proof.run()
            if stop == "solved":
                return self._solved(proof, spec, negation)
            assert stop is not None
            if stop == "interrupted":
                return None
            partial = best_partial(proof.runner, environment.takes, self.judge.indentation(spec))
            if self._may_refute(spec, early=False):
                self._refute(spec, negation, stack)
            if negation.is_interrupted:
                return None
            verdict = self._unsolved(spec, stop, search, negation)
        if verdict.status != "unproved":
            return verdict
        return msgspec.structs.replace(verdict, partial=partial)

    def once_more(self, spec: GoalSpec, earlier: VerdictReached) -> VerdictReached | None:
        """A goal whose script rests on what is not proved, searched without that.

        `earlier` itself where there is nothing to leave out; None if it was interrupted. Raises
        Unchecked.
        """
        try:
            with self._environment(spec.opening) as environment:
                without = self._open_names(spec, earlier, environment)
                return self._again(spec, earlier, without, environment) if without else earlier
        except LeanError as error:
            raise Unchecked(f"the search without what is not proved: {error}") from None

    def _open_names(
        self, spec: GoalSpec, earlier: VerdictReached, environment: LeanEnvironment
    ) -> tuple[str, ...]:
        """What the script rests on and can be told apart by its name, with all that is like it."""
        if (begun := again_opened(spec.number, self.run.lines)) is not None:
            return begun.without
        if spec.sorry is None or self.judge.waits_for_others(spec):
            return ()
        words = dict.fromkeys(words_of(earlier.proof))
        if self.judge.imports:
            known = environment.knowledge(0)
            words |= dict.fromkeys([*(use.name for use in known.uses), *known.related])
        names = self.judge.unproved(spec.sorry.declaration, environment, [*words])
        return names if named_in(earlier.proof, names) else ()

    def _again(
        self,
        spec: GoalSpec,
        earlier: VerdictReached,
        without: tuple[str, ...],
        environment: LeanEnvironment,
    ) -> VerdictReached | None:
        self.on_again(spec, named_in(earlier.proof, without))
        settings = self.run.record.settings
        limits = again_limits(settings, earlier.iterations, earlier.elapsed)
        looking = Search(
            spec.number,
            spec.name,
            spec.statement,
            limits,
            again_sink(self.run.writer, limits.simulations, without),
            again_recording(spec.number, self.run.lines),
            stop_asked=self.stop_asked,
        )
        with self._searching(looking, environment, self.source, without) as again:
            ended = again.run()
            assert ended is not None
            if ended == "interrupted":
                return None
            in_all = msgspec.structs.replace(
                earlier,
                iterations=earlier.iterations + looking.turns,
                elapsed=round(earlier.elapsed + looking.elapsed, 3),
            )
            if ended != "solved":
                why = f"{earlier.detail}; without that no proof was found: {_WHY[ended]}"
                return msgspec.structs.replace(in_all, detail=why, again=ended)
            try:
                found = self._solved(again, spec, Refutation())
            except Unchecked:
                self.judge.remember(spec, earlier.proof)
                raise
        if found.status == "rejected":
            self.judge.remember(spec, earlier.proof)
            why = f"{earlier.detail}; what was found without that was refused: {found.detail}"
            return msgspec.structs.replace(in_all, detail=why, again="refused")
        return msgspec.structs.replace(
            found,
            iterations=in_all.iterations,
            elapsed=in_all.elapsed,
            negation=earlier.negation,
            again=ended,
        )

    @contextlib.contextmanager
    def _searching(
        self,
        search: Search,
        environment: LeanEnvironment,
        source: TacticSource,
        without: Sequence[str] = (),
    ) -> Iterator[Searching]:
        """Raises GoalError if Lean does not take the goal."""
        settings = self.run.record.settings
        recording = search.recording
        fed = FedEnvironment(recording, environment)
        expander = make_expander(settings, fed, source, recording.suggestions, without=without)
        search.open(expander)
        runner = make_runner(settings, expander)
        try:
            yield Searching(search, runner, source, environment)
        finally:
            runner.drain()

    def _solved(self, searching: Searching, spec: GoalSpec, negation: Refutation) -> VerdictReached:
        """The script as people write it, if the replay check takes that, else as it was found."""
        runner, environment = searching.runner, searching.environment
        closes = self._until_tired(environment.closes)
        step = extraction.extract(runner.tree.root, goals=runner.expander.goals)
        places = extraction.superfluous(step, closes)
        shorter = extraction.without(step, places)
        plain = extraction.render(shorter)
        shown = present(_shortest(runner, shorter, closes), closes, self.judge.indentation(spec))
        forms = {shown: places, plain: places, extraction.render(step): ()}
        judgement, script = Judgement("rejected"), plain
        with cancelled_when(self.stop_asked, self.replayer.close, CHECK_PATIENCE_SECONDS):
            for script in forms:
                judgement = self.judge.script(spec, script, environment)
                if judgement.status != "rejected":
                    break
        found = plain if script == shown != plain else ""
        verdict = self._verdict(
            spec,
            judgement,
            "solved",
            [searching.search, *negation.searched],
            script,
            negation.ended,
        )
        return msgspec.structs.replace(verdict, left_out=forms[script], found=found)

    def _may_refute(self, spec: GoalSpec, *, early: bool) -> bool:
        """Whether the user asked for it, and it was not done for another sorry of the declaration:
        in its first share for an early search, to its end for a later one."""
        settings = self.run.record.settings
        if not settings.refute or (early and settings.simulations <= PROOF_SHARE):
            return False
        if spec.sorry is None:
            return True
        name = spec.sorry.declaration
        family = (s.number for s in self.judge.specs if s.sorry and s.sorry.declaration == name)
        searched = (
            verdict
            for number in family
            if (verdict := self.verdicts.get(number)) and verdict.negation not in ("", "solved")
        )
        return not any(early or verdict.status == "unproved" for verdict in searched)

    def _refute(
        self,
        spec: GoalSpec,
        negation: Refutation,
        stack: contextlib.ExitStack,
        share: int | None = None,
    ) -> None:
        """Begin or continue the search for the negation, and check what it finds."""
        if negation.is_begun and (negation.searching is None or negation.searching.ended):
            return
        self.on_negation(spec, share is not None)
        try:
            if not negation.is_begun:
                negation.is_begun = True
                negation.searching = self._negated(spec, stack)
            searching = negation.searching
            if searching is None or searching.run(share) != "solved":
                return
        except LeanError as error:
            raise Unchecked(f"the search for the negation: {error}") from None
        negation.script = extraction.render(extraction.extract(searching.runner.tree.root))
        negation.judgement = self.judge.refutation(spec, negation.script)

    def _negated(self, spec: GoalSpec, stack: contextlib.ExitStack) -> Searching | None:
        """The search for the negation; None if Lean does not take the negation of a file's goal."""
        limits = negation_limits(self.run.record.settings)
        looking = Search(
            spec.number,
            spec.name,
            spec.negation.statement,
            limits,
            negation_sink(self.run.writer, limits.simulations),
            negation_recording(spec.number, self.run.lines),
            stop_asked=self.stop_asked,
        )
        environment = stack.enter_context(self._environment(spec.negation.opening))
        source = WithWitnesses(self.source, self.run.record.target)
        try:
            return stack.enter_context(self._searching(looking, environment, source))
        except GoalError:
            if spec.sorry is None:
                raise
            return None

    def _unsolved(
        self, spec: GoalSpec, stop: Stop | Literal["refuted"], search: Search, negation: Refutation
    ) -> VerdictReached:
        """`false` if the negation is proved, else `unproved` and why."""
        found = negation.judgement
        searched = [search, *negation.searched]
        if negation.is_proved:
            assert found is not None
            return self._verdict(spec, found, stop, searched, negation.script, negation.ended)
        assert stop != "refuted"
        if found is not None:
            judgement = replace(found, detail=f"{_WHY[stop]}; {found.detail}")
        else:
            in_vain = "; its negation was not proved either" if negation.ended else ""
            judgement = Judgement("unproved", f"{_WHY[stop]}{in_vain}")
        return self._verdict(spec, judgement, stop, searched, negation=negation.ended)

    def _until_tired(self, holds: Callable[[str], bool]) -> Callable[[str], bool]:
        """Making a script shorter is worth some time, and ends when somebody asks to stop."""
        deadline = time.monotonic() + MINIMISING_SECONDS
        return lambda text: not self.stop_asked() and time.monotonic() < deadline and holds(text)

    def _verdict(
        self,
        spec: GoalSpec,
        judgement: Judgement,
        stop: str,
        searched: Sequence[Search],
        proof: str = "",
        negation: str = "",
    ) -> VerdictReached:
        return VerdictReached(
            epoch=self.run.writer.epoch,
            at=timestamp(),
            goal=spec.number,
            status=judgement.status,
            stop=stop,
            detail=judgement.detail,
            proof=proof,
            axioms=judgement.axioms,
            iterations=sum(search.turns for search in searched),
            elapsed=round(sum(search.elapsed for search in searched), 3),
            negation=negation,
            check=judgement.check,
        )

    @contextlib.contextmanager
    def _environment(self, opening: Opening) -> Iterator[LeanEnvironment]:
        """Free its states in the shared session at the end; close that if something went wrong."""
        environment = LeanEnvironment(
            self.spare.take, opening, step_seconds=self.run.record.settings.step_timeout
        )
        try:
            yield environment
        except BaseException:
            environment.close()
            raise
        environment.release()


_WHY: dict[Stop, str] = {
    "exhausted": "every tactic that was proposed has been tried",
    "simulations": "the limit of simulations was reached",
    "time": "the time limit was reached",
    "abort": "no agent could go on",
}


def _shortest(
    runner: Runner, found: extraction.Step, closes: Callable[[str], bool]
) -> extraction.Step:
    """The shortest way through what was searched, if it is shorter than what was found."""
    root = runner.tree.root
    other = extraction.extract(root, extraction.shortest(root), runner.expander.goals)
    if extraction.render(other) == extraction.render(found):
        return found
    other = extraction.without(other, extraction.superfluous(other, closes))
    return min(found, other, key=lambda step: extraction.render(step).count("\n"))
