"""What Lean and the ledger say of the declarations that a blueprint names."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.lean.replay import DEFAULT_AXIOMS
from treewright.lean.session import DEFAULT_CHECK_SECONDS
from treewright.lean.sorries import lean_files
from treewright.lean.types import AuditReport, CheckResult, TacticError
from treewright.lean.wasm.session import WasmSession
from treewright.orchestrator.api import has_table, reading
from treewright.orchestrator.blueprint import State


def inspect(
    session: WasmSession, project: Path, wanted: set[str], *, timeout: float = DEFAULT_CHECK_SECONDS
) -> tuple[dict[str, State], list[str]]:
    """The state of each declaration, and the files that Lean could not elaborate here."""
    states: dict[str, State] = {}
    problems: list[str] = []
    for path in lean_files(project):
        problem = _inspect_file(session, path, wanted - states.keys(), states, timeout)
        if problem:
            problems.append(f"{path.relative_to(project).as_posix()}: {problem}")
    for name in sorted(wanted - states.keys()):
        found = _state(session.audit(name))
        states[name] = found or ("unknown" if problems else "absent")
    return states, problems


def _inspect_file(
    session: WasmSession, path: Path, wanted: set[str], states: dict[str, State], timeout: float
) -> str:
    """Adds what the file declares to `states`; says what is wrong with the file, or ''."""
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
    own = {statement.name for statement in session.statements(result.env)}
    refused: list[str] = []
    for name in wanted:
        report = session.audit(name, result.env)
        state = _state(report)
        # What the file only imports is looked up once, at the end.
        if state is None or not isinstance(report, AuditReport) or report.name not in own:
            continue
        # A file can add declarations that the kernel never saw; only its own word counts.
        if state == "verified" and (said := session.recheck(name, result.env, timeout)):
            state = "axiom"
            refused.append(f"the kernel does not accept {name}: {said.splitlines()[0]}")
        states[name] = state
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


def proved_in_ledger(ledger: Path, wanted: set[str]) -> set[str]:
    """Declarations whose proof the ledger has: a verified attempt, or a completed ticket."""
    if not ledger.is_file():
        return set()
    found: set[str] = set()
    with reading(ledger) as connection:
        if has_table(connection, "attempts"):
            columns = {row["name"] for row in connection.execute("PRAGMA table_info(attempts)")}
            if "goal_id" in columns:
                rows = connection.execute("SELECT DISTINCT goal_id FROM attempts WHERE success = 1")
                found |= {row["goal_id"].rpartition(":")[2] for row in rows}
        if has_table(connection, "tickets"):
            rows = connection.execute(
                "SELECT suggested_name FROM tickets WHERE status = 'completed'"
            )
            found |= {row["suggested_name"] for row in rows}
    return found & wanted
