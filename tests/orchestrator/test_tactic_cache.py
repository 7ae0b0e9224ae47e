"""The tactic cache of a ledger, as a source for proof search."""

from __future__ import annotations

from pathlib import Path

from treewright.orchestrator.ledger.ledger import Ledger, LedgerTacticCache
from treewright.proving.records import GoalView
from treewright.proving.tactics.basic_sources import CachedTactics

HYPOTHESIS_FREE = GoalView("∀ (a b : Nat), a + b = b + a")


def test_a_remembered_script_is_proposed_for_an_equal_goal(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.update_tactic_cache(
        "∀ x y : Nat, x + y = y + x", tactics=["intro x y", "omega"], success_rate=0.9, avg_time=1.0
    )
    source = CachedTactics(LedgerTacticCache(ledger))
    answer = source.suggest([HYPOTHESIS_FREE], 0)
    assert [(c.tactic, c.prior) for c in answer.candidates] == [("intro x y\nomega", 0.9)]
    other = GoalView("∀ (a b : Nat), a + b = b")
    assert source.suggest([other], 0).candidates == ()
    ledger.close()


def test_what_succeeds_rarely_is_not_proposed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.update_tactic_cache(
        HYPOTHESIS_FREE.target, tactics=["omega"], success_rate=0.7, avg_time=1.0
    )
    assert CachedTactics(LedgerTacticCache(ledger)).suggest([HYPOTHESIS_FREE], 0).candidates == ()
    ledger.close()
