"""TREE_SUMMARY.md and its pictures: the result, the progress, the best path, and the writing."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.clock import seconds_between
from treewright.kernel.storage import atomic
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, table
from treewright.search import policies
from treewright.tree.records import layout
from treewright.tree.records.layout import PICTURES, REPORT
from treewright.tree.records.model import (
    Confirmation,
    Manifest,
    Node,
    NoiseCheck,
    PolicyRecord,
    Unset,
)
from treewright.tree.report import reasons, tables
from treewright.tree.report.gantt import draw_gantt
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.score_chart import draw_score_chart
from treewright.tree.report.tree_picture import draw_tree

_VERDICTS = {"improved": "better", "regressed": "worse", "unchanged": "no clear difference"}


def write_report(run_dir: Path, manifest: Manifest) -> Path:
    """Write TREE_SUMMARY.md and its pictures.

    Args:
        run_dir: The directory of the run.
        manifest: The state of the run to report.

    Returns:
        The path of TREE_SUMMARY.md.
    """
    facts = Facts.of(run_dir, manifest)
    pictures = {
        layout.TREE_PICTURE: draw_tree(facts),
        layout.SCORE_PICTURE: draw_score_chart(facts),
    }
    for record in manifest.depths:
        picture = draw_gantt(facts, record)
        if picture is not None:
            pictures[layout.gantt_picture(record.depth)] = picture
    atomic.make_directory(run_dir / PICTURES)
    atomic.sweep_temporaries(run_dir / PICTURES)
    for name, picture in pictures.items():
        atomic.write_if_changed(run_dir / PICTURES / name, picture)
    summary = run_dir / REPORT
    atomic.write_if_changed(summary, render(facts, sorted(pictures)))
    return summary


def render(facts: Facts, pictures: list[str]) -> str:
    """Return the text of TREE_SUMMARY.md, with links to these pictures."""
    sections = [
        render_headline(facts),
        f"## The tree\n\n![The search tree]({PICTURES}/{layout.TREE_PICTURE})",
        f"![Score by depth]({PICTURES}/{layout.SCORE_PICTURE})",
        render_best_path(facts),
        tables.render_depths(facts),
        tables.render_nodes(facts),
        tables.render_rejections(facts),
        tables.render_costs(facts),
        tables.render_evaluations(facts, PICTURES, pictures),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def render_headline(facts: Facts) -> str:
    """Return the title, the result and the progress in a few sentences."""
    manifest = facts.manifest
    lines = [f"# Tree run {code(manifest.tree_run_id)}", ""]
    if manifest.dry_run:
        lines += ["**Dry run: all measurements are simulated.**", ""]
    if manifest.baseline_doubt is not None:
        lines += [f"**Stale baseline:** {escape(manifest.baseline_doubt)}.", ""]
    lines += [_result(facts), ""]
    if others := _others(facts):
        lines += [others, ""]
    lines += [_progress(facts)]
    if facts.best.parent_node_id is not None and facts.best.ref is not None:
        branch = facts.best.ref.removeprefix("refs/heads/")
        lines += ["", "To look at the best code:", "", f"    git checkout --detach {branch}"]
    return "\n".join(lines)


def _result(facts: Facts) -> str:
    metric = code(facts.primary.get("name", "the primary metric"))
    best = facts.best
    found = best.root_relative
    if found is None or best.parent_node_id is None:
        return f"**Nothing better than the root has been found so far** (primary metric: {metric})."
    shown = numbers.gain(found.primary_gain, found.primary_gain_low, found.primary_gain_high)
    means = facts.primary_means(best)
    direction = "lower" if facts.primary.get("direction") == "minimize" else "higher"
    if means is None:
        change = f"{metric} gained {escape(shown)} over the root"
    else:
        before, after = means
        relative = ""
        if before and found.primary_gain is not None:
            share = found.primary_gain / abs(before)
            relative = f", {100 * abs(share):.2f} % {'worse' if share < 0 else 'better'}"
        change = (
            f"{metric} went from {numbers.value(before)} to {numbers.value(after)}{relative} "
            f"({direction} is better; gain {escape(shown)})"
        )
    chain = numbers.count(len(best.idea_chain), "idea")
    return (
        f"**{change}**, by {chain}: node {code(best.node_id)} at depth {best.depth}. "
        f"Its root-relative score is {numbers.percent(found.score)}. "
        f"{_intervals(facts)}"
    )


def _intervals(facts: Facts) -> str:
    """Return a sentence on the source of the intervals, which depends on the metric."""
    if facts.primary.get("deterministic"):
        return (
            "It is deterministic and compared exactly, so its interval has no width. "
            f"{_exactness(facts.manifest.noise_check)}"
        )
    if facts.primary.get("seeds"):
        return (
            f"Intervals are 95 %, over {facts.manifest.sweep_config_limit} seeds; a gain counts "
            f"if it also shows on {facts.manifest.confirm_configs} other seeds."
        )
    if facts.primary.get("repeats"):
        return f"Intervals are 95 %, over {facts.primary['repeats']} repeats of the sweep."
    return "Intervals are 95 %, over pairs of the same config."


def _exactness(check: NoiseCheck | Unset) -> str:
    """Return a sentence on the checks that the root gives the same number every time."""
    if isinstance(check, Unset):
        return "Treewright did not check that it is the same every time."
    ways = {
        "with another TREEWRIGHT_SEED": check.other_seed,
        "without TREEWRIGHT_SEED": check.unseeded,
        "after a change that only draws random numbers": check.perturbed,
    }
    same = [way for way, answer in ways.items() if answer == "same"]
    untried = [way for way, answer in ways.items() if answer != "same"]
    text = f"The root gave the same number {', '.join(same)}." if same else ""
    if untried:
        why = f" ({escape(check.note)})" if check.note else ""
        text += f" Not tried: {', '.join(untried)}{why}."
    return text.strip()


def _others(facts: Facts) -> str:
    """Return a sentence on the change of the other metrics, which do not rank candidates."""
    parts = []
    for metric in facts.against_the_root(facts.best):
        if metric.get("primary"):
            continue
        before, after = (
            numbers.value(metric[mean]) for mean in ("baseline_mean", "candidate_mean")
        )
        direction = "lower" if metric.get("direction") == "minimize" else "higher"
        verdict = metric.get("verdict", "unknown")
        parts.append(
            f"{code(metric['name'])} went from {before} to {after} "
            f"({direction} is better: {_VERDICTS.get(verdict, verdict)})"
        )
    return f"In addition, {', '.join(parts)}." if parts else ""


def _progress(facts: Facts) -> str:
    manifest = facts.manifest
    evaluations = manifest.evaluations.values()
    failed = sum(e.status == "failed" for e in evaluations)
    unfinished = sum(e.status in ("pending", "running") for e in evaluations)
    parts = [
        numbers.count(len(manifest.evaluations), "evaluation"),
        f"{failed:,} failed",
        f"{len(manifest.nodes) - 1:,} promoted",
    ]
    if unfinished:
        parts.append(f"{unfinished:,} unfinished")
    moments = [e.finished_at for e in evaluations if e.finished_at]
    moments += [record.finished_at for record in manifest.depths if record.finished_at]
    span = seconds_between(manifest.created_at, max(moments, default=None))
    wall = f", {numbers.seconds(span)} after it began" if span is not None else ""
    place = f"at depth {manifest.current_depth} of {manifest.max_depth}{wall}"
    policy_record = manifest.policy_record
    if manifest.stop_reason is None:
        ending = f"The search is {place}, and can be continued with the same command"
    else:
        because = escape(reasons.describe_stop(manifest.stop_reason))
        ending = f"The search stopped {place}, because {because}"
    how = "" if policy_record is None else f" {_choosing(policy_record)}"
    return f"{', '.join(parts)}. {ending}.{how}"


def _choosing(policy_record: PolicyRecord) -> str:
    """Return sentences on the policy of a search, and whether a run can be repeated."""
    known = policies.known().get(policy_record.policy)
    about = f" ({escape(known.summary)})" if known is not None else ""
    settings = ", ".join(
        f"{name} = {value}" for name, value in sorted(policy_record.options.items())
    )
    order = (
        "live order: the outcomes were used as they came, so it cannot be repeated, but it can be "
        "validated"
        if policy_record.order == "live"
        else f"fixed order with a lookahead of {policy_record.lookahead}: the same "
        "whatever the timing"
    )
    chosen = f"Nodes were chosen by the policy {code(policy_record.policy)}{about}, in {order}."
    return chosen + (f" Its settings: {escape(settings)}." if settings else "")


def render_best_path(facts: Facts) -> str:
    """Return the table of the nodes from the root to the best node."""
    if len(facts.path) < 2:
        return ""
    confirming = bool(facts.manifest.confirm_configs)
    header = ["node", "idea", "commit", "gain over parent", "gain over root", "score"]
    if confirming:
        header += ["held-out gain", "shrinkage"]
    rows = [_step(facts, node, confirming) for node in facts.path]
    text = f"## Best path\n\n{table(header, rows, 'lllrrrrr')}"
    if confirming:
        text += (
            "\n\nThe best of several noisy measurements is too good on average. *Shrinkage* is "
            "the share of the gain that got a candidate selected and that the held-out configs, "
            "which played no part in the selection, do not show."
        )
    return text


def _step(facts: Facts, node: Node, confirming: bool) -> list[str]:
    parent, root = node.parent_relative, node.root_relative
    cells = [
        code(node.node_id),
        escape(facts.node_title(node), 100),
        code(node.commit[:12]),
        tables.render_gain(parent),
        tables.render_gain(root),
        numbers.percent(root.score) if root else "–",
    ]
    if confirming:
        evaluation = facts.origin(node)
        cells += held_out(evaluation.confirmation if evaluation else None)
    return cells


def held_out(confirmation: Confirmation | None) -> list[str]:
    """Return the cells with the held-out gain and the shrinkage."""
    if confirmation is None:
        return ["–", "–"]
    shown = numbers.gain(
        confirmation.heldout_gain, confirmation.heldout_gain_low, confirmation.heldout_gain_high
    )
    return [escape(shown), numbers.whole_percent(confirmation.shrinkage)]
