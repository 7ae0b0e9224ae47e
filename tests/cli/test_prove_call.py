"""`prove` and `replay`: a wrong call is a one-line error before Lean starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from tests.here import run_here
from tests.proving.report_sample import write_sample
from treewright.cli.prove_settings import parse_settings
from treewright.kernel.errors import UsageError
from treewright.lean import choice
from treewright.proving.settings import encode_document, read_run
from treewright.search.andor import policies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one thing to prove: FILE.lean, FILE.lean:theorem, a project's directory"),
        (["A.lean", "--statement", "True"], "name one thing to prove"),
        (["nothing"], "cannot read 'nothing' as FILE.lean"),
        (["missing.lean"], "cannot read missing.lean: No such file"),
        (["--statement", " "], "--statement is empty"),
        (["--statement", "True", "--in-place"], "there is none with --statement"),
        (["--statement", "True", "--agents", "3"], "--agents means something only with"),
        (["--statement", "True", "--block-permanent"], "--block-permanent means something only"),
        (["--statement", "True", "--axioms", "propext,sorryAx"], "cannot allow sorryAx"),
        (["--statement", "True", "--discount", "nan"], "nan is not a number"),
        (["--statement", "True", "--llm-url", "http://x"], "--llm-url and --llm-model go together"),
        (["--statement", "True", "--llm-key-env", "K"], "--llm-key-env is for --llm-url"),
        (
            ["--statement", "True", "--usd-per-million-prompt-tokens", "1"],
            "--usd-per-million-prompt-tokens is for --llm-url",
        ),
        (
            [
                "--statement",
                "1=1",
                "--llm-url",
                "http://x",
                "--llm-model",
                "m",
                "--llm-key-env",
                "NOT_SET_HERE",
            ],
            "NOT_SET_HERE is not set",
        ),
        (
            ["--statement", "True", "--mcts-mode", "distributed", "--algotypes", "clever"],
            "unknown algotype 'clever'",
        ),
        (["--statement", "True", "--tactics", "none.txt"], "cannot read none.txt"),
        (["--resume", "none"], "there is no proof run 'none'"),
        (["--resume", "none", "--seed", "3"], "leave out --seed"),
        (["--resume", "none", "A.lean"], "leave out TARGET"),
        (["--experiment", "e.toml", "--seed", "3"], "leave out --seed"),
        (["--statement", "True", "--simulations", "0"], "Invalid value for '--simulations'"),
    ],
)
def test_a_wrong_prove_call_is_one_line_with_exit_code_2(
    treewright, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = treewright("prove", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_replay_needs_a_run(treewright, tmp_path: Path) -> None:
    result = treewright("replay", "none", cwd=tmp_path)
    assert result.returncode == 2
    assert "there is no proof run 'none'" in result.stderr


def test_replay_and_resume_use_the_lean_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The toolchain is a script that prints a version; it is not started."""
    lean = tmp_path / "own" / "bin" / "lean"
    lean.parent.mkdir(parents=True)
    lean.write_text("#!/bin/sh\necho 'Lean (version 4.20.0, Release)'\n")
    lean.chmod(0o755)
    monkeypatch.setenv("TREEWRIGHT_LEAN", str(lean.parent.parent))
    run = write_sample(tmp_path / "run", [])
    record = read_run(run / "run.json")
    native = msgspec.structs.replace(record.lean, backend="native")
    changed = msgspec.structs.replace(record, lean=native)
    (run / "run.json").write_bytes(encode_document(changed))

    def opened(project: Path | None, *, sandbox: bool = False) -> NoReturn:
        raise UsageError(f"sandbox: {sandbox}")

    monkeypatch.setattr(choice, "native_host", opened)
    for call in (("replay",), ("prove", "--resume")):
        plain = run_here(monkeypatch, (*call, str(run)), tmp_path)
        assert "see --sandbox" in plain.stderr
        assert "sandbox: False" in plain.stderr
        inside = run_here(monkeypatch, (*call, str(run), "--sandbox"), tmp_path)
        assert "sandbox: True" in inside.stderr
    both = run_here(monkeypatch, ("replay", str(run), "--sandbox", "--offline"), tmp_path)
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)


def test_flags_become_settings() -> None:
    settings = parse_settings(
        {
            "mode": "distributed",
            "algotypes": "ucb:2,depth_first",
            "block_fraction": 0.5,
            "seed": 7,
            "simulations": 9,
        }
    )
    assert (settings.mode, settings.seed, settings.simulations) == ("distributed", 7, 9)
    assert settings.cells is not None
    assert settings.cells.agents == 3
    assert settings.cells.algotypes == ("ucb", "ucb", "depth_first")
    assert settings.cells.block_fraction == 0.5


def test_both_modes_accept_a_policy_and_only_one_accepts_cells() -> None:
    chosen = {"exploration": 1.0, "discount": 0.9, "widen_base": 2.0, "axioms": "propext, Magic"}
    for mode in ("centralized", "distributed"):
        settings = parse_settings({"mode": mode, "backup": "min", **chosen})
        policy = settings.policy
        assert isinstance(policy, policies.Mcts)
        assert (policy.exploration, policy.backup, policy.widen_base) == (1.0, "min", 2.0)
        assert settings.axioms == ("Magic", "propext")
    assert set(parse_settings({}).axioms) == {"propext", "Classical.choice", "Quot.sound"}
    with pytest.raises(UsageError, match="--reroute-max"):
        parse_settings({"reroute_max": 1})


def test_a_resumed_run_keeps_its_policy_and_settings() -> None:
    settings = parse_settings({"policy": "beam", "policy_options": ("width=3",), "discount": 0.9})
    assert settings.policy == policies.Beam(width=3, discount=0.9)
    assert parse_settings({}).policy == policies.Mcts()
    assert parse_settings({"policy_options": ("exploration=2",)}).policy == policies.Mcts(2.0)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"policy": "beam", "mode": "distributed"}, "--policy is for one searcher"),
        ({"policy": "beam", "exploration": 2.0}, "policy beam has no setting 'exploration'"),
        ({"policy": "beam", "policy_options": ("width=0",)}, "Expected `int` >= 1"),
        ({"policy": "beam", "policy_options": ("width",)}, "write KEY=VALUE"),
        ({"discount": 0.5, "policy_options": ("discount=1",)}, "by --discount and --policy-option"),
        ({"policy_options": ("first_play=1e999",)}, "first_play|policy mcts"),
    ],
)
def test_a_wrong_policy_is_a_one_line_error(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_settings(flags)
