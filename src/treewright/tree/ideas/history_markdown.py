"""The history of a search as Markdown, for prompts and for the user's programs."""

from __future__ import annotations

from treewright.kernel.text.numbers import gain, percent, value
from treewright.tree.ideas.idea_text import fence_for
from treewright.tree.ideas.search_history import EarlierEvaluation, MetricFacts, Outcomes, Returned

PROMPT_CHARS = 12_000
"""The budget in prompts for ideas: about 3,000 tokens."""
AGENT_CHARS = 5_000
"""The budget in prompts for agents, which carry out one idea."""
JSON_CHARS = 200_000
"""The budget in files for programs, which do not pay for tokens."""


def render_history(outcomes: Outcomes, budget: int) -> list[str]:
    """Return lines about the metrics, the path and earlier evaluations.

    Args:
        outcomes: The outcomes to describe.
        budget: The most characters about earlier evaluations.
    """
    history = outcomes.collect(budget)
    lines = ["What is measured:", "", *(_metric(metric) for metric in history.metrics), ""]
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


def _metric(metric: MetricFacts) -> str:
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
