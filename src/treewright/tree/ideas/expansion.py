"""Choosing the ideas to try on a node: ask the sources, leave out duplicates, keep files.

Files are written before the event that records them; files of a node that no event
recorded (we were killed in between) are removed and the choice is made again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.procs.cancellation import check
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.storage.artifacts import sha256_file, sha256_text
from treewright.llm.redaction import redact
from treewright.llm.usage import Usage
from treewright.tree.agents.view import View
from treewright.tree.config import CommandBackend, Config, OpenaiBackend
from treewright.tree.deciding.leftovers import LEFTOVER
from treewright.tree.guard.isolation import Isolation
from treewright.tree.ideas import idea_text
from treewright.tree.ideas.history_markdown import AGENT_CHARS, tell
from treewright.tree.ideas.idea_source import GeneratorFailure, Idea, NodeContext
from treewright.tree.ideas.node_description import measured
from treewright.tree.ideas.search_history import Outcomes
from treewright.tree.ideas.source_factory import make_source, rehearsed_source
from treewright.tree.records import events as ev
from treewright.tree.records import layout, steering, summary, usage_log
from treewright.tree.records.model import (
    BANNED,
    UNSET,
    FileDigest,
    IdeaRecord,
    Manifest,
    Node,
    SkippedIdea,
    Unset,
)
from treewright.tree.report.run_facts import read_title
from treewright.tree.repository.git import git

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands nodes of one run."""

    repo: Path
    run_dir: Path
    config: Config
    owner: str = ""
    cancel: threading.Event | None = None

    def expand(
        self,
        manifest: Manifest,
        node_id: str,
        depth: int,
        most: int,
        expansion: int | Unset = UNSET,
        known: int | None = None,
        left_over: Sequence[IdeaRecord] = (),
    ) -> ev.NodeExpanded:
        """Chooses up to `most` new ideas and writes their files, first those of `left_over`.
        `expansion` is the number of this one in a run without a barrier, where a node may be
        expanded any number of times; `known` how many outcomes are known there."""
        turn = depth if isinstance(expansion, Unset) else expansion
        node = manifest.nodes[node_id]
        directory = self.run_dir / node.node_ideas_dir
        self._remove_unrecorded(directory, node)
        lineage = list(ancestors(manifest, node))
        snapshot = [
            FileDigest(idea.path, self._digest(idea.path))
            for ancestor in lineage
            for idea in ancestor.ideas
        ]
        seen = self._seen(manifest, lineage)
        settled = self._settled(manifest, node)
        banned = steering.banned_patterns(steering.applied(manifest.steering))
        chosen: list[tuple[Idea, str]] = []
        skipped: list[SkippedIdea] = []
        for record in left_over:
            text = self._text(record)
            if text is None or len(chosen) == most:
                continue
            if pattern := next((p for p in banned if steering.matches(p, text)), None):
                skipped.append(SkippedIdea(LEFTOVER + record.path, record.key, BANNED + pattern))
            else:
                chosen.append((Idea(text, LEFTOVER + record.path), record.key))
        usage = usage_log.total(directory, usage_log.of_expansion(turn))  # of one that was lost
        make = rehearsed_source if manifest.dry_run else make_source
        failures: list[str] = []
        for number, source in enumerate(map(make, self.config.ideas)):
            wanted = most - len(chosen)
            if wanted <= 0:
                break
            context = self._context(manifest, node, turn, lineage, wanted, known)
            try:
                proposals = source.propose(context, [*seen, *(key for _, key in chosen)])
            except GeneratorFailure as failure:
                usage += failure.usage
                failures.append(self._keep_failure(failure, context, number))
                check(self.cancel)
                continue
            # Kept when the source failed: its error names a log in there.
            untrusted.remove_tree(context.scratch)
            check(self.cancel)
            usage += proposals.usage
            for idea in proposals.ideas:
                key = idea_text.key(idea.text)
                if key in settled:
                    continue
                duplicate_of = seen.get(key) or _chosen_before(chosen, key)
                if pattern := next((p for p in banned if steering.matches(p, idea.text)), None):
                    skipped.append(SkippedIdea(idea.origin, key, f"{BANNED}{pattern}"))
                elif duplicate_of is not None and self._dedupes(manifest):
                    skipped.append(SkippedIdea(idea.origin, key, duplicate_of))
                elif len(chosen) < most:
                    chosen.append((idea, key))
        return ev.NodeExpanded(
            node_id=node_id,
            depth=depth,
            ideas=self._write(node, depth, chosen, expansion),
            context_ideas_dirs=[ancestor.node_ideas_dir for ancestor in lineage],
            context_idea_files=snapshot,
            dedupe_scope=manifest.dedupe_scope,
            skipped=skipped,
            usage=usage,
            expansion=expansion,
            failures=failures or UNSET,
        )

    def _keep_failure(self, failure: GeneratorFailure, context: NodeContext, number: int) -> str:
        """Moves the log of a failed source out of the way of the next one. Returns the failure in
        words, with the log's new path."""
        kept = context.scratch.with_name(layout.failed_source(number))
        untrusted.remove_tree(kept)
        context.scratch.rename(kept)
        said = redact(str(failure)).replace(str(context.scratch), str(kept))
        _log.warning("idea source %d has none for %s: %s", number + 1, context.node_id, said)
        return said

    def discard(self, manifest: Manifest, node_id: str) -> None:
        """Removes what an expansion left that is not recorded and will not be. What it cost
        stays on disk until an event carries it: `settle`."""
        node = manifest.nodes[node_id]
        directory = self.run_dir / node.node_ideas_dir
        self._remove_unrecorded(directory, node)
        untrusted.remove_tree(directory / layout.GENERATING)

    def owed(self, manifest: Manifest) -> Iterator[tuple[str, int]]:
        """Node and number of expansions that cost something and that no event recorded, in a
        run without a barrier."""
        for node in manifest.nodes.values():
            last = 0 if isinstance(node.expansion, Unset) else node.expansion
            numbers = usage_log.expansions(self.run_dir / node.node_ideas_dir)
            yield from ((node.node_id, number) for number in numbers if number > last)

    def cost(self, manifest: Manifest, node_id: str, turn: int) -> Usage:
        """What an expansion has cost that no event recorded."""
        directory = self.run_dir / manifest.nodes[node_id].node_ideas_dir
        return usage_log.total(directory, usage_log.of_expansion(turn))

    def settle(self, manifest: Manifest, node_id: str, turn: int) -> None:
        """What it cost is recorded with another expansion."""
        directory = self.run_dir / manifest.nodes[node_id].node_ideas_dir
        (directory / usage_log.of_expansion(turn)).unlink(missing_ok=True)

    def tidy(self, manifest: Manifest) -> None:
        """Removes idea files that a killed owner had written and not recorded."""
        for node in manifest.nodes.values():
            self._remove_unrecorded(self.run_dir / node.node_ideas_dir, node)

    def tried_before(self, manifest: Manifest, node: Node, key: str) -> str | None:
        """The file of an idea with that key, where the run does not try one twice."""
        return self._seen(manifest, list(ancestors(manifest, node))).get(key)

    def _dedupes(self, manifest: Manifest) -> bool:
        """Without a barrier a node is asked for more ideas until it has none: its own count as
        tried whatever the scope, or it would be given the same ones for ever."""
        return manifest.dedupe_scope != "none" or manifest.policy_record is not None

    def _settled(self, manifest: Manifest, node: Node) -> set[str]:
        """Ideas that the node has, or was found not to need, in an expansion before this one:
        said once is enough where there may be many."""
        if manifest.policy_record is None:
            return set()
        skipped = node.dedupe.skipped if node.dedupe else []
        return {*(idea.key for idea in node.ideas), *(idea.sha256 for idea in skipped)}

    def _seen(self, manifest: Manifest, lineage: list[Node]) -> dict[str, str]:
        """Digests of idea texts that must not be tried again -> the file that has them."""
        if not self._dedupes(manifest):
            return {}
        nodes = {
            "none": lineage[:1],
            "node_plus_ancestors": lineage,
            "global": list(manifest.nodes.values()),
        }[manifest.dedupe_scope]
        return {idea.key: idea.path for node in nodes for idea in node.ideas}

    def _context(
        self,
        manifest: Manifest,
        node: Node,
        turn: int,
        lineage: list[Node],
        wanted: int,
        known: int | None,
    ) -> NodeContext:
        scratch = self.run_dir / node.node_ideas_dir / layout.GENERATING
        untrusted.remove_tree(scratch)
        scratch.mkdir(parents=True)
        diff_stat = ""
        if node.commit != manifest.root_commit:
            diff_stat = git(self.repo, "diff", "--stat", manifest.root_commit, node.commit)
        return NodeContext(
            node_id=node.node_id,
            depth=node.depth,
            round=turn,
            wanted=wanted,
            seed=manifest.seed,
            checkout=self.run_dir / node.worktree_path if node.worktree_path else self.repo,
            repo=self.repo,
            context_ideas_dirs=[self.run_dir / ancestor.node_ideas_dir for ancestor in lineage],
            diff_stat=diff_stat,
            last_summary=last_summary(self.run_dir, manifest, node),
            scratch=scratch,
            protected_paths=manifest.protected_paths,
            editable_blocks=self.config.editable_blocks,
            task=self.config.task.strip(),
            view=View.of(self.config, manifest.protected_paths),
            outcomes=Outcomes(self.repo, self.run_dir, self.config, manifest, node, known),
            owner=self.owner,
            cancel=self.cancel,
            isolation=Isolation.of(self.config, self.repo, self.run_dir),
        )

    def _write(
        self, node: Node, depth: int, chosen: list[tuple[Idea, str]], expansion: int | Unset
    ) -> list[IdeaRecord]:
        directory = self.run_dir / node.node_ideas_dir
        atomic.make_directory(directory)
        files: dict[str, bytes] = {}
        records = []
        for number, (idea, key) in enumerate(chosen, start=len(node.ideas)):
            name = layout.idea_file(number)
            files[name] = idea.text.encode("utf-8")
            path = f"{node.node_ideas_dir}/{name}"
            digest = sha256_text(idea.text)
            records.append(IdeaRecord(path, digest, key, idea.origin, depth, expansion))
        atomic.write_many(directory, files)
        return records

    def _digest(self, path: str) -> str:
        """Of an idea's file as it is now. One that a candidate removed, or put a pipe for, ends no
        run: what was recorded of it is enough to go on, and `--validate-only` names it."""
        try:
            return sha256_file(self.run_dir / path, untrusted.LARGEST_TEXT)
        except OSError as error:
            _log.warning("%s cannot be read any more: %s", path, error.strerror or error)
            return ""

    def _text(self, idea: IdeaRecord) -> str | None:
        """Return the text of a recorded idea; None if its file is no longer what it was."""
        try:
            data = untrusted.read(self.run_dir / idea.path, untrusted.LARGEST_TEXT, self.run_dir)
            text = data.decode("utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        if sha256_text(text) == idea.sha256:
            return text
        _log.warning("%s is not the idea that was recorded; it is not offered again", idea.path)
        return None

    def _remove_unrecorded(self, directory: Path, node: Node) -> None:
        recorded = {self.run_dir / idea.path for idea in node.ideas}
        if directory.is_dir():
            for path in directory.glob(layout.IDEA_FILES):
                if path not in recorded:
                    path.unlink()
            atomic.sweep_temporaries(directory)


def ancestors(manifest: Manifest, node: Node) -> Iterator[Node]:
    """The node, its parent, and so on to the root."""
    current: Node | None = node
    while current is not None:
        yield current
        parent = current.parent_node_id
        current = manifest.nodes[parent] if parent is not None else None


def last_summary(run_dir: Path, manifest: Manifest, node: Node) -> dict | None:
    """The scoring summary of the evaluation that became this node."""
    eval_id = node.artifacts.promoted_from_eval_id
    if eval_id is None:
        return None
    document = summary.read(run_dir / layout.summary(manifest.evaluations[eval_id].experiment_dir))
    return document["scoring_summary"] if document else None


def _chosen_before(chosen: list[tuple[Idea, str]], key: str) -> str | None:
    return next((idea.origin for idea, other in chosen if other == key), None)


def asks_in_words(config: Config) -> bool:
    """Whether some agent is given a prompt."""
    agents = config.agents
    backends = (agents.planner, agents.coder, agents.reviewer)
    return any(isinstance(backend, CommandBackend | OpenaiBackend) for backend in backends)


def describe_node(outcomes: Outcomes) -> str:
    """For agents: the accepted ideas so far, how the node compares with its parent and the root,
    and, if any of them is asked in words, what was tried before."""
    manifest, node, run_dir = outcomes.manifest, outcomes.node, outcomes.run_dir
    if node.parent_node_id is None:
        lines = [f"This is the root of the search, commit {node.commit[:12]}."]
    else:
        lines = [f"Node {node.node_id} at depth {node.depth}, commit {node.commit[:12]}.", ""]
        lines.append("Ideas already applied, oldest first:")
        for ancestor in reversed(list(ancestors(manifest, node))):
            if ancestor.idea_chain:
                path = run_dir / ancestor.idea_chain[-1]
                lines.append(f"- {read_title(path)}")
        lines += ["", *measured(last_summary(run_dir, manifest, node))]
    if asks_in_words(outcomes.config):
        lines += ["", *tell(outcomes, AGENT_CHARS)]
    return "\n".join(lines).rstrip("\n")
