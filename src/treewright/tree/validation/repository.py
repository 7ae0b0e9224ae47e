"""Are promoted commits in the repository, pinned, checked out, and free of cheats?"""

from __future__ import annotations

from collections.abc import Iterator

from treewright.tree.records import layout
from treewright.tree.records.model import Node
from treewright.tree.repository import protection
from treewright.tree.repository.git import git, try_git
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.validation.findings import Finding, Subject


def check_commits(subject: Subject) -> Iterator[Finding]:
    """Every node's commit exists with the recorded tree, on its ref, over its parent."""
    refs = branches(subject)
    trees = Worktrees(subject.repo, subject.run_dir, subject.manifest.tree_run_id)
    present = _trees_of_commits(subject)
    for node in subject.manifest.nodes.values():
        name, short = node.node_id, node.commit[:12]
        expected_ref = trees.node_ref(name)
        if node.ref != expected_ref:
            yield Finding("ref_name", name, f"ref is {node.ref}, it should be {expected_ref}")
        if expected_ref not in refs:
            yield Finding("ref_missing", name, f"no branch {expected_ref} keeps {short}")
        elif refs[expected_ref] != node.commit:
            message = f"{expected_ref} points at {refs[expected_ref][:12]}, not at {short}"
            yield Finding("ref_moved", name, message)
        tree = present.get(node.commit)
        if tree is None:
            yield Finding("commit_missing", name, f"commit {short} is not in the repository")
            continue
        if tree != node.tree:
            message = f"commit {short} has tree {tree[:12]}, recorded is {node.tree[:12]}"
            yield Finding("tree_differs", name, message)
        parent = subject.manifest.nodes.get(node.parent_node_id or "")
        if parent is not None and parent.commit in present:
            yield from _against_parent(subject, node, parent)


def _against_parent(subject: Subject, node: Node, parent: Node) -> Iterator[Finding]:
    older, newer = parent.commit, node.commit
    if try_git(subject.repo, "merge-base", "--is-ancestor", older, newer).returncode != 0:
        message = f"commit {newer[:12]} does not descend from its parent's {older[:12]}"
        yield Finding("not_descendant", node.node_id, message)
    changed = git(subject.repo, "diff", "--name-only", "--no-renames", "-z", older, newer)
    paths = [path for path in changed.split("\0") if path]
    for path in protection.protected_changes(paths, subject.manifest.protected_paths):
        yield Finding("protected_path_changed", node.node_id, f"its commit changes {path}")


def _trees_of_commits(subject: Subject) -> dict[str, str]:
    """commit -> tree, for the nodes' commits that are there. One call, however many nodes."""
    commits = sorted({node.commit for node in subject.manifest.nodes.values()})
    asked = "".join(f"{commit}^{{commit}}\n{commit}^{{tree}}\n" for commit in commits)
    answers = git(subject.repo, "cat-file", "--batch-check", stdin=asked).splitlines()
    found = {}
    for commit, of_commit, of_tree in zip(commits, answers[::2], answers[1::2], strict=True):
        if of_commit.startswith(f"{commit} commit ") and " tree " in of_tree:
            found[commit] = of_tree.split(" ", 1)[0]
    return found


def branches(subject: Subject) -> dict[str, str]:
    """Every branch of this run and its commit."""
    prefix = layout.branches(subject.manifest.tree_run_id)
    listed = git(subject.repo, "for-each-ref", "--format=%(refname) %(objectname)", prefix)
    return {ref: commit for ref, _, commit in (x.rpartition(" ") for x in listed.splitlines())}


def check_worktrees(subject: Subject) -> Iterator[Finding]:
    """Every node is checked out, at its commit, without a change."""
    for node in subject.manifest.nodes.values():
        name = node.node_id
        place = layout.worktree(name)
        if node.worktree_path != place:
            yield Finding("worktree_missing", name, f"worktree_path is {node.worktree_path}")
        path = subject.run_dir / place
        if not (path / ".git").exists():
            yield Finding("worktree_missing", name, f"{place} is not a worktree")
            continue
        head = try_git(path, "rev-parse", "HEAD").stdout.strip()
        if head != node.commit:
            message = f"{place} is at {head[:12] or 'nothing'}, not {node.commit[:12]}"
            yield Finding("worktree_commit", name, message)
        status = try_git(path, "status", "--porcelain", "-z", "--untracked-files=normal")
        changes = [entry for entry in status.stdout.split("\0") if entry]
        if status.returncode != 0:
            yield Finding("worktree_missing", name, f"git cannot read {place}")
        elif changes:
            message = f"{place} has {len(changes)} changes, first: {changes[0]}"
            yield Finding("worktree_dirty", name, message)
