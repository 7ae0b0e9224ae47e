"""Lean's knowledge about a goal: lemmas that fit it, and the shape of its variables.

Lemmas are found by the terms of the goal and of the lemmas, not by their printed form. A use is a
proposal: no tactic was run.
"""

from __future__ import annotations

from typing import Literal

import msgspec

How = Literal["exact", "symm", "mp", "mpr", "elim", "rw", "forward"]
Kind = Literal["proof", "data", "function", "type", "proposition", "other"]


class Use(msgspec.Struct, frozen=True, gc=False):
    """A lemma or hypothesis, and how a tactic would use it.

    Args:
        name: the lemma or hypothesis.
        use: `exact`: its conclusion is the target; `symm`: after swapping sides; `mp`, `mpr`: one
            side of an `↔` is; `elim`: its conclusion is `False`; `rw`: a side of its equation
            occurs in the target, or in the hypothesis `at`; `forward`: it adds a fact about
            hypotheses.
        args: the explicit arguments; `_` for those that Lean finds.
        fit: the number of constants in common.
        met: premises that are among the hypotheses.
        unmet: premises that stay to be proved.
        loose: variables that have to be guessed.
        local: whether it is a hypothesis, or a lemma of the text or its project.
        back: whether `rw` goes from right to left.
        at: the hypothesis in which a side of the equation occurs; empty for the target.
        nth: the number of `rw` uses of this lemma for other parts of the same term before this one.
        whole: whether `rw` would replace the whole term, not a part of it.
        wrap: how its proof becomes a proof of the target (`⟨_, %⟩`).
        gives: the outline of the fact that a `forward` use adds.
        grows: whether a premise is larger than the conclusion.
        law: `comm ∘`, `assoc ∘`, or `turns ∘` if the lemma is just that law of an operation.
    """

    name: str
    use: How
    args: tuple[str, ...] = ()
    fit: int = 0
    met: int = 0
    unmet: int = 0
    loose: int = 0
    local: bool = True
    back: bool = False
    at: str = ""
    nth: int = 0
    whole: bool = False
    wrap: str = "%"
    gives: str = ""
    grows: bool = False
    law: str = ""


class Field(msgspec.Struct, frozen=True, gc=False):
    """A field of a constructor; an induction `hypothesis` is not a field in Lean's sense."""

    name: str
    hypothesis: bool = False


class Alternative(msgspec.Struct, frozen=True, gc=False):
    """A constructor of an inductive type, with the fields that it adds."""

    name: str
    fields: tuple[Field, ...] = ()


class MadeOf(msgspec.Struct, frozen=True, gc=False):
    """How values of an inductive type are taken apart. `plain`: induction takes it as it is."""

    type: str
    alternatives: tuple[Alternative, ...]
    plain: bool = True
    recursive: bool = False


class Variable(msgspec.Struct, frozen=True, gc=False):
    """A hypothesis and its kind; `shown`: the target mentions it.

    `drives`: how often it stands where an equation of the text wants a constructor.
    `says`: the head of a proof's unfolded statement: `Exists`, `Exists =` (for a variable), `And`,
    `Or`.
    """

    name: str
    kind: Kind
    accessible: bool = True
    shown: bool = False
    drives: int = 0
    says: str = ""
    made_of: MadeOf | None = None


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call of a recursive function on distinct variables: induction may follow the function."""

    function: str
    arguments: tuple[str, ...]


class Knowledge(msgspec.Struct, frozen=True, gc=False):
    """About the first goal of a state. `definitions`: of the text and its project, in the goal.

    `related`: lemmas of the text and its project that are about the same things. `calls`: in the
    target, of recursive definitions of the text and its project. `reachable`: `definitions`, and
    those by which they are defined.
    """

    uses: tuple[Use, ...] = ()
    library: tuple[Use, ...] = ()
    variables: tuple[Variable, ...] = ()
    definitions: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    reachable: tuple[str, ...] = ()


NOTHING_KNOWN = Knowledge()


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """The value of a variable, as Lean prints it; an `instance` and a `proof` have none."""

    name: str
    value: str
    kind: Literal["value", "instance", "proof"] = "value"


class TestResult(msgspec.Struct, frozen=True, gc=False):
    """The result of trying a goal on random values.

    Args:
        outcome: `false`: `values` show that the goal is false; `passed`: no value did; `unknown`:
            the goal cannot be evaluated, for the `reason`.
        tried: the number of assignments.
        held: the number of assignments for which the hypotheses held.
    """

    outcome: Literal["false", "passed", "unknown"]
    tried: int = 0
    held: int = 0
    values: tuple[Assignment, ...] = ()
    reason: str = ""


class Equation(msgspec.Struct, frozen=True, gc=False):
    """An equation that holds on random values.

    Args:
        binders: the variables with their types.
        type: the type of both sides.
        left, right: the sides. The left one has all variables.
        size: the number of variables, constructors and functions in both sides.
        constructors: the number of constructors with arguments.
        functions: the functions in both sides.
    """

    binders: tuple[tuple[str, str], ...]
    type: str
    left: str
    right: str
    size: int
    constructors: int
    functions: tuple[str, ...]


class Exploration(msgspec.Struct, frozen=True, gc=False):
    """Equations between small terms, by size; `is_complete` is false if a limit was reached."""

    equations: tuple[Equation, ...]
    terms: int
    functions: tuple[str, ...]
    is_complete: bool = msgspec.field(name="isComplete", default=True)
