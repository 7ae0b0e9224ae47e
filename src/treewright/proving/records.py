"""The lines of `trace.jsonl`, as types.

A trace holds everything that a decision of the run rested on, so that the run can be continued,
repeated and checked. Only `ms`, `elapsed`, `at` and `epoch` depend on the clock or the process.
Small records are excluded from garbage collection: a run has millions of them, without cycles.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from treewright.lean.session.answers import Hypothesis
from treewright.lean.verify.verdict import Verdict

OutcomeKind = Literal[
    "goals", "closed", "error", "timeout", "exhausted", "lost", "rejected", "duplicate"
]
"""The outcome of a tactic.

`goals`: it left goals, which are an edge of the graph now. `closed`: it closed the node. `error`:
Lean refused it. `timeout`: it took too long or was cancelled. `exhausted`: it reached one of Lean's
own limits. `lost`: the Lean process ended. `rejected`: it worked, but leads back to a goal that it
came from. `duplicate`: it left the same goals as an earlier tactic of the node."""
Reason = Literal[
    "expanded", "no_expansion", "solved", "dead", "terminal", "blocked", "delayed", "rerouted",
    "abort",
]  # fmt: skip
GoalStatus = Literal["proved", "partial", "unproved", "rejected", "ill_typed", "false", "unchecked"]
"""The status of a goal.

`proved`: the replay check accepted a proof. `partial`: a script closes the goal, but its
declaration still rests on another `sorry`. `unproved`: no script was found. `rejected`: the replay
check or the file refused the script that was found. `ill_typed`: Lean does not accept the goal as a
proposition. `false`: the replay check accepted a proof of the negation. `unchecked`: Lean or the
replay check gave no answer, so the goal has no verdict."""
PhaseKind = Literal["prove", "negate", "retry"]
"""A goal is searched in up to three phases: for a proof, for a proof of its negation, and again
for a proof that mentions no lemma that is still open."""


class GoalView(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A goal as Lean prints it, without Lean's internal names."""

    target: str
    hypotheses: tuple[Hypothesis, ...] = ()
    case: str | None = None


class Candidate(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tactic that a source proposes. The priors of one node's candidates are comparable."""

    tactic: str
    prior: float | None = None
    source: str = ""


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """A new node of the graph. Its key is the strict hash of its goals."""

    id: int
    key: str
    goals: tuple[GoalView, ...]


class Attempt(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One tactic tried in Lean, and its outcome.

    `script` is the text to write in a proof, if that is not the tactic itself (`exact?`). `layout`
    gives, for each child, the positions of its goals. `children` are node ids; a rejected edge has
    them too if the nodes existed already.
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
    """The size of the graph after an iteration."""

    nodes: int
    edges: int
    solved: int
    dead: int
    attempts: int


class Intervention(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An intervention that took effect at an iteration, on an agent or on a node."""

    kind: Literal["block", "unblock", "delay", "reroute"]
    agent: int | None = None
    node: int | None = None
    until: int | None = None
    source: str = ""


class GoalOpened(msgspec.Struct, frozen=True, tag="goal"):
    """A phase of a goal began: the searched statement, the root of its graph and its limit.

    `without` are the declarations that no tactic may mention; only a retry has them.
    """

    epoch: int
    at: str
    goal: int
    phase: PhaseKind
    name: str
    statement: str
    simulations: int
    root: NodeRecord
    without: tuple[str, ...] = ()


class Iteration(msgspec.Struct, frozen=True, tag="iteration"):
    """One simulation of a phase: its path, the tactics that were tried, and the new values.

    Iterations of `prove` are counted over the whole run, those of the other phases from 1 for each
    goal. `candidates` is None if the tactic source was not asked; `complete` is true if the source
    has nothing more to suggest for the node.
    """

    epoch: int
    at: str
    iteration: int
    goal: int
    phase: PhaseKind
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


class NearLemma(msgspec.Struct, frozen=True, gc=False):
    """A lemma that applied without closing its goal: the tactic, its target, the targets left."""

    name: str
    tactic: str
    target: str
    leaves: tuple[str, ...]


class PartialProof(msgspec.Struct, frozen=True, gc=False):
    """The best partial proof of an unproved goal.

    `script` has a `sorry` for every open goal; it is empty if no tactic brought the goal nearer.
    `open` are the open goals as Lean prints them.
    """

    script: str
    open: tuple[str, ...]
    lemmas: tuple[NearLemma, ...] = ()


class GoalResult(msgspec.Struct, frozen=True, tag="verdict"):
    """How a goal ended: a line of the trace, and an entry of `result.json`.

    Only the replay check makes a goal `proved`. `unchecked` is no verdict: a check was lost, and
    `--resume` tries again; no such line is in a trace.

    `stop` is the reason for which the search for a proof ended. `negation` and `retry` are those of
    the other two phases, empty if the phase did not take place; `retry` is `solved` if `proof` is
    from it, and `refused` if its script did not hold. `iterations` and `elapsed` count all phases.

    `left_out` are the steps, in order, that are missing in the shortened script. `found` is that
    shortened script if `proof` differs from it: `proof` is then a formatted script, which may take
    other edges of the graph. `check` is the answer of the
    replay check that the status rests on, without its certificate. `partial` is there if the goal
    has no proof.
    """

    goal: int
    name: str
    status: GoalStatus
    stop: str = ""
    detail: str = ""
    proof: str = ""
    axioms: tuple[str, ...] = ()
    iterations: int = 0
    elapsed: float = 0.0
    partial: PartialProof | None = None
    check: Verdict | None = None
    negation: str = ""
    retry: str = ""
    left_out: tuple[tuple[int, ...], ...] = ()
    found: str = ""
    epoch: int = 0
    at: str = ""


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """The replay check rejected a script of a search, and an edge of it was excluded.

    `iteration` is the last one before it. `edges` are those of the script, of which `excluded` is
    one: the search goes on without it. `result` is the answer about the script.
    """

    epoch: int
    at: str
    goal: int
    phase: PhaseKind
    iteration: int
    edges: tuple[int, ...]
    excluded: int
    result: GoalResult


TraceLine = GoalOpened | Iteration | Refusal | GoalResult
