"""Tools that read runs: which there are, how one stands, its tree."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from treewright.dashboard import proof_view
from treewright.dashboard.roots import RunRef
from treewright.kernel.errors import UsageError
from treewright.mcp_server.bounds import Limit, Offset, clipped, page
from treewright.mcp_server.call import Call
from treewright.mcp_server.desk import Desk
from treewright.mcp_server.tool import Answer, Arguments, PagedAnswer, Tool
from treewright.tree.records.model import Manifest

_NO_RUNS = {"bank": "the ledger of a portfolio", "experiment": "an experiment"}
RunName = Annotated[
    str, msgspec.Meta(max_length=300, description="A run's id, or its `run` from tree_runs.")
]


def find(desk: Desk, name: str, kind: str = "tree") -> RunRef:
    """A run by its key or, if only one has it, its id."""
    if "/" in name:
        found = desk.runs.find_key(name)
        matching = [found] if found is not None and kind in ("", found.kind) else []
    else:
        runs = desk.runs.scan()
        matching = [run for run in runs if run.run_id == name and kind in ("", run.kind)]
    if len(matching) > 1:
        keys = ", ".join(run.key for run in matching)
        raise UsageError(f"there are several runs {name!r}: {keys}")
    if not matching:
        raise UsageError(
            f"there is no {kind or 'such'} run {name!r}; tree_runs lists those there are"
        )
    _require_plain(desk, matching[0])
    return matching[0]


def _require_plain(desk: Desk, run: RunRef) -> None:
    """Refuses a run with something in it that leads out of the roots."""
    for entry in run.path.iterdir() if run.path.is_dir() else ():
        if entry.is_symlink() and desk.files.root_of(entry.resolve()) is None:
            raise UsageError(f"{entry.name!r} of the run {run.run_id!r} leads out of the roots")


# -- runs -----------------------------------------------------------------------------------


class RunsArguments(Arguments, frozen=True):
    limit: Limit = 20
    offset: Offset = 0


class RunLine(Answer, frozen=True):
    """`state` is running, stalled, paused, stopped or damaged."""

    run: str
    kind: str
    state: str
    detail: str
    done: int = 0
    of: int | None = None


class Runs(PagedAnswer, frozen=True):
    runs: list[RunLine]
    total: int


def runs(desk: Desk, given: RunsArguments, call: Call) -> Runs:
    there = [run for run in desk.runs.scan() if run.kind not in _NO_RUNS]
    shown, rest = page(there, given.offset, given.limit)
    return Runs([_line(desk, run) for run in shown], len(there), **rest)


def _line(desk: Desk, run: RunRef) -> RunLine:
    try:
        _require_plain(desk, run)
    except UsageError as error:
        return RunLine(run.key, run.kind, "damaged", clipped(str(error), 300))
    return _line_of(run, _summary(desk, run))


def _line_of(run: RunRef, found: dict[str, Any]) -> RunLine:
    progress, now = found.get("progress", {}), found["liveness"]
    detail = clipped(now.detail, 300)
    return RunLine(
        run.key, run.kind, now.state, detail, progress.get("done", 0), progress.get("of")
    )


def _summary(desk: Desk, run: RunRef) -> dict[str, Any]:
    if run.kind == "tree":
        return desk.trees.summary(run)
    return proof_view.summary(desk.proofs.open(run))


class StatusArguments(Arguments, frozen=True):
    run: RunName


class Best(Answer, frozen=True):
    """The best node; its score and gain are relative to the root."""

    node: str
    score: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    branch: str = ""


class Status(RunLine, frozen=True):
    running: int = 0
    failed: int = 0
    proved: int = 0
    depth: int = 0
    policy: str = ""
    target: str = ""
    metric: str = ""
    best: Best | None = None
    eta_seconds: float | None = None
    changes: tuple[str, ...] = ()


def status(desk: Desk, given: StatusArguments, call: Call) -> Status:
    run = find(desk, given.run, "")
    if what := _NO_RUNS.get(run.kind):
        raise UsageError(f"that is {what}, and no run; tree_runs lists those there are")
    found = _summary(desk, run)
    progress = found.get("progress", {})
    best = found.get("best")
    metric = found.get("metric", {})
    return Status(
        **msgspec.structs.asdict(_line_of(run, found)),
        running=progress.get("running", 0),
        failed=progress.get("failed", 0),
        proved=progress.get("proved", 0),
        depth=progress.get("depth", 0),
        policy=clipped(str(found.get("policy") or ""), 200),
        target=clipped(str(found.get("target") or ""), 500),
        metric=clipped(f"{metric.get('direction', '')} {metric.get('name', '')}".strip(), 200),
        best=_best(best) if best else None,
        eta_seconds=found.get("eta_seconds"),
        changes=tuple(clipped(one["words"], 300) for one in found.get("changes", [])[:10]),
    )


def _best(found: dict[str, Any]) -> Best:
    ref = clipped(found["ref"] or "", 300)
    return Best(found["node"], found["score"], found["gain"], found["low"], found["high"], ref)


# -- the tree -------------------------------------------------------------------------------


class TreeArguments(Arguments, frozen=True):
    run: RunName
    show: Literal["nodes", "evaluations"] = "nodes"
    limit: Limit = 50
    offset: Offset = 0


class Row(Answer, frozen=True):
    """A promoted commit (`fate` is empty), or an evaluation with what became of it."""

    id: str
    depth: int
    parent: str = ""
    title: str = ""
    status: str = ""
    fate: str = ""
    score: float | None = None
    gain: float | None = None


class Rows(PagedAnswer, frozen=True):
    rows: list[Row]
    total: int


def tree(desk: Desk, given: TreeArguments, call: Call) -> Rows:
    run = find(desk, given.run)
    document = msgspec.json.decode(desk.trees.tree(run, None))
    found = document["nodes" if given.show == "nodes" else "evals"]
    found.sort(key=lambda row: row["id"])
    shown, rest = page(found, given.offset, given.limit)
    rows = [
        Row(
            row["id"], row["depth"], row.get("parent") or "", clipped(row.get("title", ""), 160),
            row.get("status", ""), row.get("fate") or "", row.get("score"), row.get("gain"),
        )
        for row in shown
    ]  # fmt: skip
    return Rows(rows, len(found), **rest)


def known(manifest: Manifest | None) -> Manifest:
    if manifest is None:
        raise UsageError("the run has no first record yet, or its journal is damaged")
    return manifest


TOOLS = (
    Tool("tree_runs", "The searches below the roots: over commits (tree) and for proofs (proof).",
         RunsArguments, Runs, runs),
    Tool("tree_status", "How a run stands: state, progress, best node with its gain, changes.",
         StatusArguments, Status, status),
    Tool("tree_show", "The nodes of a search over commits, or its evaluations, as rows.",
         TreeArguments, Rows, tree),
)  # fmt: skip
