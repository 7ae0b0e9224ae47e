"""The usage of a model in a proof run: stored with each answer, summed over processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import program
from tests.here import Program
from tests.llm.endpoints import Step, completion, stand_in
from tests.waiting import until
from treewright.proving.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

STATEMENT = "∀ p q : Prop, (∀ r : Prop, (p → q → r) → r) → p ∧ q"
ANSWER = completion("intro h\nconstructor")
FLAGS = [
    "prove", "--statement", STATEMENT, "--simulations", "8", "--batch", "1", "--step-timeout", "60",
    "--no-strategies",
    "--no-refute", "--no-library", "--run-id", "r", "--llm-model", "m", "--llm-url",
]  # fmt: skip


def used(answers: int) -> dict[str, object]:
    return {
        "prompt_tokens": 100 * answers,
        "completion_tokens": 10 * answers,
        "cost_usd": 0.0,
        "unpriced_tokens": 110 * answers,
    }


def test_the_usage_of_a_killed_run_is_counted(tmp_path: Path, treewright_here: Program) -> None:
    slow = Step(body=ANSWER, delay=120)
    run = tmp_path / ".treewright/proof_runs/r"
    with stand_in(Step(body=ANSWER), slow, Step(body=ANSWER)) as model:
        child = program.start(
            [*FLAGS, model.url], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        until(lambda: child.poll() is not None or len(model.requests) == 2, seconds=240)
        assert child.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert not (run / "result.json").exists()
        done = treewright_here("prove", "--resume", "r", "--json", cwd=tmp_path)
        answers = len(model.requests) - 1  # one of the answers was not received
    assert answers > 1
    told = json.loads(done.stdout)
    assert (told["answers"], told["usage"]) == (answers, used(answers))
    assert json.loads((run / "result.json").read_text())["usage"] == used(answers)
    assert f"{answers} answers of the model: {100 * answers:,} tokens in" in done.stderr
    report = (run / "report.md").read_text()
    assert f"{answers} answers" in report

    # Usage is no part of the search.
    other = tmp_path / "other"
    other.mkdir()
    costly = completion("intro h\nconstructor", usage={"prompt_tokens": 7, "completion_tokens": -9})
    with stand_in(Step(body=costly)) as model:
        treewright_here(*FLAGS, model.url, cwd=other)
        asked = len(model.requests)
    result = json.loads((other / ".treewright/proof_runs/r/result.json").read_text())
    assert result["usage"] == {
        "prompt_tokens": 7 * asked, "completion_tokens": 0, "cost_usd": 0.0,
        "unpriced_tokens": 7 * asked,
    }  # fmt: skip
    assert trace_of(run) == trace_of(other / ".treewright/proof_runs/r")


def test_prices_give_the_cost_in_the_result_and_the_report(
    tmp_path: Path, treewright_here: Program
) -> None:
    prices = (
        "--usd-per-million-prompt-tokens", "2000", "--usd-per-million-completion-tokens", "10000",
    )  # fmt: skip
    with stand_in(Step(body=ANSWER)) as model:
        done = treewright_here(*FLAGS, model.url, *prices, "--json", cwd=tmp_path)
        answers = len(model.requests)
    assert answers > 0, done.stderr
    usage = json.loads(done.stdout)["usage"]
    assert usage["unpriced_tokens"] == 0
    assert usage["cost_usd"] == pytest.approx(0.3 * answers)
    assert f"cost {0.3 * answers:.4f} USD" in done.stderr
    report = (tmp_path / ".treewright/proof_runs/r/report.md").read_text()
    assert f"cost {0.3 * answers:.4f} USD" in report
    told = json.loads((tmp_path / ".treewright/proof_runs/r/run.json").read_text())
    assert told["settings"]["sources"]["endpoint"]["usd_per_million_prompt_tokens"] == 2000


def trace_of(run: Path) -> list[object]:
    return [without_clock(line) for line in read_trace(run / "trace.jsonl")]


def test_a_run_without_a_model_reports_no_usage(tmp_path: Path, treewright_here: Program) -> None:
    done = treewright_here("prove", "--statement", "1 = 1", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (told["answers"], told["usage"]) == (0, None)
    assert "of the model" not in done.stderr
