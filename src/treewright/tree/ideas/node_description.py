"""Descriptions of a node: JSON for programs, and Markdown for prompts of models and agents.

docs/ideas.md documents the keys of the JSON as a contract.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.text.numbers import gain, percent, value
from treewright.tree.config import CommandBackend, Config, OpenaiBackend
from treewright.tree.ideas.idea_source import Idea, NodeContext, read_ideas
from treewright.tree.ideas.idea_text import fence_for, key, title
from treewright.tree.ideas.search_history import (
    EarlierEvaluation,
    History,
    MetricFacts,
    Outcomes,
    Returned,
)
from treewright.tree.records import layout, summary
from treewright.tree.records.model import Manifest, Node, ancestors
from treewright.tree.report.run_facts import read_title
from treewright.tree.repository.blocks import block_rules

CONSTRAINTS = (
    "Each idea is one change, small enough to be implemented and measured alone.",
    "Each idea can be implemented in this repository, without new dependencies or data.",
    "No idea repeats an earlier one, whether that one was accepted or not.",
    "No idea changes how the result is measured.",
    "No idea changes only a seed of random numbers: a luckier seed is not an improvement.",
)
_COMPARISONS = ("parent_relative", "root_relative")


PROMPT_CHARS = 12_000
"""The budget in prompts for ideas: about 3,000 tokens."""
AGENT_CHARS = 5_000
"""The budget in prompts for agents, which carry out one idea."""
JSON_CHARS = 200_000
"""The budget in files for programs, which do not pay for tokens."""


def build_json(context: NodeContext) -> dict[str, Any]:
    """Return the description for a program, with the keys of docs/ideas.md."""
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
        "reasons": collect_reasons(context.last_summary),
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


def render_markdown(
    context: NodeContext, budget: int = PROMPT_CHARS, *, with_task: bool = True
) -> str:
    """Return the description for a prompt.

    Args:
        context: The node.
        budget: The most characters about earlier evaluations.
        with_task: Begin with the user's task.
    """
    lines = [f"# Node {context.node_id} at depth {context.depth}", ""]
    if with_task and context.task:
        lines = ["# The task", "", context.task, "", *lines]
    if context.diff_stat.strip():
        lines += ["Changed so far, against the root commit:", ""]
        lines += ["```", context.diff_stat.rstrip("\n"), "```", ""]
    else:
        lines += [
            "No file has been changed yet: this is the state that the search started from.",
            "",
        ]
    lines += describe_comparisons(context.last_summary)
    if context.outcomes is not None:
        lines += render_history(context.outcomes, budget)
    lines += ["Rules:", "", *(f"- {rule}" for rule in CONSTRAINTS)]
    if not context.editable_blocks:
        lines += [f"- Do not touch `{path}`: it is protected." for path in context.protected_paths]
    lines += [f"- {rule}" for rule in block_rules(context.editable_blocks)]
    return "\n".join(lines) + "\n"


def describe_comparisons(scores: dict[str, Any] | None) -> list[str]:
    """Return lines that compare the node with its parent and the root: grade, reasons, metrics."""
    return [
        line
        for name in _COMPARISONS
        for line in _comparison(name, _table(_table(scores).get(name)))
    ]


def collect_reasons(scores: dict[str, Any] | None) -> dict[str, list[str]]:
    """Return the reason codes of each comparison."""
    found = {}
    for name in _COMPARISONS:
        recommendation = _table(_table(_table(scores).get(name)).get("recommendation"))
        found[name] = [str(reason) for reason in recommendation.get("reasons") or []]
    return found


def read_earlier_ideas(directories: list[Path]) -> list[Idea]:
    """Return every idea of the node and its ancestors, tried or not, nearest node first."""
    return [
        idea
        for directory in directories
        if directory.is_dir()
        for idea in read_ideas(directory, origin=directory.name)
    ]


def find_ideas_not_to_repeat(context: NodeContext) -> list[Idea]:
    """Return the earlier ideas that a source must not repeat.

    An idea that passed the gate when the beam was full may be repeated, because it may help at this
    node too.
    """
    still_open = context.outcomes.beyond_beam() if context.outcomes else set()
    earlier = read_earlier_ideas(context.context_ideas_dirs)
    return [idea for idea in earlier if key(idea.text) not in still_open]


def list_ideas(ideas: list[Idea], budget: int) -> str:
    """Return earlier ideas in at most `budget` characters.

    The list has all titles that fit, and the whole text of the first ideas.
    """
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


def last_summary(run_dir: Path, manifest: Manifest, node: Node) -> dict[str, Any] | None:
    """Return the scoring summary of the evaluation that became this node; None for the root."""
    eval_id = node.artifacts.promoted_from_eval_id
    if eval_id is None:
        return None
    document = summary.read(run_dir / layout.summary(manifest.evaluations[eval_id].experiment_dir))
    return document["scoring_summary"] if document else None


def has_prompted_agent(config: Config) -> bool:
    """Return whether any role is played by an agent that gets a prompt."""
    agents = config.agents
    backends = (agents.planner, agents.coder, agents.reviewer)
    return any(isinstance(backend, CommandBackend | OpenaiBackend) for backend in backends)


def describe_node(outcomes: Outcomes) -> str:
    """Return the Markdown about a parent node for the agents that change its code.

    It has the accepted ideas, the comparisons with the node's parent and the root, and, if an agent
    gets a prompt, the history of the search.
    """
    manifest, node, run_dir = outcomes.manifest, outcomes.node, outcomes.run_dir
    if node.parent_node_id is None:
        lines = [f"This is the root of the search, commit {node.commit[:12]}."]
    else:
        lines = [f"Node {node.node_id} at depth {node.depth}, commit {node.commit[:12]}.", ""]
        lines.append("Ideas already applied, oldest first:")
        for ancestor in ancestors(manifest, node)[::-1]:
            if ancestor.idea_chain:
                lines.append(f"- {read_title(run_dir / ancestor.idea_chain[-1])}")
        lines += ["", *describe_comparisons(last_summary(run_dir, manifest, node))]
    if has_prompted_agent(outcomes.config):
        lines += ["", *render_history(outcomes, AGENT_CHARS)]
    return "\n".join(lines).rstrip("\n")


def render_history(outcomes: Outcomes, budget: int) -> list[str]:
    """Return lines about the metrics, the path and earlier evaluations.

    Args:
        outcomes: The outcomes to describe.
        budget: The most characters about earlier evaluations.
    """
    history = outcomes.collect(budget)
    lines = ["What is measured:", "", *(_metric_facts(metric) for metric in history.metrics), ""]
    lines += _returned(outcomes.returned())
    if len(history.path) > 1:
        lines += ["The path so far:", ""]
        lines += [
            f"- {step.node_id}: {step.idea}"
            + (f", {percent(step.root_score)} on the root" if step.root_score is not None else "")
            for step in history.path
        ]
        lines.append("")
    if history.tries:
        lines += ["What was tried, the best and the most telling first:", ""]
        for found in history.tries:
            lines += [*_evaluation(found), ""]
    if history.left_out:
        lines += [f"({history.left_out} more tries are not shown.)", ""]
    return lines


def _returned(found: Returned) -> list[str]:
    lines = [f"- {name}: {value(mean)}" for name, mean in found.columns.items()]
    lines += [f"- {text}" for text in found.texts]
    if lines:
        lines = ["What the evaluation of the present state returned besides:", "", *lines, ""]
    if found.log:
        fence = fence_for(found.log)
        lines += ["The end of what it printed:", "", fence, found.log, fence, ""]
    return lines


def _metric_facts(metric: MetricFacts) -> str:
    aim = f"{'raise' if metric.direction == 'maximize' else 'lower'} `{metric.name}`"
    if metric.constraint:
        aim = f"keep `{metric.name}`"
    bounds = [
        f"{word} {value(bound)}"
        for word, bound in (("at least", metric.min), ("at most", metric.max))
        if bound is not None
    ]
    if bounds:
        aim += f" {' and '.join(bounds)}" if metric.constraint else f" (it is {', '.join(bounds)})"
    if metric.primary:
        aim += "; this one decides"
    now = f": {value(metric.root)} at the root" if metric.root is not None else ""
    if now and metric.node is not None and metric.node != metric.root:
        now += f", {value(metric.node)} now"
    return f"- {aim}{now}"


def _evaluation(found: EarlierEvaluation) -> list[str]:
    where = {"same_node": "here", "path": "on the way here", "elsewhere": "elsewhere"}
    lines = [f"- {found.idea} ({found.eval_id}, {where[found.relation]}): {found.fate}"]
    if found.score is not None:
        shown = gain(found.gain, found.gain_low, found.gain_high)
        lines.append(
            f"  - {percent(found.score)} on its parent (gain {shown}), "
            f"{percent(found.root_score)} on the root, {found.grade}"
        )
    lines += [
        f"  - {m.name}: {value(m.before)} -> {value(m.after)}, {m.verdict}" for m in found.metrics
    ]
    if found.why and found.fate != "promoted":
        lines.append(f"  - why not: {' '.join(found.why.split())}")
    for name, text in (("said", found.error), ("diff", found.diff)):
        if text:
            fence = fence_for(text)
            body = [f"    {line}" for line in text.splitlines()]
            lines += [f"  - {name}:", f"    {fence}", *body, f"    {fence}"]
    return lines
