"""Does the state agree with itself? Statuses, counters, chains, frontier, budget."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from treewright.tree.deciding.rounds import rules_of
from treewright.tree.deciding.steady import exhausted_now
from treewright.tree.ideas.expansion import ancestors
from treewright.tree.records import layout
from treewright.tree.records.model import (
    UNSET,
    Dedupe,
    Evaluation,
    IdeaRecord,
    Manifest,
    Node,
    SteadySearch,
    Unset,
)
from treewright.tree.records.steering import applied, banned_nodes, injected
from treewright.tree.validation.findings import Finding, Subject

_TASK_STATE = {
    "pending": "queued",
    "running": "running",
    "completed": "completed",
    "failed": "failed",
}


def turn_of(idea: IdeaRecord) -> int:
    """When it was chosen: the round, or the number of the expansion."""
    return idea.expansion if isinstance(idea.expansion, int) else idea.depth


def last_turn(node: Node) -> int | None:
    """When the node was last expanded."""
    return node.expansion if isinstance(node.expansion, int) else node.expanded_for_depth


def check_evaluations(subject: Subject) -> Iterator[Finding]:
    """Each evaluation's status, outcome and decision fit together."""
    manifest = subject.manifest
    for evaluation in manifest.evaluations.values():
        for message in _status_problems(evaluation, manifest):
            yield Finding("evaluation_state", evaluation.eval_id, message)
        for message in _idea_problems(evaluation, manifest):
            yield Finding("evaluation_idea", evaluation.eval_id, message)


def _status_problems(evaluation: Evaluation, manifest: Manifest) -> Iterator[str]:
    status, task = evaluation.status, evaluation.task_state
    if _TASK_STATE[status] != task:
        yield f"status is {status} but task_state is {task}"
    done = status in ("completed", "failed")
    if (evaluation.error is not None) != (status == "failed"):
        yield f"status is {status} but error is {'set' if evaluation.error else 'not set'}"
    if (evaluation.finished_at is not None) != done:
        yield f"status is {status} but finished_at is {evaluation.finished_at}"
    if evaluation.queued_at is None or ((status != "pending") and evaluation.started_at is None):
        yield f"status is {status} but a timestamp before it is missing"
    if done and evaluation.attempt < 1:
        yield f"status is {status} after {evaluation.attempt} attempts"
    yield from _decision_problems(evaluation, manifest, done)
    yield from _reuse_problems(evaluation, manifest)
    results = evaluation.results_csv.path if evaluation.results_csv else None
    if evaluation.candidate_results_csv_path != results:
        yield "candidate_results_csv_path is not the path of its results artifact"
    if evaluation.experiment_dir != layout.experiment(evaluation.eval_id):
        yield f"experiment_dir is {evaluation.experiment_dir}"
    summary = layout.summary(evaluation.experiment_dir) if done else None
    if evaluation.summary_path != summary:
        yield f"summary_path is {evaluation.summary_path}"


def _reuse_problems(evaluation: Evaluation, manifest: Manifest) -> Iterator[str]:
    """Results that were used again are those of the same code, and the same bytes."""
    source = evaluation.results_from
    if isinstance(source, Unset):
        return
    if source in manifest.nodes:
        node = manifest.nodes[source]
        tree, results = node.tree, node.artifacts.baseline
    elif source in manifest.evaluations:
        found = manifest.evaluations[source]
        tree, results = found.candidate_tree, found.results_csv
    else:
        yield f"results_from names {source}, which is not there"
        return
    own = evaluation.results_csv
    if tree != evaluation.candidate_tree:
        yield f"results_from is {source}, which has other code"
    if own is None or results is None or own.sha256 != results.sha256:
        yield f"its results are not those of {source}"


def _decision_problems(evaluation: Evaluation, manifest: Manifest, done: bool) -> Iterator[str]:
    if manifest.steady is not None:
        if evaluation.decision is not None and not done:
            yield f"it was decided while its status is {evaluation.status}"
        if (evaluation.decision is None) != (evaluation.place == UNSET):
            yield "a place is recorded exactly for what is decided; not so here"
        return
    decided = evaluation.depth <= manifest.current_depth
    if decided and not done:
        yield f"its depth was decided while its status is {evaluation.status}"
    if (evaluation.decision is not None) != decided:
        yield "a decision is recorded exactly for the depths that are decided; not so here"


def _idea_problems(evaluation: Evaluation, manifest: Manifest) -> Iterator[str]:
    parent = manifest.nodes[evaluation.parent_node_id]
    idea = next((idea for idea in parent.ideas if idea.path == evaluation.idea_path), None)
    if idea is None:
        yield f"{evaluation.idea_path} is not an idea of {parent.node_id}"
    elif (idea.sha256, idea.depth) != (evaluation.idea_sha256, evaluation.depth):
        yield f"{evaluation.idea_path} is recorded with another sha256 or depth at its node"
    if evaluation.idea_text_path != evaluation.idea_path:
        yield f"idea_text_path is {evaluation.idea_text_path}"


def check_nodes(subject: Subject) -> Iterator[Finding]:
    """Each node is what the evaluation that it came from says."""
    manifest = subject.manifest
    first = _first_tried(manifest)
    for node in manifest.nodes.values():
        if node.parent_node_id is None:
            yield from _root(node, manifest)
        else:
            yield from _promoted(node, manifest)
        for message in _expansion_problems(node, manifest, first):
            yield Finding("expansion", node.node_id, message)


def _root(node: Node, manifest: Manifest) -> Iterator[Finding]:
    if node.idea_chain:
        yield Finding("idea_chain", node.node_id, "the root has a chain of ideas")
    if (node.commit, node.baseline_results_csv_path, node.depth) != (
        manifest.root_commit,
        manifest.root_baseline_csv_path,
        0,
    ):
        yield Finding(
            "node_state", node.node_id, "it is not the root commit and baseline at depth 0"
        )


def _promoted(node: Node, manifest: Manifest) -> Iterator[Finding]:
    evaluation = manifest.evaluations[node.artifacts.promoted_from_eval_id or ""]
    parent = manifest.nodes[node.parent_node_id or ""]
    if node.idea_chain != [*parent.idea_chain, evaluation.idea_path]:
        message = "idea_chain is not its parent's with the promoted idea behind it"
        yield Finding("idea_chain", node.node_id, message)
    decision = evaluation.decision
    if decision is None or decision.promoted_to_node_id != node.node_id:
        message = f"{evaluation.eval_id}, from which it came, was not promoted to it"
        yield Finding("promotion_link", node.node_id, message)
    heldout = evaluation.confirmation.results_csv if evaluation.confirmation else None
    expected = {
        "parent_node_id": evaluation.parent_node_id,
        "depth": evaluation.depth,
        "commit": evaluation.candidate_commit,
        "tree": evaluation.candidate_tree,
        "baseline_results_csv_path": evaluation.candidate_results_csv_path,
        "parent_relative": evaluation.parent_relative,
        "root_relative": evaluation.root_relative,
        "sweep_config_limit": manifest.sweep_config_limit,
    }
    for field, value in expected.items():
        if getattr(node, field) != value:
            message = f"{field} is not that of {evaluation.eval_id}"
            yield Finding("node_state", node.node_id, message)
    if node.artifacts.baseline != evaluation.results_csv:
        yield Finding("node_state", node.node_id, "its baseline is not its evaluation's results")
    if heldout is not None and node.artifacts.heldout != heldout:
        yield Finding("node_state", node.node_id, "its held-out results are not its confirmation's")


def _expansion_problems(node: Node, manifest: Manifest, first: dict[str, str]) -> Iterator[str]:
    paths = [idea.path for idea in node.ideas]
    expected = [f"{node.node_ideas_dir}/{layout.idea_file(number)}" for number in range(len(paths))]
    if paths != expected:
        yield "its idea files are not numbered from idea_000.md on"
    latest = [idea.path for idea in node.ideas if turn_of(idea) == last_turn(node)]
    if node.generated_idea_files != latest:
        yield "generated_idea_files are not the ideas of its last expansion"
    by_hand = injected(applied(manifest.steering))
    changed = (r.before.get("ideas_per_node", 0) for r in applied(manifest.steering))
    most = max(manifest.ideas_per_node, *changed, 0)
    for turn in sorted({turn_of(idea) for idea in node.ideas}):
        count = sum(turn_of(idea) == turn and idea.path not in by_hand for idea in node.ideas)
        if count > most:
            what = "at depth" if manifest.steady is None else "of expansion"
            yield f"{count} ideas {what} {turn}, allowed are {most}"
    if manifest.dedupe_scope != "none":
        yield from _duplicates(node, manifest, first)


def _first_tried(manifest: Manifest) -> dict[str, str]:
    """With scope `global`: the key of every idea -> the file that had it first."""
    if manifest.dedupe_scope != "global":
        return {}
    chosen = [
        (turn_of(idea), node.node_id, number, idea)
        for node in manifest.nodes.values()
        for number, idea in enumerate(node.ideas)
    ]
    first: dict[str, str] = {}
    for *_, idea in sorted(chosen, key=lambda entry: entry[:3]):
        first.setdefault(idea.key, idea.path)
    return first


def _duplicates(node: Node, manifest: Manifest, first: dict[str, str]) -> Iterator[str]:
    """The same idea twice where the scope forbids it. Of two nodes the younger is at fault."""
    dedupe = node.dedupe or Dedupe(manifest.dedupe_scope)
    if dedupe.scope != manifest.dedupe_scope:
        yield f"its dedupe scope is {dedupe.scope}, the run's {manifest.dedupe_scope}"
    elsewhere = (other for other in ancestors(manifest, node) if other is not node)
    tried = [idea for other in elsewhere for idea in other.ideas]
    seen = {idea.key: idea for idea in sorted(tried, key=turn_of, reverse=True)}
    for idea in node.ideas:
        earlier = seen.get(idea.key)
        if earlier is not None and turn_of(earlier) > turn_of(idea):
            earlier = None  # without a barrier an ancestor may get an idea after its descendant
        path = earlier.path if earlier is not None else first.get(idea.key, idea.path)
        if path != idea.path:
            yield f"{idea.path} repeats {path}"
        seen[idea.key] = idea


def check_rounds(subject: Subject) -> Iterator[Finding]:
    """Depth records, frontier and the list of expanded nodes."""
    manifest = subject.manifest
    steady = manifest.steady
    if steady is not None:
        yield from _steady_state(manifest, steady)
    elif len(manifest.depths) not in (manifest.current_depth, manifest.current_depth + 1):
        message = f"{len(manifest.depths)} depths recorded, {manifest.current_depth} decided"
        yield Finding("depth_state", "run", message)
    if manifest.current_depth > manifest.max_depth:
        message = f"depth {manifest.current_depth} is beyond max_depth {manifest.max_depth}"
        yield Finding("depth_state", "run", message)
    evaluations: dict[int, list[str]] = {}
    for evaluation in manifest.evaluations.values():
        evaluations.setdefault(evaluation.depth, []).append(evaluation.eval_id)
    promoted: dict[int, list[str]] = {}
    for node in manifest.nodes.values():
        promoted.setdefault(node.depth, []).append(node.node_id)
    for record in manifest.depths:
        owner = f"depth {record.depth}"
        if record.eval_ids != evaluations.get(record.depth, []):
            yield Finding("depth_state", owner, "eval_ids are not the evaluations of this depth")
        if record.promoted != promoted.get(record.depth, []):
            yield Finding("depth_state", owner, "promoted are not the nodes of this depth")
        if steady is not None:
            continue
        width = rules_of(manifest, record.depth).beam_width
        if len(record.promoted) > width:
            message = f"{len(record.promoted)} promoted, the beam is {width} wide"
            yield Finding("beam_overrun", owner, message)
        if (record.finished_at is not None) != (record.depth <= manifest.current_depth):
            yield Finding("depth_state", owner, "finished_at and current_depth disagree")
    yield from _statuses(manifest)


def _steady_state(manifest: Manifest, steady: SteadySearch) -> Iterator[Finding]:
    """What counters and the frontier of a run without a barrier must be."""
    deepest = max(node.depth for node in manifest.nodes.values())
    if manifest.current_depth != deepest:
        message = f"current_depth is {manifest.current_depth}, the deepest node is at {deepest}"
        yield Finding("depth_state", "run", message)
    tried: dict[str, int] = {}
    for evaluation in manifest.evaluations.values():
        tried[evaluation.parent_node_id] = tried.get(evaluation.parent_node_id, 0) + 1
    exhausted = {found.node_id for found in exhausted_now(manifest, steady)}
    exhausted |= banned_nodes(applied(manifest.steering))
    for node in manifest.nodes.values():
        own = tried.get(node.node_id, 0)
        if (node.tried or 0) != own:
            message = f"tried is {node.tried}, it has {own} evaluations"
            yield Finding("node_state", node.node_id, message)
        full = steady.branching is not None and own >= steady.branching
        grows = node.depth < manifest.max_depth and not full and node.node_id not in exhausted
        if grows != (node.node_id in manifest.frontier):
            message = "the frontier is not the nodes that further ideas may be tried on"
            yield Finding("frontier_state", node.node_id, message)


def _statuses(manifest: Manifest) -> Iterator[Finding]:
    if len(set(manifest.frontier)) != len(manifest.frontier):
        yield Finding("frontier_state", "run", "a node is in the frontier twice")
    frontier = set(manifest.frontier)
    expanded = [n.node_id for n in manifest.nodes.values() if n.expanded_for_depth is not None]
    if sorted(manifest.expanded) != sorted(expanded):
        yield Finding("frontier_state", "run", "`expanded` is not the list of nodes with ideas")
    for node in manifest.nodes.values():
        if manifest.steady is not None:
            if (node.status == "frontier") != (node.expanded_for_depth is None):
                message = f"status is {node.status}, which its expansions contradict"
                yield Finding("frontier_state", node.node_id, message)
            continue
        in_progress = node.expanded_for_depth == manifest.current_depth + 1
        waiting = node.node_id in frontier and not in_progress
        if node.status != ("frontier" if waiting else "expanded"):
            message = f"status is {node.status}, which its place in the search contradicts"
            yield Finding("frontier_state", node.node_id, message)
        elif in_progress and node.node_id not in frontier:
            message = "it was expanded for this depth but is not in the frontier"
            yield Finding("frontier_state", node.node_id, message)


def check_spending(subject: Subject) -> Iterator[Finding]:
    """Counters are the counts, and the budget was kept."""
    manifest = subject.manifest
    spent = manifest.spent
    evaluations = manifest.evaluations.values()
    confirmations = sum(e.confirmation is not None for e in evaluations)
    limit = manifest.max_total_idea_evals
    if spent.evals != len(evaluations):
        message = f"spent.evals is {spent.evals}, there are {len(evaluations)} evaluations"
        yield Finding("spending", "run", message)
    if spent.confirmations != confirmations:
        message = f"spent.confirmations is {spent.confirmations}, there are {confirmations}"
        yield Finding("spending", "run", message)
    if limit is not None and len(evaluations) > limit:
        message = f"{len(evaluations)} evaluations, allowed are {limit}"
        yield Finding("budget_exceeded", "run", message)
    usage = [msgspec.to_builtins(e.usage) for e in evaluations]
    for field in ("prompt_tokens", "completion_tokens"):
        used = sum(item[field] for item in usage)
        if getattr(spent, field) < used:
            message = f"spent.{field} is {getattr(spent, field)}, evaluations alone used {used}"
            yield Finding("spending", "run", message)
