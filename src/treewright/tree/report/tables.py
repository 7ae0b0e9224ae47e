"""The tables of TREE_SUMMARY.md: depths, nodes, rejections, costs and evaluations."""

from __future__ import annotations

from collections import Counter, defaultdict

from treewright.kernel.clock import seconds_between
from treewright.kernel.procs.capped_log import read_last_line
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, link, table
from treewright.llm.usage import describe_cost
from treewright.tree.deciding import scoring
from treewright.tree.records import layout
from treewright.tree.records.model import UNSET, DepthRecord, Evaluation, Node, Recommendation
from treewright.tree.report import reasons
from treewright.tree.report.run_facts import Facts

PHASES = ("implement", "tests", "sweep", "score")
"""The phases of an evaluation, in order."""
_DEPTH_HEADER = (
    "depth",
    "expanded",
    "evaluated",
    "failed",
    "passed the gate",
    "confirmed",
    "promoted",
    "best score",
    "wall time",
)
_NODE_HEADER = (
    "node",
    "parent",
    "depth",
    "status",
    "idea",
    "score",
    "primary gain over root",
    "tried",
    "duplicates skipped",
    "commit",
    "ref",
)
_REJECTION_HEADER = ("evaluation", "parent", "idea", "fate", "why", "look at")
_EVALUATION_HEADER = ("evaluation", "fate", "attempts", "waited", "took", *PHASES, "worker")


def render_depths(facts: Facts) -> str:
    """Return the progress by depth; "best score" is the best root-relative score promoted there."""
    if not facts.manifest.depths:
        return ""
    rows = [_depth_row(facts, record) for record in facts.manifest.depths]
    return f"## Progress by depth\n\n{table(_DEPTH_HEADER, rows, 'r' * len(_DEPTH_HEADER))}"


def _depth_row(facts: Facts, record: DepthRecord) -> list[str]:
    manifest = facts.manifest
    evaluations = [manifest.evaluations[eval_id] for eval_id in record.eval_ids]
    decided = [e.decision for e in evaluations if e.decision is not None]
    asked = [e.confirmation for e in evaluations if e.confirmation is not None]
    held = sum(confirmation.held for confirmation in asked)
    scores = [
        found.score
        for node_id in record.promoted
        if (found := manifest.nodes[node_id].root_relative) is not None
    ]
    return [
        str(record.depth),
        str(len(record.frontier)),
        f"{sum(e.status in ('completed', 'failed') for e in evaluations)} of {len(evaluations)}",
        str(sum(e.status == "failed" for e in evaluations)),
        str(sum(decision.gate.passed for decision in decided)),
        f"{held} of {len(asked)}" if manifest.confirm_configs else "–",
        str(len(record.promoted)),
        numbers.percent(max(scores)) if scores else "–",
        numbers.seconds(seconds_between(record.started_at, record.finished_at)),
    ]


def render_nodes(facts: Facts) -> str:
    """Return a row per node, in the order of promotion, with the best path in bold."""
    rows = [_node_row(facts, node) for node in facts.manifest.nodes.values()]
    return f"## Nodes\n\n{table(_NODE_HEADER, rows, 'llrllrrrrll')}"


def _node_row(facts: Facts, node: Node) -> list[str]:
    found = node.root_relative
    name = code(node.node_id)
    return [
        f"**{name}**" if node.node_id in facts.on_path else name,
        code(node.parent_node_id) if node.parent_node_id else "–",
        str(node.depth),
        node.status,
        escape(facts.node_title(node), 100),
        numbers.percent(found.score) if found else "–",
        render_gain(found),
        str(len(facts.by_parent.get(node.node_id, ()))),
        str(len(node.dedupe.skipped) if node.dedupe else 0),
        code(node.commit[:12]),
        code(node.ref.removeprefix("refs/heads/")) if node.ref else "–",
    ]


def render_gain(found: Recommendation | None) -> str:
    """Return the cell with a gain of the primary metric and its interval."""
    if found is None:
        return "–"
    return escape(numbers.gain(found.primary_gain, found.primary_gain_low, found.primary_gain_high))


def render_rejections(facts: Facts) -> str:
    """Return the number of candidates by fate, and a table with reasons for each depth."""
    rejected = [e for e in facts.manifest.evaluations.values() if is_rejected(e)]
    if not rejected:
        return ""
    counted = Counter(reasons.describe_fate(e) for e in rejected)
    total = ", ".join(f"{number:,} {fate}" for fate, number in sorted(counted.items()))
    parts = ["## Why candidates were rejected", f"{len(rejected):,} rejected: {escape(total)}."]
    for record in facts.manifest.depths:
        evaluations = (facts.manifest.evaluations[eval_id] for eval_id in record.eval_ids)
        rows = [_rejection_row(facts, each) for each in evaluations if is_rejected(each)]
        if rows:
            parts += [f"### Depth {record.depth}", table(_REJECTION_HEADER, rows)]
    return "\n\n".join(parts)


def is_rejected(evaluation: Evaluation) -> bool:
    """Return whether the evaluation was decided and not promoted."""
    return evaluation.decision is not None and evaluation.decision.fate != "promoted"


def _rejection_row(facts: Facts, evaluation: Evaluation) -> list[str]:
    why = reasons.explain_rejection(evaluation)
    if _lacks_rows(evaluation) and (last := read_last_line(facts.run_dir / _sweep_log(evaluation))):
        why += f"; the sweep said: {escape(last)}"
    return [
        code(evaluation.eval_id),
        code(evaluation.parent_node_id),
        escape(facts.title(evaluation), 100),
        escape(reasons.describe_fate(evaluation)),
        why,
        _evidence(evaluation),
    ]


def _lacks_rows(evaluation: Evaluation) -> bool:
    """Return whether the sweep of this evaluation did not measure every config."""
    compared = evaluation.parent_relative
    was_swept = evaluation.error is None and evaluation.results_from is UNSET
    return was_swept and compared is not None and scoring.INCOMPLETE_ROWS in compared.reasons


def _sweep_log(evaluation: Evaluation) -> str:
    return f"{evaluation.experiment_dir}/{layout.SWEEP_LOG}"


def _evidence(evaluation: Evaluation) -> str:
    """Return a link to the log of a failure or of an incomplete sweep, else to the summary."""
    error = evaluation.error
    if error is not None and error.log_path is not None:
        return link(error.log_path.rpartition("/")[2], error.log_path)
    if _lacks_rows(evaluation):
        return link(layout.SWEEP_LOG, _sweep_log(evaluation))
    if evaluation.summary_path is not None and not (error and error.code == "internal_error"):
        return link(layout.SUMMARY, evaluation.summary_path)
    return "–"


def render_costs(facts: Facts) -> str:
    """Return the time by phase, the usage, and the takeovers of the run."""
    parts = ["## Time and spending", _phases(facts), _spending(facts)]
    rows = [
        [escape(str(takeover.get(key, ""))) for key in ("at", "how", "host", "pid")]
        for takeover in facts.manifest.takeovers
    ]
    if rows:
        header = ("at", "the owner before was", "new owner's host", "pid")
        parts += ["### Takeovers", table(header, rows)]
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


def render_evaluations(facts: Facts, folder: str, pictures: list[str]) -> str:
    """Return a Gantt picture and a folded table of times for each depth."""
    parts = ["## Evaluations"]
    for record in facts.manifest.depths:
        if not record.eval_ids:
            continue
        parts.append(f"### Depth {record.depth}: {len(record.eval_ids):,} evaluations")
        picture = layout.gantt_picture(record.depth)
        if picture in pictures:
            parts.append(f"![When each evaluation of depth {record.depth} ran]({folder}/{picture})")
        rows = [_evaluation_row(facts.manifest.evaluations[each]) for each in record.eval_ids]
        times = table(_EVALUATION_HEADER, rows, "llrrrrrrrl")
        parts.append(f"<details><summary>Times</summary>\n\n{times}\n\n</details>")
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _evaluation_row(evaluation: Evaluation) -> list[str]:
    worker = evaluation.worker or "–"
    if evaluation.worker_pid is not None:
        worker += f" (pid {evaluation.worker_pid})"
    return [
        code(evaluation.eval_id),
        escape(reasons.describe_fate(evaluation)),
        str(evaluation.attempt),
        numbers.seconds(seconds_between(evaluation.queued_at, evaluation.started_at)),
        numbers.seconds(seconds_between(evaluation.started_at, evaluation.finished_at)),
        *(numbers.seconds(evaluation.timings.get(phase)) for phase in PHASES),
        escape(worker),
    ]
