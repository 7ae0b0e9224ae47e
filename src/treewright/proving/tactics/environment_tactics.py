"""Tactics of the packages that a file imports: `aesop`, `ring`, `linarith` and others.

A table lists tactics with their cost, the goals that they are for and their calls. The program's
own table is `environment_tactics.toml`; `[[tactics]]` in `treewright.toml` adds entries or replaces
those with the same name. When a run is created, Lean is asked which of them the file has, and the
run records the entries that are there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import ProofState, SessionLost, TacticError
from treewright.lean.verify.restrictions import find_escapes
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.goal_outline import flat, shape
from treewright.proving.tactics.source import Suggestions

if TYPE_CHECKING:
    from treewright.lean.session.host_session import HostSession

GoalClass = Literal[
    "any", "arithmetic", "division", "equation", "falsity", "logic", "negation", "order",
    "positive",
]  # fmt: skip
Cost = Literal["cheap", "middle", "dear"]

_PRIORS: dict[Cost, float] = {"cheap": 0.4, "middle": 0.2, "dear": 0.1}
_CONFIG = "treewright.toml"
_SQUARES = "{squares}"
_MOST_SQUARES = 4
_NUMERIC = re.compile(r"[ℕℤℚℝℂ]|Nat|Int|Rat|Real|[A-Zα-ω]\w?")
_IMPORT = re.compile(
    r"^\s*(?:(?:public|meta|private)\s+)*import\s+(?:all\s+)?([\w.«»]+)", re.MULTILINE
)
_CORE = ("Init", "Std", "Lean", "Lake")
_DECLARES_SYNTAX = re.compile(r"\b(macro|macro_rules|syntax|elab|elab_rules)\b")
_NOT_IMPLEMENTED = "has not been implemented"
_PROBE_SECONDS = 5.0
_PROBE_HEARTBEATS = 5_000


class EnvironmentTactic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tactic that a package brings.

    Args:
        name: The word by which Lean is asked whether the tactic is there.
        calls: How it is called, the likeliest first. `{squares}` stands for facts about squares of
            the goal's variables.
        goals: The classes of goals that it is for; one of them is enough.
        cost: `cheap` and `middle` are tried in the first round of a node, `dear` in the second.
        package: The package that brings it, for readers.
        needs: Another tactic that must be there too.
    """

    name: str
    calls: tuple[str, ...]
    goals: tuple[GoalClass, ...] = ("any",)
    cost: Cost = "middle"
    package: str = ""
    needs: str = ""


class _Table(msgspec.Struct):
    tactics: tuple[EnvironmentTactic, ...] = ()


class EnvironmentTactics:
    """Suggests the calls of tactics that fit the outline of a goal."""

    name = "environment"

    def __init__(self, tactics: Sequence[EnvironmentTactic]) -> None:
        self._tactics = tuple(tactics)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        classes = goal_classes(goals[0])
        fitting = [t for t in self._tactics if classes.intersection(t.goals)]
        found: dict[str, Candidate] = {}
        for tactic in fitting:
            if (tactic.cost == "dear") != (round_number == 1) or round_number > 1:
                continue
            for place, call in enumerate(_calls(tactic, goals[0])):
                prior = _PRIORS[tactic.cost] / (place + 1)
                found.setdefault(call, Candidate(call, prior, self.name))
        more = round_number == 0 and any(t.cost == "dear" for t in fitting)
        return Suggestions(tuple(found.values()), complete=not more)


def goal_classes(goal: GoalView) -> set[GoalClass]:
    """Return the classes of a goal, by its outline and its text."""
    target = flat(goal.target)
    outline = shape(target)
    found: set[GoalClass] = {"any"}
    match outline.kind:
        case "eq":
            found.add("equation")
        case "order":
            found.add("order")
        case "false":
            found.add("falsity")
        case "and" | "or" | "iff" | "implies" | "not":
            found.add("logic")
        case _:
            pass
    if outline.kind in ("order", "ne") and "0" in (part.strip() for part in outline.parts):
        found.add("positive")
    if "¬" in target or any(h.type.startswith("¬") for h in goal.hypotheses):
        found.add("negation")
    if " / " in target or "⁻¹" in target:
        found.add("division")
    if re.search(r"(?<![\w.])\d", target):
        found.add("arithmetic")
    return found


def _calls(tactic: EnvironmentTactic, goal: GoalView) -> Iterator[str]:
    for call in tactic.calls:
        if _SQUARES not in call:
            yield call
        elif squares := _squares(goal):
            yield call.replace(_SQUARES, ", ".join(squares))


def _squares(goal: GoalView) -> list[str]:
    """Return facts about squares of the goal's variables, for `nlinarith`."""
    variables = [h for h in goal.hypotheses if _NUMERIC.fullmatch(h.type) and "✝" not in h.name]
    pairs = [
        f"sq_nonneg ({a.name} - {b.name})"
        for a, b in combinations(variables, 2)
        if a.type == b.type
    ]
    return [*pairs, *(f"sq_nonneg {v.name}" for v in variables)][:_MOST_SQUARES]


# -- the table --------------------------------------------------------------------------


def read_table(directory: Path | None = None) -> tuple[EnvironmentTactic, ...]:
    """Return the program's table, with the entries of a directory's `treewright.toml`.

    Raises:
        UsageError: The file has an entry that is wrong, or a call that no proof may contain.
    """
    entries = {entry.name: entry for entry in _own_table()}
    path = directory / _CONFIG if directory is not None else None
    if path is not None and path.is_file():
        entries.update((entry.name, entry) for entry in _read(path))
    return tuple(entries.values())


@cache
def _own_table() -> tuple[EnvironmentTactic, ...]:
    text = (
        resources.files("treewright.proving.tactics")
        .joinpath("environment_tactics.toml")
        .read_text("utf-8")
    )
    return msgspec.convert(tomllib.loads(text), _Table).tactics


def _read(path: Path) -> tuple[EnvironmentTactic, ...]:
    try:
        document = cast("dict[str, object]", tomllib.loads(path.read_text("utf-8")))
        table = msgspec.convert({"tactics": document.get("tactics", [])}, _Table)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: {error}; correct its [[tactics]]") from None
    for entry in table.tactics:
        for call in (entry.name, *entry.calls):
            if problem := find_escapes(call):
                raise UsageError(
                    f"{path}: no proof may contain `{problem[0].word}`, as `{call}` does"
                )
    return table.tactics


# -- what a file has --------------------------------------------------------------------


def may_have_more_than_core(source: str) -> bool:
    """Return whether a file can have tactics that core Lean does not have."""
    modules = [name.partition(".")[0] for name in _IMPORT.findall(source)]
    return any(module not in _CORE for module in modules) or bool(_DECLARES_SYNTAX.search(source))


def find_available(
    table: Sequence[EnvironmentTactic], session: HostSession, state: ProofState
) -> tuple[EnvironmentTactic, ...]:
    """Return the entries whose tactics parse and have an implementation in a goal's environment.

    Each tactic is run once, on `True`, with a small limit; it need not prove it. Dear ones are only
    parsed: the first run of `exact?` takes long, because it reads the whole library.

    Args:
        table: The entries to ask for.
        session: Lean, with the environment of the goal.
        state: The goal.
    """
    there: set[str] = set()
    for entry in table:
        guard = "first | exact True.intro | " if entry.cost == "dear" else ""
        probe = f"have : True := by\n  {guard}{entry.name}"
        result = session.run_tactic(state, probe, _PROBE_SECONDS, heartbeats=_PROBE_HEARTBEATS)
        if isinstance(result, ProofState):
            session.free([result])
        if isinstance(result, SessionLost):
            break  # the caller starts another session; the tactic that ended this one is left out
        is_missing = isinstance(result, TacticError) and (
            result.kind == "parse" or _NOT_IMPLEMENTED in result.message
        )
        if not is_missing:
            there.add(entry.name)
    return tuple(t for t in table if t.name in there and (not t.needs or t.needs in there))
