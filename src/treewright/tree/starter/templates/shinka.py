"""The part of the sweep that is different for a task of ShinkaEvolve: one config, which is the
evaluator's. Its text takes the place of what `sweep.py` leaves to be filled in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = CODE = Path()
PROGRAM = ""
EVALUATOR = ""

# -- the task -----------------------------------------------------------------------------


def question(config_id: int, seed: int) -> object:
    """One config; the evaluator chooses its own inputs."""
    return {"program": PROGRAM}


def answer(asked: object) -> object:
    """Run the evaluator on the program; return the files that it writes."""
    import tempfile

    with tempfile.TemporaryDirectory() as results:
        done = subprocess.run(
            [
                sys.executable,
                str(HERE / EVALUATOR),
                "--program_path",
                str(CODE / PROGRAM),
                "--results_dir",
                results,
            ],
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
        )
        written = {}
        for name in ("metrics", "correct"):
            path = Path(results, f"{name}.json")
            written[name] = json.loads(path.read_text("utf-8")) if path.exists() else None
    # Models read this: the end of the sweep's log is part of their prompts.
    for name, value in (written["metrics"] or {}).items():
        if name != "private":
            print(f"metric {name}: {value}"[:1000])
    return {"code": done.returncode, **written}


def judge(asked: object, answered: object) -> dict[str, float]:
    """Return `combined_score`, and whether the program is correct."""
    if not isinstance(answered, dict) or not isinstance(answered.get("metrics"), dict):
        raise TypeError(f"{EVALUATOR} wrote no metrics.json")
    if answered["code"] != 0:
        raise ValueError(f"{EVALUATOR} ended with code {answered['code']}")
    said = answered.get("correct")
    if not isinstance(said, dict) or "correct" not in said:
        raise ValueError(f"{EVALUATOR} wrote no correct.json")
    if said.get("error"):
        print(f"the evaluator says: {said['error']}", file=sys.stderr)
    metrics = answered["metrics"]
    return {"combined_score": metrics.get("combined_score"), "correct": int(bool(said["correct"]))}
