"""`treewright lean` as users run it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from treewright.lean.hosts.wasm.home import LeanHome

pytestmark = pytest.mark.xdist_group("lean-replay")
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_check_prints_positions_and_exits_1(treewright_here: Run, tmp_path: Path) -> None:
    (tmp_path / "good.lean").write_text("theorem a : 1 + 1 = 2 := rfl\n")
    (tmp_path / "bad.lean").write_text('theorem b : Nat :=\n  sorry\nexample : Nat := "x"\n')
    bad = treewright_here("lean", "check", "good.lean", "bad.lean")
    assert bad.returncode == 1
    assert "Lean backend: wasm (not inside a Lake project)" in bad.stderr
    assert "good.lean" not in bad.stdout
    assert "bad.lean:3:18: error: Type mismatch" in bad.stdout
    good = treewright_here("lean", "check", "--json", "good.lean")
    assert good.returncode == 0
    document = json.loads(good.stdout)
    assert document["backend"] == "wasm"
    assert document["files"][0]["ok"] is True
    (tmp_path / "quiet.lean").write_text(
        "set_option warn.sorry false\ntheorem quiet : 1 = 2 := sorry\n"
    )
    quiet = treewright_here("lean", "check", "quiet.lean")
    assert quiet.returncode == 1
    assert "quiet.lean:1:1: error: rests on sorry: quiet\n" in quiet.stdout


def test_check_says_what_is_wrong_with_the_call(
    treewright: Run, treewright_here: Run, tmp_path: Path
) -> None:
    missing = treewright("lean", "check", "nothing.lean")
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    assert "cannot read nothing.lean" in missing.stderr
    native = treewright("lean", "check", "--lean", "native", __file__)
    assert native.returncode == 2
    (tmp_path / "m.lean").write_text("import Mathlib\n")
    mathlib = treewright_here("lean", "check", "m.lean")
    assert mathlib.returncode == 2
    assert "--lean native" in mathlib.stderr


def test_verify_prints_a_certificate_and_exits_0_only_if_it_holds(
    treewright: Run, treewright_here: Run, tmp_path: Path
) -> None:
    original = "theorem one_eq_two : 1 = 2 := by\n  sorry\ntheorem t : 1 = 1 := by\n  sorry\n"
    (tmp_path / "O.lean").write_text(original)
    (tmp_path / "C.lean").write_text(original[:-8] + "  rfl\n")
    good = treewright(
        "lean",
        "verify",
        "O.lean",
        "C.lean",
        "--target",
        "t",
        "--certificate",
        "c.json",
        "--paranoid",
    )
    assert good.returncode == 0, good.stderr
    certificate = json.loads(good.stdout)
    assert (certificate["targets"], certificate["axioms"]) == (["t"], [])
    assert certificate["warnings"]
    assert "files of the Lean home verified" in good.stderr
    assert json.loads((tmp_path / "c.json").read_text()) == certificate
    bad = treewright_here("lean", "verify", "O.lean", "C.lean")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "not proved (sorry)" in bad.stderr


def test_doctor(treewright_here: Run) -> None:
    done = treewright_here("lean", "doctor", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["replay"] == "proved"
    assert report["home_files_verified"] == 2102
    assert report["lean"].startswith("4.28")
    assert report["steps_per_second"] > 0


def test_install_twice_does_nothing(treewright: Run, home: LeanHome, tmp_path: Path) -> None:
    done = treewright("lean", "install")
    assert (done.returncode, done.stdout) == (0, f"Lean is already installed: {home.path}\n")
    done = treewright("lean", "install", "--repair")
    assert (done.returncode, done.stdout) == (0, f"Lean is intact: {home.path}\n")
    (tmp_path / "x.tgz").write_bytes(b"not it")
    wrong = treewright("lean", "install", "--from", "x.tgz")
    assert wrong.returncode == 1
    assert "sha512 differs" in wrong.stderr
