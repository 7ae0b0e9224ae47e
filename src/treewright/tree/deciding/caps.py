"""What a run may spend on models: by kind, over all and by role. Pure.

An evaluation is given an allowance before it starts: its share of what is left after everything
that is under way was given its own. All allowances together are never more than what is left, so
the caps hold whatever each of them spends; what one does not use is there again when it is done.
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
"""Kind -> role -> limit. The role `all` is everybody together."""

CAP_REACHED = "cap_reached"
ALL = "all"
IDEAS = "ideas"
ROLES = (IDEAS, "planner", "coder", "reviewer")
FLAGS = {"cost_usd": "--max-cost-usd", "tokens": "--max-tokens"}


def parse(given: Mapping[str, Iterable[str]]) -> Caps:
    """From `N` and `ROLE=N`, as the flags give them, by kind."""
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
    """The caps of a run with others on top."""
    found: Caps = dict(before) if isinstance(before, dict) else {}
    for kind, roles in more.items():
        found[kind] = {**found.get(kind, {}), **roles}
    return found


def amount(usage: Usage, kind: str) -> float:
    return usage.cost_usd if kind == "cost_usd" else usage.tokens


def spent(manifest: Manifest, role: str) -> Usage:
    """What a role has spent over the run, in work that came to an end or was lost."""
    if role == ALL:
        total = manifest.spent
        return Usage(
            total.prompt_tokens, total.completion_tokens, total.cost_usd, total.unpriced_tokens
        )
    by_role = {} if isinstance(manifest.roles, Unset) else manifest.roles
    return by_role.get(role, Usage())


def used_of(outcome: EvalOutcome, caps: Caps) -> Caps:
    """What an evaluation has spent of each of these caps."""
    by_role = {} if isinstance(outcome.roles, Unset) else outcome.roles
    used = {**by_role, ALL: outcome.usage}
    return {
        kind: {role: amount(used.get(role, Usage()), kind) for role in roles}
        for kind, roles in caps.items()
    }


def each(caps: Caps) -> Iterator[tuple[str, str, float]]:
    """Kind, role and limit of every cap."""
    for kind, roles in caps.items():
        for role, limit in roles.items():
            yield kind, role, limit


class Allowance(msgspec.Struct, frozen=True):
    """What one evaluation may spend."""

    limits: Caps = {}

    def refusal(self, used: Mapping[str, Usage], role: str, call: Usage) -> str | None:
        """Why a call that may cost so much must not be made, after what was used by role."""
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
    return FLAGS[kind] + ("" if role == ALL else f" for the {role}")
