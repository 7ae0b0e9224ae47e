"""An index of a part of Init."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from treewright.lean.session.answers import Declaration
from treewright.lean.session.host_session import HostSession
from treewright.premises.index_builder import build_lexical, index_words
from treewright.premises.store import PremiseStore


@pytest.fixture(scope="session")
def nat_index(
    lean_session: Callable[[], HostSession], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("index") / "nat.db"
    build_lexical(lean_session(), path, module="Init.Data.Nat.Basic")
    return path


@pytest.fixture
def small_index(tmp_path: Path) -> Path:
    """Six premises, without Lean."""
    return written(tmp_path / "small.db", SMALL)


def theorem(name: str, type_text: str, module: str = "Init.Small") -> Declaration:
    return Declaration(name, "theorem", module, type_text)


def written(path: Path, declarations: list[Declaration]) -> Path:
    with PremiseStore(path, write=True) as store:
        store.put(declarations)
        index_words(store)
    return path


SMALL = [
    theorem("Nat.add_comm", "∀ (n m : Nat), n + m = m + n"),
    theorem("Int.add_comm", "∀ (a b : Int), a + b = b + a"),
    theorem("Nat.le_of_dvd", "∀ {m n : Nat}, 0 < n → m ∣ n → m ≤ n"),
    theorem(
        "List.length_append",
        "∀ {α : Type u} {as bs : List α}, (as ++ bs).length = as.length + bs.length",
    ),
    theorem("And.symm", "∀ {a b : Prop}, a ∧ b → b ∧ a"),
    theorem("List.reverse_reverse", "∀ {α : Type u} (as : List α), as.reverse.reverse = as"),
]
