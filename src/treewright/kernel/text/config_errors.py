"""Error messages for configuration files: the key, the allowed values, and a suggestion.

They work for msgspec tables that share a base class.
"""

from __future__ import annotations

import difflib
import re
import typing
from typing import Literal

import msgspec


def explain(message: str, base: type[msgspec.Struct]) -> str:
    """Return a message of msgspec in plain words: key path, allowed values, suggestion."""
    text, _, location = message.partition(" - at `")
    key_path = location.rstrip("`").removeprefix("$").removeprefix(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", text)
    if unknown:
        key = f"{key_path}.{unknown[1]}".lstrip(".")
        near = difflib.get_close_matches(unknown[1], sorted(all_keys(base)), n=1)
        return f"unknown key `{key}`" + (f"; did you mean `{near[0]}`?" if near else "")
    missing = re.fullmatch(r"Object missing required field `(.+)`", text)
    if missing:
        key = f"{key_path}.{missing[1]}".lstrip(".")
        return f"missing key `{key}`"
    name = key_path.rpartition(".")[2].partition("[")[0]
    wrong = re.fullmatch(r"Invalid (?:enum )?value '(.*)'", text, re.DOTALL)
    if wrong and (choices := _choices(name, base)):
        text = f"{wrong[1]!r} is not one of {', '.join(f'`{choice}`' for choice in choices)}"
        near = [choice for choice in choices if wrong[1] and choice.startswith(wrong[1].lower())]
        near = near or difflib.get_close_matches(wrong[1].lower(), choices, n=1)
        text += f"; did you mean `{near[0]}`?" if near else ""
    elif text.startswith(("Expected `array`, got `str`", "Expected `array | null`, got `str`")):
        text = f'must be a list, not a string: write `{name} = ["..."]`'
    elif text == "Expected `array`, got `object`":
        text = f"must be a list: write `[[{name}]]`, with two brackets"
    return f"`{key_path}`: {text}" if key_path else text


def _structs(base: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    found: list[type[msgspec.Struct]] = [base]
    for struct in found:
        found.extend(struct.__subclasses__())
    return found


def all_keys(base: type[msgspec.Struct]) -> set[str]:
    """Return every key that any of the tables has."""
    return {key for struct in _structs(base) for key in struct.__struct_fields__}


def _choices(key: str, base: type[msgspec.Struct]) -> list[str]:
    """Return the values of a key that has a list of them, such as `direction`."""
    found: dict[str, None] = {}
    for struct in _structs(base):
        tables = struct.__struct_config__
        if tables.tag_field == key and isinstance(tables.tag, str):
            found[tables.tag] = None
        kind = typing.get_type_hints(struct).get(key)
        for part in (kind, *typing.get_args(kind)):
            if typing.get_origin(part) is Literal:
                found.update(dict.fromkeys(typing.get_args(part)))
    return list(found)
