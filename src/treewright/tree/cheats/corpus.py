"""The corpus of cheats: their code by language, and the sign by which a success is recognised."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from treewright.kernel.errors import UsageError

Language = Literal["python", "shell"]
Sign = Literal["promoted", "outside", "process", "network", "branch", "heldout"]
Against = Literal["none", "protect", "own", "apart", "heldout", "bounds", "isolate", "noise"]


class Cheat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cheat. `corpus.toml` describes the keys."""

    name: str
    does: str
    way: Literal["nothing", "draws", "code", "script", "add", "file", "agent"]
    against: Against
    sign: Sign = "promoted"
    python: str = ""
    shell: str = ""
    paths: list[str] = []
    file: Literal["", "baseline", "configuration", "attributes"] = ""
    end: bool = False
    keep: bool = False
    slow: bool = False
    draws: int = 7

    def text(self, language: Language) -> str:
        return self.python if language == "python" else self.shell


HONEST = "honest"


def chosen(names: Collection[str]) -> list[Cheat]:
    """Return the cheats with these names, or all; the honest change is always included.

    Raises:
        UsageError: no cheat has one of the names.
    """
    known = {cheat.name for cheat in corpus()}
    for name in names:
        if name not in known:
            raise UsageError(f"no cheat is called {name}; there are {', '.join(sorted(known))}")
    return [cheat for cheat in corpus() if not names or cheat.name in (HONEST, *names)]


@cache
def corpus() -> tuple[Cheat, ...]:
    entries = tomllib.loads(program("corpus.toml"))["cheat"]
    return tuple(msgspec.convert(entries, type=list[Cheat]))


@cache
def program(name: str) -> str:
    return (resources.files("treewright.tree.cheats") / name).read_text(encoding="utf-8")
