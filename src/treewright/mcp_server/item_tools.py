"""Tools that read what a search over commits tried: why, what differs, which ideas."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec

from treewright.dashboard import diffs, tree_detail
from treewright.kernel.errors import UsageError
from treewright.mcp_server.bounds import Limit, Offset, clipped, page, rest_of
from treewright.mcp_server.call import Call
from treewright.mcp_server.desk import Desk
from treewright.mcp_server.repository import require_confined
from treewright.mcp_server.run_tools import RunName, find, known
from treewright.mcp_server.tool import Answer, Arguments, PagedAnswer, Tool
from treewright.tree.records.description import best_node
from treewright.tree.records.model import Evaluation

LONGEST_DIFF = 8_000
Item = Annotated[
    str, msgspec.Meta(max_length=64, description="A node (n0003) or an evaluation (e000007).")
]


class WhyArguments(Arguments, frozen=True):
    run: RunName
    item: Item


class Why(Answer, frozen=True):
    """What became of an evaluation, or led to a node, in sentences."""

    id: str
    title: str
    fate: str
    why: list[str]
    idea: str = ""
    logs: tuple[str, ...] = ()


def why(desk: Desk, given: WhyArguments, call: Call) -> Why:
    run = find(desk, given.run)
    with desk.trees.manifest(run) as manifest:
        found = tree_detail.detail(run.path, known(manifest), given.item)
    if found is None:
        raise UsageError(f"the run has no {given.item!r}; tree_show lists what it has")
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
        str, msgspec.Meta(max_length=64, description="A node or evaluation; the best if empty.")
    ] = ""
    against: Literal["root", "parent"] = "root"
    offset: Offset = 0


class Diff(PagedAnswer, frozen=True):
    """A piece of a unified diff, counted in characters."""

    item: str
    commit: str
    diff: str


def diff(desk: Desk, given: DiffArguments, call: Call) -> Diff:
    run = find(desk, given.run)
    with desk.trees.manifest(run) as manifest:
        there = known(manifest)
        item = given.item or best_node(there).node_id
        commits = tree_detail.commits(there, item)
    if commits is None:
        raise UsageError(f"the run has no commit for {item!r}; tree_show lists what it has")
    require_confined(run.project, desk.files)
    found = diffs.between(run.project, commits[given.against], commits["own"])
    if found.problem:
        raise UsageError(f"no diff of {item}: {found.problem}")
    piece = found.text[given.offset : given.offset + LONGEST_DIFF]
    rest = rest_of(len(found.text), given.offset, len(piece))
    return Diff(item, commits["own"], piece, **rest)


# -- ideas ----------------------------------------------------------------------------------


class IdeasArguments(Arguments, frozen=True):
    run: RunName
    limit: Limit = 30
    offset: Offset = 0


class Idea(Answer, frozen=True):
    """An idea that was tried, and what came of it; scores are relative to the root."""

    evaluation: str
    on: str
    title: str
    fate: str
    why: str
    score: float | None = None


class Ideas(PagedAnswer, frozen=True):
    """The best first, then those without a score."""

    ideas: list[Idea]
    total: int


def ideas(desk: Desk, given: IdeasArguments, call: Call) -> Ideas:
    run = find(desk, given.run)
    with desk.trees.manifest(run) as manifest:
        there = known(manifest)
        tried = sorted(
            (each for each in there.evaluations.values() if each.status != "pending"),
            key=lambda each: (-_score(each), each.eval_id),
        )
        shown, rest = page(tried, given.offset, given.limit)
        listed = []
        for each in shown:
            found = tree_detail.detail(run.path, there, each.eval_id) or {}
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


TOOLS = (
    Tool("tree_why", "Why a candidate was rejected or promoted, with its idea.",
         WhyArguments, Why, why),
    Tool("tree_diff", "What the best node (or another item) changed, as a unified diff.",
         DiffArguments, Diff, diff),
    Tool("tree_ideas", "Which ideas were tried and what came of each, the best first.",
         IdeasArguments, Ideas, ideas),
)  # fmt: skip
