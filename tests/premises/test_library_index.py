"""The index of the library that is there without a step of the user's."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.here import Program
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.host_session import HostSession
from treewright.premises import index_builder
from treewright.premises.index import PremiseIndex
from treewright.proving.records import GoalView
from treewright.proving.tactics.premise_lemmas import LemmaTactics

pytestmark = pytest.mark.xdist_group("lean-session")

MODULE = "Init.Data.Nat.Basic"


@pytest.fixture
def in_a_fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache without an index; of the library one module is taken, which is quicker."""
    monkeypatch.setattr(index_builder, "cache_directory", lambda: tmp_path)
    small = functools.partial(index_builder.build_lexical, module=MODULE)
    monkeypatch.setattr(index_builder, "build_lexical", small)
    return tmp_path


def test_plain_types_read_as_lean_prints_them(lean: HostSession) -> None:
    printed: dict[str, str] = {}
    plain: dict[str, str | None] = {}
    for prefix in ("Nat.le_of", "List.mem_c", "Or.", "Option.map_"):
        rows = [d for d in lean.declarations(prefix) if d.kind == "theorem"]
        printed.update({d.name: " ".join((d.type or "").split()) for d in rows})
        plain.update({d.name: d.type for d in lean.declarations(prefix, plain=True)})
    other = [name for name, text in printed.items() if text != plain[name]]
    assert len(printed) > 40
    assert len(other) < 0.2 * len(printed), other


@pytest.mark.parametrize(
    "text",
    [
        "∀ (a b : Nat), a + b * 2 = (a + b) * 2 → ¬a ≤ b ∨ a ∈ [a, b] ∧ b ≠ a",
        "∀ {α : Type} [inst : BEq α] (f : α → α) (x : α), ∃ n m, n ^ m = 3 → (x == x) = true",
        "∀ (p : Nat × Nat) (xs : List Nat), (fun x => x + 1) = (fun x => x) → xs.length = p.1",
        "∀ (n : Nat) (h : n < 3), (if n = 0 then 1 else n) - -2 ≠ (↑n : Int) ↔ True",
    ],
)
def test_notation_and_brackets(lean: HostSession, text: str) -> None:
    declared = lean.elaborate(f"axiom plainly : {text}", keep=True)
    assert declared.env is not None, declared  # pyright: ignore[reportAttributeAccessIssue]
    before, lean.environment = lean.environment, declared.env  # pyright: ignore
    try:
        [printed] = lean.declarations("plainly")
        [plain] = lean.declarations("plainly", plain=True)
    finally:
        lean.environment = before
    assert plain.type == " ".join((printed.type or "").split())


def test_it_is_made_once_when_it_is_needed(in_a_fresh_cache: Path, home: LeanHome) -> None:
    said: list[str] = []
    opened: list[LeanProcesses] = []

    def open_lean() -> LeanProcesses:
        opened.append(LeanProcesses(home))
        return opened[-1]

    for _ in range(2):
        path = index_builder.ensure_index(open_lean, announce=said.append)
    assert path == index_builder.library_path()
    assert len(opened) == len(said) == 1
    with PremiseIndex.open(path) as index:
        assert index.is_searchable
        assert not index.has_embeddings
        assert len(index.digest) == 64
        assert index.lexical("a b : Nat\n⊢ a + b = b + a", 1)[0].name == "Nat.add_comm"


def test_an_interrupted_build_is_finished(in_a_fresh_cache: Path, home: LeanHome) -> None:
    from treewright.premises.store import PremiseStore

    path = index_builder.library_path()
    path.parent.mkdir(parents=True)
    PremiseStore(path, write=True).close()  # killed before the words were indexed
    assert not index_builder.is_finished(path)
    index_builder.ensure_index(lambda: LeanProcesses(home))
    assert index_builder.is_finished(path)


def test_search_needs_no_build(in_a_fresh_cache: Path, treewright_here: Program) -> None:
    found = treewright_here("premises", "search", "-k", "1", "a b : Nat\n⊢ a + b = b + a")
    assert found.returncode == 0, found.stderr
    assert "Nat.add_comm : ∀ (n m : Nat), n + m = m + n" in found.stdout
    assert "listing what the library declares" in found.stderr
    assert "ranked by words and shape only" in found.stderr
    again = treewright_here("premises", "search", "-k", "1", "add_comm")
    assert "listing" not in again.stderr


def test_the_search_asks_it_when_all_else_was_tried(small_index: Path) -> None:
    with PremiseIndex.open(small_index) as index:
        source = LemmaTactics(index.lexical, count=2, late=True)
        goals = (GoalView("x + y = y + x"),)
        first, later, last = (source.suggest(goals, number) for number in range(3))
    assert (first.candidates, first.complete) == ((), False)
    assert "rw [Nat.add_comm]" in [candidate.tactic for candidate in later.candidates]
    assert any(c.tactic.startswith("grind [Nat.add_comm, ") for c in later.candidates)
    assert (last.candidates, last.complete) == ((), True)
