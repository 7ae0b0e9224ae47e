"""What a proof run writes down: the lines of `trace.jsonl`, as types.

Everything a decision rested on is here, so that a run can be continued, repeated and checked from
its trace. `ms`, `elapsed`, `at` and `epoch` are of the clock and the process; nothing else is.
Small records are out of the garbage collector's sight: there are millions and no circles.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from treewright.lean.session.answers import Hypothesis

OutcomeKind = Literal[
    "goals", "closed", "error", "timeout", "exhausted", "lost", "rejected", "duplicate"
]
Reason = Literal[
    "expanded", "no_expansion", "solved", "dead", "terminal", "blocked", "delayed", "rerouted",
    "abort",
]  # fmt: skip
GoalStatus = Literal["proved", "partial", "unproved", "rejected", "ill_typed", "false"]


class GoalView(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A goal as a reader sees it; Lean's internal names are left out."""

    target: str
    hypotheses: tuple[Hypothesis, ...] = ()
    case: str | None = None


class Candidate(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tactic somebody proposes. Priors of one node's candidates are comparable."""

    tactic: str
    prior: float | None = None
    source: str = ""


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """A node that came into being: its key is the strict hash of its goals."""

    id: int
    key: str
    goals: tuple[GoalView, ...]


class Attempt(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One tactic tried in Lean, and what came of it.

    `script` is what to write instead where Lean proposed it (`exact?`). `layout` says which
    goals, by position, each child stands for. `children` are nodes, also of a rejected edge if
    they existed already.
    """

    tactic: str
    outcome: OutcomeKind
    ms: float = 0.0
    edge: int | None = None
    children: tuple[int, ...] = ()
    layout: tuple[tuple[int, ...], ...] = ()
    keys: tuple[str, ...] = ()
    script: str = ""
    detail: str = ""


class Counters(msgspec.Struct, frozen=True, gc=False):
    """The tree after the iteration."""

    nodes: int
    edges: int
    solved: int
    dead: int
    attempts: int


class Intervention(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was done to the search at this iteration, and to whom."""

    kind: Literal["block", "unblock", "delay", "reroute"]
    agent: int | None = None
    node: int | None = None
    until: int | None = None
    source: str = ""


class GoalOpened(msgspec.Struct, frozen=True, tag="goal"):
    """A goal of the run, and the root of its tree."""

    epoch: int
    at: str
    goal: int
    name: str
    statement: str
    root: NodeRecord


class Iteration(msgspec.Struct, frozen=True, tag="iteration"):
    """One turn: where it went, what was tried, what it taught.

    `candidates` is there only if the tactic source was asked; `complete` is its answer to
    whether asking again would bring more.
    """

    epoch: int
    at: str
    iteration: int
    goal: int
    agent: int | None
    algotype: str | None
    path: tuple[int, ...]
    node: int | None
    reason: Reason
    candidates: tuple[Candidate, ...] | None
    complete: bool
    attempts: tuple[Attempt, ...]
    value: float | None
    root_value: float
    counters: Counters
    new: tuple[NodeRecord, ...]
    solved: tuple[int, ...]
    dead: tuple[int, ...]
    interventions: tuple[Intervention, ...] = ()
    tick: int | None = None
    elapsed: float = 0.0


class NegationOpened(msgspec.Struct, frozen=True, tag="negation"):
    """The search for a goal's negation began: what is searched, its root, its limit."""

    epoch: int
    at: str
    goal: int
    name: str
    statement: str
    simulations: int
    root: NodeRecord


class NegationTurn(msgspec.Struct, frozen=True, tag="negation_turn"):
    """One turn of that search. Its iterations are counted from 1 for each goal."""

    epoch: int
    at: str
    goal: int
    turn: Iteration


class AgainOpened(msgspec.Struct, frozen=True, tag="again"):
    """The search for a goal began once more, with nothing that names `without`: declarations that
    rest on `sorry`, as the script did that was found first."""

    epoch: int
    at: str
    goal: int
    name: str
    statement: str
    simulations: int
    without: tuple[str, ...]
    root: NodeRecord


class AgainTurn(msgspec.Struct, frozen=True, tag="again_turn"):
    """One turn of that search. Its iterations are counted from 1 for each goal."""

    epoch: int
    at: str
    goal: int
    turn: Iteration


class CheckAnswer(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the replay check answered: `proved`, or why not. `original` and `candidate` are the
    sha256 of the texts that it was given, as in a certificate."""

    reason: str
    original: str
    candidate: str
    detail: str = ""


class NearLemma(msgspec.Struct, frozen=True, gc=False):
    """A lemma that applied: by which tactic, to which target, and the targets it left."""

    name: str
    tactic: str
    target: str
    leaves: tuple[str, ...]


class PartialProof(msgspec.Struct, frozen=True, gc=False):
    """How far a search came: a script with `sorry` for what is open, the open goals as Lean shows
    them, and lemmas that nearly fitted. The script is empty if nothing brought the goal nearer."""

    script: str
    open: tuple[str, ...]
    lemmas: tuple[NearLemma, ...] = ()


class VerdictReached(msgspec.Struct, frozen=True, tag="verdict"):
    """How a goal ended. Only the replay check says `proved`.

    `left_out` are the steps, one after the other, by which `proof` is shorter than what was
    found; `found` is that script, where `proof` is written in another way. `negation` says how
    the search for the negation ended, if there was one. `check` is the answer that the verdict
    rests on, if the replay check was asked. `partial` is there if there is no proof. `again` says
    how the search once more ended, if there was one: `solved` if `proof` is from it, `refused` if
    what it found did not hold. `iterations` and `elapsed` count all searches of the goal.
    """

    epoch: int
    at: str
    goal: int
    status: GoalStatus
    stop: str
    detail: str = ""
    proof: str = ""
    axioms: tuple[str, ...] = ()
    iterations: int = 0
    elapsed: float = 0.0
    left_out: tuple[tuple[int, ...], ...] = ()
    found: str = ""
    negation: str = ""
    check: CheckAnswer | None = None
    partial: PartialProof | None = None
    again: str = ""


TraceLine = (
    GoalOpened
    | Iteration
    | NegationOpened
    | NegationTurn
    | AgainOpened
    | AgainTurn
    | VerdictReached
)
