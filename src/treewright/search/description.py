"""Descriptions of a search and of the policies, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from treewright.search import policies, storage
from treewright.search.andor import policies as andor_policies
from treewright.search.history import History
from treewright.search.policy_registry import settings_of

_LONGEST_DATA = 200


@dataclass(frozen=True, slots=True)
class Description:
    """The state of a search.

    Attributes:
        can_be_repeated: Whether another search with these settings grows the same tree.
        deepest: The depth of the deepest node.
    """

    settings: dict[str, Any]
    budget: int | None
    evaluations: int
    failed: int
    under_way: int
    deepest: int
    best: dict[str, Any] | None
    can_be_repeated: bool

    def as_json(self) -> str:
        """Return the description as a JSON object."""
        return msgspec.json.encode(self).decode()

    def as_text(self) -> str:
        """Return the description for people."""
        settings = self.settings
        limit = "" if self.budget is None else f" of {self.budget}"
        order = (
            f"fixed order, lookahead {settings['lookahead']}"
            if self.can_be_repeated
            else "live order: it resumes and validates, but cannot be repeated"
        )
        lines = [
            f"policy       {settings['policy']}, seed {settings['seed']}, {order}",
            f"evaluations  {self.evaluations}{limit}, {self.failed} failed, "
            f"{self.under_way} without an outcome, deepest {self.deepest}",
        ]
        if self.best is not None:
            data = msgspec.json.encode(self.best["data"]).decode()
            shown = data if len(data) <= _LONGEST_DATA else data[:_LONGEST_DATA] + " ..."
            lines.append(
                f"best         {self.best['score']:g}, node {self.best['number']} at depth "
                f"{self.best['depth']}: {shown}"
            )
        return "\n".join(lines)


def describe(path: Path) -> Description:
    """Return the state of the search at `path`, from its journal alone. Nothing is written."""
    search = History.of(storage.read(path))
    best = search.best
    settings = msgspec.to_builtins(search.settings)
    return Description(
        settings=settings,
        budget=search.budget,
        evaluations=search.evaluations,
        failed=len(search.failures),
        under_way=search.sequencer.under_way,
        deepest=max((node.depth for node in search.scored), default=0),
        best=None
        if best is None
        else {
            "number": best.number,
            "depth": best.depth,
            "score": best.score,
            "data": best.data,
        },
        can_be_repeated=search.settings.order == "fixed",
    )


def describe_policies() -> str:
    """Return every policy with its settings and their defaults."""
    lines = [
        "over trees, for treewright.open_search and treewright tree:",
        *_listed(policies.known(), policies.unusable()),
        "",
        "over goals, for treewright prove:",
        *_listed(andor_policies.known(), andor_policies.unusable()),
    ]
    return "\n".join(lines)


def _listed(known: Mapping[str, Any], unusable: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for name, kind in known.items():
        lines.append(f"{name:<12} {kind.summary}")
        lines += [f"{'':<12}   {key} = {value!r}" for key, value in settings_of(kind).items()]
    return lines + [f"{name:<12} cannot be used: {why}" for name, why in unusable.items()]
