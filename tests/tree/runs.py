"""Small finished runs, real and dry, and functions that damage their records."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.toy import ToyRepository, diff_of_line, idea, set_parameter
from treewright.tree.records import events as ev
from treewright.tree.records import store
from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run

RUN_ID = "run"


def search(repo: Path, **shape: Any) -> Path:
    """Search until there is a stop reason and return the run directory."""
    request = RunRequest(repo=repo, run_id=RUN_ID, shape=Shape(**shape))
    with open_run(request) as coordinator:
        coordinator.finish()
        return coordinator.store.run_dir


def make_target(path: Path) -> ToyRepository:
    """Create a repository with ideas that help, hurt, change nothing, cheat and break."""
    toy = ToyRepository.create(path)
    cheat = diff_of_line("sweep.sh", "#!/bin/sh", "#!/bin/bash", 1, _SECOND_LINE_OF_SWEEP)
    toy.write("ideas/05_cheat.md", idea("Be |<script> kind & *cheat*", cheat))
    toy.write("ideas/06_break.md", idea("Break it", diff_of_line("nope.txt", "a", "b", 1)))
    toy.write("ideas/07_help.md", set_parameter("D", 0.1))
    toy.commit("more ideas")
    return toy


_SECOND_LINE_OF_SWEEP = "start=${TREEWRIGHT_SWEEP_CONFIG_START:-0}"


@dataclass(frozen=True)
class FinishedRun:
    """A run with a repository that is restored, at the same path, before every use."""

    toy: ToyRepository
    backup: Path

    @classmethod
    def make(cls, directory: Path, **shape: Any) -> FinishedRun:
        toy = make_target(directory / "a target")
        search(toy.path, **shape)
        backup = directory / "backup"
        shutil.copytree(toy.path, backup, symlinks=True)
        return cls(toy, backup)

    def restore(self) -> None:
        shutil.rmtree(self.toy.path)
        shutil.copytree(self.backup, self.toy.path, symlinks=True)

    @property
    def run_dir(self) -> Path:
        return self.toy.run_dir(RUN_ID)

    @property
    def manifest(self) -> Manifest:
        return store.load(self.run_dir)

    def promoted(self) -> str:
        """Return the first evaluation that became a node."""
        return self.manifest.nodes["n0001"].artifacts.promoted_from_eval_id or ""

    def rewrite_manifest(self, change: Callable[[Manifest], object]) -> None:
        """Change manifest.json only and correct its checksum."""
        manifest = self.manifest
        change(manifest)
        (self.run_dir / "manifest.json").write_bytes(store.encode(manifest))

    def rewrite_history(self, change: Callable[[Manifest], object]) -> None:
        """Forge the run: manifest and events agree, and every checksum is correct."""
        manifest = self.manifest
        change(manifest)
        events = self.run_dir / "events.jsonl"
        created = ev.RunCreated(manifest=manifest, epoch=manifest.snapshot.journal_epoch)
        data = msgspec.json.encode(created) + b"\n"
        manifest.snapshot.journal_offset = len(data)
        events.write_bytes(data)
        (self.run_dir / "manifest.json").write_bytes(store.encode(manifest))
