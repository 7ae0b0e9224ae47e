"""What the run has cost: time by phase, attempts, tokens, and what was saved or taken over."""

from __future__ import annotations

from collections import defaultdict

from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import escape, table
from treewright.llm.usage import describe_cost
from treewright.tree.report.run_facts import Facts

PHASES = ("implement", "tests", "sweep", "score")


def section(facts: Facts) -> str:
    parts = ["## Time and spending", _phases(facts), _spending(facts)]
    takeovers = _takeovers(facts)
    if takeovers:
        parts += ["### Takeovers", takeovers]
    return "\n\n".join(part for part in parts if part)


def _phases(facts: Facts) -> str:
    spans: dict[str, list[float]] = defaultdict(list)
    for evaluation in facts.manifest.evaluations.values():
        for phase, taken in evaluation.timings.items():
            spans[phase].append(taken)
    names = [phase for phase in PHASES if phase in spans]
    names += sorted(set(spans) - set(PHASES))
    rows = [
        [
            escape(name),
            str(len(spans[name])),
            numbers.seconds(sum(spans[name])),
            numbers.seconds(sum(spans[name]) / len(spans[name])),
            numbers.seconds(max(spans[name])),
        ]
        for name in names
    ]
    return table(("phase", "times", "total", "mean", "longest"), rows, "lrrrr") if rows else ""


def _spending(facts: Facts) -> str:
    manifest = facts.manifest
    spent = manifest.spent
    attempts = [e.attempt for e in manifest.evaluations.values()]
    repeated = sum(attempt > 1 for attempt in attempts)
    skipped = sum(len(n.dedupe.skipped) for n in manifest.nodes.values() if n.dedupe)
    limit = manifest.max_total_idea_evals
    evals = f"{spent.evals:,}" + (f" of {limit:,} allowed" if limit is not None else "")
    rows = [
        ["evaluations", evals],
        ["held-out confirmations", f"{spent.confirmations:,}"],
        ["attempts", f"{sum(attempts):,} ({numbers.count(repeated, 'evaluation')} more than once)"],
        ["time in evaluations and confirmations", numbers.seconds(spent.seconds)],
        ["duplicate ideas skipped", f"{skipped:,} (scope {escape(manifest.dedupe_scope)})"],
    ]
    if spent.prompt_tokens or spent.completion_tokens:
        tokens = f"{spent.prompt_tokens:,} in, {spent.completion_tokens:,} out"
        rows.append(["tokens", tokens])
    if spent.cost_usd or spent.unpriced_tokens:
        rows.append(["cost", describe_cost(spent.cost_usd, spent.unpriced_tokens)])
    return table(("spent", ""), rows, "lr")


def _takeovers(facts: Facts) -> str:
    rows = [
        [
            escape(str(takeover.get("at", ""))),
            escape(str(takeover.get("how", ""))),
            escape(str(takeover.get("host", ""))),
            escape(str(takeover.get("pid", ""))),
        ]
        for takeover in facts.manifest.takeovers
    ]
    return table(("at", "the owner before was", "new owner's host", "pid"), rows) if rows else ""
