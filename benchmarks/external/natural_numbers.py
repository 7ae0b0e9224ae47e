"""Natural Number Games: each level is to be proved from the earlier ones.

`python -m benchmarks.external.natural_numbers --out results.jsonl` measures the levels of
`bench/levels`. With the path of a checkout of `leanprover-community/NNG4` it measures the levels
of that game instead. The game's own definitions are taken from the checkout. Its axioms, and the
levels that a level imports, are given as axioms with a theorem each, because their human proofs
use Mathlib and tactics of the game. Proofs may rest on these axioms.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks import levels
from benchmarks.external import scoreboard
from benchmarks.external.scoreboard import Problem, sha256_half

_GIVEN = "_given"
_LEVEL_IMPORT = re.compile(r"^import (Game\.Levels\.\w+\.\w+)", re.MULTILINE)
_WORLD_IMPORT = re.compile(r"^import (Game\.Levels\.\w+)$", re.MULTILINE)
_OWN_IMPORT = re.compile(r"^import (Game\.(?:MyNat|Levels)\.[\w.]+)", re.MULTILINE)
_AXIOM = re.compile(r"((?:@\[[^\]]*\]\s*)?)^axiom (\S+)(.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_STATEMENT = re.compile(
    r"^Statement\b *(\w+)?([^\n]*(?:\n(?! *$).*?)??):= by$", re.MULTILINE | re.DOTALL
)
_KEPT = re.compile(r"^(?:instance .*|attribute \[simp\] .*)$", re.MULTILINE)


class Game:
    """The levels of a checkout of NNG4."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self._known: dict[str, list[str]] = {}  # the imports of each module
        self.axioms: set[str] = set()
        """The axioms that are given to the levels that were read so far."""

    def level_modules(self) -> list[str]:
        """Return the modules of the levels, in the order of the game."""
        worlds = _WORLD_IMPORT.findall(self._text("Game"))
        return [name for world in worlds for name in _LEVEL_IMPORT.findall(self._text(world))]

    def level_text(self, module: str) -> str | None:
        """Return the Lean file of a level; None if the game has no proof of it."""
        earlier = [self._given(name) for name in self._imports(module)]
        found = _STATEMENT.search(self._text(module))
        if found is None or _proof(self._text(module), found) == "xyzzy":
            return None
        name, rest = found.groups()
        theorem = f"theorem {name or 'level'}{_spaced(rest)}:= by\n  sorry"
        return (
            "\n\n".join([*filter(None, earlier), f"namespace MyNat\n\n{theorem}\n\nend MyNat"])
            + "\n"
        )

    def _text(self, module: str) -> str:
        return (self._checkout / f"{module.replace('.', '/')}.lean").read_text("utf-8")

    def _imports(self, module: str) -> list[str]:
        """Return the modules of the game that a module needs, in their order."""
        if module not in self._known:
            needed: dict[str, None] = {}
            for name in _OWN_IMPORT.findall(self._text(module)):
                needed |= dict.fromkeys([*self._imports(name), name])
            self._known[module] = list(needed)
        return self._known[module]

    def _given(self, module: str) -> str:
        """Return what a module gives to later ones."""
        text = self._text(module)
        if ".Levels." not in module:
            text = re.sub(r"^import .*\n", "", text, flags=re.MULTILINE)
            text = re.sub(r",? *MyNat_decide", "", text).replace("@[]\n", "")
            text = re.sub(r"^lemma ", "theorem ", text, flags=re.MULTILINE)
            text = re.sub(r"^( +rw .*\n +)rfl$", r"\1try rfl", text, flags=re.MULTILINE)
            text = _AXIOM.sub(lambda found: self._grant(*found.groups()), text)
            is_open = len(re.findall(r"^namespace ", text, re.MULTILINE))
            is_closed = len(re.findall(r"^end MyNat", text, re.MULTILINE))
            return text.strip() + "\n\nend MyNat" * (is_open - is_closed)
        found = _STATEMENT.search(text)
        parts = []
        if found is not None and found.group(1):
            name, rest = found.groups()
            parts.append(self._grant("", name, _spaced(rest).rstrip()))
        if found is not None:
            parts += _KEPT.findall(text, found.end())
        return "\n\n".join(["namespace MyNat", *parts, "end MyNat"]) if parts else ""

    def _grant(self, attributes: str, name: str, rest: str) -> str:
        given = f"{name}{_GIVEN}"
        self.axioms.add(f"MyNat.{given}")
        own = f"{attributes}theorem {name} : type_of% @{given} := @{given}"
        return f"axiom {given}{rest}\n\n{own}"


def _spaced(rest: str) -> str:
    rest = re.sub(r" *--.*", "", rest).lstrip(" ")
    return rest if rest.startswith("\n") else f" {rest}"


def _proof(text: str, statement: re.Match[str]) -> str:
    return text[statement.end() :].split("\n\n")[0].strip()


def write_game(checkout: Path, files: Path) -> tuple[list[Problem], set[str]]:
    """Write a Lean file for each level of NNG4; also return the axioms that they are given."""
    files.mkdir(parents=True, exist_ok=True)
    game = Game(checkout)
    problems = []
    for module in game.level_modules():
        name = module.removeprefix("Game.Levels.")
        text = game.level_text(module)
        if text is None:
            print(f"{name} is left out: the game has no proof of it")
            continue
        file = files / f"{name}.lean"
        file.write_text(text, "utf-8")
        problems.append(Problem(name, file, sha256_half(name)))
    return problems, game.axioms


def write_bench(files: Path) -> list[Problem]:
    """Write a Lean file for each level of `bench/levels/natural_numbers.lean`."""
    files.mkdir(parents=True, exist_ok=True)
    problems = []
    for level in levels.levels(levels.LEVELS / "natural_numbers.lean"):
        file = files / f"{level.name}.lean"
        file.write_text(level.text, "utf-8")
        half = "held_out" if level.held_out else "tuned"
        problems.append(Problem(level.name, file, half, level.name))
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.external.natural_numbers", description=__doc__
    )
    parser.add_argument(
        "checkout", type=Path, nargs="?", help="a checkout of leanprover-community/NNG4"
    )
    scoreboard.add_options(parser)
    options = parser.parse_args()
    files = options.out.with_suffix(".files").resolve()
    if options.checkout is None:
        problems, axioms = write_bench(files), set()
    else:
        problems, axioms = write_game(options.checkout, files)
    scoreboard.run(problems, options, axioms)


if __name__ == "__main__":
    main()
