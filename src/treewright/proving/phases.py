"""One goal, from the first search to its result, in up to three phases.

*prove*: the goal is searched for a proof. If `EARLY_PROVE_SIMULATIONS` do not find one, the search
pauses for an early search for the negation, and then goes on to its limit.

*negate*: the goal may be false, so its negation is searched for a proof: early, with
`EARLY_NEGATE_SIMULATIONS`, and to its own limit if the first phase ends without a proof.

*retry*: a script may rest on a lemma that is still a `sorry`, because the same run may prove that
lemma later. If it did not, the goal is searched again, and no tactic may mention an open lemma.

Every phase uses the runner of the run's mode, is bounded by counts and is in the trace line by
line, so that a run is continued and replayed with the same phases. A proof or a refutation counts
only if the replay check accepts it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.lean.processes import LeanProcesses
from treewright.lean.session.errors import LeanError
from treewright.lean.session.knowledge import TestResult
from treewright.llm.usage_log import UsageLog
from treewright.proving.checker import ScriptChecker, Unchecked
from treewright.proving.environment import GoalError, LeanEnvironment
from treewright.proving.portfolio import Portfolio
from treewright.proving.records import Candidate, GoalOpened, GoalResult, Iteration
from treewright.proving.run import ProofRun
from treewright.proving.script import extraction
from treewright.proving.script.formatting import format_script
from treewright.proving.script.partial import find_best_partial
from treewright.proving.search import Phase, Search, Stop, make_expander, make_runner
from treewright.proving.settings import RunRecord, Settings
from treewright.proving.tactics.counterexamples import WithCounterexamples, refutations
from treewright.proving.tactics.exclusion import find_named, possible_names
from treewright.proving.tactics.source import OFFERED_PRIOR, TacticSource
from treewright.proving.targets import GoalSpec, Opening, TellTrouble
from treewright.proving.trace import RecordedEnvironment, Recording
from treewright.search.andor.graph import Graph

EARLY_PROVE_SIMULATIONS = 10
"""Simulations of the search for a proof before the negation is searched early."""
EARLY_NEGATE_SIMULATIONS = 8
"""Simulations of the early search for the negation."""
MOST_NEGATE_SIMULATIONS = 40
"""The most simulations of a search for a negation."""
SHORTENING_SECONDS = 30.0
"""The most time for making a script shorter and formatting it."""
CHECK_GRACE_SECONDS = 5.0
"""How long a replay check may go on after the user asked to stop."""
_POLL_SECONDS = 0.1

_STOP_IN_WORDS: dict[Stop, str] = {
    "exhausted": "every tactic that was proposed has been tried",
    "simulations": "the limit of simulations was reached",
    "time": "the time limit was reached",
    "abort": "no agent could go on",
}


@dataclass(slots=True)
class Observer:
    """Callbacks for the progress of a run. The defaults do nothing."""

    goal: Callable[[GoalSpec, int], None] = lambda spec, total: None
    iteration: Callable[[Iteration, Graph], None] = lambda line, tree: None
    result: Callable[[GoalSpec, GoalResult], None] = lambda spec, result: None
    negation: Callable[[GoalSpec, bool], None] = lambda spec, early: None
    retry: Callable[[GoalSpec, Sequence[str]], None] = lambda spec, names: None
    fault: Callable[[GoalSpec, str], None] = lambda spec, why: None
    run: Callable[[RunRecord, Path], None] = lambda record, directory: None
    written: Callable[[str], None] = lambda path: None
    trouble: TellTrouble = lambda names, error: None
    spent: Callable[[UsageLog], None] = lambda log: None


def prove_phase(settings: Settings) -> Phase:
    """Return the limits of the search for a proof."""
    return Phase("prove", settings.simulations, settings.time_limit)


def negate_phase(settings: Settings) -> Phase:
    """Return the limits of the search for a proof of the negation."""
    most = min(MOST_NEGATE_SIMULATIONS, settings.simulations)
    return Phase("negate", most, settings.time_limit)


def retry_phase(
    settings: Settings, simulations: int, seconds: float = 0.0, without: tuple[str, ...] = ()
) -> Phase:
    """Return the limits of a retry: the rest of the goal's limits after the other phases."""
    limit = settings.time_limit
    left = None if limit is None else max(0.0, limit - seconds)
    return Phase("retry", max(0, settings.simulations - simulations), left, without)


@dataclass(slots=True)
class NegatePhase:
    """The negate phase of a goal, as far as it has come."""

    is_begun: bool = False
    values: TestResult | None = None
    """The values for which tests found the goal false, if they did."""
    search: Search | None = None
    """None before it begins, and if Lean does not accept the negation as a proposition."""
    result: GoalResult | None = None
    """The answer of the replay check about the proof of the negation that was found."""

    @property
    def stop(self) -> str:
        """Why the phase ended; '' if it did not take place.

        A phase that stays paused after its early share counts as ended by `simulations`.
        """
        return "" if self.search is None else self.search.stop or "simulations"


@dataclass(slots=True)
class GoalProver:
    """Searches the goals of one run.

    It records the iterations in the trace. The caller records the results that it returns.

    Args:
        run: The run.
        lean: The owner of the Lean processes. All searches use its kept session.
        checker: Checks scripts.
        source: Suggests tactics.
        results: The results of the goals so far.
        stop_asked: Returns whether the user asked to stop.
        observer: Is told about the progress.
        iteration: The number of the run's last iteration so far.
    """

    run: ProofRun
    lean: LeanProcesses
    checker: ScriptChecker
    source: TacticSource
    results: Mapping[int, GoalResult]
    stop_asked: Callable[[], bool]
    observer: Observer
    iteration: int = field(default=0)

    def prove(self, spec: GoalSpec) -> GoalResult | None:
        """Search a goal for a proof, and its negation: early, and again at the end.

        Returns None if the user asked to stop before there was a result.

        Raises:
            Unchecked: The replay check gave no answer.
        """
        settings = self.run.record.settings
        negation = NegatePhase()
        with contextlib.ExitStack() as stack:
            environment = stack.enter_context(self._open_environment(spec.opening))
            phase = prove_phase(settings)
            try:
                proof = stack.enter_context(self._open_search(spec, phase, environment))
            except GoalError as error:
                return GoalResult(spec.number, spec.name, "ill_typed", "ill_typed", str(error))
            early = self._should_negate(spec, early=True)
            negation.values = self._try_strategies(proof, environment)
            stop, result = self._run(
                spec, proof, environment, EARLY_PROVE_SIMULATIONS if early else None
            )
            if stop is None:
                self._search_negation(spec, negation, stack, EARLY_NEGATE_SIMULATIONS)
                if negation.stop == "interrupted":
                    return None
                if negation.result is not None and negation.result.status == "false":
                    return _completed(_with_values(negation), "refuted", proof, negation)
                stop, result = self._run(spec, proof, environment)
            if stop is None or stop == "interrupted":
                return None
            if stop == "solved":
                assert result is not None
                return _completed(result, stop, proof, negation)
            rejected = result
            indent = self.checker.indentation(spec)
            partial = find_best_partial(proof.runner, environment.accepts_script, indent)
            if self._should_negate(spec, early=False):
                self._search_negation(spec, negation, stack)
            if negation.stop == "interrupted":
                return None
        why = _STOP_IN_WORDS[stop]
        result = negation.result
        if result is None:
            also = "; its negation was not proved either" if negation.stop else ""
            result = GoalResult(spec.number, spec.name, "unproved", detail=f"{why}{also}")
        elif result.status == "unproved":
            result = msgspec.structs.replace(result, detail=f"{why}; {result.detail}")
        if result.status == "unproved" and rejected is not None:
            result = rejected
        if result.status == "unproved":
            result = msgspec.structs.replace(result, partial=partial)
        return _completed(result, stop, proof, negation)

    def retry(self, spec: GoalSpec, earlier: GoalResult) -> GoalResult | None:
        """Search a partial goal again, without the open lemmas that its script rests on.

        Returns `earlier` itself if the script uses no open lemma, and None if the user asked to
        stop.

        Raises:
            Unchecked: Lean or the replay check gave no answer.
        """
        try:
            with self._open_environment(spec.opening) as environment:
                without = self._open_lemmas(spec, earlier, environment)
                if not without:
                    return earlier
                environment.without = without
                return self._search_again(spec, earlier, without, environment)
        except LeanError as error:
            raise Unchecked(f"the search without what is not proved: {error}") from None

    # -- phases ---------------------------------------------------------------------------

    def _try_strategies(self, search: Search, environment: LeanEnvironment) -> TestResult | None:
        """Test the goal, and offer the search a script that closes it, if a strategy finds one.

        Returns values for which the goal is false, if tests find some: then no strategy is tried.
        A search that was continued has its first suggestions in the trace.
        """
        settings = self.run.record.settings
        if not settings.sources.strategies or search.recording.iterations:
            return None
        portfolio = Portfolio(environment, self.stop_asked, settings.time_limit)
        script, tested = portfolio.solve()
        if script:
            search.runner.expander.offer([Candidate(script, OFFERED_PRIOR, "strategies")])
        return tested if tested.outcome == "false" else None

    def _run(
        self,
        spec: GoalSpec,
        search: Search,
        environment: LeanEnvironment,
        until: int | None = None,
    ) -> tuple[Stop | None, GoalResult | None]:
        """Run a search, and check what it finds; what is rejected is excluded, and it goes on.

        Returns why the search ended, None if it is paused; and the result of its last script.

        Raises:
            Unchecked: The replay check gave no answer.
        """
        while True:
            stop = search.run(until)
            if stop != "solved":
                return stop, search.refusals[-1].result if search.refusals else None
            result = self._check_solved(spec, search, environment)
            if result.status != "rejected" or not search.exclude(result):
                return stop, result

    def _should_negate(self, spec: GoalSpec, *, early: bool) -> bool:
        """Return whether the negation is to be searched, early or at the end.

        The sorries of one declaration have the same negation. The early search is made for the
        first of them only, and the search to the end until one of them is unproved.
        """
        settings = self.run.record.settings
        if not settings.refute or (early and settings.simulations <= EARLY_PROVE_SIMULATIONS):
            return False
        if spec.sorry is None:
            return True
        known = (self.results.get(other.number) for other in self.checker.family(spec))
        searched = [r for r in known if r is not None and r.negation not in ("", "solved")]
        return not any(early or result.status == "unproved" for result in searched)

    def _search_negation(
        self,
        spec: GoalSpec,
        negation: NegatePhase,
        stack: contextlib.ExitStack,
        until: int | None = None,
    ) -> None:
        """Begin or continue the search for the negation, and check the proof that it finds."""
        if negation.is_begun and (negation.search is None or negation.search.stop):
            return
        self.observer.negation(spec, until is not None)
        try:
            if not negation.is_begun:
                negation.is_begun = True
                environment = stack.enter_context(self._open_environment(spec.negation.opening))
                phase = negate_phase(self.run.record.settings)
                try:
                    negation.search = stack.enter_context(
                        self._open_search(spec, phase, environment)
                    )
                except GoalError:  # Lean does not accept every negation of a file's goal
                    if spec.sorry is None:
                        raise
                if negation.search is not None and negation.values is not None:
                    scripts = refutations(negation.values, environment.knowledge(0).reachable)
                    offered = [
                        Candidate(script, OFFERED_PRIOR, "tested values") for script in scripts
                    ]
                    negation.search.runner.expander.offer(offered)
            search = negation.search
            if search is None or search.run(until) != "solved":
                return
        except LeanError as error:
            raise Unchecked(f"the search for the negation: {error}") from None
        script = extraction.render(extraction.extract(search.runner.tree.root))
        negation.result = self.checker.check_refutation(spec, script)

    def _open_lemmas(
        self, spec: GoalSpec, earlier: GoalResult, environment: LeanEnvironment
    ) -> tuple[str, ...]:
        """Return the open declarations that a retry must not mention.

        Returns an empty tuple if the script uses none of them, or if its declaration is partial
        because of another `sorry` in it.
        """
        for line in self.run.lines:
            if isinstance(line, GoalOpened) and (line.goal, line.phase) == (spec.number, "retry"):
                return line.without
        if spec.sorry is None or not self.checker.is_family_complete(spec):
            return ()
        words = dict.fromkeys(possible_names(earlier.proof))
        if self.checker.has_project_imports:
            known = environment.knowledge(0)
            words |= dict.fromkeys([*(use.name for use in known.uses), *known.related])
        names = self.checker.open_declarations(spec.sorry.declaration, environment, [*words])
        if find_named(earlier.proof, names) or (names and environment.uses(earlier.proof, names)):
            return names
        return ()

    def _search_again(
        self,
        spec: GoalSpec,
        earlier: GoalResult,
        without: tuple[str, ...],
        environment: LeanEnvironment,
    ) -> GoalResult | None:
        self.observer.retry(spec, find_named(earlier.proof, without) or without)
        settings = self.run.record.settings
        phase = retry_phase(settings, earlier.iterations, earlier.elapsed, without)
        with self._open_search(spec, phase, environment) as search:
            try:
                stop, result = self._run(spec, search, environment)
            finally:
                self.checker.keep(spec, earlier.proof)
            if stop is None or stop == "interrupted":
                return None
            iterations = earlier.iterations + search.simulations
            elapsed = round(earlier.elapsed + search.elapsed, 3)
            if stop == "solved":
                assert result is not None
                if result.status != "rejected":
                    self.checker.keep(spec, result.proof)
                    return msgspec.structs.replace(
                        result,
                        stop="solved",
                        iterations=iterations,
                        elapsed=elapsed,
                        negation=earlier.negation,
                        retry=stop,
                    )
                why = f"what was found without that was refused: {result.detail}"
            else:
                why = f"without that no proof was found: {_STOP_IN_WORDS[stop]}"
        return msgspec.structs.replace(
            earlier,
            detail=f"{earlier.detail}; {why}",
            iterations=iterations,
            elapsed=elapsed,
            retry="refused" if stop == "solved" else stop,
        )

    @contextlib.contextmanager
    def _open_search(
        self, spec: GoalSpec, phase: Phase, environment: LeanEnvironment
    ) -> Iterator[Search]:
        """Open the search of a phase. Raises GoalError if Lean does not accept the goal."""
        settings = self.run.record.settings
        recording = Recording(spec.number, self.run.lines, phase.kind)
        is_proof, source, statement = phase.kind == "prove", self.source, spec.statement
        if phase.kind == "negate":
            source = WithCounterexamples(source, self.run.record.target)
            statement = spec.negation.statement
        expander = make_expander(
            settings,
            RecordedEnvironment(recording, environment),
            source,
            recording.suggestions,
            without=phase.without,
        )
        runner = make_runner(settings, expander)
        search = Search(
            spec.number,
            phase,
            runner,
            source,
            self.run.writer,
            recording,
            self.iteration if is_proof else 0,
            self.stop_asked,
            self.observer.iteration if is_proof else lambda line, tree: None,
        )
        try:
            search.open(spec.name, statement)
            yield search
        finally:
            runner.drain()
            if is_proof:
                self.iteration = search.iteration

    @contextlib.contextmanager
    def _open_environment(self, opening: Opening) -> Iterator[LeanEnvironment]:
        """Free the states of the shared session at the end; close the session after an error."""
        environment = LeanEnvironment(
            self.lean.kept_session, opening, step_seconds=self.run.record.settings.step_timeout
        )
        try:
            yield environment
        except BaseException:
            environment.close()
            raise
        environment.release()

    # -- scripts --------------------------------------------------------------------------

    def _check_solved(
        self, spec: GoalSpec, search: Search, environment: LeanEnvironment
    ) -> GoalResult:
        """Check the script of a solved search.

        Three forms are tried until the replay check accepts one: a formatted script, the script
        without superfluous steps, and the script as the search found it. The formatted script is
        made from the script with the fewest steps in the graph, if that one has fewer lines.
        """
        runner = search.runner
        deadline = time.monotonic() + SHORTENING_SECONDS

        def closes(script: str) -> bool:
            is_late = self.stop_asked() or time.monotonic() >= deadline
            return not is_late and environment.closes(script)

        root, goals = runner.tree.root, runner.expander.goals
        step = extraction.extract(root, goals=goals)
        left_out = extraction.find_superfluous(step, closes)
        shorter = extraction.remove_steps(step, left_out)
        other = extraction.extract(root, extraction.choose_shortest(root), goals)
        best = shorter
        if extraction.render(other) != extraction.render(shorter):
            other = extraction.remove_steps(other, extraction.find_superfluous(other, closes))
            best = min(shorter, other, key=lambda step: extraction.render(step).count("\n"))
        plain = extraction.render(shorter)
        formatted = format_script(best, closes, self.checker.indentation(spec))
        forms = {formatted: left_out, plain: left_out, extraction.render(step): ()}
        result, script = None, plain
        with cancel_on_stop(self.stop_asked, self.checker.replayer.close, CHECK_GRACE_SECONDS):
            for script in forms:
                result = self.checker.check_script(spec, script, environment)
                if result.status != "rejected":
                    break
        assert result is not None
        found = plain if script == formatted != plain else ""
        return msgspec.structs.replace(result, left_out=forms[script], found=found)


def _with_values(negation: NegatePhase) -> GoalResult:
    """Return the result of a refutation, with the values for which the goal is false."""
    assert negation.result is not None
    tested = negation.values.values if negation.values is not None else ()
    shown = ", ".join(f"{each.name} = {each.value}" for each in tested if each.kind == "value")
    if not shown:
        return negation.result
    detail = f"{negation.result.detail}; it is false for {shown}"
    return msgspec.structs.replace(negation.result, detail=detail)


def _completed(result: GoalResult, stop: str, proof: Search, negation: NegatePhase) -> GoalResult:
    """Return a result with the way in which the phases ended, and with their sums."""
    searches = [proof] if negation.search is None else [proof, negation.search]
    return msgspec.structs.replace(
        result,
        stop=stop,
        iterations=sum(search.simulations for search in searches),
        elapsed=round(sum(search.elapsed for search in searches), 3),
        negation=negation.stop,
    )


@contextlib.contextmanager
def cancel_on_stop(
    stop_asked: Callable[[], bool], cancel: Callable[[], None], grace: float = 0.0
) -> Iterator[None]:
    """Call `cancel` while the body runs, from `grace` seconds after the user asked to stop.

    A body that waits for Lean cannot call `stop_asked` itself, and Lean may read a long file for
    minutes. `cancel` is called again and again until the body ends.
    """
    over = threading.Event()

    def watch() -> None:
        since: float | None = None
        while not over.wait(_POLL_SECONDS):
            if not stop_asked():
                continue
            since = since or time.monotonic()
            if time.monotonic() - since >= grace:
                cancel()

    watcher = threading.Thread(target=watch, name="stop-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
