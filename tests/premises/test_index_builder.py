"""Indexes of a real Lean environment: their premises, and the changes of a second build."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.here import Program
from tests.premises.conftest import SMALL
from treewright.kernel.errors import StorageError, UsageError
from treewright.lean.choice import Choice, choose
from treewright.lean.hosts.native import toolchain
from treewright.lean.session.answers import Declaration
from treewright.lean.session.host_session import HostSession
from treewright.premises import index_builder
from treewright.premises.index import PremiseIndex
from treewright.premises.index_builder import build_lexical, default_path, is_premise
from treewright.premises.store import PremiseStore

pytestmark = pytest.mark.xdist_group("lean-session")

MODULE = "Init.Data.Nat.Basic"


def test_goals_find_their_lemmas_in_the_library(nat_index: Path) -> None:
    with PremiseIndex.open(nat_index) as index:
        assert len(index) > 300
        assert index.imports == ("Init",)
        assert index.lean.startswith("4.")
        found = index.lexical("x y : Nat\nh : x ≤ y\n⊢ x < y + 1", 5)
        assert "Nat.lt_add_one_of_le" in [premise.name for premise in found]
        best = index.lexical("a b : Nat\n⊢ a + b = b + a", 1)[0]
    assert best.name == "Nat.add_comm"
    assert best.module == MODULE
    assert best.kind == "theorem"


def test_a_second_build_changes_nothing(lean: HostSession, nat_index: Path) -> None:
    report = build_lexical(lean, nat_index, module=MODULE)
    assert (report.added, report.changed, report.removed) == (0, 0, 0)


def test_new_changed_and_gone_premises_are_noticed(
    lean: HostSession, nat_index: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(nat_index.read_bytes())
    with PremiseStore(copy, write=True) as store:
        store.remove(["Nat.add_comm"])
        store.put(
            [
                Declaration("Nat.add_assoc", "theorem", MODULE, "False"),
                Declaration("Nat.no_longer", "theorem", MODULE, "True"),
                Declaration("Int.elsewhere", "theorem", "Init.Data.Int", "True"),
            ]
        )
    report = build_lexical(lean, copy, module=MODULE)
    assert (report.added, report.changed, report.removed) == (1, 1, 1)
    with PremiseIndex.open(copy) as index:
        names = {p.name for p in index.lexical("add assoc comm no longer elsewhere", 1000)}
        assert {"Nat.add_comm", "Nat.add_assoc", "Int.elsewhere"} <= names
        assert "Nat.no_longer" not in names


def test_a_limit_takes_so_many_more_each_time(lean: HostSession, tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    for expected in (10, 20):
        report = build_lexical(lean, path, module=MODULE, limit=10)
        assert (report.added, report.premises, report.removed) == (10, expected, 0)


@pytest.mark.parametrize(
    "name",
    ["T.rec", "T.casesOn", "T.mk.injEq", "f.match_1", "f.eq_2", "T.noConfusionType", "f._proof_1"],
)
def test_generated_declarations_are_none(name: str) -> None:
    assert not is_premise(Declaration(name, "theorem", "M", "True"))
    assert is_premise(Declaration("T.record_inj_eq", "theorem", "M", "True"))


def test_an_index_per_imports_in_the_user_s_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path))
    assert default_path(["Init"]).parent == tmp_path / "premises"
    assert default_path(["Init", "Std"]) == default_path(["Std", "Init"])
    assert default_path(["Init"]) != default_path(["Std"])


def test_an_index_per_lean_and_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, treewright_here: Program
) -> None:
    """The toolchain is a script that says a version."""
    cache, lean = tmp_path / "cache", tmp_path / "own" / "bin" / "lean"
    monkeypatch.setattr(index_builder, "cache_directory", lambda: cache)
    lean.parent.mkdir(parents=True)
    lean.write_text("#!/bin/sh\necho 'Lean (version 4.22.1, Release)'\n")
    lean.chmod(0o755)
    monkeypatch.setenv(toolchain.VARIABLE, str(lean.parent.parent))
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
        (root / "lakefile.toml").write_text('name = "same"\n')
    bundled, library = Choice("wasm", "asked for"), default_path(["Init"])
    assert default_path(["Init"], bundled, roots[0]) == library  # of no project
    natives = [choose("native", root) for root in roots]
    paths = {
        default_path(imports, choice, root)
        for imports in (["Init"], ["Foo"])
        for root, native in zip(roots, natives, strict=True)
        for choice in (bundled, native)
    }
    assert len(paths) == 2 + 4  # Init of either Lean; Foo of either Lean and project

    # `search --lean native` does not answer from the bundled Lean's index.
    with PremiseStore(library, write=True) as store:
        store.put(SMALL)
        index_builder.index_words(store)
    assert treewright_here("premises", "search", "--lean", "wasm", "Nat").returncode == 0
    with PremiseStore(default_path(["Init"], natives[0]), write=True) as store:
        store.put([Declaration("Only.native", "theorem", "M", "True")])
        index_builder.index_words(store)
    found = treewright_here("premises", "search", "--lean", "native", "native")
    assert "Only.native" in found.stdout


def test_a_file_that_is_no_index_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"treewright premises build --path .*absent\.db"):
        PremiseIndex.open(tmp_path / "absent.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 99)
    with pytest.raises(StorageError, match="not a database"):
        PremiseIndex.open(tmp_path / "text.db")
    other = tmp_path / "other.db"
    with PremiseStore(other, write=True) as store:
        store._db.execute("PRAGMA user_version = 999")
    with pytest.raises(StorageError, match=r"version 999, .* reads version 1; delete it"):
        PremiseIndex.open(other)


def test_a_build_that_was_cut_short_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "half.db"
    with PremiseStore(path, write=True) as store:
        store.put(SMALL)
    with PremiseIndex.open(path) as index, pytest.raises(UsageError, match="never finished"):
        index.lexical("Nat", 1)


def test_reading_does_not_write(small_index: Path) -> None:
    with PremiseIndex.open(small_index) as index:
        assert index.lexical("Nat", 1)
        with pytest.raises(StorageError, match="readonly"):
            index._store.put(SMALL)
    with sqlite3.connect(small_index) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_the_command_searches(
    small_index: Path, treewright: Callable[..., CompletedProcess[str]]
) -> None:
    call = ["premises", "search", "--lexical", "--path", str(small_index)]
    done = treewright(*call, "-k", "2", "--json", "x y : Nat\n⊢ x + y = y + x")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [p["name"] for p in found] == ["Nat.add_comm", "Int.add_comm"]
    assert {p["ranking"] for p in found} == {"lexical"}
    shown = treewright(*call, "-", input="reverse of a list")
    assert "List.reverse_reverse" in shown.stdout.splitlines()[0]
    nothing = treewright(*call, "zebra")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert treewright(*call, " ").returncode == 2
