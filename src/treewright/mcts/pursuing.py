"""One goal, from search to verdict: a script and its check, or the search for the negation."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from treewright.kernel.clock import timestamp
from treewright.lean.replay import Replayer
from treewright.lean.session import LeanError, LeanSession
from treewright.mcts import extraction
from treewright.mcts.judging import Judge, Judgement
from treewright.mcts.lean_environment import GoalError, LeanEnvironment
from treewright.mcts.once_more import (
    again_limits,
    again_opened,
    again_recording,
    again_sink,
    named_in,
    words_of,
)
from treewright.mcts.partial import best_partial
from treewright.mcts.presentation import present
from treewright.mcts.recording import FedEnvironment
from treewright.mcts.records import VerdictReached
from treewright.mcts.refutation import negation_limits, negation_recording, negation_sink
from treewright.mcts.run import ProofRun
from treewright.mcts.runners import make_expander, make_runner
from treewright.mcts.search import Runner, Search, Stop
from treewright.mcts.sources.base import TacticSource, stop_when
from treewright.mcts.stopping import cancelled_when
from treewright.mcts.targets import GoalSpec, Opening
from treewright.mcts.verification import Unchecked
from treewright.mcts.witnesses import WithWitnesses

MINIMISING_SECONDS = 30.0
CHECK_PATIENCE_SECONDS = 5.0  # how long a replay check may go on when somebody asks to stop

SessionFactory = Callable[[], LeanSession]


@dataclass(slots=True)
class Spare:
    """A session that goes from goal to goal; another is started where there is none."""

    start: SessionFactory
    session: LeanSession | None = None

    def take(self) -> LeanSession:
        spare, self.session = self.session, None
        return spare if spare is not None and spare.alive else self.start()


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
    on_negation: Callable[[GoalSpec], None]
    on_again: Callable[[GoalSpec, Sequence[str]], None]
    _before: int = field(default=0, init=False)

    def pursue(self, search: Search, spec: GoalSpec) -> VerdictReached | None:
        """None if it was interrupted before there was a verdict. Raises Unchecked."""
        self._before = search.iteration
        with self._environment(spec.opening) as environment:
            try:
                runner, stop = self._explore(search, environment, self.source)
            except GoalError as error:
                return self._verdict(search, Judgement("ill_typed", str(error)), "ill_typed")
            if stop == "solved":
                return self._solved(search, spec, runner, environment)
            if stop == "interrupted":
                return None
            partial = best_partial(runner, environment.takes, self.judge.indentation(spec))
        if self.run.record.settings.refute and not self._searched_in_vain(spec):
            verdict = self._refute(search, spec, stop)
        else:
            verdict = self._verdict(search, Judgement("unproved", _WHY[stop]), stop)
        if verdict is None or verdict.status != "unproved":
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
        limits = again_limits(self.run.record.settings)
        looking = Search(
            spec.number,
            spec.name,
            spec.statement,
            limits,
            again_sink(self.run.writer, limits.simulations, without),
            again_recording(spec.number, self.run.lines),
            stop_asked=self.stop_asked,
        )
        self._before = 0
        runner, ended = self._explore(looking, environment, self.source, without)
        if ended == "interrupted":
            return None
        if ended != "solved":
            why = f"{earlier.detail}; without that no proof was found: {_WHY[ended]}"
            return msgspec.structs.replace(earlier, detail=why, again=ended)
        try:
            found = self._solved(looking, spec, runner, environment)
        except Unchecked:
            self.judge.remember(spec, earlier.proof)
            raise
        if found.status == "rejected":
            self.judge.remember(spec, earlier.proof)
            why = f"{earlier.detail}; what was found without that was refused: {found.detail}"
            return msgspec.structs.replace(earlier, detail=why, again="refused")
        return msgspec.structs.replace(
            found, iterations=earlier.iterations, elapsed=earlier.elapsed, again=ended
        )

    def _explore(
        self,
        search: Search,
        environment: LeanEnvironment,
        source: TacticSource,
        without: Sequence[str] = (),
    ) -> tuple[Runner, Stop]:
        settings = self.run.record.settings
        recording = search.recording
        fed = FedEnvironment(recording, environment)
        expander = make_expander(settings, fed, source, recording.suggestions, without=without)
        search.open(expander)
        runner = make_runner(settings, expander)
        stop_when(source, search.is_over)
        try:
            return runner, search.run(runner)
        finally:
            runner.drain()

    def _solved(
        self,
        search: Search,
        spec: GoalSpec,
        runner: Runner,
        environment: LeanEnvironment,
    ) -> VerdictReached:
        """The script as people write it, if the replay check takes that, else as it was found."""
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
        return self._verdict(
            search, judgement, "solved", script, left_out=forms[script], found=found
        )

    def _searched_in_vain(self, spec: GoalSpec) -> bool:
        """Whether the negation of the declaration was searched for another of its sorries."""
        if spec.sorry is None:
            return False
        name = spec.sorry.declaration
        family = (s.number for s in self.judge.specs if s.sorry and s.sorry.declaration == name)
        verdicts = (self.verdicts.get(number) for number in family)
        return any(v is not None and v.negation not in ("", "solved") for v in verdicts)

    def _refute(self, search: Search, spec: GoalSpec, stop: Stop) -> VerdictReached | None:
        """The search for the negation of a goal that was not proved; None if interrupted."""
        self.on_negation(spec)
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
        try:
            with self._environment(spec.negation.opening) as environment:
                source = WithWitnesses(self.source, self.run.record.target)
                runner, ended = self._explore(looking, environment, source)
        except GoalError:
            if spec.sorry is None:
                raise
            return self._verdict(search, Judgement("unproved", _WHY[stop]), stop)
        except LeanError as error:
            raise Unchecked(f"the search for the negation: {error}") from None
        if ended == "interrupted":
            return None
        detail = f"{_WHY[stop]}; its negation was not proved either"
        if ended == "solved":
            script = extraction.render(extraction.extract(runner.tree.root))
            judgement = self.judge.refutation(spec, script)
            if judgement.status == "false":
                return self._verdict(search, judgement, stop, script, negation=ended)
            refused = replace(judgement, detail=f"{_WHY[stop]}; {judgement.detail}")
            return self._verdict(search, refused, stop, negation=ended)
        return self._verdict(search, Judgement("unproved", detail), stop, negation=ended)

    def _until_tired(self, holds: Callable[[str], bool]) -> Callable[[str], bool]:
        """Making a script shorter is worth some time, and ends when somebody asks to stop."""
        deadline = time.monotonic() + MINIMISING_SECONDS
        return lambda text: not self.stop_asked() and time.monotonic() < deadline and holds(text)

    def _verdict(
        self,
        search: Search,
        judgement: Judgement,
        stop: str,
        proof: str = "",
        *,
        left_out: tuple[extraction.Place, ...] = (),
        found: str = "",
        negation: str = "",
    ) -> VerdictReached:
        return VerdictReached(
            epoch=self.run.writer.epoch,
            at=timestamp(),
            goal=search.goal,
            status=judgement.status,
            stop=stop,
            detail=judgement.detail,
            proof=proof,
            axioms=judgement.axioms,
            iterations=search.iteration - self._before,
            elapsed=round(search.elapsed, 3),
            left_out=left_out,
            found=found,
            negation=negation,
            check=judgement.check,
        )

    @contextlib.contextmanager
    def _environment(self, opening: Opening) -> Iterator[LeanEnvironment]:
        """Keeps the session for the next goal, emptied, unless something went wrong."""
        environment = LeanEnvironment(
            self.spare.take, opening, step_seconds=self.run.record.settings.step_timeout
        )
        try:
            yield environment
        except BaseException:
            environment.close()
            raise
        self.spare.session = environment.release()


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
