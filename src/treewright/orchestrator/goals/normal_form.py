"""A goal's text in a normal form, so that goals which say the same share a hash.

Sound before complete: two goals that differ in meaning never get one form. Three forms, each
with a tag of its own in the hash:

- `term`: every token is of a small fragment of Lean whose binding structure is certain. White
  space is made uniform, bound variables and universes are numbered, adjacent implicit binders and
  the hypotheses in front of `⊢` come in a canonical order that respects what depends on what.
- `spaced`: no strings, comments or layout-sensitive words; runs of white space become one space.
- `opaque`: everything else, as it is but for white space around it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from treewright.orchestrator.goals.term_reader import (
    UnsupportedTerm,
    normal_goal,
    normal_term,
    number_levels,
)
from treewright.orchestrator.types import Goal

_LAYOUT_WORDS = re.compile(
    r"(?<![\w.])(by|do|let|have|show|from|suffices|calc|where|match|if|then|else|nomatch|at)(?!\w)"
)
_OPAQUE_MARKS = ('"', "--", "/-", "«", ";", "`")
_LONE_QUOTE = re.compile(r"(?<![\w'₀-₉])'")
_CORE_LIBRARIES = frozenset({"Init", "Std", "Lean"})
_SHARED_LEVELS = re.compile(r"\b(universes?|variables?)\b")
_NEW_SYNTAX = re.compile(
    r"\b(notation\d*|syntax|macro\w*|infix[lr]?|prefix|postfix|elab\w*|scoped|declare_syntax_cat)\b"
)


def normal_form(text: str, *, plain_syntax: bool = True) -> tuple[str, str]:
    """(name of the form, text in that form). `plain_syntax`: no notation but Lean's own."""
    stripped = text.strip()
    if plain_syntax:
        try:
            normal = normal_goal if "⊢" in stripped else normal_term
            return "term", normal(stripped)
        except UnsupportedTerm:
            pass
    if (
        any(mark in stripped for mark in _OPAQUE_MARKS)
        or _LONE_QUOTE.search(stripped)
        or _LAYOUT_WORDS.search(stripped)
        or "⊢" in stripped
    ):
        return "opaque", stripped
    return "spaced", " ".join(stripped.split())


def hash_text(
    text: str, *, plain_syntax: bool = True, surroundings: str = "", own_levels: bool = True
) -> str:
    """The hash of a goal's normal form. `surroundings` is the text its meaning rests on.

    `own_levels`: its universes are its own parameters, so that their names do not matter; what
    matters is which are the same.
    """
    form, normal = normal_form(text, plain_syntax=plain_syntax)
    if form == "term" and own_levels:
        normal = number_levels(normal)
    digest = hashlib.sha256(f"{form}\n{normal}".encode())
    if surroundings.strip():
        digest.update(b"\0" + surroundings.strip().encode())
    return digest.hexdigest()


def hash_goal(goal: Goal) -> str:
    """The hash under which the ledger knows a goal."""
    if goal.place is not None:
        # A printed goal does not determine the goal: the text up to its last hole does.
        place = goal.place
        end = max((stop for _, stop in place.holes), default=0)
        before = place.source.encode()[:end].decode(errors="replace")
        return hash_text(goal.shown, plain_syntax=False, surroundings=f"{place.holes}\n{before}")
    plain = is_plain(goal.imports, goal.preamble)
    own_levels = _SHARED_LEVELS.search(goal.preamble) is None
    return hash_text(
        goal.shown, plain_syntax=plain, surroundings=goal.preamble, own_levels=own_levels
    )


def is_plain(imports: Sequence[str], preamble: str) -> bool:
    """Whether nothing but Lean's own syntax can occur after these imports and commands."""
    roots = {module.split(".", 1)[0] for module in imports}
    return roots <= _CORE_LIBRARIES and not _NEW_SYNTAX.search(preamble)
