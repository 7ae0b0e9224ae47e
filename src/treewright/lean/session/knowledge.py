"""What a Lean knows that may help with a goal: lemmas that fit it, and what its variables are.

Found by the terms of the goal and of the lemmas, not by how they are printed. A use is a
proposal: nothing was tried.
"""

from __future__ import annotations

from typing import Literal

import msgspec

How = Literal["exact", "symm", "mp", "mpr", "elim", "rw", "forward"]
Kind = Literal["proof", "data", "function", "type", "proposition", "other"]


class Use(msgspec.Struct, frozen=True, gc=False):
    """A lemma or hypothesis, and how it would be used.

    `exact`: it concludes the target (`symm`: turned round; `mp`, `mpr`: one side of an `↔` does;
    `elim`: it concludes `False`). `rw`: a side of its equation is in the target, or in the
    hypothesis `at`; the right one if `back`. `forward`: it says something new about hypotheses.
    `wrap` says how its proof becomes one of the target (`⟨_, %⟩`), `gives` what a `forward` one
    says by its outline. `args` are what is explicit, `_` what Lean finds. `unmet` premises would
    stay to be proved (`met` ones are among the hypotheses), `loose` variables to be guessed. `fit`
    counts the constants found. `grows`: a premise says more of the same than the conclusion. `law`:
    `comm ∘`, `assoc ∘`, or `turns ∘` for other orders, where it says just that of an operation.
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
    """What a constructor carries; an induction `hypothesis` is none of its own."""

    name: str
    hypothesis: bool = False


class Alternative(msgspec.Struct, frozen=True, gc=False):
    name: str
    fields: tuple[Field, ...] = ()


class MadeOf(msgspec.Struct, frozen=True, gc=False):
    """How values of an inductive type are taken apart. `plain`: induction takes it as it is."""

    type: str
    alternatives: tuple[Alternative, ...]
    plain: bool = True
    recursive: bool = False


class Variable(msgspec.Struct, frozen=True, gc=False):
    """A hypothesis by what it is; `shown`: the target mentions it.

    `drives`: how often it stands where an equation of the text wants a constructor.
    `says`: what a proof says once unfolded, `Exists`, `Exists =` (for a variable), `And`, `Or`.
    """

    name: str
    kind: Kind
    accessible: bool = True
    shown: bool = False
    drives: int = 0
    says: str = ""
    made_of: MadeOf | None = None


class Knowledge(msgspec.Struct, frozen=True, gc=False):
    """About the first goal of a state. `definitions`: of the text and its project, in the goal.

    `related`: lemmas of the text and its project that are about the same things.
    """

    uses: tuple[Use, ...] = ()
    library: tuple[Use, ...] = ()
    variables: tuple[Variable, ...] = ()
    definitions: tuple[str, ...] = ()
    related: tuple[str, ...] = ()


NOTHING_KNOWN = Knowledge()
