"""Comparing a leanblueprint with Lean and the ledger, and correcting its `\\leanok` marks.

`inspect_declarations` asks Lean for the state of each declaration that the blueprint names, and
`with_ledger_proofs` adds the proofs that the ledger has. `assess` compares the blueprint with
these states; `write_edits` applies the corrections. A mark is added only where every declaration
is verified or has a proof in the ledger that the replay check accepts now; a mark is removed only
where Lean knows that it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.storage import atomic
from treewright.lean.session.answers import AuditReport, CheckResult, TacticError
from treewright.lean.session.errors import DEFAULT_CHECK_SECONDS
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import FileSorries, from_check, lean_files
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.orchestrator.blueprint import latex
from treewright.orchestrator.blueprint.latex import Blueprint, Marked, Statement
from treewright.orchestrator.goals import sorry_goals, statements
from treewright.orchestrator.ledger.schema import open_for_reading
from treewright.orchestrator.types import PROJECT_CLASS, Goal

State = Literal["verified", "in_ledger", "sorry", "axiom", "absent", "unknown"]
"""The state of a declaration.

`in_ledger`: the project has it open, and the replay check accepts the ledger's proof of it.
`unknown`: its file could not be elaborated here.
"""

_OPEN = ("sorry", "absent")
_PROVED = {"verified", "in_ledger"}
_ENTRY_FILES = (
    "blueprint/src/content.tex", "src/content.tex", "content.tex", "blueprint/src/web.tex",
    "src/web.tex", "web.tex",
)  # fmt: skip


class Entry(msgspec.Struct, frozen=True):
    """One statement of the blueprint and the states of its declarations."""

    file: str
    line: int
    environment: str
    label: str
    lean: dict[str, State]
    statement_ok: bool
    proof_ok: bool | None
    drift: tuple[str, ...]


class Edit(msgspec.Struct, frozen=True):
    """Add `\\leanok` at `start`, or remove the text between `start` and `end`."""

    file: Path
    start: int
    end: int


class Assessment(msgspec.Struct, frozen=True):
    """The comparison of a whole blueprint, and the edits that correct its marks."""

    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...]
    problems: tuple[str, ...]

    @property
    def drifted(self) -> tuple[Entry, ...]:
        """The entries with wrong marks."""
        return tuple(entry for entry in self.entries if entry.drift)


def find_entry_file(path: Path) -> Path:
    """Return the LaTeX file to begin with: `path`, or the one in a leanblueprint's directory."""
    if path.is_file():
        return path
    for name in _ENTRY_FILES:
        if (path / name).is_file():
            return path / name
    raise UsageError(f"there is no blueprint at {path}; name its content.tex or its directory")


def declared_names(blueprint: Blueprint) -> set[str]:
    """Return every declaration that the blueprint names."""
    return {name for statement in blueprint.statements for name in statement.lean}


# -- the states of declarations ---------------------------------------------------------------


def inspect_declarations(
    session: HostSession,
    replayer: Replayer,
    project: Path,
    wanted: set[str],
    *,
    timeout: float = DEFAULT_CHECK_SECONDS,
) -> tuple[dict[str, State], list[str]]:
    """Return the state of each declaration, and the files that Lean could not elaborate here.

    The session finds the declarations; the replay check alone decides which are verified.
    """
    states: dict[str, State] = {}
    problems: list[str] = []
    for path in lean_files(project):
        missing = wanted - states.keys()
        problem = _inspect_file(session, replayer, path, missing, states, timeout)
        if problem:
            problems.append(f"{path.relative_to(project).as_posix()}: {problem}")
    for name in sorted(wanted - states.keys()):
        found = _state(session.audit(name))
        states[name] = found or ("unknown" if problems else "absent")
    return states, problems


def _inspect_file(
    session: HostSession,
    replayer: Replayer,
    path: Path,
    wanted: set[str],
    states: dict[str, State],
    timeout: float,
) -> str:
    """Add the declarations of a file to `states`; return the file's first problem, or ''."""
    try:
        source = path.read_bytes().decode("utf-8")
        result = session.check_file(source, keep=True, timeout=timeout)
    except UnicodeDecodeError:
        return "not UTF-8"
    except TreewrightError as error:
        return str(error)
    if not isinstance(result, CheckResult):
        return f"not elaborated: {result}"
    if result.env is None or result.stopped:
        return result.stopped or "not elaborated"
    refused: list[str] = []
    for name in sorted(wanted):
        report = session.audit(name, result.env)
        state = _state(report)
        # A declaration that the file only imports is looked up once, after all files.
        if state is None or not isinstance(report, AuditReport) or report.name not in report.local:
            continue
        states[name] = state
    verified = [name for name in sorted(wanted) if states.get(name) == "verified"]
    for name, verdict in replayer.declarations(source, verified, timeout=timeout).items():
        if not verdict.proved:
            states[name] = "unknown" if verdict.is_fault else "axiom"
            refused.append(f"{name} is not proved: {verdict.detail}")
    session.free_environment(result.env)
    errors = [f"line {d.line}: {d.text.splitlines()[0]}" for d in result.errors]
    return next(iter([*errors, *refused]), "")


def _state(report: AuditReport | TacticError) -> State | None:
    if isinstance(report, TacticError):
        return None
    if "sorryAx" in report.axioms:
        return "sorry"
    if report.outside(DEFAULT_AXIOMS) or report.unsafe or report.missing:
        return "axiom"
    return "verified"


# -- the proofs of the ledger -----------------------------------------------------------------


def proved_in_ledger(ledger: Path, wanted: set[str]) -> set[str]:
    """Return the declarations with a recorded proof or a completed ticket in the ledger."""
    with open_for_reading(ledger) as connection:
        if connection is None:
            return set()
        goals = connection.execute("SELECT DISTINCT goal_id FROM attempts WHERE success = 1")
        found = {row["goal_id"].rpartition(":")[2] for row in goals}
        tickets = connection.execute(
            "SELECT suggested_name FROM tickets WHERE status = 'completed'"
        )
        found |= {row["suggested_name"] for row in tickets}
    return found & wanted


def with_ledger_proofs(
    states: Mapping[str, State],
    session: HostSession,
    replayer: Replayer,
    project: Path,
    ledger: Path,
    *,
    timeout: float = DEFAULT_CHECK_SECONDS,
) -> dict[str, State]:
    """Return the states with `in_ledger` for open declarations that the ledger has a proof of.

    Anyone may have changed the ledger or the project since the proof was found. Each proof is
    therefore filled into the project's file and replayed; only an accepted proof counts.
    """
    found = dict(states)
    open_names = {name for name, state in states.items() if state == "sorry"}
    scripts = _recorded_scripts(ledger)
    wanted = {goal_id for goal_id in scripts if goal_id.rpartition(":")[2] in open_names}
    for path in lean_files(project):
        prefix = f"{sorry_goals.relative_name(path, project)}:"
        if not any(goal_id.startswith(prefix) for goal_id in wanted):
            continue
        goals = [
            goal
            for goal in _open_goals(session, path, project, timeout)
            if goal.id in wanted
            and goal.place is not None
            and len(goal.place.holes) == len(scripts[goal.id])
        ]
        for name in _accepted(replayer, goals, scripts, timeout) & open_names:
            found[name] = "in_ledger"
    return found


def _recorded_scripts(ledger: Path) -> dict[str, tuple[str, ...]]:
    """Return the latest recorded proof of each declaration: a script for each of its holes."""
    with open_for_reading(ledger) as connection:
        if connection is None:
            return {}
        rows = connection.execute(
            "SELECT goal_id, tactics FROM attempts WHERE success = 1 AND goal_class = ? "
            "ORDER BY id",
            [PROJECT_CLASS],
        )
        return {row["goal_id"]: tuple(json.loads(row["tactics"])) for row in rows}


def _open_goals(session: HostSession, path: Path, project: Path, timeout: float) -> list[Goal]:
    try:
        source = path.read_bytes().decode("utf-8")
        result = session.check(source, sorries=True, timeout=timeout)
    except (OSError, UnicodeDecodeError, TreewrightError):
        return []  # `inspect_declarations` has reported it
    if not isinstance(result, CheckResult):
        return []
    found = FileSorries(path, source, from_check(source, result))
    return sorry_goals.project_goals(found, project)


def _accepted(
    replayer: Replayer,
    goals: Sequence[Goal],
    scripts: Mapping[str, tuple[str, ...]],
    timeout: float,
) -> set[str]:
    """Return the declarations of one file for which the replay check accepts a recorded proof.

    All proofs are filled in together, since one may rest on another. If they do not fit, each is
    replayed alone.
    """
    places = [goal.place for goal in goals if goal.place is not None]
    if not places:
        return set()
    together = statements.join_places(places, places[0].source)
    original, candidate = statements.fill_holes(
        together, [script for goal in goals for script in scripts[goal.id]]
    )
    names = [place.declaration for place in places]
    if replayer.text(original, candidate, names, timeout=timeout).proved:
        return set(names)
    if len(goals) == 1:
        return set()
    return set().union(*(_accepted(replayer, [goal], scripts, timeout) for goal in goals))


# -- comparing --------------------------------------------------------------------------------


def assess(
    blueprint: Blueprint, states: Mapping[str, State], proved_in_ledger: Iterable[str], base: Path
) -> Assessment:
    """Compare a blueprint with the states of its declarations.

    Args:
        blueprint: The statements that were read.
        states: The state of every declaration that the blueprint names.
        proved_in_ledger: Declarations with a recorded proof or a completed ticket in the ledger.
        base: The directory that paths are shown relative to.
    """
    recorded, base = frozenset(proved_in_ledger), base.resolve()
    labels = {statement.label for statement in blueprint.statements}
    entries, edits = [], []
    for statement in blueprint.statements:
        file = statement.file
        known: dict[str, State] = {name: states[name] for name in statement.lean}
        kept = {n for n, state in known.items() if state in _OPEN and n in recorded}
        drift, changes = _compare(statement, known, kept)
        drift += [
            f"proved_in_ledger:{name}"
            for name, state in known.items()
            if state == "in_ledger" or name in kept
        ]
        uses = [*statement.uses, *(statement.proof.uses if statement.proof else [])]
        drift += [f"uses_undefined:{label}" for label in dict.fromkeys(uses) if label not in labels]
        edits += changes
        entries.append(
            Entry(
                file.relative_to(base).as_posix() if file.is_relative_to(base) else str(file),
                statement.line,
                statement.environment,
                statement.label,
                known,
                bool(statement.leanok),
                bool(statement.proof.leanok) if statement.proof else None,
                tuple(drift),
            )
        )
    return Assessment(tuple(entries), tuple(edits), tuple(blueprint.problems))


def _compare(
    statement: Statement, known: Mapping[str, State], kept: set[str]
) -> tuple[list[str], list[Edit]]:
    """Return the codes of a statement's wrong marks, and the edits that correct them.

    For the declarations in `kept` the ledger records a proof: no mark is removed because of them.
    """
    drift: list[str] = []
    edits: list[Edit] = []
    against = {state for name, state in known.items() if name not in kept}
    if not known:
        claimed = bool(statement.leanok or (statement.proof and statement.proof.leanok))
        return (["leanok_without_lean"] if claimed else []), []
    drift += [f"{state}:{name}" for name, state in known.items() if state in ("absent", "unknown")]
    if set(known.values()) <= _PROVED:
        for part, code in ((statement, "statement"), (statement.proof, "proof")):
            if part is not None and not part.leanok:
                drift.append(f"{code}_not_marked")
                edits.append(Edit(part.file, part.insert_at, part.insert_at))
    if statement.proof is not None and against & {"sorry", "axiom", "absent"}:
        drift += ["proof_marked_but_open"] if statement.proof.leanok else []
        edits += _removals(statement.proof)
    if "absent" in against:
        drift += ["statement_marked_but_absent"] if statement.leanok else []
        edits += _removals(statement)
    elif statement.proof is None and against & {"sorry", "axiom"} and statement.leanok:
        drift.append("statement_marked_but_open")
        edits += _removals(statement)
    return drift, edits


def _removals(part: Marked) -> list[Edit]:
    return [Edit(part.file, start, end) for start, end in part.leanok]


# -- writing ----------------------------------------------------------------------------------


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits applied and every other character unchanged."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        if edit.start == edit.end:
            text = _insert_mark(text, edit.start, newline)
        else:
            text = _remove(text, edit.start, edit.end)
    return text


def _insert_mark(text: str, at: int, newline: str) -> str:
    """Insert the mark on a new line after `at`, indented like the text around it."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    indent = _indent(line)
    if line.lstrip(" \t").startswith("\\begin"):
        indent = _indent(text[text.find("\n", at) + 1 :]) if "\n" in text[at:] else indent
    space = " " if text[at : at + 1].isalpha() else ""
    return f"{text[:at]}{newline}{indent}\\leanok{space}{text[at:]}"


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def _remove(text: str, start: int, end: int) -> str:
    """Remove a mark, and its whole line if the line is otherwise empty."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end + 1
    if not (text[line_start:start] + text[end:line_end]).strip():
        return text[:line_start] + text[line_end:]
    return text[:start] + text[end:]


def write_edits(blueprint: Blueprint, assessment: Assessment) -> list[Path]:
    """Apply the edits and return the files that changed."""
    changed = []
    for file, text in blueprint.texts.items():
        edits = [edit for edit in assessment.edits if edit.file == file]
        if edits:
            atomic.write_bytes(file, latex.encode(apply_edits(text, edits)))
            changed.append(file)
    return changed
