"""Notices: commands of the user that get chosen events as JSON on standard input.

The owner turns an event into a document as soon as it is recorded, and a thread runs the commands;
the search never waits for them. If commands are slower than events, the oldest waiting documents
are dropped, and each later document says how many. docs/notices.md describes the documents.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.operating_system import shell
from treewright.kernel.procs import proctree
from treewright.tree.config import NoticeConfig
from treewright.tree.guard.isolation import Isolation
from treewright.tree.records import events as ev
from treewright.tree.records import layout
from treewright.tree.records.description import best_node
from treewright.tree.records.model import Evaluation, Manifest

PAYLOAD_VERSION = 1
_MOST_WAITING = 100
_ENDING_SECONDS = 5.0
"""The time that a command has to end after it was killed."""
_log = logging.getLogger("treewright")

Document = dict[str, Any]


class Notices:
    """Watches a run and runs the commands of its configuration."""

    def __init__(
        self, commands: Sequence[NoticeConfig], repo: Path, isolation: Isolation | None = None
    ) -> None:
        self._commands = commands
        self._repo = repo
        self._isolation = isolation
        self._waiting: deque[Document] = deque(maxlen=_MOST_WAITING)
        self._dropped = 0
        self._best: str | None = None
        self._stop_reason: str | None = None
        self._changed = threading.Condition()
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self._running: subprocess.Popen[bytes] | None = None

    def begin(self, manifest: Manifest) -> None:
        """Remember the best node and the stop reason; only changes of them are reported."""
        self._best = best_node(manifest).node_id
        self._stop_reason = manifest.stop_reason

    def recorded(self, event: ev.Event, manifest: Manifest) -> None:
        """Report an event that is durable and applied to the manifest."""
        if not self._commands:
            return
        if isinstance(event, ev.Completed | ev.Failed):
            one = manifest.evaluations[event.eval_id]
            self._tell("evaluated", manifest, evaluation=_evaluated(one))
        if isinstance(event, ev.Decided):
            self._tell("depth_done", manifest)
        if isinstance(event, ev.Decided | ev.Settled):
            best = best_node(manifest) if self._may_be_better(event) else None
            if best is not None and best.node_id != self._best:
                self._best = best.node_id
                self._tell("new_best", manifest)
        if isinstance(event, ev.Steered):
            self._tell("steered", manifest, steering=event.record)
        if manifest.stop_reason != self._stop_reason:
            self._stop_reason = manifest.stop_reason
            if self._stop_reason is not None:
                reached = self._stop_reason == "cap_reached"
                self._tell("cap_reached" if reached else "finished", manifest)

    def paused(self, why: str, manifest: Manifest) -> None:
        """Report that an outage paused the run."""
        self._tell("paused", manifest, message=why)

    def close(self) -> None:
        """Let waiting documents be delivered, then kill a command that hangs."""
        if self._thread is None:
            return
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(max(command.finish_seconds for command in self._commands))
        running = self._running
        if running is not None and self._thread.is_alive():
            self._waiting.clear()
            proctree.kill_group(running.pid)
            self._thread.join(_ENDING_SECONDS)

    def _may_be_better(self, event: ev.Decided | ev.Settled) -> bool:
        return bool(event.nodes) if isinstance(event, ev.Decided) else event.node is not None

    def _tell(self, kind: str, manifest: Manifest, **more: Any) -> None:
        if not any(kind in command.events for command in self._commands):
            return
        run_dir = layout.runs_directory(self._repo) / manifest.tree_run_id
        document = {**payload(kind, manifest), "run_dir": str(run_dir)}
        document |= msgspec.to_builtins(more)
        with self._changed:
            self._dropped += len(self._waiting) == _MOST_WAITING
            self._waiting.append({**document, "dropped": self._dropped})
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="notices", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while (document := self._next()) is not None:
            for command in self._commands:
                if document["event"] in command.events:
                    self._run(command, document)

    def _run(self, command: NoticeConfig, document: Document) -> None:
        """Run one command; at its time limit its process group is killed."""
        environment, around = dict(os.environ), []
        if command.isolated and self._isolation is not None:
            environment = self._isolation.environment(environment, command)
            around = self._isolation.around(None, command)
        line = shell(command.command)
        try:
            started = self._running = subprocess.Popen(
                line if isinstance(line, str) else [*around, *line],
                shell=isinstance(line, str),
                cwd=self._repo,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("the notice `%s` could not be run: %s", command.command, error)
            return
        try:
            started.communicate(msgspec.json.encode(document) + b"\n", command.timeout_seconds)
        except subprocess.TimeoutExpired:
            proctree.kill_group(started.pid)
            started.wait()
        self._running = None
        if started.returncode != 0:
            how = "was ended" if started.returncode < 0 else f"exited with {started.returncode}"
            _log.warning("the notice `%s` %s", command.command, how)

    def _next(self) -> Document | None:
        with self._changed:
            while not self._waiting:
                if self._is_ending:
                    return None
                self._changed.wait()
            return self._waiting.popleft()


def payload(kind: str, manifest: Manifest) -> Document:
    """Return the fields that every document has."""
    best = best_node(manifest)
    found = best.root_relative
    return {
        "payload_version": PAYLOAD_VERSION,
        "event": kind,
        "tree_run_id": manifest.tree_run_id,
        "stop_reason": manifest.stop_reason,
        "depth": manifest.current_depth,
        "evaluations": len(manifest.evaluations),
        "nodes": len(manifest.nodes),
        "best": {
            "node_id": best.node_id,
            "commit": best.commit,
            "score": best.score,
            "primary_gain": found.primary_gain if found is not None else 0.0,
        },
        "spent": msgspec.to_builtins(manifest.spent),
    }


def _evaluated(one: Evaluation) -> Document:
    found = one.root_relative
    return {
        "eval_id": one.eval_id,
        "parent_node_id": one.parent_node_id,
        "idea_path": one.idea_path,
        "status": one.status,
        "score": found.score if found is not None else None,
        "error": one.error.code if one.error is not None else None,
    }


@contextlib.contextmanager
def watching(
    commands: Sequence[NoticeConfig], repo: Path, isolation: Isolation | None = None
) -> Iterator[Notices]:
    """Yield the notices of a run; at the end waiting documents are delivered."""
    notices = Notices(commands, repo, isolation)
    try:
        yield notices
    finally:
        notices.close()
