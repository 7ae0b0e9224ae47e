"""The commands in a Lake project, on one small project that is compiled once."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.here import Program
from tests.lean.projects import BASIC, EVEN, small_project
from treewright.lean import processes
from treewright.lean.project import module_store
from treewright.orchestrator.types import Goal
from treewright.orchestrator.workers.lean_access import LeanAccess

pytestmark = pytest.mark.xdist_group("lean-projects")

ON_BAD = "import Foo.Bad\ntheorem Foo.one : 1 = 1 := by\n  sorry\n"


@pytest.fixture
def root(tmp_path: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module_store, "cache_directory", lambda: compiled)
    texts = {"Basic": BASIC, "Even": EVEN, "Bad": "theorem bad : 1 = 2 := rfl\n", "A": ON_BAD}
    return small_project(tmp_path / "foo", **texts)


def test_every_sorry_of_a_project_is_worked_on_in_order(
    root: Path, treewright_here: Program, git_binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "tactics.txt").write_text("exact Foo.Even.add h h\n")
    arguments = ["prove", ".", "--tactics", "tactics.txt", "--simulations", "2", "--json"]
    done = treewright_here(*arguments, cwd=root)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["proved"], document["total"]) == (1, 1)
    assert [Path(p["file"]).name for p in document["problems"]] == ["A.lean"]
    assert "Foo.Bad does not compile" in document["problems"][0]["error"]
    (file,) = document["files"]
    certificate = json.loads(Path(file["certificate"]).read_text())
    assert [module["name"] for module in certificate["modules"]] == ["Foo.Basic"]
    patch = Path(file["directory"]) / "proved.patch"
    subprocess.run([git_binary, "apply", str(patch)], cwd=root, check=True)
    assert (root / "Foo" / "Even.lean").read_text() == EVEN.replace(
        "sorry", "exact Foo.Even.add h h"
    )
    # A run of a changed project is not continued, and no Lean is started for the message.
    (root / "Foo" / "Basic.lean").write_text(f"{BASIC}-- edited\n")
    monkeypatch.setattr(processes, "LeanProcesses", None)
    again = treewright_here("prove", "--resume", file["run_id"], cwd=root)
    assert again.returncode == 2
    assert "Foo.Basic was edited since this run began" in again.stderr


def test_a_project_shows_partial_proofs_and_has_one_patch(
    tmp_path: Path, treewright_here: Program, git_binary: str
) -> None:
    first = "theorem first : 1 + 1 = 2 := by\n  sorry\n"
    hard = "opaque f : Nat → Nat\ntheorem hard (n : Nat) : f n = 0 := by\n  sorry\n"
    root = small_project(
        tmp_path / "foo", First=first, Second=first.replace("first", "second") + hard
    )
    done = treewright_here("prove", ".", "--simulations", "2", "--no-refute", cwd=root)
    assert done.returncode == 1, done.stderr
    assert "file 1 of 2: " in done.stderr
    assert "file 2 of 2: " in done.stderr
    said = done.stdout
    assert said.index("First.lean: 1 of 1 proved") < said.index("Second.lean: 1 of 2 proved")
    assert "first:2: proved\n  " in said
    assert "hard:5: unproved" in said
    assert "⊢ f n = 0" in said
    patch = root / ".treewright" / "proofs.patch"
    assert f"patch with all proofs: {patch}" in said
    subprocess.run([git_binary, "apply", str(patch)], cwd=root, check=True)
    assert "sorry" not in (root / "Foo" / "First.lean").read_text()
    assert (root / "Foo" / "Second.lean").read_text().count("sorry") == 1


def test_files_of_a_project_are_listed_and_checked(root: Path, treewright_here: Program) -> None:
    listed = treewright_here("sorries", str(root), "--lean", "wasm", "--json")
    document = json.loads(listed.stdout)
    assert [s["declaration"] for s in document["sorries"]] == ["Foo.Even.double"]
    assert [Path(p["file"]).name for p in document["problems"]] == ["A.lean"]
    files = [str(root / "Foo" / f"{name}.lean") for name in ("A", "Basic")]
    checked = treewright_here("lean", "check", "--lean", "wasm", *files)
    assert checked.returncode == 1
    assert "Foo.Bad does not compile: line 1" in checked.stdout


def test_a_verdict_without_the_cache_is_the_same(root: Path, treewright_here: Program) -> None:
    candidate = root / "candidate.lean"
    candidate.write_text(EVEN.replace("sorry", "exact Foo.Even.add h h"))
    original = str(root / "Foo" / "Even.lean")
    done = treewright_here("lean", "verify", original, str(candidate), "--paranoid")
    assert done.returncode == 0, done.stderr
    assert "compiling Foo.Basic" in done.stderr


@pytest.mark.usefixtures("lent_lean")
def test_goals_of_a_bank_may_import_modules(root: Path) -> None:
    goal = Goal(id="g", text="Foo.Even 2", imports=("Foo.Basic",))

    async def verdicts() -> list[str]:
        lean = LeanAccess(1, start=root)
        try:
            first = await lean.verify(goal, ["exact .step .zero"], 120.0)
            (root / "Foo" / "Basic.lean").write_text(BASIC.replace("n + 2)", "n + 3)"))
            await lean.refresh()
            return [first.reason, (await lean.verify(goal, ["exact .step .zero"], 120.0)).reason]
        finally:
            await lean.close()

    assert asyncio.run(verdicts()) == ["proved", "error"]
