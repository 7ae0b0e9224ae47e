"""What Lean and the ledger say of the declarations that a blueprint names."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.lean.session.answers import AuditReport, CheckResult, TacticError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import DEFAULT_CHECK_SECONDS
from treewright.lean.sorries import lean_files
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.orchestrator.api import reading
from treewright.orchestrator.blueprint.sync import State


def inspect(
    session: HostSession,
    replayer: Replayer,
    project: Path,
    wanted: set[str],
    *,
    timeout: float = DEFAULT_CHECK_SECONDS,
) -> tuple[dict[str, State], list[str]]:
    """The state of each declaration, and the files that Lean could not elaborate here.

    The session says what is declared where; only the replay check says that it is proved.
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
    refused: list[str] = []
    for name in sorted(wanted):
        report = session.audit(name, result.env)
        state = _state(report)
        # What the file only imports is looked up once, at the end.
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


def proved_in_ledger(ledger: Path, wanted: set[str]) -> set[str]:
    """Declarations whose proof the ledger has: a verified attempt, or a completed ticket."""
    with reading(ledger) as connection:
        if connection is None:
            return set()
        goals = connection.execute("SELECT DISTINCT goal_id FROM attempts WHERE success = 1")
        found = {row["goal_id"].rpartition(":")[2] for row in goals}
        tickets = connection.execute(
            "SELECT suggested_name FROM tickets WHERE status = 'completed'"
        )
        found |= {row["suggested_name"] for row in tickets}
    return found & wanted
