"""Candidates with code that misbehaves in the sweep: recorded, ended, cleaned up."""

from __future__ import annotations

import json
from pathlib import Path

from tests.faults.running import RUN, evaluations, finish, nothing_runs, search
from tests.toy import ToyRepository, diff_of_line, idea, set_parameter

TIME_LIMIT = 8
IMPROVE = "sed -i 's/^A .*/A 9.0/' params.txt"
BEHAVIOURS = {
    "hangs": "trap '' TERM; (trap '' TERM; setsid sleep 600) & sleep 600",
    "leaves_children": "(setsid sleep 600 &) ; sleep 600 &",
    "prints": "head -c 300000000 /dev/zero",
    "large_csv": "large=1",
    "edits_protected": "echo '# x' >> sweep.sh",
    "commits_protected": "echo '# x' >> sweep.sh; git -c user.name=x -c user.email=x "
    "commit -qam x; git update-index --assume-unchanged sweep.sh",
    "hides_protected": "rm -f .git; echo '# x' >> sweep.sh",
    "swaps_protected": "mv data other; ln -s other data; echo changed > other/rows.txt",
    "deletes_worktree": 'rm -rf "$PWD"; exit 0',
    "no_csv": "exit 0",
    "fails": "echo broken; exit 3",
    "nan": "nan=1",
    "killed": "kill -9 $$",
}
EXPECTED = {
    "hangs": "sweep_timeout",
    "leaves_children": "",
    "prints": "",
    "large_csv": "",
    "edits_protected": "protected_path_changed",
    "commits_protected": "protected_path_changed",
    "hides_protected": "protected_path_changed",
    "swaps_protected": "protected_path_changed",
    "deletes_worktree": "protected_path_changed worktree_damaged",
    "no_csv": "",
    "fails": "sweep_failed",
    "nan": "",
    "killed": "sweep_failed",
}


def run_them(place: Path) -> tuple[ToyRepository, dict[str, dict]]:
    """Run all of them and one good idea; return the repository and the evaluations by name."""
    toy = ToyRepository.create(place)
    toy.write("behave.sh", "true\n# keep\n")
    toy.write("data/rows.txt", "data\n")
    sweep = (toy.path / "sweep.sh").read_text()
    tail = (
        'csv="$TREEWRIGHT_RESULTS_CSV"\n'
        '[ -z "$large" ] || yes 99999999,ok,1.0,1.0 | head -c 50000000 >> "$csv"\n'
        '[ -z "$nan" ] || sed -i "s/^3,ok,[^,]*/3,ok,nan/" "$csv"\n'
    )
    toy.write("sweep.sh", f". ./behave.sh\n{sweep}{tail}")
    config = (toy.path / "treewright.toml").read_text()
    config = config.replace("timeout_seconds = 60", f"timeout_seconds = {TIME_LIMIT}")
    config = config.replace('"tests.sh"', '"tests.sh", "data"')
    toy.write("treewright.toml", config)
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for name, script in BEHAVIOURS.items():
        patch = diff_of_line("behave.sh", "true", f"{IMPROVE}; {script}", 1)
        toy.write(f"ideas/{name}.md", idea(name, patch))
    toy.write("ideas/zz_good.md", set_parameter("A", 2.0))
    toy.commit("ways to misbehave")
    count = str(len(BEHAVIOURS) + 1)
    search(
        toy, "--ideas-per-node", count, "--max-depth", "1", "--sweep-config-limit", "6",
        "--keep-failed-artifacts", "--max-parallel-evals", "2",
    )  # fmt: skip
    ideas = {
        evaluation["eval_id"]: (toy.run_dir(RUN) / evaluation["idea_path"]).read_text()
        for evaluation in evaluations(toy).values()
    }
    named = {
        ideas[eval_id].splitlines()[0].removeprefix("# "): evaluation
        for eval_id, evaluation in evaluations(toy).items()
    }
    return toy, named


def test_a_misbehaving_sweep_is_recorded_ended_and_cleaned_up(tmp_path: Path) -> None:
    toy, named = run_them(tmp_path / "target repo")
    for name, codes in EXPECTED.items():
        check_record(name, named[name], codes.split())
    check_what_was_measured(toy.run_dir(RUN), named)
    assert nothing_runs(toy)
    check_nothing_is_left(toy)
    assert finish(toy)["stop_reason"] == "max_depth_reached"
    documents = list((toy.run_dir(RUN) / "eval").glob("*/experiment/summary.json"))
    assert len(documents) == len(BEHAVIOURS) + 1
    for path in documents:
        assert "recommendation" in json.loads(path.read_text())["scoring_summary"]


def check_record(name: str, evaluation: dict, codes: list[str]) -> None:
    assert evaluation["status"] == ("failed" if codes else "completed"), name
    fate = evaluation["decision"]["fate"]
    if codes:
        assert evaluation["error"]["code"] in codes, name
        assert evaluation["error"]["message"]
        assert fate == "evaluation_failed"
    assert fate != "promoted" or name in ("leaves_children", "prints", "large_csv")


def check_what_was_measured(run_dir: Path, named: dict[str, dict]) -> None:
    assert "unreadable_results" in named["no_csv"]["parent_relative"]["reasons"]
    assert "non_finite_metric" in named["nan"]["parent_relative"]["reasons"]
    assert not named["nan"]["decision"]["gate"]["passed"]
    assert named["large_csv"]["results_csv"]["bytes"] > 50_000_000
    assert named["hangs"]["timings"]["sweep"] < TIME_LIMIT + 15
    assert "broken" in (run_dir / named["fails"]["error"]["log_path"]).read_text()
    printed = run_dir / named["prints"]["experiment_dir"] / "sweep.log"
    assert 1_000_000 < printed.stat().st_size < 10_000_000, "the log is capped"


def check_nothing_is_left(toy: ToyRepository) -> None:
    assert list((toy.run_dir(RUN) / "cand").iterdir()) == []
    branches = toy.git("for-each-ref", "--format=%(refname)", "refs/heads/treewright").split()
    assert all("/node/" in branch for branch in branches)
    assert len(toy.git("worktree", "list").splitlines()) == 1 + len(branches)
    assert toy.git("status", "--porcelain") == ""
    assert toy.git("symbolic-ref", "HEAD") == "refs/heads/main\n"


def test_an_agent_that_removes_git_does_not_reach_the_users_repository(tmp_path: Path) -> None:
    toy = ToyRepository.create(tmp_path / "target repo")
    script = "rm -rf .git; echo 'A 3.0' > params.txt; git init -q . ; rm -rf .git"
    config = (toy.path / "treewright.toml").read_text()
    config += f'\n[agents.coder]\nbackend = "command"\ncommand = ["sh", "-c", "{script}"]\n'
    toy.write("treewright.toml", config)
    head = toy.commit("an agent that tidies up too much")
    search(toy, "--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "6")
    assert [e["error"]["code"] for e in evaluations(toy).values()] == ["worktree_damaged"]
    assert toy.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert toy.git("rev-parse", "HEAD").strip() == head
    assert toy.git("status", "--porcelain") == ""
