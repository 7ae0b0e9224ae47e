"""The files that decide: baselines, which a candidate's code can reach and must not change.

Code under test runs as the same user as the search, so it can write where the search can.
What is compared is therefore never what lies on the disk now, but what has the recorded
sha256: the owner of a run holds the baselines of its frontier in memory, looks at the files
whenever a candidate's code has run, and puts back what was changed. A copy in the
repository's object store does the same for an owner that comes after a crash.
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
    """A recorded file with its bytes, which have the recorded sha256."""

    artifact: Artifact
    data: bytes


def baselines(nodes: Iterable[Node]) -> list[Artifact]:
    """What comparisons with these nodes rest on."""
    found = [a for n in nodes for a in (n.artifacts.baseline, n.artifacts.heldout) if a is not None]
    return list({artifact.path: artifact for artifact in found}.values())


def needed_files(manifest: Manifest) -> list[Artifact]:
    """What the comparisons of the present frontier rest on."""
    nodes: list[Node] = [n for n in manifest.nodes.values() if n.parent_node_id is None]
    return baselines([*nodes, *(manifest.nodes[name] for name in manifest.frontier)])


def undecided_results(manifest: Manifest) -> list[Artifact]:
    """Results that may become a node's baseline when their depth is decided."""
    return [
        e.results_csv
        for e in manifest.evaluations.values()
        if e.decision is None and e.results_csv is not None
    ]


def _once(artifacts: Iterable[Artifact]) -> Iterable[Artifact]:
    """One of each: many nodes and evaluations may have the same file."""
    return {(each.path, each.sha256): each for each in artifacts}.values()


@dataclass(slots=True)
class DecidingFiles:
    """Reads the deciding files of one run; one instance serves all of its workers."""

    run_dir: Path
    repo: Path
    run_id: str
    dry_run: bool = False
    _held: dict[str, KeptFile] = field(default_factory=dict)
    _copied: set[str] | None = None
    """Names of those that have a copy; listed when it is first asked."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hold_all(self, manifest: Manifest) -> None:
        """Takes what decides from now on into memory, and lets go of the rest. Of baselines a
        copy is made, if there is none."""
        held = {each.path: self.read(each) for each in _once(needed_files(manifest))}
        results = {each.path: self.read(each) for each in _once(undecided_results(manifest))}
        with self._lock:
            self._held = results | held
        self._copy_all(held.values())

    def hold_nodes(self, nodes: Iterable[Node]) -> None:
        """Takes these nodes' baselines into memory besides what is held, and makes copies."""
        found = [self._held.get(a.path) or self.read(a) for a in baselines(nodes)]
        for kept in found:
            self.hold(kept)
        self._copy_all(found)

    def let_go(self, artifacts: Iterable[Artifact]) -> None:
        with self._lock:
            for artifact in artifacts:
                self._held.pop(artifact.path, None)

    def hold(self, kept: KeptFile) -> None:
        with self._lock:
            self._held[kept.artifact.path] = kept

    def read(self, artifact: Artifact) -> KeptFile:
        """The file as it was recorded; a changed one is put back from a copy, or an error."""
        found = self._on_disk(artifact)
        if found is not None:
            return KeptFile(artifact, found)
        kept = self._held.get(artifact.path)
        data = kept.data if kept is not None and kept.artifact == artifact else None
        if data is None and not self.dry_run:
            data = self._from_copy(artifact)
        if data is None:
            raise StorageError(
                f"{self.run_dir / artifact.path} is not the file that was recorded, and there is "
                "no copy of it; restore it from a backup, or start a new run"
            )
        _log.warning("%s was changed by something else; it was put back", artifact.path)
        artifacts.write(self.run_dir / artifact.path, data)
        return KeptFile(artifact, data)

    def held(self, artifact: Artifact) -> KeptFile:
        """The file as it was recorded, from memory where it is held: out of everybody's reach.
        Whether the one on disk was changed is asked after each evaluation (`put_back`)."""
        kept = self._held.get(artifact.path)
        return kept if kept is not None and kept.artifact == artifact else self.read(artifact)

    def put_back(self) -> list[str]:
        """Restores held files that were changed or removed; says which these were."""
        with self._lock:
            changed = [k for k in self._held.values() if self._on_disk(k.artifact) is None]
            for kept in changed:
                artifacts.write(self.run_dir / kept.artifact.path, kept.data)
        return [kept.artifact.path for kept in changed]

    def _on_disk(self, artifact: Artifact) -> bytes | None:
        try:
            data = untrusted.read(self.run_dir / artifact.path, artifact.bytes, self.run_dir)
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == artifact.sha256 else None

    def _copy_all(self, files: Iterable[KeptFile]) -> None:
        if self.dry_run:
            return
        if self._copied is None:
            self._copied = self._copies()
        missing = {n: k for k in files if (n := _name(k.artifact)) not in self._copied}
        lines = [
            f"update {_ref(self.run_id, k.artifact)} {self._copy(k)}" for k in missing.values()
        ]
        if lines:
            git(self.repo, "update-ref", "--stdin", stdin="\n".join([*lines, ""]))
            self._copied |= missing.keys()

    def _copies(self) -> set[str]:
        prefix = f"refs/treewright/{self.run_id}/artifacts/"
        return {ref.removeprefix(prefix) for ref in refs.refs_below(self.repo, prefix)}

    def _copy(self, kept: KeptFile) -> str:
        """Puts the bytes into the object store; their name there."""
        return self._git("hash-object", "-w", "--stdin", data=kept.data).decode("ascii").strip()

    def _from_copy(self, artifact: Artifact) -> bytes | None:
        ref = _ref(self.run_id, artifact)
        if try_git(self.repo, "rev-parse", "-q", "--verify", ref).returncode != 0:
            return None
        data = self._git("cat-file", "blob", ref)
        return data if hashlib.sha256(data).hexdigest() == artifact.sha256 else None

    def _git(self, *arguments: str, data: bytes = b"") -> bytes:
        """In bytes, because text mode would change line endings."""
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
