"""Two real searches of one repository, for tests that read runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.dashboard.samples import HOSTILE_TITLE
from tests.toy import ToyRepository, diff_of_line, idea
from tests.tree.runs import make_target
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run


def make(directory: Path) -> ToyRepository:
    """Create run `one` with three ideas and run `two` with eight; one title is an attack on its
    reader."""
    toy = make_target(directory / "a target")
    patch = diff_of_line("params.txt", "A 1.0", "A 2.5", 1)
    toy.write("ideas/00_hostile.md", idea(HOSTILE_TITLE, patch))
    toy.commit("an idea that attacks the reader")
    for run_id, ideas in (("one", 3), ("two", 8)):
        search(toy.path, run_id, ideas)
    return toy


def search(repo: Path, run_id: str, ideas: int) -> None:
    shape = Shape(
        ideas_per_node=ideas, beam_width=2, max_depth=1, sweep_config_limit=8, confirm_configs=4
    )
    with open_run(RunRequest(repo, run_id, shape=shape, preflight=False)) as coordinator:
        coordinator.finish()


def spending(run: Path, copy: Path, usage: Mapping[str, float]) -> Path:
    """Return a copy of a run with ideas of half a dollar and evaluations of the given cost."""
    shutil.copytree(run, copy)
    (copy / "manifest.json").unlink()
    lines = [json.loads(line) for line in (copy / "events.jsonl").read_bytes().splitlines()]
    for line in lines:
        if line["type"] == "expanded":
            line["usage"] = {"prompt_tokens": 5, "cost_usd": 0.5}
        elif line["type"] in ("completed", "failed"):
            line["outcome"]["usage"] = usage
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (copy / "events.jsonl").write_text(text)
    return copy
