"""The caps of a run on model usage: by kind, over all roles and by role. Pure.

An evaluation gets an allowance before it starts: its share of the rest after the allowances of all
evaluations under way. The allowances together never exceed the rest, so the caps hold in every
case. The unused part of an allowance is free again when the evaluation ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.llm.usage import Usage
from treewright.tree.records.model import EvalOutcome, Manifest, Unset

Kind = Literal["cost_usd", "tokens"]
Caps = dict[str, dict[str, float]]
"""Kind -> role -> limit. The role `all` is the sum of all roles."""

CAP_REACHED = "cap_reached"
ALL = "all"
IDEAS = "ideas"
ROLES = (IDEAS, "planner", "coder", "reviewer")
FLAGS = {"cost_usd": "--max-cost-usd", "tokens": "--max-tokens"}


def parse(given: Mapping[str, Iterable[str]]) -> Caps:
    """Return the caps from `N` and `ROLE=N`, as the flags give them, by kind."""
    caps: Caps = {}
    for kind, texts in given.items():
        for text in texts:
            role, _, number = text.rpartition("=")
            role = role or ALL
            flag = FLAGS[kind]
            if role not in (ALL, *ROLES):
                raise UsageError(f"{flag} {text}: no role {role}; there are {', '.join(ROLES)}")
            try:
                limit = float(number)
            except ValueError:
                limit = -1.0
            if not 0 < limit < 1e15:
                raise UsageError(f"{flag} {text}: give a number above 0, or ROLE=NUMBER")
            caps.setdefault(kind, {})[role] = limit
    return caps


def merged(before: object, more: Caps) -> Caps:
    """Return the caps of a run with further caps added."""
    found: Caps = dict(before) if isinstance(before, dict) else {}
    for kind, roles in more.items():
        found[kind] = {**found.get(kind, {}), **roles}
    return found


def amount(usage: Usage, kind: str) -> float:
    """Return the amount of a usage that counts for a kind of cap."""
    return usage.cost_usd if kind == "cost_usd" else usage.tokens


def spent(manifest: Manifest, role: str) -> Usage:
    """Return the usage of a role over the run, in work that has ended or was lost."""
    if role == ALL:
        total = manifest.spent
        return Usage(
            total.prompt_tokens, total.completion_tokens, total.cost_usd, total.unpriced_tokens
        )
    by_role = {} if isinstance(manifest.roles, Unset) else manifest.roles
    return by_role.get(role, Usage())


def used_of(outcome: EvalOutcome, caps: Caps) -> Caps:
    """Return the amounts that an evaluation has spent under each of these caps."""
    by_role = {} if isinstance(outcome.roles, Unset) else outcome.roles
    used = {**by_role, ALL: outcome.usage}
    return {
        kind: {role: amount(used.get(role, Usage()), kind) for role in roles}
        for kind, roles in caps.items()
    }


def each(caps: Caps) -> Iterator[tuple[str, str, float]]:
    """Yield kind, role and limit of every cap."""
    for kind, roles in caps.items():
        for role, limit in roles.items():
            yield kind, role, limit


class Allowance(msgspec.Struct, frozen=True):
    """The limits of one evaluation."""

    limits: Caps = {}

    def refusal(self, used: Mapping[str, Usage], role: str, call: Usage) -> str | None:
        """Return why a call must not be made that may use this much; None if it may be made."""
        total = sum(used.values(), Usage())
        for kind, whose, limit in each(self.limits):
            if whose not in (ALL, role):
                continue
            so_far = amount(total if whose == ALL else used.get(role, Usage()), kind)
            if so_far + amount(call, kind) > limit:
                return (
                    f"the next call of the {role} could break {describe(kind, whose)}: it may use "
                    f"{limit:.6g}, has used {so_far:.6g}, and the call {amount(call, kind):.6g}"
                )
        return None


def describe(kind: str, role: str) -> str:
    """Return the name of a cap for messages: its flag, and its role."""
    return FLAGS[kind] + ("" if role == ALL else f" for the {role}")
