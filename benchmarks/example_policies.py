"""Every policy on the bundled example, at the same number of evaluations.

    python -m benchmarks.example_policies

A real search each: git, patches, tests, sweeps, held-out confirmation; one worker. Shown is the
gain of the best confirmed node on the root after so many evaluations, relative. One run a
policy: the example's ideas come in a fixed order, so this is an illustration, not a statistic.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import seconds
from treewright.search import policies

EVALUATIONS = 24
SHOWN = (6, 12, 18, 24)
_EXAMPLE = Path(__file__).parents[1] / "examples" / "forecast"
_BEAM = ("--beam-width", "2", "--ideas-per-node", "4")
_FLAGS = (
    *("--max-total-idea-evals", str(EVALUATIONS)),
    *("--max-depth", "6"),
    *("--sweep-config-limit", "12"),
    *("--confirm-configs", "6"),
)


def repository(parent: Path) -> Path:
    repo = parent / "forecast"
    unwanted = shutil.ignore_patterns("__pycache__", ".treewright", "results.csv")
    shutil.copytree(_EXAMPLE, repo, ignore=unwanted)
    identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@treewright.invalid")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Demand forecast"]):
        subprocess.run(["git", *identity, *arguments], cwd=repo, check=True)
    return repo


def gains(run_dir: Path) -> list[float]:
    """The best relative gain of a promoted node so far, after each evaluation by number."""
    manifest = json.loads((run_dir / "manifest.json").read_text("utf-8"))
    best, curve = 0.0, []
    for evaluation in manifest["evaluations"].values():
        decision = evaluation.get("decision") or {}
        if decision.get("promoted_to_node_id"):
            best = max(best, evaluation["root_relative"]["score"])
        curve.append(best)
    return curve


def main() -> None:
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))),
    }
    print(f"{'':>12}" + "".join(f"{shown:>9}" for shown in SHOWN) + "   seconds")
    for name in policies.known():
        with tempfile.TemporaryDirectory(prefix="treewright-example-") as place:
            repo = repository(Path(place))
            own = _BEAM if name == "beam" else ("--policy", name, "--ideas-per-node", "4")
            command = [sys.executable, "-m", "treewright", "tree", "--until-done", *own, *_FLAGS]
            command += ["--tree-run-id", name]
            taken = seconds(
                lambda command=command, repo=repo: subprocess.run(
                    command, cwd=repo, env=environment, capture_output=True, check=True
                )
            )
            curve = gains(repo / ".treewright" / "tree_runs" / name)
        cells = "".join(f"{100 * curve[min(at, len(curve)) - 1]:>8.1f}%" for at in SHOWN)
        print(f"{name:>12}{cells}{taken:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
