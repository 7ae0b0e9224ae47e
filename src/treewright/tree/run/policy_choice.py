"""The policy of a run: from the flags, and checked against the recorded one.

Beam search has a barrier and its own flags. Every other policy of `treewright.search.policies`
chooses one evaluation at a time; its name, settings and summary come from that package.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from treewright.kernel.errors import UsageError
from treewright.search import policies
from treewright.tree.deciding import rounds
from treewright.tree.records.model import Manifest, Order, PolicyRecord
from treewright.tree.run.creation import Shape

BEAM = policies.Beam.name
_FLAGS = {"options": "--policy-option"}


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The flags that choose a policy. None stands for the default, or for the recorded value."""

    policy: str | None = None
    options: dict[str, Any] | None = None
    order: Order | None = None
    lookahead: int | None = None
    branching: int | None = None

    def begin(self, shape: Shape, workers: int) -> PolicyRecord | None:
        """Return the settings of a new run; None for beam search.

        Raises:
            UsageError: A flag has no effect with this policy, or a needed one is missing.
        """
        name = self.policy or BEAM
        if name == BEAM:
            self._only(BEAM, "policy")
            return None
        made = policies.make(name, self.options)  # first, because there may be no such policy
        for flag in rounds.OF_BEAM_SEARCH:
            if getattr(shape, flag) is not None:
                raise UsageError(f"{_flag(flag)} means nothing with --policy {name}")
        if shape.max_total_idea_evals is None:
            raise UsageError(
                f"--policy {name} needs --max-total-idea-evals: it goes on as long as there are "
                "ideas"
            )
        order = self.order or "fixed"
        if order == "live" and self.lookahead is not None:
            raise UsageError(
                "--lookahead means nothing with --order live: all that is known counts"
            )
        if self.lookahead is not None and self.lookahead < workers:
            raise UsageError(
                f"--lookahead {self.lookahead} keeps only so many of {workers} workers busy; give "
                f"{workers} or more"
            )
        return PolicyRecord(
            policy=name,
            options=policies.describe(made),
            order=order,
            lookahead=self.lookahead or workers,
            branching=self.branching or made.branching,
        )

    def check_against(self, manifest: Manifest) -> None:
        """Raise UsageError if a flag differs from the recorded settings of a run."""
        policy_record = manifest.policy_record
        if policy_record is None:
            if self.policy not in (None, BEAM):
                raise _differs("policy", self.policy, BEAM, manifest)
            self._only(BEAM, "policy")
            return
        for field in fields(self):
            given, recorded = getattr(self, field.name), getattr(policy_record, field.name)
            if field.name == "options" and given is not None:
                given = policies.describe(
                    policies.make(policy_record.policy, {**recorded, **given})
                )
            if given is not None and given != recorded:
                raise _differs(field.name, given, recorded, manifest)

    def _only(self, policy: str, *meaningful: str) -> None:
        for field in fields(self):
            if field.name not in meaningful and getattr(self, field.name) is not None:
                raise UsageError(f"{_flag(field.name)} means nothing with --policy {policy}")


def describe(manifest: Manifest) -> str:
    """Return the policy of a run with its settings, in a few words."""
    policy_record = manifest.policy_record
    if policy_record is None:
        return BEAM
    known = policies.known().get(policy_record.policy)
    plain = policies.describe(known()) if known is not None else {}
    words = [
        f"{name} {value}"
        for name, value in policy_record.options.items()
        if plain.get(name) != value
    ]
    order = (
        "live order" if policy_record.order == "live" else f"lookahead {policy_record.lookahead}"
    )
    return f"{policy_record.policy} ({', '.join([*words, order])})"


def _flag(name: str) -> str:
    return _FLAGS.get(name) or "--" + name.replace("_", "-")


def _differs(name: str, given: object, recorded: object, manifest: Manifest) -> UsageError:
    return UsageError(
        f"{_flag(name)} is {given} here but {recorded} in run {manifest.tree_run_id}; leave the "
        "flag out to continue the run, or start a new one"
    )
