"""Commands on a project's own toolchain, from the flag to the verdict.

The project is built by Lake, as its users do it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.lean import native_projects
from tests.lean.projects import BASIC, EVEN, small_project
from treewright.lean.hosts.native.host import NativeHost

Program = Callable[..., CompletedProcess[str]]
ORDER = """import Foo.Even
theorem Foo.swap (p q : Prop) (h : p ∧ q) : q ∧ p := by
  sorry
theorem Foo.four {n : Nat} (h : Foo.Even n) : Foo.Even (n + n + (n + n)) := by
  sorry
"""


@pytest.fixture
def root(native: NativeHost, tmp_path: Path) -> Path:
    place = small_project(tmp_path / "foo", Basic=BASIC, Even=EVEN, Order=ORDER)
    native_projects.lake_build(native, place, "Foo.Order")
    return place


def test_every_sorry_of_a_project_is_found_and_proved(root: Path, treewright: Program) -> None:
    listed = treewright("sorries", ".", "--lean", "native", "--json", cwd=root)
    assert listed.returncode == 0, listed.stderr
    declarations = [each["declaration"] for each in json.loads(listed.stdout)["sorries"]]
    assert declarations == ["Foo.Even.double", "Foo.swap", "Foo.four"]
    done = treewright("prove", ".", "--lean", "native", "--simulations", "50", cwd=root)
    assert done.returncode == 1, done.stderr
    assert "native" in done.stderr
    runs = (root / ".treewright" / "proof_runs").glob("*/result.json")
    results = [json.loads(path.read_text()) for path in runs]
    goals = {goal["name"]: goal["status"] for result in results for goal in result["goals"]}
    # It follows from `double`, which is open in the module that it is imported from.
    assert goals.pop("Foo.four:5") != "proved"
    assert goals == {"Foo.Even.double:3": "proved", "Foo.swap:3": "proved"}
    assert all(result["certificate"] for result in results if result["proved"])


def test_bg_works_through_it(root: Path, treewright: Program) -> None:
    patient = ("--cpu-target", "1000", "--strategy", "micro", "--strategy-timeout", "micro=300")
    done = treewright(
        "bg", ".", "--once", "--in-place", "--json", "--lean", "native", *patient, cwd=root
    )
    assert done.returncode == 0, done.stderr
    assert "Foo.swap" in [each["declaration"] for each in json.loads(done.stdout)["proved"]]


def test_its_declarations_are_premises(root: Path, treewright: Program) -> None:
    given = ("--lexical", "--lean", "native", "--import", "Foo.Even", "--path", str(root / "index"))
    built = treewright("premises", "build", "--module", "Foo", *given, cwd=root)
    assert built.returncode == 0, built.stderr
    found = treewright("premises", "search", "Even (m + n)", *given, cwd=root)
    assert "Foo.Even.add" in found.stdout, found.stdout + found.stderr


def test_a_file_is_checked_and_a_proof_certified(root: Path, treewright: Program) -> None:
    checked = treewright("lean", "check", "--lean", "native", "Foo/Order.lean", cwd=root)
    assert (checked.returncode, "rests on sorry: Foo.four, Foo.swap" in checked.stdout) == (1, True)
    (root / "Done.lean").write_text(EVEN.replace("sorry", "exact h.add h"))
    verified = treewright(
        "lean", "verify", "--lean", "native", "Foo/Even.lean", "Done.lean", cwd=root
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_doctor_says_which_lean_and_what_of_the_project_is_built(
    root: Path, treewright: Program, native: NativeHost
) -> None:
    said = treewright("doctor", cwd=root)
    assert native.toolchain.name in said.stdout, said.stdout + said.stderr
