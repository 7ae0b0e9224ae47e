"""Beginning a search, or continuing the one in a directory: `open_search`, and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from treewright.kernel.errors import UsageError, require_several
from treewright.kernel.storage.lease import DEFAULT_STALE_SECONDS
from treewright.search import policies, scores, search_journal
from treewright.search.durable_search import Search, check_budget
from treewright.search.history import History
from treewright.search.policies import Policy
from treewright.search.scores import Direction, Gate, Score
from treewright.search.search_journal import Created, Line, SearchJournal, Settings
from treewright.search.sequencer import Order

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
    """Begin a search, or continue the one at `path`.

    All arguments but `path`, `budget`, `stale_seconds` and `force` are fixed when the search
    begins. When it is opened again they can be left out; a different value is an error.

    Args:
        path: The directory of the search. Without one the search lives in memory.
        policy: How the next node to grow is chosen: a name, or a `Policy`. Default `ab-mcts`.
        options: Settings of a policy that is given by its name.
        seed: The seed of the policy and of the tasks. Default 0.
        budget: The most evaluations; it may be changed whenever the search is opened.
        order: `fixed` (the default) grows the same tree whatever the timing of evaluations;
            `live` uses every outcome at once, and cannot be repeated.
        lookahead: How many tasks may be under way at once in fixed order. Default: the number of
            workers of the first `run`.
        branching: The most children of a node. Default: the policy's own limit.
        actions: The names of different ways to grow a child.
        direction: `maximize` (the default) or `minimize`.
        gate: With `parent`, only a node that is better than its parent gets children.
        root: Data of the root, as JSON.
        root_score: The score of the root.
        stale_seconds: The age at which the lease of another process counts as abandoned.
        force: Take the search over from a process that still owns it.

    Returns:
        The search. Close it, or use it in a `with` block.

    Raises:
        UsageError: An argument has a wrong value, or differs from the one the search began with.
        LockActive: Another process owns the search.
        StorageError: The directory cannot be read or written.

    Example:
        >>> with open_search(policy="best-first", budget=20, seed=1) as search:
        ...     while (task := search.ask()) is not None:
        ...         depth = task.parent.depth
        ...         node = search.tell(task, score=depth + task.seed % 10, data={"depth": depth})
        >>> search.evaluations
        20
    """
    require_several(actions=actions)
    check_budget(budget)
    plain_score = None
    if root_score is not None:
        value, by_config = scores.check(root_score)
        plain_score = value if by_config is None else by_config
    name, options = policy_and_options(policy, options)
    given = {
        "policy": name,
        "options": options,
        "seed": seed,
        "order": order,
        "lookahead": lookahead,
        "branching": branching,
        "actions": tuple(actions) if actions is not None else None,
        "direction": direction,
        "gate": gate,
        "root_data": search_journal.round_trip_data(root),
        "root_score": plain_score,
    }
    given = {name: value for name, value in given.items() if value is not None}
    journal: SearchJournal | None = None
    lines: list[Line] = []
    if path is not None:
        journal, lines = SearchJournal.open(Path(path), stale_seconds=stale_seconds, force=force)
    try:
        recorded = search_journal.settings_in(lines)
        if recorded is not None:
            check_same_settings(recorded, given)
        history = History(recorded or new_settings(given), budget)
        history.apply_all(lines)
        search = Search(
            history, journal, is_begun=recorded is not None, has_lookahead=lookahead is not None
        )
        if recorded is not None and budget is not None:
            search.set_budget(budget)
        return search
    except BaseException:
        if journal is not None:
            journal.close()
        raise


def new_settings(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings of a new search; every argument that is missing has its default.

    Raises:
        UsageError: An argument has a wrong value.
    """
    values = {"policy": "ab-mcts", "options": {}, **arguments}
    policy = policies.make(values["policy"], values["options"])
    values["options"] = policies.describe(policy)
    values.setdefault("branching", policy.branching)
    for name, choices in _CHOICES.items():
        if name in values and values[name] not in choices:
            raise UsageError(f"{name} is {' or '.join(choices)}, not {values[name]!r}")
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"open_search: {error}") from None
    for name, least in (("lookahead", 1), ("branching", 1), ("seed", 0)):
        value = getattr(settings, name)
        if value is not None and value < least:
            raise UsageError(f"{name} must be at least {least}")
    return search_journal.round_trip(Created(settings=settings)).settings


def check_same_settings(recorded: Settings, arguments: Mapping[str, Any]) -> None:
    """Raise UsageError if an argument differs from the settings that a search began with."""
    wanted = dict(arguments)
    if wanted.get("policy") == recorded.policy and "options" in wanted:
        policy = policies.make(wanted["policy"], {**recorded.options, **wanted["options"]})
        wanted["options"] = policies.describe(policy)
    for name, value in wanted.items():
        before = getattr(recorded, name)
        if value != before:
            raise UsageError(
                f"this search was begun with {name}={before!r}, not {value!r}; leave it out, or "
                "begin another search"
            )


def policy_and_options(
    policy: str | Policy | None, options: Mapping[str, Any] | None
) -> tuple[str | None, dict[str, Any] | None]:
    """Return the name and the settings of a policy that is given by its name or as an object.

    Raises:
        UsageError: The object is no policy, or its class is not registered under its name; or
            `options` are given without the name of a policy.
    """
    if policy is None or isinstance(policy, str):
        if options is not None and policy is None:
            raise UsageError("options are a policy's: name the policy")
        return policy, dict(options) if options is not None else None
    if not isinstance(policy, Policy):
        raise UsageError(f"a policy is a name or a policy, not {policy!r}")
    if policies.known().get(policy.name) is not type(policy):
        raise UsageError(
            f"{type(policy).__name__} is not the policy that is registered as {policy.name!r}; "
            f"register it under the entry-point group {policies.POLICIES.group}, with a name of "
            "its own"
        )
    if options is not None:
        raise UsageError("the policy has its settings; leave options out")
    return policy.name, policies.describe(policy)
