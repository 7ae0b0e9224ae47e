"""The choice of ideas to try on a node: ask the sources, skip duplicates, write idea files.

Idea files are written before the event that records them. If the process dies between the two, the
next owner removes the unrecorded files and chooses again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.procs.cancellation import check
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.storage.artifacts import sha256_file, sha256_text
from treewright.llm.redaction import redact
from treewright.llm.usage import Usage
from treewright.tree.agents.prompts import View
from treewright.tree.config import Config
from treewright.tree.deciding.leftovers import LEFTOVER
from treewright.tree.guard.isolation import Isolation
from treewright.tree.ideas import idea_text
from treewright.tree.ideas.idea_source import GeneratorFailure, Idea, NodeContext
from treewright.tree.ideas.node_description import last_summary
from treewright.tree.ideas.search_history import Outcomes
from treewright.tree.ideas.source_factory import make_rehearsal_source, make_source
from treewright.tree.records import events as ev
from treewright.tree.records import layout, steering, usage_log
from treewright.tree.records.model import (
    BANNED,
    UNSET,
    FileDigest,
    IdeaRecord,
    Manifest,
    Node,
    SkippedIdea,
    Unset,
    ancestors,
)
from treewright.tree.repository.git import git

_log = logging.getLogger("treewright")


@dataclass(slots=True)
class _Choice:
    """The ideas chosen for one expansion, and the skipped ones."""

    most: int
    seen: dict[str, str]
    """Keys of ideas that must not be tried again, with the files of these ideas."""
    settled: set[str]
    """Keys of ideas that an earlier expansion of the node chose or skipped."""
    banned: Sequence[str]
    skips_duplicates: bool
    chosen: list[tuple[Idea, str]] = field(default_factory=list)
    skipped: list[SkippedIdea] = field(default_factory=list)

    @property
    def missing(self) -> int:
        return self.most - len(self.chosen)

    @property
    def taken(self) -> list[str]:
        return [*self.seen, *(key for _, key in self.chosen)]

    def offer_leftover(self, record: IdeaRecord, text: str) -> None:
        """Choose a recorded idea that an earlier expansion did not use."""
        origin = LEFTOVER + record.path
        if pattern := self._ban(text):
            self.skipped.append(SkippedIdea(origin, record.key, BANNED + pattern))
        else:
            self.chosen.append((Idea(text, origin), record.key))

    def offer(self, idea: Idea) -> None:
        """Choose a proposed idea, or skip it as banned or as a duplicate."""
        key = idea_text.key(idea.text)
        if key in self.settled:
            return
        chosen_before = next((other.origin for other, used in self.chosen if used == key), None)
        duplicate_of = self.seen.get(key) or chosen_before
        if pattern := self._ban(idea.text):
            self.skipped.append(SkippedIdea(idea.origin, key, BANNED + pattern))
        elif duplicate_of is not None and self.skips_duplicates:
            self.skipped.append(SkippedIdea(idea.origin, key, duplicate_of))
        elif self.missing > 0:
            self.chosen.append((idea, key))

    def _ban(self, text: str) -> str | None:
        return next((each for each in self.banned if steering.matches(each, text)), None)


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
        """Choose new ideas for a node and write their files.

        Args:
            manifest: The state of the run.
            node_id: The node.
            depth: The depth of the candidates.
            most: The most ideas to choose.
            expansion: The number of this expansion in a policy search, which may expand a node any
                number of times.
            known: The number of outcomes that a policy search knew at the time of the choice.
            left_over: Recorded ideas that are offered before the sources are asked.

        Returns:
            The event to record.

        Raises:
            IdeaSourceError: a source cannot work at all.
        """
        turn = depth if isinstance(expansion, Unset) else expansion
        node = manifest.nodes[node_id]
        directory = self.run_dir / node.node_ideas_dir
        self._remove_unrecorded(directory, node)
        lineage = ancestors(manifest, node)
        snapshot = [
            FileDigest(idea.path, self._digest(idea.path))
            for ancestor in lineage
            for idea in ancestor.ideas
        ]
        choice = _Choice(
            most=most,
            seen=self._seen(manifest, lineage),
            settled=self._settled(manifest, node),
            banned=steering.banned_patterns(steering.applied(manifest.steering)),
            skips_duplicates=self._skips_duplicates(manifest),
        )
        for record in left_over:
            text = self._text(record)
            if text is not None and choice.missing > 0:
                choice.offer_leftover(record, text)
        # The log holds the usage of an attempt that died before it was recorded.
        usage = usage_log.total(directory, usage_log.of_expansion(turn))
        make = make_rehearsal_source if manifest.dry_run else make_source
        failures: list[str] = []
        for number, source in enumerate(map(make, self.config.ideas)):
            if choice.missing <= 0:
                break
            context = self._context(manifest, node, turn, lineage, choice.missing, known)
            try:
                proposals = source.propose(context, choice.taken)
            except GeneratorFailure as failure:
                usage += failure.usage
                failures.append(self._keep_failure(failure, context, number))
                check(self.cancel)
                continue
            # After another failure the directory stays, because the error names a log in it.
            untrusted.remove_tree(context.scratch)
            check(self.cancel)
            usage += proposals.usage
            for idea in proposals.ideas:
                choice.offer(idea)
        return ev.NodeExpanded(
            node_id=node_id,
            depth=depth,
            ideas=self._write(node, depth, choice.chosen, expansion),
            context_ideas_dirs=[ancestor.node_ideas_dir for ancestor in lineage],
            context_idea_files=snapshot,
            dedupe_scope=manifest.dedupe_scope,
            skipped=choice.skipped,
            usage=usage,
            expansion=expansion,
            failures=failures or UNSET,
        )

    def _keep_failure(self, failure: GeneratorFailure, context: NodeContext, number: int) -> str:
        """Move the log of a failed source to its final path. Return the message with that path."""
        kept = context.scratch.with_name(layout.failed_source(number))
        untrusted.remove_tree(kept)
        context.scratch.rename(kept)
        message = redact(str(failure)).replace(str(context.scratch), str(kept))
        _log.warning("idea source %d has none for %s: %s", number + 1, context.node_id, message)
        return message

    def discard(self, manifest: Manifest, node_id: str) -> None:
        """Remove the unrecorded files of an abandoned expansion.

        Its usage stays on disk until an event records it; see `settle`.
        """
        node = manifest.nodes[node_id]
        directory = self.run_dir / node.node_ideas_dir
        self._remove_unrecorded(directory, node)
        untrusted.remove_tree(directory / layout.GENERATING)

    def owed(self, manifest: Manifest) -> Iterator[tuple[str, int]]:
        """Yield node and number of the expansions of a policy search with unrecorded usage."""
        for node in manifest.nodes.values():
            last = 0 if isinstance(node.expansion, Unset) else node.expansion
            numbers = usage_log.expansions(self.run_dir / node.node_ideas_dir)
            yield from ((node.node_id, number) for number in numbers if number > last)

    def cost(self, manifest: Manifest, node_id: str, turn: int) -> Usage:
        """Return the unrecorded usage of an expansion."""
        directory = self.run_dir / manifest.nodes[node_id].node_ideas_dir
        return usage_log.total(directory, usage_log.of_expansion(turn))

    def settle(self, manifest: Manifest, node_id: str, turn: int) -> None:
        """Forget the usage of an expansion, after an event of another expansion recorded it."""
        directory = self.run_dir / manifest.nodes[node_id].node_ideas_dir
        (directory / usage_log.of_expansion(turn)).unlink(missing_ok=True)

    def tidy(self, manifest: Manifest) -> None:
        """Remove idea files that a killed owner of the run wrote and did not record."""
        for node in manifest.nodes.values():
            self._remove_unrecorded(self.run_dir / node.node_ideas_dir, node)

    def tried_before(self, manifest: Manifest, node: Node, key: str) -> str | None:
        """Return the file of the same idea, if the run must not try this idea again."""
        return self._seen(manifest, ancestors(manifest, node)).get(key)

    def _skips_duplicates(self, manifest: Manifest) -> bool:
        """Return whether the run tries an idea only once.

        A search by a policy expands a node until its sources have no new ideas. It always skips
        earlier ideas of the node, for every scope; otherwise it would choose them forever.
        """
        return manifest.dedupe_scope != "none" or manifest.policy_record is not None

    def _settled(self, manifest: Manifest, node: Node) -> set[str]:
        """Return keys of ideas that earlier expansions of a policy search recorded at this node.

        They are not recorded as skipped again.
        """
        if manifest.policy_record is None:
            return set()
        skipped = node.dedupe.skipped if node.dedupe else []
        return {*(idea.key for idea in node.ideas), *(idea.sha256 for idea in skipped)}

    def _seen(self, manifest: Manifest, lineage: list[Node]) -> dict[str, str]:
        """Return the keys of ideas that must not be tried again, with the files of these ideas."""
        if not self._skips_duplicates(manifest):
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
        """Return the checksum of an idea file; "" if the file cannot be read.

        A candidate may have removed or replaced the file. The run goes on, because the record has
        the original checksum, and `--validate-only` reports the file.
        """
        try:
            return sha256_file(self.run_dir / path, untrusted.LARGEST_TEXT)
        except OSError as error:
            _log.warning("%s cannot be read any more: %s", path, error.strerror or error)
            return ""

    def _text(self, idea: IdeaRecord) -> str | None:
        """Return the text of a recorded idea; None if its file has changed."""
        try:
            data = untrusted.read(self.run_dir / idea.path, untrusted.LARGEST_TEXT, self.run_dir)
            text = data.decode("utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        if sha256_text(text) == idea.sha256:
            return text
        _log.warning("%s differs from its recorded checksum; skipping this idea", idea.path)
        return None

    def _remove_unrecorded(self, directory: Path, node: Node) -> None:
        recorded = {self.run_dir / idea.path for idea in node.ideas}
        if directory.is_dir():
            for path in directory.glob(layout.IDEA_FILES):
                if path not in recorded:
                    path.unlink()
            atomic.sweep_temporaries(directory)
