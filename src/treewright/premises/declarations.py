"""Which declarations of an environment are premises, and how they are listed through Lean."""

from __future__ import annotations

import re
from collections.abc import Iterator

from treewright.lean.session import LeanSession
from treewright.lean.types import Declaration

KINDS = frozenset({"theorem", "axiom", "def", "inductive", "constructor", "opaque"})
_GENERATED_PART = re.compile(
    r"_.*|match_\d+.*|proof_\d+|eq_\d+|eq_def|sizeOf_spec|inj|injEq|noConfusion(Type|Enum)?"
    r"|ctorIdx|toCtorIdx|ctorElim(Type)?|below(_\d+)?|brecOn(_\d+)?|casesOn|recOn|rec(_\d+)?"
    r"|induct(_unfolding)?|fun_cases(_unfolding)?|mutual_induct(_unfolding)?|congr_simp|.*✝.*"
)
_SYNTAX_TYPES = ("Lean.ParserDescr", "Lean.TrailingParserDescr", "Lean.Macro", "Lean.Syntax")


def is_premise(declaration: Declaration) -> bool:
    """Whether a person wrote it and a proof could mention it."""
    if declaration.kind not in KINDS or not declaration.type:
        return False
    if declaration.type.startswith(_SYNTAX_TYPES):
        return False
    parts = declaration.name.split(".")
    return not any(_GENERATED_PART.fullmatch(part) for part in parts)


def listed(session: LeanSession, module: str = "") -> Iterator[Declaration]:
    """Every declaration with its type, also those that are no premises, for progress' sake.

    Types come from the terms and not from Lean's printer, which is twenty times slower; they read
    nearly the same.
    """
    return session.declarations(module=module, types=True, plain=True)
