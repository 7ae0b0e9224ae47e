"""The check, before a run is created, whether the root's numbers depend on hidden random numbers.

One number per candidate is exact only if it is the same with every seed, without a seed, and after
a change that draws random numbers and has no other effect. Where a metric is compared over repeats,
seeds or configs, such a change must not look like a gain.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.stats import same_measurement
from treewright.tree.config import Config
from treewright.tree.deciding import objectives, scoring
from treewright.tree.deciding.results import FIRST, Part, Results
from treewright.tree.evaluating.contexts import repeat_seed
from treewright.tree.evaluating.perturbation import CONTROL, Perturbation
from treewright.tree.guard.commands import ConfigRange
from treewright.tree.records.model import NoiseCheck
from treewright.tree.run.root_commands import RootCommands, RootSweepFailed

_DRAWS = (7, 11, 13)
"""Numbers that the perturbations draw at each place."""
_OTHER_SEED = 1001
"""The repeat whose TREEWRIGHT_SEED the second sweep of the root has."""
_WRITE_SEEDS = (
    "set seeds = 16 in place of deterministic, with a sweep that gives every config_id a seed of "
    "its own (as `treewright init --from openevolve` writes it), or repeats = 5"
)
_FIXED_SEED = (
    "let its random numbers depend on TREEWRIGHT_SEED (a fixed seed in the program or in the "
    "evaluator hides the noise)"
)
_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class NoiseTest:
    """The sweeps of the root that show how its metrics vary. `configs` are those compared."""

    root: RootCommands
    config: Config
    config_path: Path
    configs: ConfigRange
    protected: Sequence[str]

    def check_exact(self, first: bytes) -> NoiseCheck:
        """Compare a sweep of the root with sweeps under other random numbers.

        Raises:
            UsageError: A metric with `deterministic = true` differs.
        """
        _log.info("sweeping the root with other seeds: is what is deterministic the same?")
        seed = self.config.seed
        other = self.root.sweep(self.configs, _OTHER_SEED)
        other_seed = repeat_seed(seed, _OTHER_SEED)
        self._require_same(first, other, f"with TREEWRIGHT_SEED = {seed} and {other_seed}")
        check = NoiseCheck("exact", other_seed="same")
        try:
            unseeded = self.root.sweep(self.configs, is_seeded=False)
        except RootSweepFailed:
            check = _changed(check, note="without TREEWRIGHT_SEED the sweep fails")
        else:
            self._require_same(first, unseeded, "with and without TREEWRIGHT_SEED")
            check = _changed(check, unseeded="same")
        # A coarse number may be the same after one perturbation by chance.
        for draws in _DRAWS:
            perturbed = self._perturbed(draws, self.configs)
            if isinstance(perturbed, str):
                return self._untried(check, perturbed)
            if self._difference(first, perturbed) is None:
                continue
            control = self._perturbed(CONTROL, self.configs)
            if isinstance(control, str) or self._difference(control, perturbed) is None:
                return self._untried(check, "the number depends on the text of the program")
            self._require_same(
                first, perturbed, "before and after a change that only draws random numbers"
            )
        return _changed(check, perturbed="same")

    def check_configs(self, baseline: bytes) -> NoiseCheck:
        """Compare the root with itself, perturbed, over all configs: it must not gain or lose.

        Raises:
            UsageError: A change without effect looks like a gain or a loss, every time.
        """
        check = NoiseCheck("seeds" if self.config.primary.seeds else "configs")
        _log.info("sweeping the root with other random numbers: does that look like a gain?")
        before = self._read(baseline)
        changed: list[Results] = []
        for draws in _DRAWS:
            perturbed = self._perturbed(draws, self.configs)
            if isinstance(perturbed, str):
                return self._untried(check, perturbed)
            changed.append(self._read(perturbed))
            if self._is_same(before, changed[-1]):
                return _changed(check, perturbed="same")
            check = _changed(check, perturbed="differs")
            if not self._looks_different(before, changed[-1]):
                return check
        control = self._perturbed(CONTROL, self.configs)
        if isinstance(control, str):
            return self._untried(check, control)
        if not all(self._looks_different(self._read(control), after) for after in changed):
            return check
        raise UsageError(
            f"{self.config_path}: a change of the root commit that only draws random numbers looks "
            f"like a real one in {self.config.primary.name}, {len(_DRAWS)} times of "
            f"{len(_DRAWS)}: its noise is the same in every config; {_FIXED_SEED}"
        )

    def check_one_config(self, baseline: bytes, config_id: int) -> NoiseCheck:
        """Compare all configs only if a perturbation changes this one."""
        perturbed = self._perturbed(_DRAWS[0], ConfigRange(config_id, config_id + 1))
        check = NoiseCheck("configs")
        if isinstance(perturbed, str):
            return self._untried(check, perturbed)
        before, after = (self._value(data, config_id) for data in (baseline, perturbed))
        if before is not None and after is not None and same_measurement(before, after):
            return _changed(check, perturbed="same")
        return self.check_configs(baseline)

    def check_repeats(self, baseline: bytes, config_id: int) -> NoiseCheck:
        """Compare repeats of the root, on one config, with the root perturbed.

        Raises:
            UsageError: A change without effect is outside of what the repeats show, every time.
        """
        one, repeats = ConfigRange(config_id, config_id + 1), self.config.repeats
        found = [
            self._value(baseline, config_id, Part(repeat=number))
            for number in range(1, repeats + 1)
        ]
        if None in found or not _is_of_repeats(baseline):
            runs = [self.root.sweep(one, number) for number in range(1, repeats + 1)]
            found = [self._value(data, config_id) for data in runs]
        values = [value for value in found if value is not None]
        alike = all(same_measurement(values[0], value) for value in values)
        check = NoiseCheck("repeats", other_seed="same" if alike else "differs")
        for draws in (*_DRAWS, CONTROL):
            perturbed = self._perturbed(draws, one)
            if isinstance(perturbed, str):
                return self._untried(check, perturbed)
            value = self._value(perturbed, config_id)
            if value is None or scoring.is_among(value, values):
                return _changed(check, perturbed="same" if alike else "differs")
            if draws == CONTROL:
                return self._untried(check, "the number depends on the text of the program")
            if draws == _DRAWS[-1] and self._is_among(CONTROL, one, values):
                break
        raise UsageError(
            f"{self.config_path}: {repeats} repeats of the root commit gave {min(values)!r} to "
            f"{max(values)!r} in {self.config.primary.name}, and changes that only draw random "
            f"numbers give others: the repeats do not show the noise; {_FIXED_SEED}"
        )

    def _is_among(self, draws: int, configs: ConfigRange, values: Sequence[float]) -> bool:
        data = self._perturbed(draws, configs)
        value = None if isinstance(data, str) else self._value(data, configs.start)
        return value is not None and scoring.is_among(value, values)

    def _require_same(self, first: bytes, second: bytes, between: str) -> None:
        found = self._difference(first, second)
        if found is not None:
            raise UsageError(
                f"{self.config_path}: the metric {found[0]} is not deterministic: the root commit "
                f"gave {found[1]}, {between}; {_WRITE_SEEDS}"
            )

    def _perturbed(self, draws: int, configs: ConfigRange) -> bytes | str:
        """Return the results of the perturbed root, or why there are none."""
        change = Perturbation(self.config, self.protected, draws)
        if not change.has_code(self.root.worktrees.repo):
            return "there is no Python code that a candidate may change"
        try:
            data = self.root.sweep(configs, perturbation=change)
        except RootSweepFailed as problem:
            return str(problem).partition("; ")[0]
        found = objectives.read(data, self.config.metrics, configs.__contains__)
        if not found.sound_ids or found.sound_ids != found.all_ids:
            return "a perturbed program gives no sound results"
        return data

    def _untried(self, check: NoiseCheck, why: str) -> NoiseCheck:
        if check.compared != "configs":
            _log.warning(
                "whether %s depends on hidden random numbers could not be tried: %s",
                self.config.primary.name, why,
            )  # fmt: skip
        note = "; ".join(filter(None, [check.note, why]))
        return _changed(check, perturbed="not_tried", note=note)

    def _difference(self, first: bytes, second: bytes) -> tuple[str, str] | None:
        before, after = self._read(first), self._read(second)
        return objectives.difference(before, after, self.config.metrics)

    def _is_same(self, before: Results, after: Results) -> bool:
        name = self.config.primary.name
        values = before.values[name], after.values[name]
        return values[0].keys() == values[1].keys() and all(
            same_measurement(value, values[1][i]) for i, value in values[0].items()
        )

    def _looks_different(self, before: Results, after: Results) -> bool:
        pairs = sorted(before.sound_ids & after.sound_ids)
        compared = scoring.compare_metric(
            self.config.primary, [(before, after)], pairs, self.config.seed
        )
        return compared.verdict in ("improved", "regressed")

    def _value(self, data: bytes, config_id: int, part: Part = FIRST) -> float | None:
        return self._read(data, part).values[self.config.primary.name].get(config_id)

    def _read(self, data: bytes, part: Part = FIRST) -> Results:
        return objectives.read(data, self.config.metrics, self.configs.__contains__, part)


def _changed(check: NoiseCheck, **changes: str) -> NoiseCheck:
    return msgspec.structs.replace(check, **changes)


def _is_of_repeats(data: bytes) -> bool:
    return data.startswith(b"treewright_side,")
