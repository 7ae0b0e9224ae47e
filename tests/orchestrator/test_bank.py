"""A bank of goals: reading it, running it, its results; the sorries of a project as a bank."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import click
import msgspec
import pytest

from tests.orchestrator.fakes import FakeWorker, accept
from treewright.cli.portfolio import bank as bank_command
from treewright.kernel.errors import UsageError
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.bank_run import run_bank
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals.bank import parse_bank, read_bank
from treewright.orchestrator.goals.sorry_goals import estimate_difficulty
from treewright.orchestrator.ledger.attempts import Attempt
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Scheduler
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.lean_access import LeanAccess

Program = Callable[..., subprocess.CompletedProcess[str]]


def bank(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "bank.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_goals_with_every_field(tmp_path: Path) -> None:
    line = {
        "id": 7,
        "statement": "n ≠ 0",
        "context": ["n : Nat", "h : n > 0"],
        "imports": ["Std"],
        "preamble": "open Nat",
        "difficulty": 0.7,
        "class": "nat",
        "source": "ignored",
    }
    (goal,) = read_bank(bank(tmp_path, json.dumps(line))).goals
    assert (goal.id, goal.text, goal.context) == ("7", "n ≠ 0", ("n : Nat", "h : n > 0"))
    assert (goal.imports, goal.preamble, goal.goal_class) == (("Std",), "open Nat", "nat")
    assert goal.heavy


def test_lines_that_cannot_be_used_are_left_out_and_named(tmp_path: Path) -> None:
    path = bank(
        tmp_path,
        '{"id": "a", "text": "True"}',
        "",
        "no json",
        '{"id": "a", "text": "False"}',
        '{"text": "no id"}',
        '{"id": "b"}',
        '{"id": "c", "text": "p", "estimated_difficulty": 3}',
        '{"id": "d", "text": 5}',
        "\udcff".encode("utf-8", "surrogateescape").decode("latin1"),
        '{"id": "e", "text": "True"}',
    )
    found = read_bank(path)
    assert [goal.id for goal in found.goals] == ["a", "e"]
    assert found.goals[0].text == "True"
    assert [problem.line for problem in found.problems] == [3, 4, 5, 6, 7, 8, 9]
    assert "taken by an earlier line" in found.problems[1].reason


@pytest.mark.parametrize("text", ["", "\n\n", "nonsense\n"])
def test_a_bank_without_goals_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="has no goals"):
        read_bank(path)


def test_difficulty_grows_with_the_goal_and_stays_within_its_bounds() -> None:
    trivial, hard = "1 + 1 = 2", "∀ xs : List Nat, ∃ ys, ys.reverse = xs ∧ ∃ n, n ∣ ys.length"
    assert 0 <= estimate_difficulty(trivial) < 0.3 < 0.6 < estimate_difficulty(hard) <= 1
    assert estimate_difficulty("p ∧ " * 4000 + "p") <= 1
    assert estimate_difficulty("p", ["h : " + hard]) > estimate_difficulty("p")


def test_a_hundred_thousand_lines_with_stub_workers(tmp_path: Path, treewright: Program) -> None:
    """All lines are read; the run ends at its time limit, with its attempts recorded."""
    path = tmp_path / "bank.jsonl"
    path.write_text("".join(f'{{"id": "{i}", "text": "{i} = {i}"}}\n' for i in range(100_000)))
    done = treewright("bank", "bank.jsonl", "--profile", "0", "--timeout", "4", "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["goals_total"] == 100_000
    assert results["goals_solved"] == 0
    with Ledger(tmp_path / ".treewright" / "stubs-ledger.db") as ledger:
        (tried,) = ledger.query("SELECT COUNT(DISTINCT goal_id) FROM attempts")[0]
    assert 0 < results["goals_processed"] <= tried <= 100_000
    assert not (tmp_path / ".treewright" / "ledger.db").exists()


def test_stub_workers_write_results_a_table_and_a_picture(
    tmp_path: Path, treewright: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank(tmp_path, '{"id": "a", "text": "1 = 1"}', '{"id": "b", "text": "p"}', "broken")
    monkeypatch.setenv("ORCH_PROFILE", "0")
    done = treewright("bank", "bank.jsonl", "--timeout", "60", "--max-heavy", "1")
    assert done.returncode == 0, done.stderr
    assert "0 of 2 goals proved, 2 processed" in done.stdout
    assert "bank.jsonl:3: left out" in done.stderr
    (path,) = (tmp_path / "bench" / "results").glob("bank-*.json")
    results = json.loads(path.read_text())
    assert (results["goals_total"], results["goals_processed"], results["goals_solved"]) == (
        2,
        2,
        0,
    )
    assert results["strategies"]["micro"] == {"used": 2, "succeeded": 0, "cancelled": 0}
    wanted = {"timeout": 60.0, "max_heavy": 1, "max_light": 8, "profile": 0}
    assert {key: results["config"][key] for key in wanted} == wanted
    assert path.with_suffix(".svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.jsonl"], "cannot read the bank"),
        (["bank.jsonl", "--timeout", "0"], "0.0 is not in the range x>0.0"),
        (["bank.jsonl", "--max-light", "0"], "--max-light must be at least 1"),
        (["bank.jsonl", "--cpu-target", "nan"], "nan is not a number"),
        (["bank.jsonl", "--strategy", "magic"], "there is no strategy 'magic'"),
        (["bank.jsonl", "--strategy-timeout", "micro"], "NAME=SECONDS"),
        (["bank.jsonl", "--profile", "9"], "there is no profile 9"),
    ],
)
def test_a_wrong_call_is_one_line_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    bank(tmp_path, '{"id": "a", "text": "1 = 1"}')
    with pytest.raises((UsageError, click.BadParameter)) as caught:
        bank_command.main(arguments, standalone_mode=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert not (tmp_path / ".treewright").exists()


def test_imports_are_modules_and_ids_are_ids(tmp_path: Path) -> None:
    hostile = {"id": "x", "text": "1 = 2", "imports": ["Init\ninstance : OfNat Nat 2 := ⟨1⟩\n"]}
    read = read_bank(
        bank(
            tmp_path,
            json.dumps(hostile),
            json.dumps({"id": "a\x1b[2Jb", "text": "1 = 1"}),
            '{"id": "deep", "text": "1 = 1", "else": ' + "[" * 100_000,
            '{"id": "fine", "text": "1 = 1", "imports": ["Std.Data.HashMap"]}',
        )
    )
    assert [goal.id for goal in read.goals] == ["fine"]
    reasons = [problem.reason for problem in read.problems]
    assert "is not the name of a Lean module" in reasons[0]
    assert "printable" in reasons[1]
    assert "nested too deeply" in reasons[2]


def stored_proof(goal: Goal, run_id: str) -> Attempt:
    """Return an attempt that claims to have proved a goal by `rfl`."""
    return Attempt(
        key=f"{run_id}/{goal.id}/micro/8/1",
        run_id=run_id,
        goal_id=goal.id,
        goal_hash=Ledger.hash_goal(goal),
        goal_text=goal.text,
        goal_class="",
        strategy=StrategyType.MICRO,
        status="proved",
        time_seconds=0.1,
        cpu_seconds=0.1,
        budget=8.0,
        toolchain="",
        imports=goal.imports,
        tactics=("rfl",),
        subgoals=(),
        error=None,
        metadata={},
    )


def test_a_lost_check_of_a_stored_proof_withdraws_nothing(tmp_path: Path) -> None:
    """A check that was lost says nothing about the proof."""

    async def lose(goal: Goal, tactics: Sequence[str], timeout: float) -> Verdict:
        return Verdict("lost", "Lean ended")

    goals = read_bank(bank(tmp_path, '{"id": "g", "text": "1 = 1"}'))
    announced: list[str] = []
    with Ledger(tmp_path / "ledger.db") as ledger:
        run_id = ledger.open_run("bank-x", "bank", goals.digest, "{}")
        ledger.record(stored_proof(goal, run_id) for goal in goals.goals)
        workers = [FakeWorker(StrategyType.MICRO, lambda _: True)]
        scheduler = Scheduler(
            OrchestratorConfig(), ledger=ledger, workers=workers, verify=lose, run_id=run_id
        )
        asyncio.run(scheduler.recheck({goal.id: goal for goal in goals.goals}, announced.append))
        (kept,) = ledger.query("SELECT status FROM attempts")
    assert announced[-1].startswith("g: its stored proof could not be checked (lost: Lean ended)")
    assert kept["status"] == "proved"


@pytest.mark.xdist_group("orchestrator-lean")
def test_a_success_in_the_ledger_is_a_claim_when_a_run_goes_on(
    tmp_path: Path, shared_lean: LeanAccess
) -> None:
    """A program that can write the file can claim that everything is proved."""
    goals = read_bank(
        bank(tmp_path, '{"id": "true", "text": "1 = 1"}', '{"id": "false", "text": "1 = 2"}')
    )
    config = OrchestratorConfig(cpu_target=1000.0, strategies=(StrategyType.MICRO,))
    announced: list[str] = []
    with Ledger(tmp_path / "ledger.db") as ledger:
        run_id = ledger.open_run(
            "bank-x", "bank", goals.digest, msgspec.json.encode(config, order="sorted").decode()
        )
        ledger.record(stored_proof(goal, run_id) for goal in goals.goals)
        done = asyncio.run(
            run_bank(goals, config, ledger, timeout=600, announce=announced.append)
        ).results
        assert done.run_id == run_id
        assert done.solved == ["true"]
        assert (done.goals_solved, done.goals_processed) == (1, 2)
        statuses = ledger.query("SELECT goal_id, status FROM attempts WHERE success = 1")
        assert [row["goal_id"] for row in statuses] == ["true"]
    told = "\n".join(announced)
    assert "false: its stored proof does not hold (error" in told
    assert "1 of 2 goals are solved" in told


def test_what_the_ledger_has_counts_as_solved(tmp_path: Path) -> None:
    """A goal counts even if it was proved during the stop and has no result."""

    class Stopped(Scheduler):
        async def process_queue(self, queue, on_result=None) -> dict[str, Result]:
            await super().process_queue(queue, on_result)
            return {}

    goals = read_bank(bank(tmp_path, '{"id": "g", "text": "1 = 1"}'))
    workers = [FakeWorker(StrategyType.MICRO, lambda _: True)]
    with Ledger(tmp_path / "ledger.db") as ledger:
        done = asyncio.run(
            run_bank(
                goals,
                OrchestratorConfig(cpu_target=1000.0),
                ledger,
                timeout=600,
                make_scheduler=lambda config, ledger, run_id: Stopped(
                    config, ledger=ledger, workers=workers, verify=accept, run_id=run_id
                ),
            )
        )
    assert done.results.solved == ["g"]
    assert (done.results.goals_solved, done.results.goals_processed) == (1, 1)


SOURCE = """\
inductive Tape where
  | blank
  | cell (bit : Bool) (rest : Tape)

theorem Tape.same (t : Tape) : t = t := by
  sorry
theorem both (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor
  · sorry
  · exact sorry
example : True := by sorry
"""


def document(project: Path, source: str) -> bytes:
    """As `sorries --json` prints it, with the positions that Lean would give."""
    data = source.encode()

    def record(declaration: str, start: int, tactic: bool) -> dict[str, object]:
        return {
            "file": "A.lean", "line": 1, "column": 1, "declaration": declaration, "goal": "p",
            "context": [], "imports": ["Init"], "difficulty": 0.3, "start": start,
            "end": start + 5, "tactic": tactic,
        }  # fmt: skip

    first = data.index(b"sorry")
    second = data.index(b"sorry", first + 1)
    third = data.index(b"sorry", second + 1)
    found = [
        record("Tape.same", first, True),
        record("both", second, True),
        record("both", third, False),
        record("_example", data.rindex(b"sorry"), True),
    ]
    return json.dumps({"project": str(project), "sorries": found, "problems": []}).encode()


def test_the_document_is_a_bank_of_declarations(tmp_path: Path) -> None:
    (tmp_path / "A.lean").write_text(SOURCE)
    bank = parse_bank(document(tmp_path, SOURCE), Path("-"), Path())
    assert [goal.id for goal in bank.goals] == ["A.lean:Tape.same", "A.lean:both"]
    assert bank.root == tmp_path
    both = bank.goals[1].place
    assert both is not None
    assert (both.source, both.declaration, len(both.holes)) == (SOURCE, "both", 2)
    assert both.tactic_holes == {both.holes[0]}
    (problem,) = bank.problems
    assert "an `example` has no name" in problem.reason


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the bank - has no goals; line 1: .*"):
        parse_bank(document(tmp_path, SOURCE), Path("-"), Path())


@pytest.mark.xdist_group("orchestrator-lean")
def test_the_pipe(tmp_path: Path, treewright: Callable[..., CompletedProcess[str]]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "A.lean").write_text(SOURCE)
    listed = treewright("sorries", "project", "--json")
    assert listed.returncode == 0, listed.stderr
    done = treewright(
        "bank", "-", "--json", "--strategy", "micro", "--strategy-timeout", "micro=300",
        "--timeout", "600", "--cpu-target", "1000", "--lean-sessions", "1", input=listed.stdout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["solved"] == ["A.lean:Tape.same", "A.lean:both"]
