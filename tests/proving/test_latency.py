"""The first answer of `prove` comes soon: work is started in parallel, or left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.here import Program
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.answers import ProofState
from treewright.lean.session.process import LeanProcess
from treewright.lean.verify.replayer import Replayer

pytestmark = pytest.mark.xdist_group("lean-session")

TRIVIAL = "∀ p q : Prop, p ∧ q → q ∧ p"
NEEDED = (
    "treewright.cli.prove", "treewright.cli.prove_settings", "treewright.cli.prove_progress",
    "treewright.proving.prover", "treewright.proving.report", "treewright.lean.choice",
)  # fmt: skip


def test_a_short_proof_does_not_import_unneeded_modules() -> None:
    code = f"import sys, {', '.join(NEEDED)}; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_proof_is_checked_once(
    tmp_path: Path, treewright_here: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is that of the verdict, if this process reached it."""
    checked: list[str] = []
    real = Replayer.text

    def counted(self: Replayer, original: str, candidate: str, *rest: object, **more: object):
        checked.append(candidate)
        return real(self, original, candidate, *rest, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Replayer, "text", counted)
    done = treewright_here("prove", "--statement", TRIVIAL, "--run-id", "r")
    assert done.returncode == 0, done.stderr
    assert len(checked) == 1
    proved = tmp_path / ".treewright/proof_runs/r/proved"
    assert (proved / "statement.certificate.json").is_file()
    assert (proved / "statement.lean").read_text() == checked[0]


def test_the_replay_check_is_there_before_it_is_needed(
    home: LeanHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[LeanProcess] = []
    real = LeanProcess.__init__

    def noted(self: LeanProcess, *arguments: object, **more: object) -> None:
        real(self, *arguments, **more)  # pyright: ignore[reportArgumentType]
        started.append(self)

    monkeypatch.setattr(LeanProcess, "__init__", noted)
    with LeanProcesses(home) as lean:
        lean.start()
        session = lean.new_session()
        assert isinstance(session.start("True"), ProofState)
        for start in lean.replayer.processes.starts():
            start()  # waits for the process that is being started, and starts no other
        assert len(started) == 4
        verdict = lean.replayer.theorem("True", "trivial")
        assert verdict.proved, verdict
        assert len(started) == 4
        session.close()
    assert not any(process.alive for process in started)


def test_closing_processes_while_they_start_leaves_none_behind(
    home: LeanHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[LeanProcess] = []
    real = LeanProcess.__init__

    def noted(self: LeanProcess, *arguments: object, **more: object) -> None:
        started.append(self)
        real(self, *arguments, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(LeanProcess, "__init__", noted)
    lean = LeanProcesses(home)
    lean.start()
    lean.close()
    assert not any(process.alive for process in started)
