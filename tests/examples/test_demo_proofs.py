"""The second half of `make demo`: the real command, a real Lean, a small project."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from treewright.lean.processes import LeanProcesses
from treewright.premises.index_builder import ensure_index

if TYPE_CHECKING:
    from treewright.lean.hosts.wasm.home import LeanHome

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def cache(home: LeanHome, tmp_path: Path) -> Path:
    """Return a cache with the bundled Lean, the index of its library that other tests share, and
    new compiled modules.

    The modules that the user's `make demo` put into the cache are sealed with the user's key and
    cannot be shared."""
    place = tmp_path / "cache"
    place.mkdir()
    (place / "lean").symlink_to(home.path.parent)
    (place / "premises").symlink_to(ensure_index(lambda: LeanProcesses(home)).parent)
    return place


def test_the_demo_of_proofs_closes_every_goal(tmp_path: Path, cache: Path) -> None:
    environment = {
        **os.environ,
        "TREEWRIGHT_DEMO_DIR": str(tmp_path / "a place"),
        "TREEWRIGHT_CACHE": str(cache),
    }

    def demo() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(EXAMPLES / "demo_proofs.py")],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 proved" in done.stdout
    assert done.stdout.count("-  sorry") == 3, "the patches are shown"
    laws = (tmp_path / "a place" / "queue" / "Queue" / "Laws.lean").read_text(encoding="utf-8")
    assert "sorry" not in laws
    assert list((cache / "modules").rglob("*.module"))
    assert "generalizing q" in laws, "the queue changes along the list"
    again = demo()
    assert again.returncode == 1
    assert "exists already" in again.stderr


def test_the_demo_of_proofs_fails_if_a_goal_is_left_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdict = runpy.run_path(str(EXAMPLES / "demo_proofs.py"))["verdict"]
    assert verdict(3, 3, 0) == 0
    assert verdict(2, 3, 1) == 1
    assert verdict(3, 3, 1) == 1
    assert "2 of 3 proved; still `sorry`: 1" in capsys.readouterr().err
