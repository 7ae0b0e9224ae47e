"""The nodes of a run and their ideas: origin, order and repetitions."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.kernel.storage.artifacts import sha256_file
from treewright.tree.deciding import leftovers
from treewright.tree.ideas import idea_text
from treewright.tree.records import layout
from treewright.tree.records.model import (
    Dedupe,
    IdeaRecord,
    Manifest,
    Node,
    ancestors,
)
from treewright.tree.records.steering import applied, brought_back, injected
from treewright.tree.run.outcomes import QUARANTINED
from treewright.tree.validation.findings import Finding, Subject


def turn_of(idea: IdeaRecord) -> int:
    """Return when an idea was chosen: the round, or the number of the expansion."""
    return idea.expansion if isinstance(idea.expansion, int) else idea.depth


def last_turn(node: Node) -> int | None:
    """Return when the node was last expanded."""
    return node.expansion if isinstance(node.expansion, int) else node.expanded_for_depth


def check_nodes(subject: Subject) -> Iterator[Finding]:
    """Check that each node agrees with the evaluation that it came from."""
    manifest = subject.manifest
    first = _first_tried(manifest)
    for node in manifest.nodes.values():
        if node.parent_node_id is None:
            yield from _root(node, manifest)
        else:
            yield from _promoted(node, manifest)
        for message in _expansion_problems(node, manifest, first):
            yield Finding("expansion", node.node_id, message)
    for path, name in brought_back(applied(manifest.steering)).items():
        evaluation = manifest.evaluations.get(name)
        if evaluation is None or evaluation.error is None or evaluation.error.code != QUARANTINED:
            yield Finding("expansion", path, f"it brings back {name}, which is not quarantined")
        elif evaluation.idea_sha256 not in {
            idea.sha256
            for idea in manifest.nodes[evaluation.parent_node_id].ideas
            if idea.path == path
        }:
            yield Finding("expansion", path, f"it is not the idea of {name}, on the same node")


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
        "code": evaluation.candidate_code,
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
            what = "at depth" if manifest.policy_record is None else "of expansion"
            yield f"{count} ideas {what} {turn}, allowed are {most}"
    if manifest.dedupe_scope != "none":
        yield from _duplicates(node, manifest, first)


def _is_offered(manifest: Manifest, node: Node, idea: IdeaRecord, source: str) -> bool:
    """Return whether the idea repeats an older one of the node or of an ancestor."""
    return any(
        (each.path, each.sha256, each.key) == (source, idea.sha256, idea.key)
        and turn_of(each) < turn_of(idea)
        for ancestor in ancestors(manifest, node)
        for each in ancestor.ideas
    )


def _first_tried(manifest: Manifest) -> dict[str, str]:
    """Return, for scope `global`, the key of every idea and the first file with it."""
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
    """Yield ideas that occur twice although the scope forbids it. Of two nodes the younger is
    wrong."""
    dedupe = node.dedupe or Dedupe(manifest.dedupe_scope)
    if dedupe.scope != manifest.dedupe_scope:
        yield f"its dedupe scope is {dedupe.scope}, the run's {manifest.dedupe_scope}"
    elsewhere = (other for other in ancestors(manifest, node) if other is not node)
    tried = [idea for other in elsewhere for idea in other.ideas]
    seen = {idea.key: idea for idea in sorted(tried, key=turn_of, reverse=True)}
    again = brought_back(applied(manifest.steering))
    for idea in node.ideas:
        source = leftovers.source_of(idea)
        if source is not None and not _is_offered(manifest, node, idea, source):
            yield f"{idea.path} is not {source} of the node or an ancestor"
        if idea.path in again or source is not None:
            continue
        earlier = seen.get(idea.key)
        if earlier is not None and turn_of(earlier) > turn_of(idea):
            earlier = None  # without a barrier an ancestor may get an idea after its descendant
        path = earlier.path if earlier is not None else first.get(idea.key, idea.path)
        if path != idea.path:
            yield f"{idea.path} repeats {path}"
        seen[idea.key] = idea


def check_ideas(subject: Subject) -> Iterator[Finding]:
    """Check that idea files are unchanged and that their dedupe keys belong to their texts."""
    for node in subject.manifest.nodes.values():
        for idea in node.ideas:
            path = subject.run_dir / idea.path
            try:
                digest = sha256_file(path)
            except OSError as error:
                message = f"{idea.path}: {error.strerror or error}"
                yield Finding("idea_missing", node.node_id, message)
                continue
            if digest != idea.sha256:
                message = f"{idea.path} is not the text that was recorded"
                yield Finding("idea_sha256", node.node_id, message)
            elif idea.key != idea_text.key(path.read_bytes().decode("utf-8")):
                message = f"{idea.path} has another dedupe key than its text"
                yield Finding("idea_key", node.node_id, message)


def check_context(subject: Subject) -> Iterator[Finding]:
    """Check that a generator got exactly the files that the lineage had when the node was
    expanded. Of two nodes expanded in one round the older comes first."""
    manifest = subject.manifest
    by_hand = set(injected(applied(manifest.steering)))
    for node in manifest.nodes.values():
        turn = last_turn(node)
        if turn is None:
            continue
        lineage = ancestors(manifest, node)
        if node.context_ideas_dirs != [ancestor.node_ideas_dir for ancestor in lineage]:
            message = "context_ideas_dirs are not those of the node and its ancestors"
            yield Finding("context_dirs", node.node_id, message)
        latest = [idea.path for idea in node.ideas if turn_of(idea) == turn]
        if latest and by_hand.issuperset(latest):
            continue  # no generator was asked
        expected = [
            (idea.path, idea.sha256)
            for ancestor in lineage
            for idea in ancestor.ideas
            if turn_of(idea) < turn
            or (turn_of(idea) == turn and (ancestor is not node or idea.path in by_hand))
        ]
        if [(file.path, file.sha256) for file in node.context_idea_files] != expected:
            message = "context_idea_files are not the ideas that its lineage had by then"
            yield Finding("context_files", node.node_id, message)
