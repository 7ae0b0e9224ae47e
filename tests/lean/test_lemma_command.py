"""A file with `lemma`, which is a command of Mathlib, says so and says what to do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.here import Program
from treewright.lean.session.answers import Diagnostic
from treewright.lean.session.lemma_errors import explained

pytestmark = pytest.mark.xdist_group("lean-session")

TEXT = """\
theorem one : 1 = 1 := by sorry

lemma two (n : Nat) : n + 0 = n := by

  sorry

@[simp] lemma three : 2 = 2 := rfl
"""
WORDS = "`lemma` is a command of Mathlib, and this file does not import it: write `theorem`"


def test_check_and_sorries_name_the_cause_and_the_line(
    treewright_here: Program, tmp_path: Path
) -> None:
    (tmp_path / "L.lean").write_text(TEXT)
    done = treewright_here("lean", "check", "L.lean", cwd=tmp_path)
    assert done.returncode == 1
    assert f"L.lean:3:1: error: {WORDS}" in done.stdout
    assert f"L.lean:7:9: error: {WORDS}" in done.stdout
    listed = treewright_here("sorries", ".", cwd=tmp_path)
    assert listed.returncode == 1
    assert listed.stderr.count(f"L.lean:3:1: error: {WORDS}") == 1
    document = json.loads(treewright_here("sorries", "--json", ".", cwd=tmp_path).stdout)
    assert [sorry["declaration"] for sorry in document["sorries"]] == ["one"]
    assert WORDS in document["problems"][0]["error"]
    assert "line 3" in document["problems"][0]["error"]


def test_prove_leaves_the_lemmas_alone_and_says_why(
    treewright_here: Program, tmp_path: Path
) -> None:
    (tmp_path / "L.lean").write_text(TEXT.replace("@[simp] lemma three", "theorem three"))
    flags = ("--no-library", "--step-timeout", "20")
    done = treewright_here("prove", "L.lean", *flags, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert f"L.lean:3:1: error: {WORDS}" in done.stderr
    assert "left alone: the lemma of line 3" in done.stdout
    named = treewright_here("prove", "L.lean:two", *flags, cwd=tmp_path)
    assert named.returncode == 2
    assert f"L.lean:3:1: error: {WORDS}" in named.stderr
    (tmp_path / "L.lean").write_text(TEXT.partition("\n\n")[2])
    only = treewright_here("prove", "L.lean", *flags, cwd=tmp_path)
    assert only.returncode == 2
    assert f"L.lean:1:1: error: {WORDS}" in only.stderr


def test_ci_reports_the_file(treewright_here: Program, tmp_path: Path, git_binary: str) -> None:
    def git(*arguments: str) -> None:
        settings = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        subprocess.run([git_binary, *settings, *arguments], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")
    (tmp_path / "L.lean").write_text("theorem zero : 0 = 0 := rfl\n")
    git("add", ".")
    git("commit", "-qm", "base")
    (tmp_path / "L.lean").write_text(TEXT)
    listing = ("--budget", "0", "--fail-on", "new-sorry", "--json")
    done = treewright_here("ci", "--base", "HEAD", *listing, cwd=tmp_path)
    (problem,) = json.loads(done.stdout)["problems"]
    assert WORDS in problem["error"]
    assert "line 3" in problem["error"]
    assert done.returncode == 1


def test_only_an_error_at_the_word_is_explained() -> None:
    error = Diagnostic("error", "unexpected identifier; expected command", 3, 0)
    assert WORDS in explained(TEXT, error).text
    before = "@[simp]\n  lemma two : True := trivial\n"
    moved = explained(before, Diagnostic("error", error.text, 1, 7))
    assert (moved.line, moved.column) == (2, 2)
    for other in (
        Diagnostic("error", "unexpected identifier; expected command", 1, 0),
        Diagnostic("error", "unexpected identifier; expected command", 99, 0),
        Diagnostic("error", "Type mismatch", 3, 0),
        Diagnostic("warning", "unexpected identifier; expected command", 3, 0),
    ):
        assert explained(TEXT, other) == other
