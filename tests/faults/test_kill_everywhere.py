"""`kill -9` at every durable write and every git command of a short run, then the same
command: the tree of an uninterrupted run, nothing repeated, nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.decisions import decisions, repeated_evaluations
from tests.toy import ToyRepository
from treewright.tree.validation import validate

IDEA = str(Path(__file__).parents[2] / "README.md")
SHAPES = {
    "real": ["--ideas-per-node", "2", "--beam-width", "1", "--max-depth", "2",
             "--sweep-config-limit", "8", "--confirm-configs", "4"],
    "dry": ["--ideas-per-node", "2", "--beam-width", "2", "--max-depth", "2",
            "--sweep-config-limit", "8", "--dry-run"],
    "steady": ["--policy", "best-first", "--ideas-per-node", "2", "--max-depth", "2",
               "--dedupe-scope", "none", "--max-total-idea-evals", "3", "--lookahead", "2",
               "--sweep-config-limit", "8", "--confirm-configs", "4"],
    "exact": ["--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "1"],
    "extended": ["--ideas-per-node", "2", "--max-depth", "1", "--sweep-config-limit", "8",
                 "--dry-run", "--then", "--extend", "--max-depth", "2", "--patience", "3",
                 "--beam-width", "2", "--elites", "1"],
    "extended steady": ["--policy", "best-first", "--ideas-per-node", "2", "--max-depth", "1",
                        "--dedupe-scope", "none", "--max-total-idea-evals", "2", "--dry-run",
                        "--sweep-config-limit", "8", "--then", "--extend", "--max-depth", "2",
                        "--max-total-idea-evals", "4"],
    "steered": ["--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "8",
                "--dry-run", "--no-stop-on-empty-frontier",
                "--then", "steer", "run", "budget", "--max-depth", "2",
                "--then", "steer", "run", "ban", "nothing like it",
                "--then", "steer", "run", "inject", IDEA, "--at", "n0000", "--first",
                "--then", "steer", "run", "boost", "n0099",
                "--then"],
    "steered steady": ["--policy", "best-first", "--ideas-per-node", "1", "--max-depth", "2",
                       "--dedupe-scope", "none", "--max-total-idea-evals", "2", "--dry-run",
                       "--sweep-config-limit", "8",
                       "--then", "steer", "run", "budget", "--max-total-idea-evals", "4",
                       "--then", "steer", "run", "inject", IDEA, "--at", "n0000",
                       "--then", "steer", "run", "boost", "n0000", "--times", "2",
                       "--then"],
}  # fmt: skip
PARTS = {"real": 2, "dry": 1, "steady": 2, "exact": 1, "extended": 1, "extended steady": 1,
         "steered": 1, "steered steady": 1}  # fmt: skip
"""Into how many tests a shape's points are divided, so that they can run side by side."""


@pytest.mark.parametrize(
    ("shape", "part"), [(shape, part) for shape, parts in PARTS.items() for part in range(parts)]
)
def test_killed_anywhere_the_same_command_finishes_the_same_tree(
    toy: ToyRepository, tmp_path: Path, shape: str, part: int
) -> None:
    if shape == "exact":
        measure_exactly(toy)
    trials = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.driver", str(toy.path), str(tmp_path / "work"),
         str(part), str(PARTS[shape]), *SHAPES[shape]],
        cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    expected = None
    deaths = []
    with trials:
        assert trials.stdin is not None
        assert trials.stdout is not None
        for line in trials.stdout:
            trial = json.loads(line)
            where = f"killed at point {trial['what']}"
            assert trial["ok"], f"{where}: {trial['log']}"
            repo = ToyRepository(Path(trial["repo"]))
            run_dir = repo.run_dir("run")
            if expected is None:
                assert trial["what"] == "undisturbed"
                expected = decisions(run_dir)
            assert decisions(run_dir) == expected, where
            assert validate(run_dir, repo.path) == [], where
            assert repeated_evaluations(run_dir) == [], where
            assert _left_behind(repo, expected) == set(), where
            if trial["what"].isdecimal():
                deaths.append(int(trial["what"]))
            trials.stdin.write("\n")
            trials.stdin.flush()
    assert trials.returncode == 0
    assert len(deaths) > 5, "the run has more fault points than that"
    assert deaths == list(range(deaths[0], deaths[-1] + 1, PARTS[shape]))


def measure_exactly(toy: ToyRepository) -> None:
    """One number that is deterministic, one that is repeated: the root is swept twice at the
    start, and a candidate in turns with its parent."""
    config = (toy.path / "treewright.toml").read_text()
    config = config.replace("primary = true", "primary = true\ndeterministic = true")
    toy.write("treewright.toml", config.replace("weight = 0.1", "weight = 0.1\nrepeats = 2"))
    toy.commit("one number")


def _left_behind(repo: ToyRepository, expected: dict) -> set[str]:
    """Worktrees, branches and candidate directories beyond those of the promoted nodes."""
    run_dir = repo.run_dir("run")
    nodes = set() if expected["dry_run"] else set(expected["nodes"])
    listed = repo.git("worktree", "list", "--porcelain").split("\n\n")
    worktrees = {block.splitlines()[0].rpartition("/")[2] for block in listed if block.strip()}
    branches = repo.git(
        "for-each-ref", "--format=%(refname:short)", "refs/heads/treewright"
    ).split()
    found = (worktrees - {repo.path.name}) ^ nodes
    found |= {branch.rpartition("/")[2] for branch in branches} ^ nodes
    found |= {path.name for path in (run_dir / "cand").glob("*")}
    found |= {str(path) for path in run_dir.rglob(".tw-tmp-*")}
    return found
