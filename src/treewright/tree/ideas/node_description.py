"""What a generator or a model is told about a node: as JSON for programs, as Markdown
for prompts. The JSON's keys are a contract, see docs/ideas.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from treewright.tree.ideas.history_markdown import JSON_CHARS, PROMPT_CHARS, tell
from treewright.tree.ideas.idea_directory import read_ideas
from treewright.tree.ideas.idea_source import Idea, NodeContext
from treewright.tree.ideas.idea_text import key, title
from treewright.tree.ideas.search_history import History, Returned
from treewright.tree.repository.blocks import block_rules

CONSTRAINTS = (
    "Each idea is one change, small enough to be implemented and measured alone.",
    "Each idea can be implemented in this repository, without new dependencies or data.",
    "No idea repeats an earlier one, whether that one was accepted or not.",
    "No idea changes how the result is measured.",
    "No idea changes only a seed of random numbers: a luckier seed is not an improvement.",
)
_COMPARISONS = ("parent_relative", "root_relative")


def as_json(context: NodeContext) -> dict[str, Any]:
    history = context.outcomes.collect(JSON_CHARS) if context.outcomes else History([], [], [], 0)
    return {
        "format_version": 1,
        "node_id": context.node_id,
        "depth": context.depth,
        "round": context.round,
        "count": context.wanted,
        "task": context.task,
        "seed": context.seed,
        "checkout": str(context.checkout),
        "context_ideas_dirs": [str(path) for path in context.context_ideas_dirs],
        "diff_stat": context.diff_stat,
        "scoring_summary": context.last_summary,
        "reasons": reasons(context.last_summary),
        "constraints": list(CONSTRAINTS),
        "protected_paths": list(context.protected_paths),
        "editable_blocks": list(context.editable_blocks),
        "metrics": msgspec.to_builtins(history.metrics),
        "returned": msgspec.to_builtins(
            context.outcomes.returned() if context.outcomes else Returned()
        ),
        "path": msgspec.to_builtins(history.path),
        "tries": msgspec.to_builtins(history.tries),
        "tries_left_out": history.left_out,
    }


def as_markdown(context: NodeContext, budget: int = PROMPT_CHARS, *, with_task: bool = True) -> str:
    """`budget` is how many characters may be about earlier tries."""
    lines = [f"# Node {context.node_id} at depth {context.depth}", ""]
    if with_task and context.task:
        lines = ["# The task", "", context.task, "", *lines]
    if context.diff_stat.strip():
        lines += ["Changed so far, against the root commit:", ""]
        lines += ["```", context.diff_stat.rstrip("\n"), "```", ""]
    else:
        lines += [
            "Nothing has been changed yet: this is the state that the search started from.",
            "",
        ]
    lines += measured(context.last_summary)
    if context.outcomes is not None:
        lines += tell(context.outcomes, budget)
    lines += ["Rules:", "", *(f"- {rule}" for rule in CONSTRAINTS)]
    if not context.editable_blocks:
        lines += [f"- Do not touch `{path}`: it is protected." for path in context.protected_paths]
    lines += [f"- {rule}" for rule in block_rules(context.editable_blocks)]
    return "\n".join(lines) + "\n"


def measured(summary: dict[str, Any] | None) -> list[str]:
    """How the node compares with its parent and with the root: grade, reasons, metrics."""
    return [
        line
        for name in _COMPARISONS
        for line in _comparison(name, _table(_table(summary).get(name)))
    ]


def reasons(summary: dict[str, Any] | None) -> dict[str, list[str]]:
    """The reason codes of each comparison."""
    found = {}
    for name in _COMPARISONS:
        recommendation = _table(_table(_table(summary).get(name)).get("recommendation"))
        found[name] = [str(reason) for reason in recommendation.get("reasons") or []]
    return found


def earlier_ideas(directories: list[Path]) -> list[Idea]:
    """Every idea of the node and its ancestors, tried or not, nearest node first."""
    return [
        idea
        for directory in directories
        if directory.is_dir()
        for idea in read_ideas(directory, origin=directory.name)
    ]


def ideas_not_to_repeat(context: NodeContext) -> list[Idea]:
    """Return the earlier ideas without those that passed the gate and found the beam full: they
    may help here as they did there."""
    still_open = context.outcomes.beyond_beam() if context.outcomes else set()
    earlier = earlier_ideas(context.context_ideas_dirs)
    return [idea for idea in earlier if key(idea.text) not in still_open]


def listed_ideas(ideas: list[Idea], budget: int) -> str:
    """Earlier ideas within `budget` characters: all titles that fit, and of the first ideas the
    text too."""
    titles = [f"# {title(idea.text)}" for idea in ideas]
    shown: list[str] = []
    for heading in titles:
        budget -= len(heading) + 2
        if budget < 0:
            break
        shown.append(heading)
    for place, heading in enumerate(shown):
        text = ideas[place].text.strip()
        if len(text) - len(heading) <= budget:
            budget -= len(text) - len(heading)
            shown[place] = text
    if len(shown) < len(ideas):
        shown.append(f"(and {len(ideas) - len(shown)} more)")
    return "\n\n".join(shown) or "(none)"


def _comparison(name: str, comparison: dict[str, Any]) -> list[str]:
    recommendation = _table(comparison.get("recommendation"))
    if not recommendation:
        return []
    lines = [f"Measured, {name.replace('_', '-')}: grade {recommendation.get('grade')}"]
    if recommendation.get("reasons"):
        lines[0] += f" ({', '.join(map(str, recommendation['reasons']))})"
    lines.append("")
    lines += [_metric(_table(metric)) for metric in comparison.get("metrics") or []]
    return [*lines, ""]


def _metric(metric: dict[str, Any]) -> str:
    change = f"{_number(metric.get('baseline_mean'))} -> {_number(metric.get('candidate_mean'))}"
    return f"- {metric.get('name')} ({metric.get('direction')}): {change}, {metric.get('verdict')}"


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else "?"


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
