"""plan -> code -> review: rounds, verdicts, logs, and what no role may leave behind."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treewright.kernel.errors import UsageError
from treewright.llm.usage import Usage
from treewright.tree.agents import transcript
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.agents.implementation import Assignment, Implementation, implement
from treewright.tree.config import (
    AgentsConfig,
    CommandBackend,
    Config,
    NoBackend,
    PatchBackend,
    ScriptedBackend,
)

IDEA = """# Double the rate

```diff
--- a/model.py
+++ b/model.py
@@ -1,2 +1,2 @@
-RATE = 0.1
+RATE = 0.2
 DEPTH = 3
```
"""
APPROVE = {"role": "reviewer", "text": "Good.\n\nVERDICT: APPROVE"}
REJECT = {"role": "reviewer", "text": "Not yet: say why.\n\nVERDICT: REQUEST_CHANGES"}
CODE = {"role": "coder", "text": "Done.", "files": {"model.py": "RATE = 0.3\n"}}


@pytest.fixture
def run(
    worktree: Path, tmp_path: Path, make_config: Callable[..., Config]
) -> Callable[..., Implementation]:
    """Runs the loop with the given script for all three roles."""

    def go(
        *entries: dict[str, Any], idea: str = IDEA, planner: bool = False, **fields: Any
    ) -> Implementation:
        (tmp_path / "script.json").write_text(json.dumps(entries))
        roles = {entry["role"] for entry in entries}
        scripted = ScriptedBackend(script="script.json")
        agents = AgentsConfig(
            planner=scripted if planner else NoBackend(),
            coder=scripted if "coder" in roles else PatchBackend(),
            reviewer=scripted if "reviewer" in roles else NoBackend(),
        )
        options = {k: fields.pop(k) for k in ("cancel", "parent_context") if k in fields}
        config = make_config(agents, **fields)
        return implement(
            Assignment(config, idea, worktree, tmp_path / "logs", repo=tmp_path, **options)
        )

    return go


def test_patch_without_planner_and_reviewer(run, worktree: Path, tmp_path: Path):
    done = run()
    assert done.staged is not None
    assert done.staged.paths == ["model.py"]
    assert done == Implementation(1, approved=None, usage=Usage(), plan="", staged=done.staged)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.2\n")
    assert "No planner" in (tmp_path / "logs/plan.md").read_text()
    log = (tmp_path / "logs/review_round_1.md").read_text()
    assert "accepted without review" in log
    assert "model.py | 2 +-" in log


def test_one_role_that_claims_negative_usage_takes_nothing_from_another(run):
    gift = {"prompt_tokens": -500, "completion_tokens": -1, "cost_usd": -6.0}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost_usd": 0.5}
    done = run(CODE | {"usage": usage}, APPROVE | {"usage": gift})
    assert done.usage == Usage(10, 2, 0.5)


def test_reviewer_sends_the_coder_back_once(run, worktree: Path, tmp_path: Path):
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost_usd": 0.5}
    done = run(
        {"role": "planner", "text": "the plan", "usage": usage},
        CODE | {"round": 1, "usage": usage},
        CODE | {"round": 2, "usage": usage, "files": {"new.py": "A = 1\n", "model.py": None}},
        REJECT | {"round": 1, "usage": usage},
        APPROVE | {"round": 2, "usage": usage},
        planner=True,
    )
    assert (done.review_rounds, done.approved, done.plan) == (2, True, "the plan")
    assert done.usage == Usage(50, 10, 2.5)
    assert not (worktree / "model.py").exists()
    first, second = ((tmp_path / f"logs/review_round_{n}.md").read_text() for n in (1, 2))
    assert "verdict: changes requested\n" in first
    assert "say why" in first
    assert "verdict: approved" in second
    assert "new.py" in second  # the review includes untracked files


def test_max_rounds_without_approval_fails_or_proceeds(run, worktree: Path):
    with pytest.raises(AgentFailure) as caught:
        run(CODE, REJECT)
    assert caught.value.code == "review_not_approved"
    assert caught.value.log is not None
    assert caught.value.log.name == "review_round_2.md"
    done = run(CODE, REJECT, proceed_on_max_review_rounds=True)
    assert (done.review_rounds, done.approved) == (2, False)


def test_review_without_a_verdict_counts_as_request_for_changes(run, tmp_path: Path):
    with pytest.raises(AgentFailure, match="still requested changes"):
        run(CODE, {"role": "reviewer", "text": "I like it."}, max_review_rounds=1)
    assert "did not end with a VERDICT line" in (tmp_path / "logs/review_round_1.md").read_text()


def test_no_changes_is_a_failure_that_counts_its_usage(run, tmp_path: Path):
    usage = {"prompt_tokens": 7}
    with pytest.raises(AgentFailure) as caught:
        run({"role": "coder", "text": "I could not.", "usage": usage})
    assert caught.value.code == "no_changes"
    assert caught.value.usage == Usage(prompt_tokens=7)
    assert "failed: `no_changes`" in (tmp_path / "logs/review_round_1.md").read_text()


def test_a_change_that_is_undone_in_a_later_round_is_no_change(run, worktree: Path):
    original = (worktree / "model.py").read_text()
    with pytest.raises(AgentFailure) as caught:
        run(CODE | {"round": 1}, CODE | {"round": 2, "files": {"model.py": original}}, REJECT)
    assert caught.value.code == "no_changes"


def test_edits_of_planner_and_reviewer_are_undone(run, worktree: Path, tmp_path: Path):
    edit = {"files": {"model.py": "HACKED = 1\n", "extra.py": "x\n", "README.md": None}}
    run({"role": "planner", "text": "p"} | edit, CODE, APPROVE | edit, planner=True)
    assert (worktree / "model.py").read_text() == "RATE = 0.3\n"
    assert not (worktree / "extra.py").exists()
    assert (worktree / "README.md").exists()
    assert "edits made by the planner were undone" in (tmp_path / "logs/plan.md").read_text()


@pytest.mark.parametrize(
    "commands",
    [
        "git add -A && git commit -qm mine",
        "git switch -qc elsewhere && git add -A && git commit -qm mine",
        "git checkout -q --detach && git add -A && git commit -qm mine",
        "git switch -qc empty",
    ],
)
def test_commits_and_branch_switches_of_an_agent_are_undone(
    commands: str, worktree: Path, tmp_path: Path, make_config, run_git
):
    base = run_git(worktree, "rev-parse", "HEAD")
    coder = CommandBackend(command=["sh", "-c", f"echo 'RATE = 9' > model.py && {commands}"])
    config = make_config(AgentsConfig(coder=coder))
    implement(Assignment(config, "# Idea", worktree, tmp_path / "logs", repo=tmp_path))
    assert run_git(worktree, "rev-parse", "HEAD") == base
    assert run_git(worktree, "symbolic-ref", "HEAD") == "refs/heads/cand/e1"
    assert run_git(worktree, "branch", "--format=%(refname:short)").split() == ["cand/e1", "main"]
    assert (worktree / "model.py").read_text() == "RATE = 9\n"


@pytest.mark.parametrize(
    "commands",
    [
        "git stash -q; echo 'RATE = 9' > model.py",
        "git stash -q; git stash pop -q",
        "git tag mine; git branch other; git update-ref refs/heads/main HEAD~0; git tag -d v1",
        "git config user.name Somebody; git config core.bare true; git remote add evil /x",
        "git branch -D kept; git update-ref -d refs/stash; git worktree add -q ../stray",
    ],
)
def test_nothing_that_an_agent_does_to_shared_refs_reaches_the_repository(
    commands: str, worktree: Path, tmp_path: Path, make_config, run_git
):
    repo = tmp_path / "the repo"
    run_git(repo, "tag", "v1")
    run_git(repo, "branch", "kept")
    (repo / "model.py").write_text("RATE = 5\n")
    run_git(repo, "stash", "-q")

    def shared() -> tuple[str, ...]:
        return (
            run_git(repo, "for-each-ref"),
            run_git(repo, "stash", "list"),
            (repo / ".git" / "config").read_text(),
            run_git(repo, "worktree", "list"),
        )

    before = shared()
    script = f"echo 'RATE = 9' > model.py; git log --oneline main kept v1 -- && {{ {commands}; }}"
    coder = CommandBackend(command=["sh", "-c", f"{script}; true"])
    config = make_config(AgentsConfig(coder=coder))
    implement(Assignment(config, "# Idea", worktree, tmp_path / "logs", repo=tmp_path))
    assert shared() == before
    assert (worktree / "model.py").read_text() == "RATE = 9\n"
    assert run_git(worktree, "status", "--porcelain") == "M  model.py"
    private = run_git(worktree, "rev-parse", "--absolute-git-dir")
    assert not (Path(private) / "treewright-private").exists()


def test_ignored_files_that_an_agent_staged_stay_staged(
    worktree: Path, tmp_path: Path, make_config, run_git
):
    script = "echo '*.dat' > .gitignore; echo 1 > table.dat; git add -f table.dat; git commit -qm x"
    coder = CommandBackend(command=["sh", "-c", script])
    config = make_config(AgentsConfig(coder=coder))
    implement(Assignment(config, "# Idea", worktree, tmp_path / "logs", repo=tmp_path))
    assert run_git(worktree, "diff", "--cached", "--name-only", "HEAD") == ".gitignore\ntable.dat"


def test_a_branch_of_an_agent_that_failed_is_removed_too(
    worktree: Path, tmp_path: Path, make_config, run_git
):
    coder = CommandBackend(command=["sh", "-c", "git switch -qc stray && exit 1"])
    with pytest.raises(AgentFailure, match="exited with code 1"):
        implement(
            Assignment(
                make_config(AgentsConfig(coder=coder)),
                "# I",
                worktree,
                tmp_path / "l",
                repo=tmp_path,
            )
        )
    assert run_git(worktree, "branch", "--format=%(refname:short)").split() == ["cand/e1", "main"]


def test_cancelled_before_it_starts(run, worktree: Path):
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(AgentFailure) as caught:
        run(CODE, cancel=cancel)
    assert caught.value.code == "cancelled"
    assert caught.value.retryable


def test_a_ruined_worktree_is_a_failure_not_a_traceback(
    worktree: Path, tmp_path: Path, make_config
):
    coder = CommandBackend(command=["sh", "-c", "rm -rf .git && echo x > model.py"])
    with pytest.raises(AgentFailure) as caught:
        implement(
            Assignment(
                make_config(AgentsConfig(coder=coder)),
                "# I",
                worktree,
                tmp_path / "l",
                repo=tmp_path,
            )
        )
    assert caught.value.code == "worktree_damaged"


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        (AgentsConfig(coder=NoBackend()), "a coder has to make the change"),
        (AgentsConfig(planner=PatchBackend()), "only the coder applies patches"),
    ],
)
def test_roles_that_make_no_sense(agents, message, worktree: Path, tmp_path: Path, make_config):
    with pytest.raises(UsageError, match=message):
        implement(Assignment(make_config(agents), IDEA, worktree, tmp_path / "l", repo=tmp_path))


def test_script_without_a_fitting_entry(run):
    with pytest.raises(AgentFailure, match="no entry for the coder in round 1"):
        run(CODE | {"when": "another idea"})


@pytest.mark.parametrize(
    ("review", "expected"),
    [
        ("fine\nVERDICT: APPROVE", "approve"),
        ("fine\n**VERDICT: APPROVE**\n\n", "approve"),
        ("`VERDICT: REQUEST_CHANGES`", "request_changes"),
        ("VERDICT: REQUEST_CHANGES\nVERDICT: APPROVE", "approve"),
        ("VERDICT: APPROVE\nbut really not", "unparsable"),
        ("VERDICT: APPROVE or VERDICT: REQUEST_CHANGES", "unparsable"),
        ("VERDICT: APPROVED-ISH", "unparsable"),
        ("", "unparsable"),
    ],
)
def test_verdict_is_the_last_line(review: str, expected: str):
    assert transcript.parse_verdict(review) == expected
