"""Beginning a search, and continuing one: what may be said when, and what must stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from treewright.kernel.errors import UsageError, require_several
from treewright.kernel.storage.lease import DEFAULT_STALE_SECONDS
from treewright.search import given as checks
from treewright.search import policies, records, scores
from treewright.search.book import Book
from treewright.search.policies import Policy
from treewright.search.scores import Direction, Gate, Score
from treewright.search.sequencer import Order
from treewright.search.study import Search

_CHOICES = {"order": get_args(Order), "direction": get_args(Direction), "gate": get_args(Gate)}


def open_search(
    path: str | Path | None = None,
    *,
    policy: str | Policy | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    budget: int | None = None,
    order: Order | None = None,
    lookahead: int | None = None,
    branching: int | None = None,
    actions: Iterable[str] | None = None,
    direction: Direction | None = None,
    gate: Gate | None = None,
    root: Any = None,
    root_score: Score | None = None,
    stale_seconds: float = DEFAULT_STALE_SECONDS,
    force: bool = False,
) -> Search:
    """Begins a search, or continues the one at `path`; in memory if there is no path.

    `policy` is a name (with `options`) or a policy; `ab-mcts` if nothing is said. `budget` is the
    most evaluations and may be changed whenever the search is opened; everything else is fixed when
    it begins, and naming something else later is an error. `lookahead` is how many choices may be
    under way at once in `fixed` order; the number of workers if nothing is said. `branching` is
    the most children a node gets (the policy's own limit if nothing is said); `actions` are
    different ways to grow one. `root` is the data of the root, `root_score` its score. With
    `gate="parent"` only what beats its parent is grown.
    """
    require_several(actions=actions)
    given = _given(
        policy=_policy_name(policy),
        options=_policy_options(policy, options),
        seed=seed,
        order=order,
        lookahead=lookahead,
        branching=branching,
        actions=tuple(actions) if actions is not None else None,
        direction=direction,
        gate=gate,
        root_data=checks.as_json(root),
        root_score=_plain_score(root_score),
    )
    checks.budget(budget)
    storage = None
    if path is not None:
        from treewright.search.storage import Storage

        storage = Storage.open(Path(path), stale_seconds=stale_seconds, force=force)
    try:
        known = storage.settings if storage is not None else None
        settings = _new_settings(given) if known is None else _same_settings(known, given)
        search = Search(
            Book(
                settings,
                storage,
                budget=budget,
                is_begun=known is not None,
                lookahead_given=lookahead is not None,
            )
        )
        if known is not None and budget is not None:
            search.set_budget(budget)
        return search
    except BaseException:
        if storage is not None:
            storage.close()
        raise


def _new_settings(given: dict[str, Any]) -> records.Settings:
    settings = {"policy": "ab-mcts", "options": {}, **given}
    made = policies.make(settings["policy"], settings["options"])
    settings["options"] = policies.describe(made)
    settings.setdefault("branching", made.branching)
    for name, choices in _CHOICES.items():
        if name in settings and settings[name] not in choices:
            raise UsageError(f"{name} is {' or '.join(choices)}, not {settings[name]!r}")
    try:
        made_settings = msgspec.convert(settings, records.Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"open_search: {error}") from None
    for name, least in (("lookahead", 1), ("branching", 1), ("seed", 0)):
        value = getattr(made_settings, name)
        if value is not None and value < least:
            raise UsageError(f"{name} must be at least {least}")
    return checks.as_read(records.Created(settings=made_settings)).settings


def _same_settings(known: records.Settings, given: dict[str, Any]) -> records.Settings:
    """What is given again must be what the search was begun with."""
    if "policy" in given and given["policy"] == known.policy and "options" in given:
        made = policies.make(given["policy"], {**known.options, **given["options"]})
        given["options"] = policies.describe(made)
    for name, value in given.items():
        before = getattr(known, name)
        if value != before:
            raise UsageError(
                f"this search was begun with {name}={before!r}, not {value!r}; leave it out, or "
                "begin another search"
            )
    return known


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _policy_name(policy: str | Policy | None) -> str | None:
    if policy is None or isinstance(policy, str):
        return policy
    if not isinstance(policy, Policy):
        raise UsageError(f"a policy is a name or a policy, not {policy!r}")
    if policies.known().get(policy.name) is not type(policy):
        raise UsageError(
            f"{type(policy).__name__} is not the policy that is registered as {policy.name!r}; "
            f"register it under the entry-point group {policies.GROUP}, with a name of its own"
        )
    return policy.name


def _policy_options(
    policy: str | Policy | None, options: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    if policy is None or isinstance(policy, str):
        if options is not None and policy is None:
            raise UsageError("options are a policy's: name the policy")
        return dict(options) if options is not None else None
    if options is not None:
        raise UsageError("the policy has its settings; leave options out")
    return policies.describe(policy)


def _plain_score(score: Score | None) -> float | dict[str, float] | None:
    if score is None:
        return None
    value, by_config = scores.check(score)
    return by_config if by_config is not None else value
