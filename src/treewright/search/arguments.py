"""Checks on the arguments of `open_search` and `Search`, and the settings made from them.

Data of callers is encoded as JSON and decoded again before it is used, in memory as on disk. So a
policy and an evaluation see the same data before and after a crash, and the journal contains
nothing that cannot be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.search import policies, records, scores
from treewright.search.policies import Policy
from treewright.search.scores import Direction, Gate, Score
from treewright.search.sequencer import Order

L = TypeVar("L", bound=records.Line)
F = TypeVar("F")

_CHOICES = {"order": get_args(Order), "direction": get_args(Direction), "gate": get_args(Gate)}
_SPARE_DEPTH = 400
"""A reader of the journal may be this much deeper in calls than its writer: Python counts the
depth of both together."""
_encode = msgspec.json.Encoder().encode
_decode = jsontext.decoder(records.Line)


def round_trip(line: L) -> L:
    """Encode a line and decode it again; return it as a later process will read it.

    Raises:
        UsageError: The line cannot be written or read.
    """
    try:
        encoded = _encode(line)
        if encoded.count(b"[") + encoded.count(b"{") > _SPARE_DEPTH:
            jsontext.decode(b"[" * _SPARE_DEPTH + encoded + b"]" * _SPARE_DEPTH)
        return _decode(encoded)
    except msgspec.ValidationError as error:
        raise UsageError(f"{records.name_of(line)}: {error}") from None
    except (TypeError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(f"data is written as JSON, and this cannot be: {error}") from None


def round_trip_data(data: Any) -> Any:
    """Return data as a later process will read it; see `round_trip`."""
    if data is None or type(data) is bool:
        return data
    return round_trip(records.Told(number=0, score=0.0, data=data)).data


def reason_text(reason: object) -> str:
    """Return a reason, also an exception, as a text that can be written to the journal."""
    if reason is None:
        return ""
    text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
    return text.encode(errors="backslashreplace").decode()


def checked_prior(value: float) -> float:
    """Return a prior as a float; raise UsageError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f"a prior is a finite number, not negative: not {value!r}")
    return float(value)


def checked_callbacks(functions: Iterable[F]) -> tuple[F, ...]:
    """Return callbacks as a tuple; raise UsageError for a single function."""
    if callable(functions) or not isinstance(functions, Iterable):
        raise UsageError("callbacks are several functions: write [...] around it")
    return tuple(functions)


def check_workers(number: int) -> None:
    """Raise UsageError unless the number of workers is a whole number, at least 1."""
    if type(number) is not int or number < 1:
        raise UsageError(f"workers is a whole number, at least 1: not {number!r}")


def check_timeout(seconds: float | None) -> None:
    """Raise UsageError unless a timeout is None or a number of seconds."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise UsageError(f"timeout is a number of seconds, not negative: not {seconds!r}")


def check_budget(evaluations: int | None) -> None:
    """Raise UsageError unless a budget is None or a whole number."""
    if evaluations is not None and (type(evaluations) is not int or evaluations < 0):
        raise UsageError(f"budget is a whole number, not negative: not {evaluations!r}")


def plain_score(score: Score | None) -> float | dict[str, float] | None:
    """Return a score as the settings record it."""
    if score is None:
        return None
    value, by_config = scores.check(score)
    return by_config if by_config is not None else value


# -- settings -----------------------------------------------------------------------------


def new_settings(arguments: Mapping[str, Any]) -> records.Settings:
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
        settings = msgspec.convert(values, records.Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"open_search: {error}") from None
    for name, least in (("lookahead", 1), ("branching", 1), ("seed", 0)):
        value = getattr(settings, name)
        if value is not None and value < least:
            raise UsageError(f"{name} must be at least {least}")
    return round_trip(records.Created(settings=settings)).settings


def check_same_settings(recorded: records.Settings, arguments: Mapping[str, Any]) -> None:
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


def policy_name(policy: str | Policy | None) -> str | None:
    """Return the name of a policy that is given by its name or as an object.

    Raises:
        UsageError: The object is no policy, or its class is not registered under its name.
    """
    if policy is None or isinstance(policy, str):
        return policy
    if not isinstance(policy, Policy):
        raise UsageError(f"a policy is a name or a policy, not {policy!r}")
    if policies.known().get(policy.name) is not type(policy):
        raise UsageError(
            f"{type(policy).__name__} is not the policy that is registered as {policy.name!r}; "
            f"register it under the entry-point group {policies.POLICIES.group}, with a name of "
            "its own"
        )
    return policy.name


def policy_options(
    policy: str | Policy | None, options: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the settings of a policy, which are either `options` or those of the object."""
    if policy is None or isinstance(policy, str):
        if options is not None and policy is None:
            raise UsageError("options are a policy's: name the policy")
        return dict(options) if options is not None else None
    if options is not None:
        raise UsageError("the policy has its settings; leave options out")
    return policies.describe(policy)
