"""Tools for proofs: `lean_prove` searches for one, `lean_verify` checks one."""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import new_run_id
from treewright.lean.session.inputs import check_closed
from treewright.lean.sorries import patch_of
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.mcp_server.call import Call, Fault
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.source_tools import Seconds, read_source
from treewright.mcp_server.tool import Answer, Arguments, Name, PathText, Text, clipped, tool
from treewright.proving import layout
from treewright.proving.api import ProofService
from treewright.proving.phases import Observer
from treewright.proving.run import RunResult
from treewright.proving.settings import (
    FileTarget,
    Settings,
    SourceSettings,
    StatementTarget,
    Target,
)
from treewright.proving.tactics.factory import add_library_index

_MAX_PATCH = 20_000
Axioms = Annotated[
    tuple[Name, ...],
    msgspec.Meta(max_length=50, description="Axioms that are allowed in addition to Lean's three."),
]

# -- prove ----------------------------------------------------------------------------------


class ProveArguments(Arguments, frozen=True):
    statement: Annotated[
        str, msgspec.Meta(max_length=100_000, description="Proposition to prove, or use `path`.")
    ] = ""
    path: PathText = ""
    declaration: Annotated[
        str, msgspec.Meta(max_length=1_000, description="Prove only this declaration of the file.")
    ] = ""
    seconds: Seconds = 60.0
    simulations: Annotated[
        int, msgspec.Meta(ge=1, le=100_000, description="Most simulations for each goal.")
    ] = 200
    tactics: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=2_000)], ...],
        msgspec.Meta(max_length=200, description="Tactics to try first."),
    ] = ()
    refute: Annotated[
        bool, msgspec.Meta(description="Also search for a proof of the negation.")
    ] = True


class GoalOutcome(Answer, frozen=True):
    """The outcome of a goal. `proved`: the judge accepted a proof; `false`: one of the negation."""

    name: str
    status: str
    proof: str = ""
    detail: str = ""


class Proofs(Answer, frozen=True):
    """The result of a search.

    `complete` means that every goal has a verdict. `patch` adds the proofs to the file. `run` is
    the directory of the run, with the certificate.
    """

    proved: int
    total: int
    complete: bool
    goals: list[GoalOutcome]
    run: str
    patch: str = ""


@tool("lean_prove", lambda given: given.seconds, writes=True)
def prove(server: ServerState, given: ProveArguments, call: Call) -> Proofs:
    """Search for a proof of a statement, or of the sorries of a file (or of one
    `declaration`), for at most `seconds`.

    Returns the status and proof of each goal, and a patch. `proved` means that the judge accepted
    the proof in a separate Lean. The search is stored as a run below .treewright; the file is not
    changed.
    """
    target, lean, root = _target(server, given)
    settings = Settings(
        simulations=given.simulations,
        time_limit=given.seconds / 2 if given.refute else given.seconds,
        refute=given.refute,
        sources=SourceSettings(
            tactics="\n".join(given.tactics) or None, known=True, strategies=True
        ),
    )
    server.files.resolve_target(root, layout.RUNS)
    with lean.proving(call) as processes:
        settings = add_library_index(settings, processes.host)
        deadline = time.monotonic() + given.seconds  # Lean has started
        proving = ProofService(
            processes,
            root,
            observer=_observer(call, given.simulations),
            stop_asked=lambda: call.stop.is_set() or time.monotonic() > deadline,
        )
        # Another server may start a run in the same second.
        run_id = f"{new_run_id(root / layout.RUNS)}_{secrets.token_hex(3)}"
        result = proving.prove(target, settings, run_id)
    call.raise_if_stopped()
    return _proofs(server, target, result)


def _target(server: ServerState, given: ProveArguments) -> tuple[Target, Any, Any]:
    if bool(given.statement) == bool(given.path):
        raise UsageError("give one of `statement` and `path`")
    if given.statement:
        if given.declaration:
            raise UsageError("`declaration` goes with `path`")
        statement = given.statement.strip()
        if not statement:
            raise UsageError("the statement is empty")
        check_closed(statement, "the statement")
        return StatementTarget(statement), server.lean_without_project(), server.files.first
    path = server.files.resolve(given.path)
    source = read_source(server, given.path, "")
    root = server.files.root_of(path)
    return FileTarget(str(path), source.text, given.declaration or None), source.lean, root


def _observer(call: Call, simulations: int) -> Observer:
    return Observer(
        goal=lambda spec, total: call.progress(0, simulations, clipped(spec.name, 200)),
        iteration=lambda line, graph: call.progress(
            line.iteration, simulations, f"simulation {line.iteration}"
        ),
    )


def _proofs(server: ServerState, target: Target, result: RunResult) -> Proofs:
    if lost := [goal for goal in result.goals if goal.status == "unchecked"]:
        raise Fault(f"no verdict on {lost[0].name}: {lost[0].detail}; call again")
    patch = ""
    if isinstance(target, FileTarget) and result.proved_file is not None:
        after = server.files.read(server.files.resolve(result.proved_file))
        name = server.files.shown(server.files.resolve(target.path))
        patch = clipped(patch_of(name, target.source, after), _MAX_PATCH)
    goals = [
        GoalOutcome(clipped(g.name, 200), g.status, clipped(g.proof), clipped(g.detail, 500))
        for g in result.goals[:200]
    ]
    if not result.complete and len(goals) < result.total:
        goals.append(GoalOutcome("", "not decided", detail="the budget was used up"))
    directory = server.files.shown(server.files.resolve(result.directory))
    return Proofs(result.proved, result.total, result.complete, goals, directory, patch)


# -- verify ---------------------------------------------------------------------------------


class VerifyArguments(Arguments, frozen=True):
    original: Text = ""
    original_path: PathText = ""
    candidate: Text = ""
    candidate_path: PathText = ""
    targets: Annotated[
        tuple[Name, ...],
        msgspec.Meta(
            max_length=200,
            description="Declarations that must be proved; if empty, all that rest on sorry.",
        ),
    ] = ()
    axioms: Axioms = ()
    seconds: Seconds = 120.0


class Verified(Answer, frozen=True):
    """The verdict.

    `proved`: every target is proved, has its statement, and rests on allowed axioms.

    A proved result has the certificate; otherwise `reason` and `detail` explain the refusal.
    """

    proved: bool
    reason: str
    detail: str = ""
    certificate: dict[str, Any] | None = None


@tool("lean_verify", lambda given: 3 * given.seconds)
def verify(server: ServerState, given: VerifyArguments, call: Call) -> Verified:
    """Check whether a candidate proves the sorries of an original, for at most `seconds` per
    text.

    Each is a text or a path. The judge is a Lean that has read neither text. Returns whether it is
    proved, the reason if not, and a certificate.
    """
    original = read_source(server, given.original_path, given.original)
    candidate = read_source(server, given.candidate_path, given.candidate)
    if "sorryAx" in given.axioms:
        raise UsageError("axioms cannot allow sorryAx: a proof with sorry is none")

    def work(replayer: Replayer) -> Verified:
        call.progress(0, None, "the replay check")
        verdict = replayer.text(
            original.text, candidate.text, given.targets, declarations=True, timeout=given.seconds
        )
        if verdict.is_fault:
            raise Fault(f"no verdict ({verdict.reason}): {verdict.detail}; call again")
        certificate = msgspec.to_builtins(verdict.certificate) if verdict.certificate else None
        return Verified(verdict.proved, verdict.reason, clipped(verdict.detail, 1000), certificate)

    with original.lean.judging(call, DEFAULT_AXIOMS | set(given.axioms)) as replayer:
        answer = work(replayer)
    call.raise_if_stopped()
    return answer
