"""A complete tree search on the bundled example, and what came of it. `make demo` runs this.

Copies examples/forecast to a temporary directory (or to TREEWRIGHT_DEMO_DIR), makes it a
git repository and searches it to depth 3. No network, no key, no model. Exits with 1
unless the search ended with a better primary metric, a rejected cheat and a rejected breakage.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent
SEARCH = [
    "--until-done",
    *("--ideas-per-node", "4"),
    *("--beam-width", "2"),
    *("--max-depth", "3"),
    *("--sweep-config-limit", "12"),
    *("--confirm-configs", "6"),
]
RUN_ID = "demo"
PRIMARY = "mase"

# Nothing of the user's own git settings: the demo must not sign, run hooks or ask for a name.
GIT = [
    "git",
    *("-c", "user.name=Treewright demo"),
    *("-c", "user.email=demo@treewright.invalid"),
    *("-c", "commit.gpgsign=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.autocrlf=false"),
    *("-c", "init.defaultBranch=main"),
]

# Reasons, the most telling first.
IN_WORDS = {
    "heldout_not_better": "better on the configs it was selected on, and on no others",
    "non_finite_metric": "its results are not numbers",
    "incomplete_rows": "leaves configs without a result",
    "primary_metric_regressed": f"its {PRIMARY} is worse than the parent's",
    "insufficient_signal": "no difference beyond the noise",
}


@dataclass(frozen=True)
class Rejected:
    """An idea that did not make it, with the first evaluation that says why."""

    idea: str
    kind: str
    title: str
    reason: str


def main() -> int:
    started = time.monotonic()
    repo = make_repository()
    print(f"The example is in {repo}\n", flush=True)
    outcome = search(repo)
    if outcome is None:
        print("demo: the search failed, see above", file=sys.stderr)
        return 1
    run_dir = Path(outcome["run_dir"])
    manifest = json.loads((run_dir / "manifest.json").read_text(encoding="utf-8"))
    expected = tomllib.loads((EXAMPLES / "expected.toml").read_text(encoding="utf-8"))["ideas"]

    better = print_gain(run_dir, manifest, outcome["best"]["node_id"])
    rejected = list(rejections(run_dir, manifest, expected))
    for kind, heading in (
        ("cheats", "Cheats, rejected"),
        ("breaks", "Breakages, rejected"),
        ("hurts", "Made it worse"),
        ("noise", "Made no difference"),
    ):
        found = [one for one in rejected if one.kind == kind]
        if found:
            print(f"\n{heading}:")
        for one in found:
            print(f"  {one.title}\n      {one.reason}")

    print(f"\n{outcome['counts']['evaluations']} evaluations, {time.monotonic() - started:.0f} s")
    print(f"The report: {run_dir / 'TREE_SUMMARY.md'}")
    return verdict(better, {one.kind for one in rejected})


def make_repository() -> Path:
    """A fresh git repository with a copy of the example."""
    wanted = os.environ.get("TREEWRIGHT_DEMO_DIR")
    parent = Path(wanted) if wanted else Path(tempfile.mkdtemp(prefix="treewright-demo-"))
    repo = parent.resolve() / "forecast"
    if repo.exists():
        raise SystemExit(f"demo: {repo} exists already; remove it or set TREEWRIGHT_DEMO_DIR")
    unwanted = shutil.ignore_patterns("__pycache__", ".treewright", "results.csv")
    shutil.copytree(EXAMPLES / "forecast", repo, ignore=unwanted)
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Demand forecast"]):
        subprocess.run([*GIT, *arguments], cwd=repo, check=True)
    return repo


def search(repo: Path) -> dict[str, Any] | None:
    """Runs the search with its progress on our stderr; its JSON, or None if it failed."""
    command = [sys.executable, "-m", "treewright", "tree", "--tree-run-id", RUN_ID, *SEARCH]
    print("$ treewright", *command[3:], flush=True)
    # The sweep says `python`: let that be the Python that runs treewright.
    here = str(Path(sys.executable).parent)
    path = os.pathsep.join(filter(None, (here, os.environ.get("PATH"))))
    done = subprocess.run(
        command, cwd=repo, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def print_gain(run_dir: Path, manifest: dict[str, Any], best_id: str) -> bool:
    """Says how far the search came and by which ideas; true if the primary metric is better."""
    root = next(node for node in manifest["nodes"].values() if node["parent_node_id"] is None)
    best = manifest["nodes"][best_id]
    before = mean(run_dir / root["baseline_results_csv_path"])
    after = mean(run_dir / best["baseline_results_csv_path"])
    print(f"\n{PRIMARY} (smaller is better): {before:.3f} -> {after:.3f}, {gain(before, after)}")
    held = [node["artifacts"]["heldout"] for node in (root, best)]
    if all(held):
        before_held, after_held = (mean(run_dir / one["path"]) for one in held)
        said = f"{before_held:.3f} -> {after_held:.3f}, {gain(before_held, after_held)}"
        print(f"on held-out configs: {said}")
    print("\nThe accepted ideas, in order:")
    for idea in best["idea_chain"]:
        print(f"  {title(run_dir / idea)}")
    low = (best["root_relative"] or {}).get("primary_gain_low")
    return low is not None and low > 0 and after < before


def rejections(
    run_dir: Path, manifest: dict[str, Any], expected: dict[str, Any]
) -> Iterator[Rejected]:
    """Each idea that was tried and never promoted, once."""
    nodes, evaluations = manifest["nodes"], list(manifest["evaluations"].values())
    origins = {i["path"]: Path(i["origin"]).stem for node in nodes.values() for i in node["ideas"]}
    promoted = {
        origins[one["idea_path"]]
        for one in evaluations
        if one["decision"]["promoted_to_node_id"] is not None
    }
    seen: set[str] = set()
    for one in evaluations:
        idea = origins[one["idea_path"]]
        if idea in promoted or idea in seen:
            continue
        seen.add(idea)
        kind = expected.get(idea, {}).get("kind", "unknown")
        yield Rejected(idea, kind, title(run_dir / one["idea_path"]), reason(run_dir, one))


def reason(run_dir: Path, evaluation: dict[str, Any]) -> str:
    error = evaluation["error"]
    if error is not None:
        said = f"{error['code']}: {error['message']}"
        last = last_words(run_dir / error["log_path"]) if error["log_path"] else None
        return f"{said} ({last})" if last else said
    confirmation = evaluation["confirmation"]
    if confirmation is not None and not confirmation["held"]:
        codes = confirmation["reasons"]
    else:
        codes = evaluation["decision"]["gate"]["reasons"]
    telling = next((code for code in IN_WORDS if code in codes), None)
    return f"{telling}: {IN_WORDS[telling]}" if telling else ", ".join(codes)


def last_words(log: Path) -> str | None:
    """The exception that a command ended with, from its log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line for line in reversed(lines) if "Error: " in line), None)


def verdict(better: bool, kinds: set[str]) -> int:
    """The exit code, with a word on stderr if the demo did not show what it should."""
    problems = []
    if not better:
        problems.append(f"the search did not improve {PRIMARY}")
    if "cheats" not in kinds:
        problems.append("no cheat was rejected")
    if "breaks" not in kinds:
        problems.append("no breakage was rejected")
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    return 1 if problems else 0


def mean(results: Path) -> float:
    with results.open(newline="", encoding="utf-8") as lines:
        values = [float(row[PRIMARY]) for row in csv.DictReader(lines)]
    return math.fsum(values) / len(values)


def gain(before: float, after: float) -> str:
    return f"{abs(1 - after / before):.0%} {'better' if after < before else 'worse'}"


def title(idea: Path) -> str:
    return idea.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


if __name__ == "__main__":
    sys.exit(main())
