"""Policies by name: those in the box, and those of plug-ins.

The command line, validation, reports and the dashboard get the names, summaries and settings of
policies from a `PolicyRegistry`: one for policies over trees, one for policies over AND/OR graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.plugins import Plugins
from treewright.kernel.text import jsontext

P = TypeVar("P")
"""A frozen struct with a `name` and a `summary`, whose fields are its settings."""


class PolicyRegistry(Plugins[type[P]], Generic[P]):
    """All policies of one kind.

    Args:
        group: The entry-point group under which other packages register their policies.
        base: The class from which every policy is derived.
        built_in: The policies in the box: `module:Class` by name.
    """

    def __init__(self, group: str, base: type[P], built_in: Mapping[str, str]) -> None:
        super().__init__(
            "policy", group, built_in, lambda name, loaded: _problem(name, loaded, base)
        )

    def make(self, name: str, options: Mapping[str, Any] | None = None) -> P:
        """Return the policy of that name with these settings.

        Raises:
            UsageError: There is no such policy, or it has no such setting or value.
        """
        kind = self.get(name)
        settings = settings_of(kind)
        for option in options or {}:
            if option not in settings:
                known = ", ".join(sorted(settings)) or "none"
                raise UsageError(f"policy {name} has no setting {option!r}; there are: {known}")
        try:
            return msgspec.convert({"type": name, **(options or {})}, kind)
        except msgspec.ValidationError as error:
            raise UsageError(f"policy {name}: {error}") from None

    @staticmethod
    def describe(policy: P) -> dict[str, Any]:
        """Return the settings with which `make` makes an equal policy."""
        options = msgspec.to_builtins(policy)
        options.pop("type", None)
        return options

    def listing(self) -> list[str]:
        """Return every policy with its settings and their defaults, as lines of text."""
        lines: list[str] = []
        kinds: dict[str, Any] = {**self.usable()}
        for name, kind in kinds.items():
            lines.append(f"{name:<12} {kind.summary}")
            lines += [f"{'':<12}   {key} = {value!r}" for key, value in settings_of(kind).items()]
        unusable = self.unusable().items()
        return lines + [f"{name:<12} cannot be used: {why}" for name, why in unusable]


def parse_options(texts: Iterable[str]) -> dict[str, Any]:
    """Return settings that are written as `KEY=VALUE`; a value that is not JSON is a text."""
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


def summaries(policies: Mapping[str, Any]) -> str:
    """Return each policy with its summary, for help texts."""
    return ", ".join(f"{name} ({kind.summary})" for name, kind in policies.items())


def settings_of(kind: type[Any]) -> dict[str, Any]:
    """Return the settings of a policy by name, with their defaults."""
    return {field.encode_name: field.default for field in msgspec.structs.fields(kind)}


def _problem(name: str, loaded: object, base: type) -> str:
    if not isinstance(loaded, type) or not issubclass(loaded, base):
        return "it is no policy"
    if not issubclass(loaded, msgspec.Struct):
        return "it is no struct"
    tag, own_name = loaded.__struct_config__.tag, getattr(loaded, "name", None)
    if tag != name or own_name != name:
        return f"its tag is {tag!r} and its name {own_name!r}, not {name!r}"
    return "" if isinstance(getattr(loaded, "summary", None), str) else "it has no summary"
