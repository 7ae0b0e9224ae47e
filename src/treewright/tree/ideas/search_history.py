"""The history of a search, for the sources of the next ideas and for agents.

It has the metrics, the path to the node, and earlier evaluations: idea, score with interval, the
reason of a rejection, the end of the log, and the diff. The best evaluations come first, then the
most informative ones, as many as a budget of characters holds. The history contains only outcomes
that were known when the ideas were chosen, so a search in fixed order does not depend on timing.
"""

from __future__ import annotations

import csv
import functools
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from treewright.kernel.storage import untrusted
from treewright.llm.redaction import redact
from treewright.tree.config import Config
from treewright.tree.deciding import objectives, paired
from treewright.tree.records import layout, summary
from treewright.tree.records.model import Evaluation, Manifest, Node, ancestors
from treewright.tree.report import reasons
from treewright.tree.report.run_facts import read_title
from treewright.tree.repository.git import try_git

_MAX_BEST = 3
_MAX_DIFF_CHARS = 900
_MAX_ERROR_CHARS = 400
_MAX_WHY_CHARS = 400
_MAX_TEXT_CHARS = 200
_MAX_LOG_CHARS = 1500
_MAX_TEXTS = 5
_MAX_COLUMNS = 20

Relation = Literal["same_node", "path", "elsewhere"]


class MetricFacts(msgspec.Struct, frozen=True):
    """A metric: its direction, its bounds, and its mean at the root and at the node."""

    name: str
    direction: str
    primary: bool
    tolerance: float
    deterministic: bool
    repeats: int | None
    min: float | None
    max: float | None
    constraint: bool
    root: float | None
    node: float | None


class Step(msgspec.Struct, frozen=True):
    """A node on the path from the root, and the idea that led to it."""

    node_id: str
    idea: str
    score: float | None
    root_score: float | None


class MetricChange(msgspec.Struct, frozen=True):
    """A metric's mean at the parent and at the candidate."""

    name: str
    before: float | None
    after: float | None
    verdict: str


class EarlierEvaluation(msgspec.Struct, frozen=True):
    """An earlier evaluation.

    Scores are relative gains: `score` over the parent, `root_score` over the root. `gain` is in the
    unit of the primary metric; a positive gain is better.
    """

    eval_id: str
    node_id: str
    relation: Relation
    idea: str
    fate: str
    grade: str | None
    score: float | None
    root_score: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    reasons: list[str]
    why: str
    metrics: list[MetricChange] = []
    error: str = ""
    diff: str = ""


class Returned(msgspec.Struct, frozen=True):
    """Results of a node's evaluation that are not metrics.

    These are the means of other numeric columns of its results, texts in other columns, and the end
    of the sweep's output.
    """

    columns: dict[str, float] = {}
    texts: list[str] = []
    log: str = ""


class History(msgspec.Struct, frozen=True):
    """The history for one node. `left_out` counts the evaluations beyond the budget."""

    metrics: list[MetricFacts]
    path: list[Step]
    tries: list[EarlierEvaluation]
    left_out: int


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a run that the history of a node may contain.

    `seen` is the number of outcomes that were known at the time of the choice; None stands for all
    decided evaluations.
    """

    repo: Path
    run_dir: Path
    config: Config
    manifest: Manifest
    node: Node
    seen: int | None = None

    def collect(self, budget: int) -> History:
        """Return the history with the most useful evaluations, in at most `budget` characters."""
        path = {node.node_id for node in ancestors(self.manifest, self.node)}
        ordered = _ordered(self._known(), self.node, path)
        tries: list[EarlierEvaluation] = []
        left = budget
        for relation, evaluation in ordered:
            for found in (self._detailed(evaluation, relation), self._short(evaluation, relation)):
                cost = len(msgspec.json.encode(found))
                if cost <= left:
                    tries.append(found)
                    left -= cost
                    break
            else:
                break
        return History(self._metrics(), self._path(), tries, len(ordered) - len(tries))

    def beyond_beam(self) -> set[str]:
        """Return the keys of ideas that passed the gate when the beam was full."""
        paths = {
            evaluation.idea_path
            for evaluation in self._known()
            if evaluation.decision is not None and evaluation.decision.fate == "beyond_beam"
        }
        nodes = list(self.manifest.nodes.values())
        return {idea.key for node in nodes for idea in node.ideas if idea.path in paths}

    def returned(self) -> Returned:
        """Return the results of the node's evaluation that are not metrics."""
        try:
            path = self.run_dir / self.node.baseline_results_csv_path
            data = untrusted.read(path, untrusted.LARGEST_RESULTS)
            rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig", "replace"))))
        except (OSError, csv.Error):
            rows = []
        known = {"config_id", "status", *(metric.name for metric in self.config.metrics)}
        numbers: dict[str, list[float]] = {}
        texts: dict[str, None] = {}
        for row in rows:
            for name, value in row.items():
                if name in known or not isinstance(name, str) or not isinstance(value, str):
                    continue
                try:
                    number = float(value)
                except ValueError:
                    if value.strip():
                        texts[f"{name}: {' '.join(value.split())[:_MAX_TEXT_CHARS]}"] = None
                else:
                    if math.isfinite(number):
                        numbers.setdefault(name, []).append(number)
        source = self.node.artifacts.promoted_from_eval_id
        directory = layout.sweep_directory(layout.ROOT_BASELINE)
        if source is not None:
            directory = self.manifest.evaluations[source].experiment_dir
        log = _tail(self.run_dir / directory / layout.SWEEP_LOG, _MAX_LOG_CHARS)
        means = {name: paired.mean(values) for name, values in numbers.items()}
        shown = [redact(text) for text in list(texts)[:_MAX_TEXTS]]
        return Returned(dict(list(means.items())[:_MAX_COLUMNS]), shown, redact(log))

    def _known(self) -> list[Evaluation]:
        # Copy first, because another thread may add evaluations.
        decided = [e for e in list(self.manifest.evaluations.values()) if e.decision is not None]
        if self.seen is None:
            return decided
        return [e for e in decided if isinstance(e.place, int) and e.place <= self.seen]

    def _metrics(self) -> list[MetricFacts]:
        root = next(n for n in self.manifest.nodes.values() if n.parent_node_id is None)
        at_root, at_node = (self._means(node) for node in (root, self.node))
        return [
            MetricFacts(
                m.name, m.direction, m.primary, m.tolerance, m.deterministic, m.repeats,
                m.min, m.max, m.constraint, at_root.get(m.name), at_node.get(m.name),
            )
            for m in self.config.metrics
        ]  # fmt: skip

    def _means(self, node: Node) -> dict[str, float]:
        path = self.run_dir / node.baseline_results_csv_path
        try:
            data = untrusted.read(path, untrusted.LARGEST_RESULTS)
        except OSError:
            return {}
        limit = self.manifest.sweep_config_limit
        found = objectives.read(data, self.config.metrics, lambda i: limit is None or i < limit)
        return {name: paired.mean(list(v.values())) for name, v in found.values.items() if v}

    def _path(self) -> list[Step]:
        return [
            Step(
                node.node_id,
                read_title(self.run_dir / node.idea_chain[-1]) if node.idea_chain else "the root",
                node.parent_relative.score if node.parent_relative else None,
                node.root_relative.score if node.root_relative else None,
            )
            for node in ancestors(self.manifest, self.node)[::-1]
        ]

    def _short(self, evaluation: Evaluation, relation: Relation) -> EarlierEvaluation:
        assert evaluation.decision is not None
        parent, root = evaluation.parent_relative, evaluation.root_relative
        is_measured = evaluation.error is None and parent is not None
        return EarlierEvaluation(
            eval_id=evaluation.eval_id,
            node_id=evaluation.parent_node_id,
            relation=relation,
            idea=read_title(self.run_dir / evaluation.idea_path) or evaluation.idea_id,
            fate=evaluation.decision.fate,
            grade=parent.grade if is_measured and parent else None,
            score=parent.score if is_measured and parent else None,
            root_score=root.score if is_measured and root else None,
            gain=parent.primary_gain if parent else None,
            gain_low=parent.primary_gain_low if parent else None,
            gain_high=parent.primary_gain_high if parent else None,
            reasons=list(evaluation.decision.gate.reasons),
            why=redact(reasons.explain_rejection(evaluation, reasons.PLAIN))[:_MAX_WHY_CHARS],
        )

    def _detailed(self, evaluation: Evaluation, relation: Relation) -> EarlierEvaluation:
        """Return the short form with metrics, log and diff, which are read from files and git."""
        diff = ""
        if evaluation.candidate_commit is not None and not self.manifest.dry_run:
            parent = self.manifest.nodes[evaluation.parent_node_id].commit
            diff = _short_diff(self.repo, parent, evaluation.candidate_commit)
        return msgspec.structs.replace(
            self._short(evaluation, relation),
            metrics=_changes(self.run_dir, evaluation),
            error=self._error(evaluation),
            diff=diff,
        )

    def _error(self, evaluation: Evaluation) -> str:
        """Return the end of the log of a failure, or of a sweep with missing rows."""
        error, log = evaluation.error, None
        if error is not None:
            log = error.log_path
        elif evaluation.parent_relative is None or (
            evaluation.parent_relative.rows_used != evaluation.parent_relative.rows_expected
        ):
            log = f"{evaluation.experiment_dir}/{layout.SWEEP_LOG}"
        return redact(_tail(self.run_dir / log)) if log else ""


def _ordered(
    known: Sequence[Evaluation], node: Node, path: set[str]
) -> list[tuple[Relation, Evaluation]]:
    """Return evaluations in the order of usefulness.

    First the best of all; then those at this node and on the path to it; then an example of every
    kind of failure; then evaluations elsewhere; then the other failures.
    """
    measured = sorted(
        (e for e in known if _score(e) is not None), key=lambda e: (-(_score(e) or 0.0), e.eval_id)
    )
    best = {e.eval_id for e in measured[:_MAX_BEST] if (_score(e) or 0.0) > 0}
    failures: set[str] = set()
    keyed = []
    for evaluation in reversed(known):  # the latest failure of a kind is its example
        relation: Relation = "elsewhere"
        if evaluation.parent_node_id == node.node_id:
            relation = "same_node"
        elif evaluation.parent_node_id in path:
            relation = "path"
        score = _score(evaluation)
        code = evaluation.error.code if evaluation.error else ""
        is_new = bool(code) and code not in failures
        failures.add(code)
        if evaluation.eval_id in best:
            group = 0
        elif score is not None:
            group = {"same_node": 1, "path": 2, "elsewhere": 4}[relation]
        else:
            group = 3 if is_new else 5
        keyed.append(((group, -(score or 0.0), evaluation.eval_id), (relation, evaluation)))
    return [found for _, found in sorted(keyed, key=lambda entry: entry[0])]


def _score(evaluation: Evaluation) -> float | None:
    """Return the root-relative score of a complete evaluation, else None."""
    found = evaluation.root_relative
    complete = found is not None and found.rows_used == found.rows_expected
    return found.score if found is not None and complete and evaluation.error is None else None


def _changes(run_dir: Path, evaluation: Evaluation) -> list[MetricChange]:
    document = summary.read(run_dir / layout.summary(evaluation.experiment_dir)) or {}
    scores = document.get("scoring_summary")
    against = scores.get("parent_relative") if isinstance(scores, dict) else None
    listed = against.get("metrics") if isinstance(against, dict) else None
    return [change for entry in listed or [] if (change := _change(entry)) is not None]


def _change(entry: Any) -> MetricChange | None:
    """Return the change of one metric; None if the summary file was damaged."""
    if not isinstance(entry, dict):
        return None
    before, after = (
        value if isinstance(value := entry.get(name), int | float) else None
        for name in ("baseline_mean", "candidate_mean")
    )
    return MetricChange(str(entry.get("name")), before, after, str(entry.get("verdict")))


def _tail(log: Path, longest: int = _MAX_ERROR_CHARS) -> str:
    try:
        with untrusted.open_plain(log, 1 << 40) as file:
            file.seek(max(0, file.seek(0, 2) - 4 * longest))
            text = file.read(4 * longest).decode("utf-8", "replace")
    except OSError:
        return ""
    return text.strip()[-longest:]


@functools.lru_cache(maxsize=512)
def _short_diff(repo: Path, parent: str, commit: str) -> str:
    """Return the shortened diff of two commits; "" if git does not have them any more."""
    done = try_git(repo, "diff", "--unified=1", "--no-color", "--no-ext-diff", parent, commit)
    if done.returncode != 0:
        return ""
    noise = ("diff --git ", "index ", "--- ", "new file mode", "deleted file mode")
    lines = done.stdout.encode("utf-8", "replace").decode().splitlines()
    text = "\n".join(line for line in lines if not line.startswith(noise))
    return text if len(text) <= _MAX_DIFF_CHARS else text[:_MAX_DIFF_CHARS].rstrip() + "\n[…]"
