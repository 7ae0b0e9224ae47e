"""Tickets: requests, claims with a lease, and completion only by accepted proofs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.premises.conftest import SMALL, written
from treewright.kernel.errors import UsageError
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.marketplace.market import (
    Marketplace,
    ProofRejected,
    ProofUnchecked,
    Ticket,
    TicketStatus,
    TicketTaken,
    heading,
    lemma_text,
)
from treewright.premises.index import PremiseIndex

pytestmark = pytest.mark.xdist_group("lean-session")

GOAL = "∀ a b : Nat, a + b = b + a"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def parser(lean: HostSession) -> HostSession:
    return lean


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def marketplace(
    tmp_path: Path, clock: Clock, replayer: Replayer, parser: HostSession
) -> Iterator[Marketplace]:
    with Marketplace(
        tmp_path / "ledger.db", clock=clock, checker=replayer, parser=parser, lease_seconds=60
    ) as made:
        yield made


def test_the_documented_workflow(marketplace: Marketplace) -> None:
    """The calls of the notes, with a statement in the place of their dots."""

    async def workflow() -> str | None:
        ticket_id = await marketplace.request_lemma(
            goal="∀ ε > 0, ε + 0 = ε ∧ 0 < (ε : Nat)",
            context=["Hausdorff", "continuous"],
            suggested_name="foo.bar_continuous",
            constraints=["noncomputable"],
            priority=0.8,
        )
        tickets = await marketplace.get_open_tickets(limit=10)
        success = await marketplace.claim_ticket(tickets[0].ticket_id, "copilot")
        assert success is True
        proof = """
        theorem foo.bar_continuous : ∀ ε > 0, ε + 0 = ε ∧ 0 < (ε : Nat) := by
          intro ε hε
          exact ⟨rfl, hε⟩
        """
        await marketplace.complete_ticket(ticket_id, proof, "copilot")
        ticket = await marketplace.get_ticket(ticket_id)
        assert ticket.status == TicketStatus.COMPLETED
        goal = "∀ ε > 0, ε + 0 = ε ∧ 0 < (ε : Nat)"
        similar = await marketplace.search_similar(goal, limit=5)
        if similar and similar[0].status == TicketStatus.COMPLETED:
            return similar[0].completed_proof
        return None

    proof = asyncio.run(workflow())
    assert proof is not None
    assert proof.startswith("theorem foo.bar_continuous : ")


def test_the_same_statement_is_asked_for_once(marketplace: Marketplace) -> None:
    async def run() -> None:
        first = await marketplace.request_lemma(GOAL, priority=0.2, suggested_name="one")
        again = await marketplace.request_lemma(
            "∀ x y : Nat,  x + y = y + x", priority=0.9, suggested_name="two"
        )
        assert again == first
        ticket = await marketplace.get_ticket(first)
        assert (ticket.requests, ticket.priority, ticket.suggested_name) == (2, 0.9, "one")
        others = [
            await marketplace.request_lemma("∀ a b : Nat, a * b = b * a"),
            await marketplace.request_lemma(GOAL, imports=["Init", "Std"]),
            await marketplace.request_lemma(GOAL, constraints=["short"]),
            await marketplace.request_lemma("a + b = b + a", ["a : Nat", "b : Nat"]),
        ]
        assert len({first, *others}) == 5

    asyncio.run(run())


def test_open_tickets_come_by_priority(marketplace: Marketplace, clock: Clock) -> None:
    async def run() -> list[str]:
        for number, priority in enumerate([0.1, 0.9, 0.5, 0.9]):
            clock.now += 1
            await marketplace.request_lemma(f"{number} = {number}", priority=priority)
        return [ticket.goal for ticket in await marketplace.get_open_tickets(limit=3)]

    assert asyncio.run(run()) == ["1 = 1", "3 = 3", "2 = 2"]


def test_a_claim_is_a_lease(marketplace: Marketplace, clock: Clock) -> None:
    async def run() -> None:
        ticket = await marketplace.request_lemma(GOAL)
        assert await marketplace.claim_ticket(ticket, "first")
        assert not await marketplace.claim_ticket(ticket, "second")
        assert not await marketplace.claim_ticket(ticket, "first"), "a lease is given once"
        assert await marketplace.get_open_tickets() == []
        clock.now += 59
        assert not await marketplace.claim_ticket(ticket, "second")
        assert await marketplace.renew_claim(ticket, "first")
        assert not await marketplace.renew_claim(ticket, "second")
        clock.now += 59
        assert not await marketplace.claim_ticket(ticket, "second"), "it was renewed"
        with pytest.raises(TicketTaken, match="claimed by first"):
            await marketplace.complete_ticket(ticket, "exact Nat.add_comm", "second")
        clock.now += 1
        assert [t.ticket_id for t in await marketplace.get_open_tickets()] == [ticket]
        assert await marketplace.claim_ticket(ticket, "second")
        assert not await marketplace.renew_claim(ticket, "first")
        assert not await marketplace.release_ticket(ticket, "first")
        with pytest.raises(TicketTaken, match="claimed by second"):
            await marketplace.complete_ticket(ticket, "exact Nat.add_comm", "first")
        assert await marketplace.release_ticket(ticket, "second")
        assert await marketplace.claim_ticket(ticket, "third")

    asyncio.run(run())


def test_what_is_shown_can_be_filled_in_and_handed_back(marketplace: Marketplace) -> None:
    async def run() -> None:
        identity = await marketplace.request_lemma(GOAL, suggested_name="wanted")
        ticket = await marketplace.get_ticket(identity)
        shown = heading(ticket) + lemma_text(ticket, "sorry")
        assert "import" in shown
        filled = shown.replace("sorry", "exact Nat.add_comm")
        done = await marketplace.complete_ticket(identity, filled, "me")
        assert done.status is TicketStatus.COMPLETED
        assert "import" not in (done.completed_proof or "")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        ("sorry", "unchanged"),
        ("have h := Nat.add_comm\nsorry", "sorry"),
        ("simp", "error"),
        ("theorem wanted : ∀ a : Nat, a + 0 = a := by simp", "statement"),
        ("theorem other : ∀ a b : Nat, a + b = b + a := Nat.add_comm", "missing"),
        ("axiom cheat : ∀ a b : Nat, a + b = b + a\ntheorem wanted : ∀ a b : Nat, "
         "a + b = b + a := cheat", "escape"),
        ("theorem wanted : ∀ a b : Nat, a + b = b + a := by native_decide", "escape"),
    ],
)  # fmt: skip
def test_what_the_replay_check_refuses_completes_nothing(
    marketplace: Marketplace, proof: str, reason: str
) -> None:
    async def run() -> None:
        ticket = await marketplace.request_lemma(GOAL, suggested_name="wanted")
        await marketplace.claim_ticket(ticket, "me")
        with pytest.raises(ProofRejected) as refused:
            await marketplace.complete_ticket(ticket, proof, "me")
        assert refused.value.verdict.reason == reason
        left = await marketplace.get_ticket(ticket)
        assert left.status is TicketStatus.CLAIMED
        assert left.completed_proof is None
        assert "not accepted" in (left.last_error or "")

    asyncio.run(run())


@pytest.mark.parametrize("times", [1, 2])
def test_a_check_that_was_lost_rejects_no_proof(
    tmp_path: Path, replayer: Replayer, parser: HostSession, times: int
) -> None:
    faults = [Verdict("lost", "the process is gone")] * times

    class Unlucky:
        def text(self, *arguments, **more):
            return faults.pop() if faults else replayer.text(*arguments, **more)

    async def run(marketplace: Marketplace) -> None:
        ticket = await marketplace.request_lemma(GOAL)
        await marketplace.claim_ticket(ticket, "me")
        if times > 1:
            with pytest.raises(ProofUnchecked, match="could not be checked"):
                await marketplace.complete_ticket(ticket, "exact Nat.add_comm", "me")
            assert (await marketplace.get_ticket(ticket)).last_error is None
        done = await marketplace.complete_ticket(ticket, "exact Nat.add_comm", "me")
        assert done.status is TicketStatus.COMPLETED

    with Marketplace(tmp_path / "ledger.db", checker=Unlucky(), parser=parser) as made:
        asyncio.run(run(made))


def test_a_script_and_hypotheses_from_the_context(marketplace: Marketplace) -> None:
    async def run() -> None:
        ticket = await marketplace.request_lemma(
            "q ∧ p", ["p : Prop", "{q : Prop}", "h : p ∧ q", "logic"], preamble="-- about `and`"
        )
        done = await marketplace.complete_ticket(ticket, "exact ⟨h.2,\n  h.1⟩", "me")
        assert done.completed_by == "me"
        assert done.completed_proof == (
            f"theorem lemma_{ticket} (p : Prop) {{q : Prop}} (h : p ∧ q) : q ∧ p := by\n"
            "  exact ⟨h.2,\n    h.1⟩\n"
        )
        with pytest.raises(TicketTaken, match="completed by me"):
            await marketplace.complete_ticket(ticket, "exact ⟨h.2, h.1⟩", "you")
        assert not await marketplace.claim_ticket(ticket, "you")
        assert (
            await marketplace.request_lemma(
                "q ∧ p", ["p : Prop", "{q : Prop}", "h : p ∧ q"], preamble="-- about `and`"
            )
            == ticket
        ), "a completed lemma is reused"

    asyncio.run(run())


def test_a_lease_lost_while_the_proof_is_checked(
    tmp_path: Path, clock: Clock, replayer: Replayer, parser: HostSession
) -> None:
    class Slow:
        """Another supplier takes over while this one's proof is being checked."""

        def text(self, *arguments, **more):
            clock.now += 61
            assert asyncio.run(other.claim_ticket(ticket, "second"))
            return replayer.text(*arguments, **more)

    path = tmp_path / "ledger.db"
    with (
        Marketplace(path, clock=clock, checker=Slow(), parser=parser, lease_seconds=60) as first,
        Marketplace(path, clock=clock, lease_seconds=60) as other,
    ):
        ticket = asyncio.run(first.request_lemma(GOAL))
        assert asyncio.run(first.claim_ticket(ticket, "first"))
        with pytest.raises(TicketTaken, match="claimed by second"):
            asyncio.run(first.complete_ticket(ticket, "exact Nat.add_comm", "first"))
        assert asyncio.run(other.get_ticket(ticket)).claimed_by == "second"


def test_a_request_is_a_name_binders_a_statement_and_modules(marketplace: Marketplace) -> None:
    async def refused(said: str, *pieces: object, **more: object) -> None:
        with pytest.raises(UsageError, match=said):
            await marketplace.request_lemma(*pieces, **more)  # pyright: ignore[reportArgumentType]

    async def run() -> None:
        closing = "x : Nat) : True := trivial theorem bar (y : Nat"
        await refused("closes a bracket", "1 = 2", [closing], "bar")
        await refused("not a name", "1 = 1", (), "x : True := trivial theorem y")
        await refused("not the name of a Lean module", "True", imports=["Init\ndef x := 1"])
        await refused("control characters", "1 = 1\x1b[2J")
        assert await marketplace.get_tickets() == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "pieces",
    [
        {"context": ["x : Nat", "(y : Nat) : True := trivial theorem bar (z : Nat)"]},
        {"context": ['x : Nat -- "', "h : False"]},
        {"goal": "True := trivial theorem bar : 1 = 2"},
        {"preamble": "theorem foo : True := trivial\nnamespace Other"},
    ],
)
def test_the_wrong_theorem_is_never_checked(marketplace: Marketplace, pieces: dict) -> None:
    async def run() -> None:
        ticket = await marketplace.request_lemma(
            **{"goal": "1 = 2", "suggested_name": "foo", **pieces}
        )
        for proof in ("trivial", "theorem foo : True := trivial"):
            with pytest.raises(UsageError):
                await marketplace.complete_ticket(ticket, proof, "me")
        assert (await marketplace.get_ticket(ticket)).status is TicketStatus.OPEN

    asyncio.run(run())


def test_what_is_to_be_a_script_is_one(marketplace: Marketplace) -> None:
    async def run() -> None:
        ticket = await marketplace.request_lemma("1 + 1 = 2", (), "two")
        declared = "private def one := 1\ntheorem two : 1 + 1 = 2 := rfl"
        for proof in (declared, "rfl\n\ndef one := 1", "rfl\nend"):
            with pytest.raises(ProofRejected, match="tactics"):
                await marketplace.complete_ticket(ticket, proof, "model", script_only=True)
        done = await marketplace.complete_ticket(
            ticket, "\n  skip\n  rfl", "model", script_only=True
        )
        assert done.status is TicketStatus.COMPLETED

    asyncio.run(run())


def test_statements_are_told_apart_by_their_universes(marketplace: Marketplace) -> None:
    async def run() -> None:
        two = await marketplace.request_lemma("∀ (α : Type u) (β : Type v), α = α ∨ β = β")
        renamed = await marketplace.request_lemma("∀ (α : Type w) (β : Type u), α = α ∨ β = β")
        one = await marketplace.request_lemma("∀ (α : Type u) (β : Type u), α = α ∨ β = β")
        assert two == renamed
        assert two != one

    asyncio.run(run())


def test_the_proof_of_another_statement_is_not_offered(marketplace: Marketplace) -> None:
    """Neither of one that only looks alike, nor of the same text where it means something else."""
    preamble = "def two := 2"

    async def go() -> None:
        for goal, front in (("∀ ε : Nat, ε + 0 = ε", ""), ("two = two", preamble)):
            ticket = await marketplace.request_lemma(goal, preamble=front)
            await marketplace.complete_ticket(ticket, "simp", "a")
        (other,) = await marketplace.search_similar("∀ δ : Nat, 0 + δ = δ", limit=1, least=0)
        assert (other.similarity or 0) < 1
        assert (other.status, other.completed_proof) == (TicketStatus.SIMILAR, None)
        (renamed,) = await marketplace.search_similar("∀ δ : Nat, δ + 0 = δ", limit=1)
        assert (renamed.status, renamed.similarity) == (TicketStatus.COMPLETED, 1.0)
        assert renamed.completed_proof
        (elsewhere,) = await marketplace.search_similar("two = two", limit=1, least=0)
        assert (elsewhere.status, elsewhere.completed_proof) == (TicketStatus.SIMILAR, None)
        (here,) = await marketplace.search_similar("two = two", limit=1, preamble=preamble)
        assert here.completed_proof
        (stored,) = [t for t in await marketplace.get_tickets() if t.goal == other.goal]
        assert stored.status is TicketStatus.COMPLETED, "the ticket itself is as it was"

    asyncio.run(go())


def test_similar_tickets(marketplace: Marketplace) -> None:
    async def run() -> None:
        wanted = await marketplace.request_lemma("∀ n m : Nat, n + m = m + n")
        near = await marketplace.request_lemma("∀ n m : Int, n + m = m + n")
        await marketplace.request_lemma("∀ p : Prop, p → p ∨ False")
        found = await marketplace.search_similar(GOAL)
        assert [t.ticket_id for t in found] == [wanted, near]
        assert found[0].similarity == 1.0
        assert 0.3 < (found[1].similarity or 0) < 1.0
        assert await marketplace.search_similar("∃ zebra : Fin 3, True") == []
        assert len(await marketplace.search_similar(GOAL, limit=1)) == 1

    asyncio.run(run())


def test_the_library_gives_hints(tmp_path: Path) -> None:
    with (
        PremiseIndex.open(written(tmp_path / "premises.db", SMALL)) as premises,
        Marketplace(tmp_path / "ledger.db", premises=premises) as marketplace,
    ):
        ticket = asyncio.run(marketplace.request_lemma(GOAL))
        assert asyncio.run(marketplace.get_ticket(ticket)).hints[0] == "Nat.add_comm"


def test_wrong_calls(marketplace: Marketplace) -> None:
    async def run() -> None:
        with pytest.raises(UsageError, match="no ticket nowhere"):
            await marketplace.get_ticket("nowhere")
        with pytest.raises(UsageError, match="no ticket nowhere"):
            await marketplace.claim_ticket("nowhere", "me")
        with pytest.raises(UsageError, match="statement"):
            await marketplace.request_lemma("  ")
        with pytest.raises(UsageError, match="between 0 and 1"):
            await marketplace.request_lemma(GOAL, priority=1.5)
        ticket = await marketplace.request_lemma(GOAL)
        with pytest.raises(UsageError, match="say who"):
            await marketplace.claim_ticket(ticket, " ")

    asyncio.run(run())


def test_tickets_live_beside_the_attempts(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Marketplace(path) as marketplace:
        asyncio.run(marketplace.request_lemma(GOAL))
        with Ledger(path) as ledger:
            assert ledger.frontier() == []
            assert len(ledger.query("SELECT * FROM tickets")) == 1


@pytest.mark.parametrize(
    ("proof", "declares"),
    [
        ("-- by hand\nsimp", False),
        ("/- by\nhand -/ simp", False),
        ("open Nat in\nsimp", False),
        ("set_option maxRecDepth 1000 in simp", False),
        ("definitely", False),
        ("-- a lemma\ntheorem x : True := trivial", True),
        ("/-- a\nlemma -/\n@[simp] theorem x : True := trivial", True),
        ("open Nat\n\nprivate def y := 1\ntheorem x : True := trivial", True),
        ("open Nat in\ntheorem x : True := trivial", True),
    ],
)
def test_a_script_is_told_from_a_declaration(tmp_path: Path, proof: str, declares: bool) -> None:
    async def asked(marketplace: Marketplace) -> Ticket:
        return await marketplace.get_ticket(await marketplace.request_lemma("True", (), "x"))

    with Marketplace(tmp_path / "ledger.db") as marketplace:
        text = lemma_text(asyncio.run(asked(marketplace)), proof)
    assert text.startswith("theorem x : True := by\n") != declares
