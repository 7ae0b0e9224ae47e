"""One text where several are wanted is an error, not its letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import treewright
from treewright.kernel.errors import UsageError
from treewright.orchestrator import strategies
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.marketplace import Marketplace
from treewright.orchestrator.types import Goal, Result


@pytest.mark.parametrize("name", ["context", "constraints", "imports"])
def test_a_request_takes_lists(tmp_path: Path, name: str) -> None:
    async def request() -> None:
        with Marketplace(tmp_path / "ledger.db") as marketplace:
            await marketplace.request_lemma("1 + 1 = 2", **{name: "me"})  # pyright: ignore

    with pytest.raises(UsageError, match=rf"^{name} takes several texts, not one"):
        asyncio.run(request())


@pytest.mark.parametrize("name", ["context", "imports"])
def test_a_search_for_tickets_takes_lists(tmp_path: Path, name: str) -> None:
    async def look() -> None:
        with Marketplace(tmp_path / "ledger.db") as marketplace:
            await marketplace.search_similar("1 + 1 = 2", **{name: "me"})  # pyright: ignore

    with pytest.raises(UsageError, match=rf"^{name} takes several texts, not one"):
        asyncio.run(look())


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("context", lambda text: Goal("g", "p", text)),
        ("imports", lambda text: Goal("g", "p", imports=text)),
        ("tactics", lambda text: Result(True, "own", text)),
        ("subgoals", lambda text: Result(False, "own", subgoals=text)),
        ("strategies", lambda text: OrchestratorConfig(strategies=text).portfolio),
        ("strategies", strategies.require_known),
        ("strategies", strategies.sort_names),
        ("tactics", lambda text: treewright.prove(statement="True", tactics=text)),
        ("axioms", lambda text: treewright.prove(statement="True", axioms=text)),
        ("axioms", lambda text: treewright.verify("a", "b", axioms=text)),
        ("targets", lambda text: treewright.verify("a", "b", targets=text)),
        ("actions", lambda text: treewright.open_search(actions=text)),
    ],
)
def test_one_text_is_not_its_letters(name: str, call: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match=rf"^{name} takes several texts, not one"):
        call("micro")


def test_the_ledger_keeps_tactics_not_letters(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    try:
        with pytest.raises(UsageError, match=r"^tactics takes several texts, not one"):
            ledger.update_tactic_cache("p", tactics="simp", success_rate=1.0, avg_time=1.0)
        with pytest.raises(UsageError, match=r"^imports takes several texts, not one"):
            ledger.check_duplicate("p", "micro", imports="Init")
        assert ledger.get_cached_tactics("p") is None
    finally:
        ledger.close()
