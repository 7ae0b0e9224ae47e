"""The files of a run: present, inside the run directory, unchanged, and named by a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from treewright.kernel.storage import untrusted
from treewright.kernel.storage.artifacts import Artifact, sha256_file
from treewright.tree.records import layout
from treewright.tree.records.model import Evaluation, Node
from treewright.tree.validation.findings import Finding, Subject


def check_paths(subject: Subject) -> Iterator[Finding]:
    """Check that every path stays inside the run directory and that required files exist."""
    seen: set[tuple[str, str]] = set()
    for owner, path, needed in _named_paths(subject):
        if (owner, path) in seen:
            continue
        seen.add((owner, path))
        if not stays_inside(subject.run_dir, path):
            yield Finding("path_outside_run", owner, f"{path} is not inside the run directory")
        elif needed and not (subject.run_dir / path).exists():
            yield Finding("path_missing", owner, f"{path} does not exist")


def stays_inside(run_dir: Path, path: str) -> bool:
    """Return whether a path is relative, without `..`, and not through a symbolic link to the
    outside."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        return False
    return (run_dir / path).resolve().is_relative_to(run_dir.resolve())


def _named_paths(subject: Subject) -> Iterator[tuple[str, str, bool]]:
    """Yield id, path, and whether the file must exist by now."""
    manifest = subject.manifest
    yield "run", manifest.root_baseline_csv_path, True
    for node in manifest.nodes.values():
        yield from _paths_of_node(node)
    for evaluation in manifest.evaluations.values():
        yield from _paths_of_evaluation(evaluation)


def _paths_of_node(node: Node) -> Iterator[tuple[str, str, bool]]:
    name = node.node_id
    yield name, node.baseline_results_csv_path, True
    if node.worktree_path is not None:
        yield name, node.worktree_path, True
    yield name, node.node_ideas_dir, node.expanded_for_depth is not None
    for path in (*node.generated_idea_files, *node.context_ideas_dirs, *node.idea_chain):
        yield name, path, True
    for artifact in (node.artifacts.baseline, node.artifacts.heldout):
        if artifact is not None:
            yield name, artifact.path, True


def _paths_of_evaluation(evaluation: Evaluation) -> Iterator[tuple[str, str, bool]]:
    name, done = evaluation.eval_id, was_evaluated(evaluation)
    yield name, evaluation.idea_path, True
    yield name, evaluation.idea_text_path, True
    yield name, evaluation.experiment_dir, done
    if evaluation.summary_path is not None:
        yield name, evaluation.summary_path, done
    if evaluation.candidate_results_csv_path is not None:
        yield name, evaluation.candidate_results_csv_path, True
    if evaluation.error is not None and evaluation.error.log_path is not None:
        yield name, evaluation.error.log_path, done
    confirmation = evaluation.confirmation
    if confirmation is not None:
        if confirmation.results_csv is not None:
            yield name, confirmation.results_csv.path, True
        if confirmation.baseline_csv_path is not None:
            yield name, confirmation.baseline_csv_path, True


def was_evaluated(evaluation: Evaluation) -> bool:
    """Return whether the evaluator itself ended it; one lost with its worker left no files."""
    return evaluation.status in ("completed", "failed") and evaluation.parent_relative is not None


def check_artifacts(subject: Subject) -> Iterator[Finding]:
    """Check that artifacts are under artifacts/ and have the recorded size and sha256. Each file
    is hashed once, even if several records name it."""
    known: dict[str, tuple[int, str]] = {}
    for owner, artifact in _artifacts(subject):
        pure = PurePosixPath(artifact.path)
        if pure.parts[:1] != (layout.ARTIFACTS,) or not stays_inside(
            subject.run_dir, artifact.path
        ):
            message = f"{artifact.path} is not under artifacts/"
            yield Finding("artifact_misplaced", owner, message)
            continue
        path = subject.run_dir / artifact.path
        if artifact.path not in known:
            try:
                digest = sha256_file(path, max(artifact.bytes, untrusted.LARGEST_RESULTS))
                known[artifact.path] = (path.stat().st_size, digest)
            except OSError as error:
                message = f"{artifact.path}: {error.strerror or error}"
                yield Finding("artifact_unreadable", owner, message)
                continue
        size, digest = known[artifact.path]
        if size != artifact.bytes:
            message = f"{artifact.path} has {size} bytes, recorded are {artifact.bytes}"
            yield Finding("artifact_size", owner, message)
        if digest != artifact.sha256:
            message = f"{artifact.path} is not the file that was recorded"
            yield Finding("artifact_sha256", owner, message)


def _artifacts(subject: Subject) -> Iterator[tuple[str, Artifact]]:
    for node in subject.manifest.nodes.values():
        for artifact in (node.artifacts.baseline, node.artifacts.heldout):
            if artifact is not None:
                yield node.node_id, artifact
    for evaluation in subject.manifest.evaluations.values():
        if evaluation.results_csv is not None:
            yield evaluation.eval_id, evaluation.results_csv
        confirmation = evaluation.confirmation
        if confirmation is not None and confirmation.results_csv is not None:
            yield evaluation.eval_id, confirmation.results_csv


def check_directories(subject: Subject) -> Iterator[Finding]:
    """Check that directories under wt/, eval/, node_ideas/ and cand/ belong to a record."""
    manifest = subject.manifest
    nodes = set(manifest.nodes)
    heldout = {layout.heldout(node_id) for node_id in nodes}
    known = {
        layout.WORKTREES: nodes,
        layout.IDEAS: nodes,
        layout.EVALUATIONS: {*manifest.evaluations, *heldout, layout.ROOT_BASELINE},
        layout.CANDIDATES: unpromoted(subject),
    }
    for folder, names in known.items():
        directory = subject.run_dir / folder
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            if path.name not in names:
                message = f"{folder}/{path.name} belongs to no record of the run"
                yield Finding("stray_directory", f"{folder}/{path.name}", message)


def unpromoted(subject: Subject) -> set[str]:
    """Return the candidates that may have a worktree: undecided ones, and rejected ones, because
    --keep-rejected-worktrees may have been given. A promoted one has become a node."""
    return {
        evaluation.eval_id
        for evaluation in subject.manifest.evaluations.values()
        if evaluation.decision is None or evaluation.decision.fate != "promoted"
    }
