"""docs/names.md: every name in its right column exists as a command, a module or a field."""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from types import UnionType

import msgspec
import pytest

from tests.docs.test_docs import COMMANDS, SOURCES, flags
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.kernel.text.config_errors import all_keys
from treewright.orchestrator.ledger import schema as ledger_file
from treewright.orchestrator.ledger.schema import TABLES
from treewright.proving import layout as proof_layout
from treewright.tree import config
from treewright.tree.records import events, layout, model

PAGE = (Path(__file__).parents[2] / "docs/names.md").read_text("utf-8")


def right_column() -> Iterator[str]:
    for row in re.findall(r"^\|(.*)\|$", PAGE, re.M):
        yield from re.findall(r"`([^`]+)`", row.split(" | ")[-1])


NAMES = sorted(set(right_column()))


def paths() -> set[str]:
    """Return the parts of the paths of runs, proof runs and projects, as the code spells them."""
    found = {
        str(value)
        for module in (layout, proof_layout, ledger_file)
        for value in vars(module).values()
        if isinstance(value, str | Path)
    }
    return found | {"treewright.toml", STATE_DIR}


def is_command(name: str) -> bool:
    words = name.removeprefix("treewright ").split()
    command = " ".join(word for word in words if not word.startswith("--"))
    asked = {word for word in words if word.startswith("--")}
    return command in COMMANDS and asked <= flags(COMMANDS[command])


def is_importable(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def structs(kind: object) -> Iterator[type[msgspec.Struct]]:
    """Return the records in a type such as `Decision | None` or `dict[str, Node]`."""
    if typing.get_origin(kind) is not None or isinstance(kind, UnionType):
        for part in typing.get_args(kind):
            yield from structs(part)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind


def is_field(name: str) -> bool:
    """Return whether a name is a field of the manifest, such as `nodes[].dedupe.skipped`."""
    kinds: list[type[msgspec.Struct]] = [model.Manifest]
    for part in name.replace("[]", "").split("."):
        found = [field for kind in kinds for field in msgspec.structs.fields(kind)]
        matching = [field for field in found if field.name == part]
        if not matching:
            return False
        kinds = [struct for field in matching for struct in structs(field.type)]
    return True


def is_path(name: str) -> bool:
    known = paths()
    parts = [part for part in name.strip("/").split("/") if part != "<id>"]
    return all(part in known for part in parts) and bool(parts)


def is_other(name: str) -> bool:
    tags = {struct.__struct_config__.tag for struct in typing.get_args(events.Event)}
    tables = set(re.findall(r"CREATE TABLE (\w+)", TABLES))
    addresses = name.startswith("/") and any(f'Route("{name}"' in text for text in SOURCES)
    variable = name.isupper() and any(f'"{name}"' in text for text in SOURCES)
    return name in tags | tables | set(all_keys(config.Table)) or addresses or variable


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(name: str) -> None:
    if name.startswith("treewright "):
        assert is_command(name), f"there is no command {name!r}, or not with these flags"
    elif name.startswith("treewright.") and name != "treewright.toml":
        assert is_importable(name), f"{name} cannot be imported"
    else:
        assert is_field(name) or is_path(name) or is_other(name), f"there is no {name!r}"


def test_the_page_has_enough_names() -> None:
    assert len(NAMES) > 100


def test_a_wrong_name_would_be_found() -> None:
    assert not is_command("treewright tree --no-such-flag")
    assert not is_command("treewright trees")
    assert not is_importable("treewright.tree.deciding.promotion.nothing")
    assert not is_field("nodes[].comit")
    assert not is_path("eval/<id>/experiments")
    assert not is_other("nothing")
