"""Tools that read runs: their state, trees, decisions, diffs and ideas."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec

from treewright.dashboard import proof_view, tree_detail
from treewright.dashboard.roots import RunRef
from treewright.kernel.errors import UsageError
from treewright.mcp_server.call import Call
from treewright.mcp_server.confinement import require_confined
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.tool import (
    Answer,
    Arguments,
    Limit,
    Offset,
    PagedAnswer,
    clipped,
    page,
    rest_of,
    tool,
)
from treewright.tree.records.description import best_node
from treewright.tree.records.model import Evaluation, Manifest

_NO_RUNS = {"bank": "the ledger of a portfolio", "experiment": "an experiment"}
RunName = Annotated[
    str, msgspec.Meta(max_length=300, description="Id of a run, or its `run` from tree_runs.")
]


def find(server: ServerState, name: str, kind: str = "tree") -> RunRef:
    """Return a run by its key, or by its id if only one run has the id."""
    if "/" in name:
        found = server.runs.find_key(name)
        matching = [found] if found is not None and kind in ("", found.kind) else []
    else:
        runs = server.runs.scan()
        matching = [run for run in runs if run.run_id == name and kind in ("", run.kind)]
    if len(matching) > 1:
        keys = ", ".join(run.key for run in matching)
        raise UsageError(f"there are several runs {name!r}: {keys}")
    if not matching:
        raise UsageError(f"there is no {kind or 'such'} run {name!r}; tree_runs lists the runs")
    _require_confined(server, matching[0])
    return matching[0]


def _require_confined(server: ServerState, run: RunRef) -> None:
    """Raise `UsageError` if a link in the run leads out of the roots."""
    for entry in run.path.iterdir() if run.path.is_dir() else ():
        if entry.is_symlink() and server.files.root_of(entry.resolve()) is None:
            raise UsageError(f"{entry.name!r} of the run {run.run_id!r} leads out of the roots")


# -- runs -----------------------------------------------------------------------------------


class RunsArguments(Arguments, frozen=True):
    limit: Limit = 20
    offset: Offset = 0


class RunLine(Answer, frozen=True):
    """One run. `state` is running, stalled, paused, stopped or damaged."""

    run: str
    kind: str
    state: str
    detail: str
    done: int = 0
    of: int | None = None


class Runs(PagedAnswer, frozen=True):
    runs: list[RunLine]
    total: int


@tool("tree_runs")
def runs(server: ServerState, given: RunsArguments, call: Call) -> Runs:
    """List the searches below the roots: over commits (tree) and for proofs (proof).

    Returns name, kind, state and progress of each.
    """
    there = [run for run in server.runs.scan() if run.kind not in _NO_RUNS]
    shown, rest = page(there, given.offset, given.limit)
    return Runs([_line(server, run) for run in shown], len(there), **rest)


def _line(server: ServerState, run: RunRef) -> RunLine:
    try:
        _require_confined(server, run)
    except UsageError as error:
        return RunLine(run.key, run.kind, "damaged", clipped(str(error), 300))
    return _line_of(run, _summary(server, run))


def _line_of(run: RunRef, found: dict[str, Any]) -> RunLine:
    progress, now = found.get("progress", {}), found["liveness"]
    detail = clipped(now.detail, 300)
    return RunLine(
        run.key, run.kind, now.state, detail, progress.get("done", 0), progress.get("of")
    )


def _summary(server: ServerState, run: RunRef) -> dict[str, Any]:
    if run.kind == "tree":
        return server.trees.summary(run)
    return proof_view.summary(server.proofs.open(run))


class StatusArguments(Arguments, frozen=True):
    run: RunName


class Best(Answer, frozen=True):
    """The best node. Score and gain are relative to the root."""

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


@tool("tree_status")
def status(server: ServerState, given: StatusArguments, call: Call) -> Status:
    """Show the status of one run.

    Returns state, progress, best node with its gain, and the user's changes.
    """
    run = find(server, given.run, "")
    if other := _NO_RUNS.get(run.kind):
        raise UsageError(f"that is {other}, and no run; tree_runs lists the runs")
    found = _summary(server, run)
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
    """A promoted commit (`fate` is empty), or an evaluation with its fate."""

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


@tool("tree_show")
def tree(server: ServerState, given: TreeArguments, call: Call) -> Rows:
    """List the nodes or the evaluations (`show`) of a search over commits.

    Returns a row with title, fate, score and gain for each.
    """
    run = find(server, given.run)
    document = msgspec.json.decode(server.trees.tree(run, None))
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


def require_manifest(manifest: Manifest | None) -> Manifest:
    if manifest is None:
        raise UsageError(
            "the run has no first record yet, or its journal is damaged; try again later"
        )
    return manifest


MAX_DIFF = 8_000
Item = Annotated[
    str, msgspec.Meta(max_length=64, description="Node (n0003) or evaluation (e000007).")
]


class WhyArguments(Arguments, frozen=True):
    run: RunName
    item: Item


class Why(Answer, frozen=True):
    """The decision about an evaluation, or the one that led to a node, in sentences."""

    id: str
    title: str
    fate: str
    why: list[str]
    idea: str = ""
    logs: tuple[str, ...] = ()


@tool("tree_why")
def why(server: ServerState, given: WhyArguments, call: Call) -> Why:
    """Explain why a candidate (`item`) was rejected or promoted.

    Returns sentences, its idea and its logs.
    """
    run = find(server, given.run)
    with server.trees.manifest(run) as manifest:
        found = tree_detail.describe_item(run.path, require_manifest(manifest), given.item)
    if found is None:
        raise UsageError(f"the run has no {given.item!r}; tree_show lists its items")
    idea = found.get("idea", {})
    return Why(
        given.item,
        clipped(found["title"], 300),
        str(found.get("fate") or ""),
        [clipped(text, 1000) for text in found["words"]],
        clipped(idea.get("text", "")),
        tuple(f"{log['name']} ({log['size']} bytes)" for log in found.get("logs", [])[:20]),
    )


class DiffArguments(Arguments, frozen=True):
    run: RunName
    item: Annotated[
        str, msgspec.Meta(max_length=64, description="Node or evaluation; the best node if empty.")
    ] = ""
    against: Literal["root", "parent"] = "root"
    offset: Offset = 0


class Diff(PagedAnswer, frozen=True):
    """A piece of a unified diff. Offsets count characters."""

    item: str
    commit: str
    diff: str


@tool("tree_diff")
def diff(server: ServerState, given: DiffArguments, call: Call) -> Diff:
    """Show the change of the best node, or of `item`, against its parent or the root.

    Returns a unified diff in pieces of 8,000 characters.
    """
    run = find(server, given.run)
    with server.trees.manifest(run) as manifest:
        there = require_manifest(manifest)
        item = given.item or best_node(there).node_id
        commits = tree_detail.find_commits(there, item)
    if commits is None:
        raise UsageError(f"the run has no commit for {item!r}; tree_show lists its items")
    require_confined(run.project, server.files)
    found = tree_detail.diff_commits(run.project, commits[given.against], commits["own"])
    if found.problem:
        raise UsageError(f"no diff of {item}: {found.problem}")
    piece = found.text[given.offset : given.offset + MAX_DIFF]
    rest = rest_of(len(found.text), given.offset, len(piece))
    return Diff(item, commits["own"], piece, **rest)


# -- ideas ----------------------------------------------------------------------------------


class IdeasArguments(Arguments, frozen=True):
    run: RunName
    limit: Limit = 30
    offset: Offset = 0


class Idea(Answer, frozen=True):
    """An idea that was tried, with its fate. The score is relative to the root."""

    evaluation: str
    on: str
    title: str
    fate: str
    why: str
    score: float | None = None


class Ideas(PagedAnswer, frozen=True):
    """The ideas: the best first, those without a score last."""

    ideas: list[Idea]
    total: int


@tool("tree_ideas")
def ideas(server: ServerState, given: IdeasArguments, call: Call) -> Ideas:
    """List the ideas that a run has tried, the best first.

    Returns title, fate, reason and score of each.
    """
    run = find(server, given.run)
    with server.trees.manifest(run) as manifest:
        there = require_manifest(manifest)
        tried = sorted(
            (each for each in there.evaluations.values() if each.status != "pending"),
            key=lambda each: (-_score(each), each.eval_id),
        )
        shown, rest = page(tried, given.offset, given.limit)
        listed = []
        for each in shown:
            found = tree_detail.describe_item(run.path, there, each.eval_id) or {}
            listed.append(
                Idea(
                    each.eval_id,
                    each.parent_node_id,
                    clipped(found.get("title", ""), 160),
                    str(found.get("fate") or each.status),
                    clipped(" ".join(found.get("words", [])), 400),
                    each.root_relative.score if each.root_relative else None,
                )
            )
    return Ideas(listed, len(tried), **rest)


def _score(evaluation: Evaluation) -> float:
    return evaluation.root_relative.score if evaluation.root_relative else -math.inf
