"""Roles on a chat endpoint, end to end through the loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.llm.endpoints import Step, completion, stand_in
from treewright.kernel.errors import UsageError
from treewright.llm.usage import Usage
from treewright.tree.agents import prompts
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.agents.implementation import Assignment, Implementation, implement
from treewright.tree.agents.prompts import View
from treewright.tree.config import (
    AgentsConfig,
    Config,
    EndpointConfig,
    NoBackend,
    OpenaiBackend,
    PatchBackend,
)

KEY = "sk-test-0d9b8c7a6f"
EDIT = "model.py\n<<<<<<< SEARCH\nRATE = 0.1\n=======\nRATE = 0.6\n>>>>>>> REPLACE\n\nRaised it."
IDEA = """# Raise the rate

```diff
--- a/model.py
+++ b/model.py
@@ -1,2 +1,2 @@
-RATE = 0.1
+RATE = 0.2
 DEPTH = 3
```
"""


@pytest.fixture
def run(worktree: Path, tmp_path: Path, make_config) -> Callable[..., Implementation]:
    def go(url: str, roles: tuple[str, ...], idea: str = "# Raise the rate\n", **fields: Any):
        endpoint = EndpointConfig(
            base_url=url,
            model="m",
            api_key_env=fields.pop("api_key_env", None),
            max_tokens=fields.pop("max_tokens", 16),
            usd_per_million_completion_tokens=1000.0,
        )
        backend = OpenaiBackend(endpoint=endpoint, **fields)
        agents = AgentsConfig(
            planner=backend if "planner" in roles else NoBackend(),
            coder=backend if "coder" in roles else PatchBackend(),
            reviewer=backend if "reviewer" in roles else NoBackend(),
        )
        config: Config = make_config(agents, max_review_rounds=1)
        return implement(Assignment(config, idea, worktree, tmp_path / "logs", repo=tmp_path))

    return go


@pytest.mark.xdist_group("llm")
def test_a_real_model_plans_and_is_counted(run, model_url: str, tmp_path: Path):
    """The model is small: that a plan arrives, is logged and counted is all it can show."""
    (tmp_path / "short.md").write_text("Plan this change in one sentence: {{idea}}")
    done = run(model_url, ("planner",), IDEA, prompt="short.md")
    assert done.plan
    assert done.plan in (tmp_path / "logs/plan.md").read_text()
    assert done.usage.prompt_tokens > 20
    assert done.usage.cost_usd == pytest.approx(done.usage.completion_tokens / 1000)
    assert "Raise the rate" in (tmp_path / "logs/planner_round_1.log").read_text()


@pytest.mark.xdist_group("llm")
def test_a_real_model_that_cannot_code_fails_cleanly(run, model_url: str, worktree: Path, run_git):
    """SmolLM2 does not follow the edit format: two tries, a clear failure, nothing changed."""
    (worktree.parent.parent / "short.md").write_text("Say hi. {{idea}}")
    with pytest.raises(AgentFailure) as caught:
        run(model_url, ("coder",), prompt="short.md", max_tokens=8)
    assert caught.value.code in ("edits_missing", "reply_truncated")
    assert caught.value.usage.completion_tokens > 2
    assert run_git(worktree, "status", "--porcelain") == ""


def test_planner_coder_and_reviewer(run, worktree: Path):
    """The stand-in gives the replies that a capable model would."""
    replies = ["1. Change RATE.", EDIT, "Fine.\nVERDICT: APPROVE"]
    with stand_in(*(Step(body=completion(text)) for text in replies)) as it:
        done = run(it.url, ("planner", "coder", "reviewer"))
    assert (done.approved, done.plan) == (True, "1. Change RATE.")
    assert done.usage == Usage(300, 30, pytest.approx(0.03), unpriced_tokens=300)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.6\n")
    planner, coder, reviewer = (request["messages"][0]["content"] for request in it.requests)
    assert "model.py:\n```\nRATE = 0.1\n" in planner  # a chat model sees only its prompt
    assert "1. Change RATE." in coder
    assert "<<<<<<< SEARCH" in coder
    assert "+RATE = 0.6" in reviewer
    assert "{{" not in planner + coder + reviewer


def test_refused_parameters_are_said_in_the_log(run, tmp_path: Path):
    refusal = Step(400, {"error": {"code": "unsupported_value", "param": "temperature"}})
    with stand_in(refusal, Step(body=completion(EDIT))) as it:
        run(it.url, ("coder",))
    assert "the model refused temperature" in (tmp_path / "logs/review_round_1.md").read_text()


def test_edits_that_do_not_fit_are_sent_back_once(run, worktree: Path):
    wrong = EDIT.replace("RATE = 0.1", "RATE = 99")
    with stand_in(Step(body=completion(wrong)), Step(body=completion(EDIT))) as it:
        done = run(it.url, ("coder",))
    assert done.usage.prompt_tokens == 200
    roles = [message["role"] for message in it.requests[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert "None of your edits were applied" in it.requests[1]["messages"][2]["content"]
    assert (worktree / "model.py").read_text().startswith("RATE = 0.6\n")


def test_reasoning_is_no_part_of_a_reply(run, worktree: Path, tmp_path: Path):
    """Neither the edit that a model thinks of first nor the verdict that it weighs counts."""
    first = EDIT.replace("0.6", "0.5")
    replies = [
        "<think>Perhaps so?</think>1. Change RATE.",
        f"<think>\n{first}\n</think>\n{EDIT}",
        "It may be wrong.\nVERDICT: REQUEST_CHANGES\n</think>\nFine.\nVERDICT: APPROVE",
    ]
    with stand_in(*(Step(body=completion(text)) for text in replies)) as it:
        done = run(it.url, ("planner", "coder", "reviewer"))
    assert (done.approved, done.plan) == (True, "1. Change RATE.")
    assert (worktree / "model.py").read_text().startswith("RATE = 0.6\n")


def test_the_model_is_shown_the_lines_that_its_edit_missed(run, worktree: Path):
    wrong = EDIT.replace("RATE = 0.1", "RATE  =  0.1")
    with stand_in(Step(body=completion(wrong)), Step(body=completion(EDIT))) as it:
        run(it.url, ("coder",))
    said = it.requests[1]["messages"][2]["content"]
    assert "the nearest lines are 1-1" in said
    assert "```\nRATE = 0.1\nDEPTH = 3\n" in said


def test_a_cut_off_reply_is_not_applied_in_part(run, worktree: Path, run_git):
    with stand_in(Step(body=completion(EDIT, finish="length"))) as it:
        with pytest.raises(AgentFailure, match="raise `max_tokens`") as caught:
            run(it.url, ("coder",))
        assert len(it.requests) == 2
    assert caught.value.code == "reply_truncated"
    assert caught.value.usage == Usage(200, 20, pytest.approx(0.02), unpriced_tokens=200)
    assert run_git(worktree, "status", "--porcelain") == ""


def test_the_key_is_in_no_file(run, monkeypatch, tmp_path: Path, worktree: Path):
    """Even when the endpoint sends it back in a reply, and the idea contains it."""
    monkeypatch.setenv("MODEL_ACCESS", KEY)
    with stand_in(Step(body=completion(f"{EDIT}\nYour key is {KEY}."))) as it:
        run(it.url, ("coder",), f"# Idea with {KEY}\n", api_key_env="MODEL_ACCESS")
    assert it.authorizations == [f"Bearer {KEY}"]
    written = [path for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"plan.md", "review_round_1.md", "coder_round_1.log"}
    for path in [*written, *worktree.glob("*.*")]:
        assert KEY.encode() not in path.read_bytes(), path


def test_an_endpoint_that_is_down_is_a_retryable_failure(run):
    with (
        stand_in(Step(429, {}, {"retry-after": "99999"})) as it,
        pytest.raises(AgentFailure) as got,
    ):
        run(it.url, ("coder",))
    assert got.value.code == "llm_unavailable"
    assert got.value.retryable


def test_a_prompt_that_never_mentions_the_idea_is_refused(run, tmp_path: Path):
    (tmp_path / "mine.md").write_text("Just improve something.")
    with pytest.raises(UsageError, match=r"mine.md never uses \{\{idea\}\}"):
        run("http://127.0.0.1:9/v1", ("coder",), prompt="mine.md")


def test_files_shown_are_those_spoken_of_and_those_that_fit(make_repo):
    big = "# big\n" + "x = 1\n" * 200
    repo = make_repo(
        {"big.py": big, "small.py": "y = 2\n", "sub/named.py": big, "image.bin": b"\xff\x00"}
    )
    (repo / "untracked.py").write_text("z = 3\n")
    (repo / "link.py").symlink_to("/etc/hostname")
    shown = prompts.show_files(repo, "change named.py please", 1700, View())
    assert "sub/named.py:\n```\n# big" in shown
    assert "small.py:\n```\ny = 2" in shown
    assert "untracked.py:\n```\nz = 3" in shown
    assert "big.py:\n```\n# big" not in shown.replace("sub/named.py:", "")
    assert "image.bin:" not in shown
    assert "link.py:" not in shown
    assert "image.bin\n" in shown  # named in the list all the same


def test_a_value_that_only_looks_like_a_secret_stays_in_the_code(
    run, monkeypatch, tmp_path: Path, worktree: Path
):
    """Redaction is for logs: `PRIMARY_KEY=config_id` must not edit the model's reply."""
    monkeypatch.setenv("PRIMARY_KEY", "config_id")
    monkeypatch.setenv("MODEL_ACCESS", KEY)
    edit = EDIT.replace("RATE = 0.6", f"RATE = row['config_id']  # {KEY}")
    with stand_in(Step(body=completion(edit))) as it:
        run(it.url, ("coder",), api_key_env="MODEL_ACCESS")
    written = (worktree / "model.py").read_text()
    assert written.startswith("RATE = row['config_id']  # [redacted]\n")
    assert "config_id" not in (tmp_path / "logs/coder_round_1.log").read_text()


def test_a_failure_that_quotes_a_secret_is_recorded_without_it(run, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "hunter2-hunter2")
    edit = EDIT.replace("model.py", "hunter2-hunter2/none.py")
    with stand_in(Step(body=completion(edit))) as it, pytest.raises(AgentFailure) as caught:
        run(it.url, ("coder",))
    assert "[redacted]/none.py" in caught.value.message
    assert str(caught.value) == caught.value.message
