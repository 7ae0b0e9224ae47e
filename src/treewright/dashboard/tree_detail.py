"""Describe one node or evaluation of a tree run: idea, decision, measurements, logs and diff."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from treewright.dashboard import run_files
from treewright.kernel.text import numbers
from treewright.tree.config import Config, MetricConfig
from treewright.tree.deciding.results import read_results
from treewright.tree.ideas import idea_text
from treewright.tree.records import layout, summary
from treewright.tree.records.model import (
    Confirmation,
    Decision,
    Evaluation,
    Manifest,
    Node,
    Recommendation,
)
from treewright.tree.report import reasons
from treewright.tree.repository import git

_MAX_IDEA_BYTES = 64 << 10
_MAX_CSV_BYTES = 16 << 20
_MAX_POINTS = 1000
LOG_CHUNK = 64 << 10
_LOGS = (".log", ".md", ".txt", ".json")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_MAX_DIFF_BYTES = 400_000
_DIFF_SECONDS = 20


def describe_item(run_dir: Path, manifest: Manifest, item: str) -> dict[str, Any] | None:
    """Return the document about a node (`n0003`) or an evaluation (`e000007`), or None."""
    node = manifest.nodes.get(item)
    evaluation = manifest.evaluations.get(item)
    if node is None and evaluation is None:
        return None
    if node is not None and node.artifacts.promoted_from_eval_id:
        evaluation = manifest.evaluations.get(node.artifacts.promoted_from_eval_id)
    found: dict[str, Any] = {"id": item, "node": _node(node), "eval": _evaluation(evaluation)}
    if evaluation is None:
        found |= {"title": "The root", "words": ["The commit from which the search began."]}
        return found
    idea = run_files.read(run_dir, evaluation.idea_path, _MAX_IDEA_BYTES)
    text = idea[0] if idea else ""
    return found | {
        "title": idea_text.title(text) or evaluation.idea_id,
        "idea": {
            "path": evaluation.idea_path,
            "text": text,
            "cut": bool(idea and idea[2] > idea[1]),
        },
        "fate": reasons.describe_fate(evaluation),
        "words": describe_decision(evaluation),
        "comparisons": _comparisons(run_dir, manifest, evaluation),
        "logs": [
            {"name": name, "size": size}
            for name, size in run_files.list_files(run_dir, evaluation.experiment_dir, _LOGS)
        ],
    }


def find_commits(manifest: Manifest, item: str) -> dict[str, str] | None:
    """Return the commits of an item, of its parent and of the root; None without a commit."""
    node, evaluation = manifest.nodes.get(item), manifest.evaluations.get(item)
    if node is not None:
        own, parent = node.commit, node.parent_node_id
    elif evaluation is not None and evaluation.candidate_commit is not None:
        own, parent = evaluation.candidate_commit, evaluation.parent_node_id
    else:
        return None
    above = manifest.nodes[parent].commit if parent is not None else own
    return {"own": own, "parent": above, "root": manifest.root_commit}


def read_log(run_dir: Path, manifest: Manifest, eval_id: str, name: str, offset: int) -> Any:
    """Return a piece of a log from `offset` on; a negative offset means the last piece."""
    evaluation = manifest.evaluations.get(eval_id)
    if evaluation is None or "/" in name or not name.endswith(_LOGS):
        return None
    relative = f"{evaluation.experiment_dir}/{name}"
    start = offset
    if offset < 0:
        path = run_files.resolve(run_dir, relative)
        start = max(0, path.stat().st_size - LOG_CHUNK) if path else 0
    piece = run_files.read(run_dir, relative, LOG_CHUNK, start)
    if piece is None:
        return None
    text, end, size = piece
    running = evaluation.status in ("pending", "running")
    return {"text": text, "from": start, "next": end, "size": size, "live": running}


def _node(node: Node | None) -> dict[str, Any] | None:
    if node is None:
        return None
    return {
        "id": node.node_id,
        "depth": node.depth,
        "parent": node.parent_node_id,
        "commit": node.commit,
        "ref": node.ref.removeprefix("refs/heads/") if node.ref else None,
        "ideas": node.idea_chain,
        "skipped": len(node.dedupe.skipped) if node.dedupe else 0,
    }


def _evaluation(evaluation: Evaluation | None) -> Any:
    if evaluation is None:
        return None
    return {
        "id": evaluation.eval_id,
        "depth": evaluation.depth,
        "parent": evaluation.parent_node_id,
        "status": evaluation.status,
        "commit": evaluation.candidate_commit,
        "attempt": evaluation.attempt,
        "worker": evaluation.worker,
        "queued_at": evaluation.queued_at,
        "started_at": evaluation.started_at,
        "finished_at": evaluation.finished_at,
        "timings": evaluation.timings,
        "usage": evaluation.usage,
        "review_rounds": evaluation.review_rounds,
        "approved": evaluation.approved,
        "error": evaluation.error,
        "decision": evaluation.decision,
        "confirmation": evaluation.confirmation,
    }


def _comparisons(run_dir: Path, manifest: Manifest, evaluation: Evaluation) -> dict[str, Any]:
    """Return, for parent and root, the mean gain of each metric and its pairs."""
    document = _summary(run_dir, evaluation)
    metrics = _metrics(manifest)
    own = _values(run_dir, evaluation.candidate_results_csv_path, metrics)
    found = {}
    for against, node_id in (("parent", evaluation.parent_node_id), ("root", "n0000")):
        other = manifest.nodes.get(node_id)
        base = _values(run_dir, other.baseline_results_csv_path if other else None, metrics)
        summed = document.get(f"{against}_relative")
        summed = summed if isinstance(summed, dict) else {}
        given = {m.get("name"): m for m in summed.get("metrics", []) if isinstance(m, dict)}
        found[against] = [
            {
                "name": metric.name,
                "direction": metric.direction,
                "primary": metric.primary,
                "tolerance": metric.tolerance,
                "of": given.get(metric.name),
                "pairs": _pairs(metric, base.get(metric.name, {}), own.get(metric.name, {})),
            }
            for metric in metrics
        ]
    return found


def _summary(run_dir: Path, evaluation: Evaluation) -> dict[str, Any]:
    path = run_files.resolve(run_dir, layout.summary(evaluation.experiment_dir))
    document = summary.read(path) if path is not None else None
    scores = document.get("scoring_summary") if isinstance(document, dict) else None
    return scores if isinstance(scores, dict) else {}


def _metrics(manifest: Manifest) -> list[MetricConfig]:
    try:
        return msgspec.convert(manifest.agent_config, type=Config).metrics
    except msgspec.ValidationError:
        return []


def _values(
    run_dir: Path, relative: str | None, metrics: list[MetricConfig]
) -> dict[str, dict[int, float]]:
    path = run_files.resolve(run_dir, relative) if relative else None
    if path is None or path.stat().st_size > _MAX_CSV_BYTES:
        return {}
    return read_results(path, [metric.name for metric in metrics]).values


def _pairs(
    metric: MetricConfig, before: dict[int, float], after: dict[int, float]
) -> list[tuple[int, float]]:
    """Return (config, gain) pairs; a positive gain is better."""
    sign = 1.0 if metric.direction == "maximize" else -1.0
    both = sorted(before.keys() & after.keys())[:_MAX_POINTS]
    return [(config, sign * (after[config] - before[config])) for config in both]


_UNDECIDED = {
    "pending": "It is waiting in the queue.",
    "running": "It is being evaluated.",
    "completed": "It has been measured, but not decided yet.",
    "failed": "It failed, and is not decided yet.",
}


def describe_decision(evaluation: Evaluation) -> list[str]:
    """Return the gate's decision, the held-out results and their source, in sentences."""
    sentences = _describe_outcome(evaluation)
    if isinstance(evaluation.results_from, str):
        sentences.append(f"The same code had been measured before, as {evaluation.results_from}.")
    return sentences


def _describe_outcome(evaluation: Evaluation) -> list[str]:
    if evaluation.decision is None:
        sentences = [_UNDECIDED[evaluation.status]]
        if evaluation.error is not None:
            cause = reasons.describe_reason(evaluation.error.code, reasons.PLAIN)
            sentences.append(f"{_capital(cause)}: {evaluation.error.message}")
        return sentences
    if evaluation.decision.fate != "promoted":
        return [reasons.explain_rejection(evaluation, reasons.PLAIN)]
    return _promoted(evaluation, evaluation.decision)


def _promoted(evaluation: Evaluation, made: Decision) -> list[str]:
    rank = f", ranked {made.rank} of its depth" if made.rank is not None else ""
    because = reasons.join_reasons(made.gate.reasons, reasons.PLAIN)
    sentences = [
        f"Promoted to {made.promoted_to_node_id}{rank}: {because or 'it passed the gate'}."
    ]
    if evaluation.parent_relative is not None:
        sentences.append(f"Against its parent: {_measured(evaluation.parent_relative)}.")
    if evaluation.confirmation is not None:
        sentences.append(_held(evaluation.confirmation))
    return sentences


def _measured(found: Recommendation) -> str:
    gain = numbers.gain(found.primary_gain, found.primary_gain_low, found.primary_gain_high)
    score = numbers.percent(found.score)
    return f"primary gain {gain}, score {score}, {found.rows_used} of {found.rows_expected} configs"


def _held(confirmation: Confirmation) -> str:
    gain = numbers.gain(
        confirmation.heldout_gain, confirmation.heldout_gain_low, confirmation.heldout_gain_high
    )
    configs = f"{confirmation.config_start} to {confirmation.config_stop - 1}"
    return f"On the held-out configs {configs} it held: gain {gain}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class Diff(msgspec.Struct, frozen=True):
    """A unified diff, or the reason why there is none. `cut` means that the text is incomplete."""

    text: str = ""
    cut: bool = False
    problem: str = ""


@lru_cache(maxsize=64)
def diff_commits(repo: Path, before: str, after: str) -> Diff:
    """Return the diff of two commits, cut to a length that a page can show.

    Programs that the repository's configuration names for diffs or for fetching are not run.
    """
    if not (_COMMIT.fullmatch(before) and _COMMIT.fullmatch(after)):
        return Diff(problem="not a commit")
    if not (repo / ".git").exists():
        return Diff(problem="the run's repository is not here")
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
    command = git.command("diff", *plain, before, after, "--")
    with subprocess.Popen(
        command,
        cwd=repo,
        env=git.environment(cwd=repo) | git.NO_FETCHING,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        data = running.stdout.read(_MAX_DIFF_BYTES + 1)
        if len(data) > _MAX_DIFF_BYTES:
            running.kill()
            return Diff(data[:_MAX_DIFF_BYTES].decode("utf-8", "replace"), cut=True)
        try:
            status = running.wait(_DIFF_SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            status = -1
    if status != 0:
        return Diff(problem="the commit is no longer in the repository")
    return Diff(data.decode("utf-8", "replace"))
