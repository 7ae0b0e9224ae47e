"""The results that candidates are compared with, which their code can reach and must not change.

Code under test runs as the same user as the search, so it can write where the search can. A
comparison therefore uses only bytes with the recorded SHA-256. The owner of a run keeps the
baselines of its frontier in memory, compares the files after a candidate's tests or sweep have
passed, and restores changed ones. A copy in the repository's object store serves an owner after a
crash.

A *baseline* is the results of a node, on the configs of the search or on the held-out configs. The
*deciding files* are the baselines, and the results of evaluations that are not decided yet.
"""

from __future__ import annotations

import hashlib
import logging
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.storage import artifacts, untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.records.model import Manifest, Node
from treewright.tree.repository import refs
from treewright.tree.repository.git import command, environment, git, try_git

DECIDING_FILE_CHANGED = "deciding_file_changed"

_log = logging.getLogger("treewright")


class KeptFile(msgspec.Struct, frozen=True):
    """A recorded file and its bytes, which have the recorded SHA-256."""

    artifact: Artifact
    data: bytes


def baselines(nodes: Iterable[Node]) -> list[Artifact]:
    """Return the results that comparisons with these nodes use."""
    found = [a for n in nodes for a in (n.artifacts.baseline, n.artifacts.heldout) if a is not None]
    return list({artifact.path: artifact for artifact in found}.values())


def needed_files(manifest: Manifest) -> list[Artifact]:
    """Return the results that comparisons with the root and the current frontier use."""
    nodes: list[Node] = [n for n in manifest.nodes.values() if n.parent_node_id is None]
    return baselines([*nodes, *(manifest.nodes[name] for name in manifest.frontier)])


def undecided_results(manifest: Manifest) -> list[Artifact]:
    """Return results that become a node's baseline if their evaluation is promoted."""
    return [
        e.results_csv
        for e in manifest.evaluations.values()
        if e.decision is None and e.results_csv is not None
    ]


def _distinct(artifacts: Iterable[Artifact]) -> Iterable[Artifact]:
    """Return each file once: several nodes and evaluations may share one."""
    return {(each.path, each.sha256): each for each in artifacts}.values()


@dataclass(slots=True)
class DecidingFiles:
    """The deciding files of one run, in memory and on disk; shared by all of its workers."""

    run_dir: Path
    repo: Path
    run_id: str
    dry_run: bool = False
    _in_memory: dict[str, KeptFile] = field(default_factory=dict)
    _copied: set[str] | None = None
    """Names of files with a copy in the object store; None until they are first listed."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load_all(self, manifest: Manifest) -> None:
        """Load the files that decide from now on into memory, and drop all others.

        Baselines without a copy in the object store get one.
        """
        needed = {each.path: self.read(each) for each in _distinct(needed_files(manifest))}
        results = {each.path: self.read(each) for each in _distinct(undecided_results(manifest))}
        with self._lock:
            self._in_memory = results | needed
        self._copy_missing(needed.values())

    def load_nodes(self, nodes: Iterable[Node]) -> None:
        """Load the baselines of more nodes into memory, and copy them to the object store."""
        found = [self._in_memory.get(a.path) or self.read(a) for a in baselines(nodes)]
        for kept in found:
            self.keep_in_memory(kept)
        self._copy_missing(found)

    def drop(self, artifacts: Iterable[Artifact]) -> None:
        with self._lock:
            for artifact in artifacts:
                self._in_memory.pop(artifact.path, None)

    def keep_in_memory(self, kept: KeptFile) -> None:
        with self._lock:
            self._in_memory[kept.artifact.path] = kept

    def read(self, artifact: Artifact) -> KeptFile:
        """Return the recorded file; restore it first if the one on disk was changed.

        Raises:
            StorageError: The file was changed, and no copy of it exists.
        """
        found = self._read_unchanged(artifact)
        if found is not None:
            return KeptFile(artifact, found)
        kept = self._in_memory.get(artifact.path)
        data = kept.data if kept is not None and kept.artifact == artifact else None
        if data is None and not self.dry_run:
            data = self._read_copy(artifact)
        if data is None:
            raise StorageError(
                f"{self.run_dir / artifact.path} is not the file that was recorded, and there is "
                "no copy of it; restore it from a backup, or start a new run"
            )
        _log.warning("%s was changed outside of the search; it was restored", artifact.path)
        artifacts.write(self.run_dir / artifact.path, data)
        return KeptFile(artifact, data)

    def get(self, artifact: Artifact) -> KeptFile:
        """Return the recorded file, from memory if it is there.

        `restore_changed` compares the file on disk after tests or a sweep have passed.
        """
        kept = self._in_memory.get(artifact.path)
        return kept if kept is not None and kept.artifact == artifact else self.read(artifact)

    def restore_changed(self) -> list[str]:
        """Restore the files in memory that were changed or removed on disk; return their paths."""
        with self._lock:
            changed = [
                k for k in self._in_memory.values() if self._read_unchanged(k.artifact) is None
            ]
            for kept in changed:
                artifacts.write(self.run_dir / kept.artifact.path, kept.data)
        return [kept.artifact.path for kept in changed]

    def _read_unchanged(self, artifact: Artifact) -> bytes | None:
        """Return the bytes of the file on disk; None if they are not the recorded ones."""
        try:
            data = untrusted.read(self.run_dir / artifact.path, artifact.bytes, self.run_dir)
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == artifact.sha256 else None

    def _copy_missing(self, files: Iterable[KeptFile]) -> None:
        """Copy files to the object store that have no copy there."""
        if self.dry_run:
            return
        if self._copied is None:
            prefix = f"refs/treewright/{self.run_id}/artifacts/"
            found = refs.refs_below(self.repo, prefix)
            self._copied = {ref.removeprefix(prefix) for ref in found}
        missing = {n: k for k in files if (n := _name(k.artifact)) not in self._copied}
        lines = [
            f"update {_ref(self.run_id, k.artifact)} {self._write_object(k)}"
            for k in missing.values()
        ]
        if lines:
            git(self.repo, "update-ref", "--stdin", stdin="\n".join([*lines, ""]))
            self._copied |= missing.keys()

    def _write_object(self, kept: KeptFile) -> str:
        """Write the bytes to the object store and return their object name."""
        return self._git("hash-object", "-w", "--stdin", data=kept.data).decode("ascii").strip()

    def _read_copy(self, artifact: Artifact) -> bytes | None:
        """Return the bytes of the copy in the object store; None without a sound copy."""
        ref = _ref(self.run_id, artifact)
        if try_git(self.repo, "rev-parse", "-q", "--verify", ref).returncode != 0:
            return None
        data = self._git("cat-file", "blob", ref)
        return data if hashlib.sha256(data).hexdigest() == artifact.sha256 else None

    def _git(self, *arguments: str, data: bytes = b"") -> bytes:
        """Run git with bytes: text mode would change line endings."""
        done = subprocess.run(
            command(*arguments),
            cwd=self.repo,
            env=environment(cwd=self.repo),
            input=data,
            capture_output=True,
            check=False,
            start_new_session=True,
        )
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise StorageError(f"git {arguments[0]} failed in {self.repo}: {said}")
        return done.stdout


def _name(artifact: Artifact) -> str:
    return PurePosixPath(artifact.path).name


def _ref(run_id: str, artifact: Artifact) -> str:
    return f"refs/treewright/{run_id}/artifacts/{_name(artifact)}"
