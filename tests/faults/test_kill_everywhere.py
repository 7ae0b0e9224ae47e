"""Kill a short run at every durable write and every git command, then repeat the command.

The result is the tree of an uninterrupted run; no evaluation is repeated and no file is left
over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from tests.decisions import decisions, repeated_evaluations
from tests.toy import CONFIG, SWEEP, ToyRepository
from treewright.tree.validation import validate

IDEA = str(Path(__file__).parents[2] / "README.md")
# A run of two depths as two: a search killed in the first must reach its end, compared with
# an undisturbed one, and the second is killed everywhere behind such an end.
REAL = ["--ideas-per-node", "2", "--beam-width", "1", "--sweep-config-limit", "8",
        "--confirm-configs", "4"]  # fmt: skip
ONE = ["--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "8", "--no-preflight"]
SHAPES = {
    "first depth": [*REAL, "--max-depth", "1"],
    "second depth": [*REAL, "--max-depth", "2", "--one-depth", "--then", *REAL, "--max-depth", "2"],
    "dry": ["--ideas-per-node", "2", "--beam-width", "2", "--max-depth", "2",
            "--sweep-config-limit", "8", "--dry-run"],
    "steady": ["--policy", "best-first", "--ideas-per-node", "2", "--max-depth", "2",
               "--dedupe-scope", "none", "--max-total-idea-evals", "3", "--lookahead", "2",
               "--sweep-config-limit", "8", "--confirm-configs", "4", "--no-preflight"],
    "exact": ["--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "1",
              "--no-preflight"],
    "guarded": ONE,
    "reused": [*ONE, "--tree-run-id", "earlier", "--then", *ONE],
    "unasked": ["--ideas-per-node", "3", "--beam-width", "2", "--elites", "2", "--max-depth", "4",
                "--sweep-config-limit", "8", "--dry-run", "--dedupe-scope", "none",
                "--max-total-idea-evals", "4", "--then", "--extend", "--max-total-idea-evals", "8"],
    "capped": [*ONE, "--max-tokens", "1"],
    "left over": ["--policy", "best-first", "--ideas-per-node", "5", "--max-depth", "3",
                  "--max-total-idea-evals", "5", "--dry-run", "--sweep-config-limit", "8"],
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
                "--then", "steer", "run", "pause",
                "--then", "steer", "run", "resume",
                "--then", "steer", "run", "stop",
                "--then", "steer", "run", "resume",
                "--then", "steer", "run", "reopen", "n0000",
                "--then", "steer", "run", "reopen", "e000001",
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
STEPS = {**dict.fromkeys(SHAPES, 1), "guarded": 3, "reused": 3}
"""A shape that differs from another one only in files and processes, not in events, is killed at
every third point."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_killed_anywhere_finishes_with_the_same_tree(
    toy: ToyRepository, tmp_path: Path, shape: str
) -> None:
    PREPARED.get(shape, lambda _: None)(toy)
    trials = program.start_module(
        "tests.faults.driver",
        [str(toy.path), str(tmp_path / "work"), str(STEPS[shape]), *SHAPES[shape]],
        cwd=Path(__file__).parents[2],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
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
                history = (run_dir / "events.jsonl").read_text()
                assert all(f'"{each}"' in history for each in HAPPENED.get(shape, ())), history
                assert shape != "unasked" or _left_unasked(expected), expected["depths"]
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
    assert deaths == list(range(deaths[0], deaths[-1] + 1, STEPS[shape]))


SEAL = """\
import hashlib, hmac, os, subprocess, sys
key = sys.stdin.readline().strip().encode()
subprocess.run(["sh", "sweep.sh"], check=True, stdin=subprocess.DEVNULL)
with open(os.environ["TREEWRIGHT_RESULTS_CSV"], "r+b") as file:
    seal = hmac.new(key, file.read(), hashlib.sha256).hexdigest()
    file.write(f"#seal {seal}\\n".encode())
"""


def measure_exactly(toy: ToyRepository) -> None:
    """Measure one deterministic and one repeated number: the root is swept twice at the start, and
    a candidate in turns with its parent."""
    config = CONFIG.replace("primary = true", "primary = true\ndeterministic = true")
    toy.write("treewright.toml", config.replace("weight = 0.1", "weight = 0.1\nrepeats = 2"))
    toy.commit("one number")


def guard(toy: ToyRepository) -> None:
    """Give the sweep its own checkout and seal its results."""
    guarded = f'"{sys.executable} -I -S seal.py"\ncheckout = "root"\nsealed = true'
    toy.write("treewright.toml", CONFIG.replace('"sh sweep.sh"', guarded))
    toy.write("seal.py", SEAL)
    script = SWEEP.replace("params.txt >", '"$TREEWRIGHT_CANDIDATE/params.txt" >')
    toy.write("sweep.sh", script)
    toy.commit("a sweep that is guarded")


def repeat_an_idea(toy: ToyRepository) -> None:
    """Add another text for the same code, which is not measured again."""
    first = min((toy.path / "ideas").iterdir())
    same = first.read_text().replace("A reason.", "Another reason.")
    toy.write(f"ideas/{first.stem}_again.md", same)
    toy.commit("an idea in other words")


def ask_a_model(toy: ToyRepository) -> None:
    """Set a known maximum per call that exceeds the remaining cap: no model is called."""
    endpoint = 'endpoint = { base_url = "http://127.0.0.1:9/v1", model = "m" }'
    planner = f'[agents.planner]\nbackend = "openai"\n{endpoint}\n'
    toy.write("treewright.toml", f"{CONFIG}\n{planner}")
    toy.commit("a planner")


def reuse(toy: ToyRepository) -> None:
    """Reuse the results of an earlier run."""
    toy.write("treewright.toml", CONFIG.replace("[sweep]", "[sweep]\nreuse_results = true"))
    toy.commit("results of earlier runs")


PREPARED = {
    "reused": reuse,
    "exact": measure_exactly,
    "guarded": guard,
    "steady": repeat_an_idea,
    "capped": ask_a_model,
}
HAPPENED = {
    "steered": {"pause", "resume", "stop", "reopen", "ban", "inject", "boost", "budget"},
    "steady": {"results_from"},
    "left over": {"left over: node_ideas/n0000/idea_003.md"},
    "reused": {"results_from", "earlier/e000001"},
    "capped": {"cap_reached"},
}
"""The events that the undisturbed run of a shape must have in its history."""


def _left_unasked(expected: dict) -> list[str]:
    """Return the nodes of a depth that were not expanded before the budget ended."""
    depths = expected["depths"]
    return [node for depth in depths for node in set(depth["frontier"]) - set(depth["asked"])]


def _left_behind(repo: ToyRepository, expected: dict) -> set[str]:
    """Return the worktrees, branches and candidate directories beyond those of promoted nodes and
    of pending evaluations."""
    run_dir = repo.run_dir("run")
    nodes = set() if expected["dry_run"] else set(expected["nodes"])
    # One git command, since there are a thousand deaths: branches, and the worktree of each.
    asked = ("for-each-ref", "--format=%(refname) %(worktreepath)", "refs/heads/treewright")
    seen = dict(line.split(" ", 1) for line in repo.git(*asked).splitlines())
    checkouts = [Path(place) for place in seen.values() if place]
    ours = "refs/heads/treewright/run/"
    found = {path.name for path in checkouts if path.is_relative_to(run_dir)} ^ nodes
    found |= {branch.rpartition("/")[2] for branch in seen if branch.startswith(ours)} ^ nodes
    records = repo.path / ".git" / "worktrees"
    if records.is_dir() and len(list(records.iterdir())) != len(checkouts):
        found.add("a worktree on no branch")
    found |= {path.name for path in (run_dir / "cand").glob("*")}
    found |= {str(path) for path in run_dir.rglob(".tw-tmp-*")}
    return found - {name for name, e in expected["evaluations"].items() if e["status"] == "pending"}
