"""Normal forms of goals, so that goals with the same meaning share a hash.

Two goals with different meanings never get the same form; two goals with the same meaning may get
different ones. There are three forms, and the hash includes the name of the form:

- `term`: every token belongs to a small fragment of Lean with an unambiguous binding structure.
  White space is uniform, bound variables and universes are numbered, and adjacent implicit binders
  and the hypotheses before `⊢` are sorted in a canonical order that respects dependencies.
- `spaced`: no strings, comments or layout-sensitive words; runs of white space become one space.
- `opaque`: any other text, without the white space around it.
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
    """Return the name of the form and the text in it; `plain_syntax`: only Lean's own notation."""
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
    """Return the hash of a goal's normal form.

    Args:
        text: The goal.
        plain_syntax: Whether only Lean's own notation can occur.
        surroundings: The text that the goal's meaning depends on.
        own_levels: Whether the goal's universes are its own parameters, so that their names do not
            matter, but only which of them are equal.
    """
    form, normal = normal_form(text, plain_syntax=plain_syntax)
    if form == "term" and own_levels:
        normal = number_levels(normal)
    digest = hashlib.sha256(f"{form}\n{normal}".encode())
    if surroundings.strip():
        digest.update(b"\0" + surroundings.strip().encode())
    return digest.hexdigest()


def hash_goal(goal: Goal) -> str:
    """Return the hash of a goal in the ledger."""
    if goal.place is not None:
        # The displayed goal does not determine the goal; the text up to its last hole does.
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
    """Return whether only Lean's own syntax can occur after these imports and commands."""
    roots = {module.split(".", 1)[0] for module in imports}
    return roots <= _CORE_LIBRARIES and not _NEW_SYNTAX.search(preamble)
