"""Comparisons between the runs of an experiment. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from treewright.cellview.experiment.plan import UNDAMAGED, Arm, Plan, PlannedRun, runs_of
from treewright.cellview.experiment.results import MeasuredRun
from treewright.cellview.measures import (
    DoseResponse,
    Robustness,
    Trial,
    dose_response,
    restricted,
    robustness,
)
from treewright.proving.measures.intervals import Estimate, clustered_mean, not_negative, rate

Finished = Sequence[tuple[PlannedRun, MeasuredRun]]


@dataclass(frozen=True, slots=True)
class Group:
    """The finished runs of one mode, number of agents and arm."""

    mode: str
    agents: int | None
    arm: Arm
    members: list[tuple[PlannedRun, MeasuredRun]] = field(default_factory=list)

    @property
    def setup(self) -> str:
        """The mode and the number of agents, in words."""
        return self.mode if self.agents is None else f"{self.mode}, {self.agents} agents"

    @property
    def trials(self) -> list[Trial]:
        """The trials of the finished runs."""
        return [result.trial(planned) for planned, result in self.members]

    def solved(self) -> Estimate | None:
        """Return the solve rate."""
        return rate(sum(result.solved for _, result in self.members), len(self.members))

    def mean(
        self,
        value: Callable[[MeasuredRun], float | None],
        scale: Callable[[float], float] = float,
    ) -> Estimate | None:
        """Return the mean over the runs that have the value; goals are clusters."""
        clusters: dict[str, list[float]] = {}
        for planned, result in self.members:
            number = value(result)
            if number is not None:
                clusters.setdefault(planned.goal.name, []).append(number)
        return clustered_mean(list(clusters.values()), 0, scale)

    def attempts(self) -> Estimate | None:
        """Return the mean number of tried tactics."""
        return self.mean(lambda result: float(result.attempts), not_negative)

    def gain_over_dip(self) -> Estimate | None:
        """Return the mean delayed gratification."""
        return self.mean(lambda result: result.gain_over_dip, not_negative)

    def alike_beyond_chance(self) -> Estimate | None:
        """Return the mean aggregation, less that by chance."""
        return self.mean(_alike_beyond_chance)

    def steps(self, limit: int) -> Estimate | None:
        """Return the mean steps; an unsolved run counts with the limit."""
        by_id = {result.cell_id: result.trial(planned) for planned, result in self.members}
        return self.mean(
            lambda result: float(restricted(by_id[result.cell_id], limit)), not_negative
        )


def _alike_beyond_chance(result: MeasuredRun) -> float | None:
    if result.alike is None or result.alike_by_chance is None:
        return None
    return result.alike - result.alike_by_chance


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group against its reference group."""

    reference: Group
    group: Group
    found: Robustness


@dataclass(frozen=True, slots=True)
class Curve:
    """The response to rising block fractions, with all other settings equal."""

    agents: int
    label: str
    found: DoseResponse


def groups_of(plan: Plan, results: Mapping[str, MeasuredRun]) -> list[Group]:
    """Return the groups in the order of the plan, without those that have no finished run."""
    groups: dict[tuple[str, int | None, str], Group] = {}
    for planned in runs_of(plan):
        result = results.get(planned.cell_id)
        if result is not None:
            key = (planned.mode, planned.agents, planned.arm.name)
            group = groups.setdefault(key, Group(planned.mode, planned.agents, planned.arm))
            group.members.append((planned, result))
    return list(groups.values())


def under_damage(groups: Sequence[Group]) -> list[Comparison]:
    """Compare every arm with the undamaged arm of the same number of agents."""
    found: list[Comparison] = []
    for group in groups:
        reference = _undamaged(groups, group.agents)
        if group.arm.name != UNDAMAGED and reference is not None:
            compared = robustness(reference.trials, group.trials)
            found.append(Comparison(reference, group, compared))
    return found


def against_centralized(groups: Sequence[Group]) -> list[Comparison]:
    """Compare the undamaged distributed groups with the centralized group, if there is one."""
    central = _undamaged(groups, None)
    if central is None:
        return []
    return [
        Comparison(central, group, robustness(central.trials, group.trials))
        for group in groups
        if group.agents is not None and group.arm.name == UNDAMAGED
    ]


def curves(plan: Plan, groups: Sequence[Group]) -> list[Curve]:
    """Return a curve for each number of agents and each kind of block with several fractions.

    Dose 0 is the undamaged search. If the arms do other damage as well, it is the arm that does
    only that.
    """
    found: list[Curve] = []
    for agents in plan.agents:
        families: dict[str, dict[float, Group]] = {}
        for group in groups:
            if group.agents == agents and group.arm.dose > 0:
                families.setdefault(_family(group.arm), {})[group.arm.dose] = group
        for family, doses in families.items():
            zero = _without_blocks(groups, agents, family, next(iter(doses.values())).arm)
            if zero is not None:
                doses = {0.0: zero, **doses}
            if len(doses) > 1:
                arms = {dose: doses[dose].trials for dose in sorted(doses)}
                label = _label(doses[max(doses)].arm)
                found.append(Curve(agents, label, dose_response(arms, plan.simulations)))
    return found


def _undamaged(groups: Sequence[Group], agents: int | None) -> Group | None:
    return next((g for g in groups if g.agents == agents and g.arm.name == UNDAMAGED), None)


def _without_blocks(groups: Sequence[Group], agents: int, family: str, arm: Arm) -> Group | None:
    if not (arm.settings.get("delay_prob") or arm.settings.get("schedule")):
        return _undamaged(groups, agents)
    same = [g for g in groups if g.agents == agents and _family(g.arm) == family]
    return next((g for g in same if g.arm.dose == 0), None)


def _family(arm: Arm) -> str:
    return repr(sorted(arm.settings.items()))


def _label(arm: Arm) -> str:
    """Return the arm's name without its dose."""
    return arm.name.removesuffix(f" {arm.dose:g}")
