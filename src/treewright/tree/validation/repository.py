"""The repository: promoted commits are present, pinned and checked out; nothing else is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treewright.tree.guard import protected_files
from treewright.tree.records import layout
from treewright.tree.repository import formatting, staging
from treewright.tree.repository import refs as git_refs
from treewright.tree.repository.git import git, try_git
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.validation.files import unpromoted
from treewright.tree.validation.findings import Finding, Subject

_WORKTREE = "worktree "


def check_commits(subject: Subject) -> Iterator[Finding]:
    """Check that every node's commit exists with the recorded tree, on its ref, over its parent."""
    refs = _branches(subject)
    pairs: dict[str, tuple[str, str]] = {}
    trees = Worktrees(subject.repo, subject.run_dir, subject.manifest.tree_run_id)
    present = _commits(subject)
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
        made = present.get(node.commit)
        if made is None:
            yield Finding("commit_missing", name, f"commit {short} is not in the repository")
            continue
        if made.tree != node.tree:
            message = f"commit {short} has tree {made.tree[:12]}, recorded is {node.tree[:12]}"
            yield Finding("tree_differs", name, message)
        parent = subject.manifest.nodes.get(node.parent_node_id or "")
        if parent is not None and parent.commit in present:
            asked = ("merge-base", "--is-ancestor", parent.commit, node.commit)
            if parent.commit != made.parent and try_git(subject.repo, *asked).returncode != 0:
                message = f"commit {short} does not descend from its parent's {parent.commit[:12]}"
                yield Finding("not_descendant", name, message)
            pairs[name] = present[parent.commit].tree, made.tree
    there = [n for n in subject.manifest.nodes.values() if n.commit in present]
    if subject.manifest.root_commit in present:
        root, commits = subject.manifest.root_commit, [node.commit for node in there]
        digests = formatting.code_digests(subject.repo, root, commits)
        for node, digest in zip(there, digests, strict=True):
            if node.code != digest:
                message = f"commit {node.commit[:12]} has other code than the recorded digest"
                yield Finding("tree_differs", node.node_id, message)
    changed = staging.differences(subject.repo, list(pairs.values()))
    for name, changes in zip(pairs, changed, strict=True):
        paths = [change.path for change in changes]
        for path in protected_files.match_protected(paths, subject.manifest.protected_paths):
            yield Finding("protected_path_changed", name, f"its commit changes {path}")


@dataclass(frozen=True, slots=True)
class _Made:
    tree: str
    parent: str
    """The first parent of the commit; empty if it has none or is missing."""


def _commits(subject: Subject) -> dict[str, _Made]:
    """Return the commits of nodes that exist, with one call of git."""
    commits = sorted({node.commit for node in subject.manifest.nodes.values()})
    asked = "".join(f"{name}^{{commit}}\n{name}^{{tree}}\n{name}^1\n" for name in commits)
    answers = iter(git(subject.repo, "cat-file", "--batch-check", stdin=asked).splitlines())
    found = {}
    for commit, of_commit, of_tree, of_parent in zip(commits, *[answers] * 3, strict=True):
        if of_commit.startswith(f"{commit} commit ") and " tree " in of_tree:
            parent, _, what = of_parent.partition(" ")
            is_there = what.startswith("commit ")
            found[commit] = _Made(of_tree.split(" ", 1)[0], parent if is_there else "")
    return found


def _branches(subject: Subject) -> dict[str, str]:
    """Return every branch of this run and its commit."""
    return git_refs.refs_below(subject.repo, layout.branches(subject.manifest.tree_run_id))


def check_worktrees(subject: Subject) -> Iterator[Finding]:
    """Check that every node is checked out at its commit without a change."""
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


def check_git_strays(subject: Subject) -> Iterator[Finding]:
    """Check that branches and worktrees of this run belong to a node or to a candidate that may
    have one."""
    manifest = subject.manifest
    prefix = layout.branches(manifest.tree_run_id)
    candidates = unpromoted(subject)
    for ref in sorted(_branches(subject)):
        kind, _, name = ref.removeprefix(prefix).partition("/")
        if not (
            (kind == "node" and name in manifest.nodes)
            or (kind == "cand" and name in candidates and _may_have_branch(subject, name))
        ):
            yield Finding("stray_branch", ref, "no node or candidate of the run has this branch")
    run_dir = subject.run_dir.resolve()
    listed = git(subject.repo, "worktree", "list", "--porcelain").splitlines()
    paths = [Path(line[len(_WORKTREE) :]) for line in listed if line.startswith(_WORKTREE)]
    for path in sorted(path for path in paths if path.resolve().is_relative_to(run_dir)):
        folder, name = path.parent.name, path.name
        if folder == layout.CANDIDATES and name in candidates:
            continue
        if not (folder == layout.WORKTREES and name in manifest.nodes):
            message = "git has a worktree here that no node or candidate of the run has"
            yield Finding("stray_worktree", f"{folder}/{name}", message)


def _may_have_branch(subject: Subject, eval_id: str) -> bool:
    """Return whether a candidate may have a branch: with a worktree, or before its decision, since
    another machine may have evaluated it."""
    if subject.manifest.evaluations[eval_id].decision is None:
        return True
    return (subject.run_dir / layout.CANDIDATES / eval_id / ".git").exists()
