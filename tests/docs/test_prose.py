"""Docstrings, comments and pages name their subjects: pronouns without a noun are counted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT

PATTERNS = re.compile(
    r"\b(?:who|whose|whoever|nobody|somebody|anybody"
    r"|(?:what|whatever)\s+(?:is|was|are|were|has|had|does|did|can|may|must|will|would|comes?|came"
    r"|it|they|he|she|we|you|there|an?|the|of|in)"
    r"|anew|in vain|likewise|beside|nothing else|of its own|of which|put down to|put right"
    r"|so many|so often|taken for|thereof|therein|wherein)\b",
    re.IGNORECASE,
)
"""Constructions that leave the subject of a sentence to the reader."""
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
COMMENT = re.compile(r"(?:^|\s)# (.*)")


def passages(directory: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield docstrings, comments and Markdown with their file and first line."""
    for file in sorted(directory.rglob("*.md")):
        # Code becomes empty lines, so that line numbers stay correct.
        text = CODE.sub(lambda code: "\n" * code[0].count("\n"), file.read_text(encoding="utf-8"))
        yield file, 1, text
    for file in sorted(directory.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield file, node.lineno, str(node.value.value)
        for number, line in enumerate(source.splitlines(), start=1):
            if comment := COMMENT.search(line):
                yield file, number, comment[1]


@pytest.mark.parametrize(("directory", "limit"), [("src", 2), ("tests", 3), ("docs", 5)])
def test_prose_has_explicit_subjects(directory: str, limit: float) -> None:
    words, places = 0, []
    for file, first, text in passages(ROOT / directory):
        words += len(text.split())
        for match in PATTERNS.finditer(text):
            line = first + text.count("\n", 0, match.start())
            places.append(f"{file.relative_to(ROOT)}:{line}: {match[0]}")
    print("\n".join(places))
    rate = 1000 * len(places) / words
    assert rate <= limit, f"{directory}: {rate:.1f} constructions per 1,000 words, at most {limit}"
