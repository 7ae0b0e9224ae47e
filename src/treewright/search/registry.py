"""Policies by name: those in the box, and those that other packages register.

The command line, validation, reports and the dashboard learn names, summaries and settings from
here. A plug-in names its class under the registry's entry-point group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext

P = TypeVar("P")
"""A frozen struct with a `name` and a `summary`, whose fields are its settings."""


class Registry(Generic[P]):
    """One kind of policy."""

    def __init__(self, group: str, base: type[P], built_in: tuple[type[P], ...]) -> None:
        self._group = group
        self._base = base
        self._built_in = built_in
        self._unusable: dict[str, str] = {}
        self.known = lru_cache(maxsize=1)(self._find)

    def _find(self) -> dict[str, type[P]]:
        """By name, those in the box first. A plug-in cannot take a name that is in use.

        One that cannot be loaded, or is no policy, is refused to whoever names it, and to nobody
        else.
        """
        self._unusable = {}
        policies: dict[str, type[P]] = {_name(policy): policy for policy in self._built_in}
        for entry in entry_points(group=self._group):
            if entry.name in policies:
                raise UsageError(
                    f"the plug-in {entry.value} calls its policy {entry.name!r}, as ours"
                )
            try:
                policies[entry.name] = self._checked(entry.name, entry.load())
            except Exception as error:  # somebody else's module may raise anything
                self._unusable[entry.name] = f"{entry.value}: {type(error).__name__}: {error}"
        return policies

    def _checked(self, name: str, loaded: object) -> type[P]:
        if not isinstance(loaded, type) or not issubclass(loaded, self._base):
            raise TypeError("it is no policy")
        if not issubclass(loaded, msgspec.Struct):
            raise TypeError("it is no struct")
        tag = loaded.__struct_config__.tag
        if tag != name or _name(loaded) != name:
            raise TypeError(f"its tag is {tag!r} and its name {_name(loaded)!r}, not {name!r}")
        if not isinstance(getattr(loaded, "summary", None), str):
            raise TypeError("it has no summary")
        return loaded

    def unusable(self) -> dict[str, str]:
        """Plug-ins that are there and cannot be used, each with the reason."""
        self.known()
        return dict(self._unusable)

    def make(self, name: str, options: dict[str, Any] | None = None) -> P:
        """The policy of that name with these settings."""
        kind = self.known().get(name)
        if kind is None and name in self._unusable:
            raise UsageError(f"the policy {name!r} cannot be used: {self._unusable[name]}")
        if kind is None:
            raise UsageError(f"no policy {name!r}; there are {', '.join(self.known())}")
        names = settings_of(kind)
        for option in options or {}:
            if option not in names:
                there = ", ".join(sorted(names)) or "none"
                raise UsageError(f"policy {name} has no setting {option!r}; there are: {there}")
        try:
            return msgspec.convert({"type": name, **(options or {})}, kind)
        except msgspec.ValidationError as error:
            raise UsageError(f"policy {name}: {error}") from None

    @staticmethod
    def describe(policy: P) -> dict[str, Any]:
        """What `make` needs to make it again."""
        options = msgspec.to_builtins(policy)
        options.pop("type", None)
        return options


def given_options(texts: Iterable[str]) -> dict[str, Any]:
    """Settings written as `key=value`; a value that is no JSON is a text."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} is no setting of a policy: write KEY=VALUE")
        if name in options:
            raise UsageError(f"the setting {name!r} of the policy is given twice")
        try:
            options[name] = jsontext.decode(value)
        except msgspec.DecodeError:
            options[name] = value
    return options


def in_words(policies: Mapping[str, Any]) -> str:
    """For help texts: each policy and what it does."""
    return ", ".join(f"{name} ({kind.summary})" for name, kind in policies.items())


def settings_of(kind: type[Any]) -> dict[str, Any]:
    """The settings of a policy by name, with their defaults."""
    return {field.encode_name: field.default for field in msgspec.structs.fields(kind)}


def _name(policy: Any) -> str:
    return policy.name
