"""The values that a Lean session returns, as immutable records.

The vocabulary follows LeanDojo and LeanInteract: a tactic gives a `ProofState`, a
`TacticError`, a `Timeout` or a `SessionLost`. No value here says "proved": see `verify`.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

Severity = Literal["error", "warning", "information"]


class Diagnostic(msgspec.Struct, frozen=True):
    """A message of Lean; lines count from 1, columns from 0 in code points, as Lean counts."""

    severity: Severity
    text: str
    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None
    kind: str = ""

    @property
    def is_sorry(self) -> bool:
        """Whether it is the warning about a `sorry`."""
        return self.kind == "hasSorry"

    def format(self, file: str) -> str:
        """`file:line:column: severity: text`, as compilers print it."""
        return f"{file}:{self.line}:{self.column + 1}: {self.severity}: {self.text}"


class Hypothesis(msgspec.Struct, frozen=True):
    """`name : type`, with a value for a `let`. Text can refer to it only if it is accessible."""

    name: str
    type: str
    value: str | None = None
    accessible: bool = True


class Goal(msgspec.Struct, frozen=True):
    """One goal. `metavariables` are the unsolved ones it mentions, by Lean's internal names.

    `hash` is strict: it covers hypotheses by name, type and value in order, and the target, as
    terms and not as printed. In one environment, equal hashes mean the same goal. The case name
    and the goal's own identity do not count. A host without a hash function sends the hashed text,
    `hashed`.
    """

    id: str
    target: str
    hash: str = ""
    hypotheses: tuple[Hypothesis, ...] = ()
    case: str | None = None
    metavariables: tuple[str, ...] = ()
    hashed: str = ""

    def __post_init__(self) -> None:
        if self.hashed:
            digest = hashlib.sha256(self.hashed.encode()).hexdigest()
            msgspec.structs.force_setattr(self, "hash", digest)
            msgspec.structs.force_setattr(self, "hashed", "")

    @property
    def pretty(self) -> str:
        """As Lean shows it, hypotheses of one type on one line."""
        lines = [f"case {self.case}"] if self.case else []
        names: list[str] = []
        for index, hypothesis in enumerate(self.hypotheses):
            names.append(hypothesis.name)
            following = self.hypotheses[index + 1 : index + 2]
            together = (
                following
                and hypothesis.value is None
                and following[0].value is None
                and following[0].type == hypothesis.type
            )
            if not together:
                value = f" := {hypothesis.value}" if hypothesis.value is not None else ""
                lines.append(f"{' '.join(names)} : {hypothesis.type}{value}")
                names = []
        return "\n".join([*lines, f"⊢ {self.target}"])


class ProofState(msgspec.Struct, frozen=True):
    """A place in a proof. It can be continued at any time, any number of times.

    Without goals it is `complete` when its term has no holes and no `sorry`; after a `focus`,
    when those of its goals have none. Even then it is not yet proved: the kernel has not seen it.
    """

    state: int
    goals: tuple[Goal, ...]
    messages: tuple[Diagnostic, ...] = ()
    complete: bool = False
    uses_sorry: bool = False
    ms: float = 0.0

    @property
    def closed(self) -> bool:
        """Whether no goal is left."""
        return not self.goals

    @property
    def hash(self) -> str:
        """Strict hash of all goals together, sensitive to which metavariables they share."""
        if len(self.goals) == 1:
            return self.goals[0].hash
        numbers: dict[str, int] = {}
        parts = []
        for goal in self.goals:
            links = [numbers.setdefault(name, len(numbers)) for name in goal.metavariables]
            parts.append(f"{goal.hash}{links}{numbers.setdefault(goal.id, len(numbers))}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The indexes of goals that share metavariables, which must be solved together."""
        owner: dict[str, int] = {}
        parent = list(range(len(self.goals)))

        def root(index: int) -> int:
            while parent[index] != index:
                parent[index] = parent[parent[index]]
                index = parent[index]
            return index

        for index, goal in enumerate(self.goals):
            for name in (goal.id, *goal.metavariables):
                parent[root(index)] = root(owner.setdefault(name, index))
        members: dict[int, list[int]] = {}
        for index in range(len(self.goals)):
            members.setdefault(root(index), []).append(index)
        return tuple(tuple(group) for group in sorted(members.values()))

    @property
    def pretty(self) -> str:
        """All goals as Lean shows them."""
        return "\n\n".join(goal.pretty for goal in self.goals) or "no goals"


class TacticError(msgspec.Struct, frozen=True):
    """Lean refused. `exhausted` means its own deterministic limits, not the clock."""

    message: str
    kind: Literal["parse", "tactic", "exhausted", "statement", "request"] = "tactic"
    messages: tuple[Diagnostic, ...] = ()
    ms: float = 0.0


class Timeout(msgspec.Struct, frozen=True):
    """The wall-clock limit struck. The session is as it was before the step."""

    seconds: float
    ms: float = 0.0

    def __str__(self) -> str:
        return f"Lean had not finished after {self.seconds:g} s"


class Cancelled(msgspec.Struct, frozen=True):
    """The step was cancelled from outside. The session is as it was before the step."""

    ms: float = 0.0

    def __str__(self) -> str:
        return "it was cancelled"


class SessionLost(msgspec.Struct, frozen=True):
    """The Lean process is gone, and every state with it. `reason` says how it went."""

    reason: str
    ms: float = 0.0

    def __str__(self) -> str:
        return f"Lean ended ({self.reason})"


StepResult = ProofState | TacticError | Timeout | Cancelled | SessionLost


class CheckResult(msgspec.Struct, frozen=True):
    """Lean's answer about a text. `env` is its environment, if the request asked to keep it.

    `unproved` are its declarations that rest on `sorry`, with or without a warning; an `example`
    has no name and shows as a warning only.
    """

    diagnostics: tuple[Diagnostic, ...]
    stopped: str = ""
    env: int | None = None
    sorries: tuple[SorryPlace, ...] = ()
    imports: tuple[str, ...] = ()
    ms: float = 0.0
    unproved: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Everything elaborated, without an error and without `sorry`."""
        return not self.stopped and not self.errors and not self.has_sorry

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are errors."""
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def has_sorry(self) -> bool:
        """Whether anything in the text rests on `sorry`."""
        return bool(self.unproved) or any(d.is_sorry for d in self.diagnostics)


class SorryPlace(msgspec.Struct, frozen=True):
    """A `sorry` that elaboration met: its bytes [start, end), and a state for each of its goals.

    `trouble` is an error of its text that concerns its declaration, so that it cannot be proved.
    """

    start: int
    end: int
    tactic: bool
    declaration: str
    states: tuple[ProofState, ...]
    trouble: Diagnostic | None = None


class AuditReport(msgspec.Struct, frozen=True):
    """The axioms and constants that a declaration rests on. `local` are constants of the text."""

    name: str
    kind: str
    axioms: tuple[str, ...]
    local: tuple[str, ...]
    missing: tuple[str, ...]
    unsafe: tuple[str, ...]

    def outside(self, allowed: frozenset[str]) -> tuple[str, ...]:
        """Axioms that are not allowed."""
        return tuple(name for name in self.axioms if name not in allowed)


class Declaration(msgspec.Struct, frozen=True):
    """A constant of the environment; `module` is None for the session's own."""

    name: str
    kind: str
    module: str | None
    type: str | None


class SyntaxNode(msgspec.Struct, frozen=True):
    """A node of Lean's syntax tree and its bytes [start, end); -1 if no text belongs to it."""

    kind: str = ""
    start: int = -1
    end: int = -1
    children: tuple[SyntaxNode, ...] = ()

    @property
    def place(self) -> tuple[int, int]:
        """The bytes [start, end) of the node."""
        return self.start, self.end


class Parsed(msgspec.Struct, frozen=True):
    """What Lean's parser makes of a whole text: its tree, or `problem` says why there is none.

    `known`: whether the name that was asked about is declared in front of the text.
    """

    root: SyntaxNode | None = None
    problem: str = ""
    known: bool = False


class SessionInfo(msgspec.Struct, frozen=True):
    """Which Lean this is."""

    backend: str
    lean: str
    imports: tuple[str, ...]
    startup_seconds: float
    detail: str = ""
    commit: str = ""
