"""Patterns of banned ideas: they mean what Python's mean, and none of them can hang a run."""

from __future__ import annotations

import random
import re
import time
import tracemalloc

import pytest

from treewright.tree.records.patterns import PatternError, pattern

USUAL = [
    "dropout", r"\bdropout\b", "^# set [ab] to", "a|b|", "(ab)+c", "x{2,3}y", "x{,2}y", "x{2}$",
    "[^]a]b", r"[\]a-c]+?d", "a.c", r"\d+\s*%", r"\x41+|é", r"(?:a|(?P<n>b))*c", "(a*)*b", "a{}",
    r"(?:^|\n)b", r"a\Z", "(^a|b$)", r"\101|\0", "{x", "ß|ſ", "(a?){3}b",
]  # fmt: skip


@pytest.mark.parametrize("source", USUAL)
def test_they_mean_what_pythons_mean(source: str) -> None:
    theirs, ours = re.compile(source, re.IGNORECASE), pattern(source)
    draw = random.Random(source)
    texts = [
        "".join(draw.choices("aAbBcdxy]{}% \n1é#ßSs\0", k=draw.randrange(9))) for _ in range(300)
    ]
    for text in (*texts, "Use Dropout.", "dropouts", "# Set A to 2\nmore", "K É", "xxy\n"):
        assert ours.is_in(text) == (theirs.search(text) is not None), text


@pytest.mark.parametrize(
    "source", ["(a+)+$", "(a|a)+$", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}$", r"(\w+\s?)*$~"]
)
def test_none_takes_longer_than_its_text_is(source: str) -> None:
    began = time.process_time()
    assert not pattern(source).is_in("a" * 5000 + "!")
    assert time.process_time() - began < 60, "for ever, if ways were tried one after the other"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("(", r"'\(' is no regular expression"),
        ("a{99999999999}", "is no regular expression"),
        ("(" * 400 + ")" * 400, "brackets in brackets|no regular expression"),
        ("(?=a)b", "begin with"),
        ("(?i)a", "begin with"),
        (r"(a)\1", "cannot refer to a group"),
        ("a*+b", "gives nothing back"),
        ("((a{99}){99}){99}", "smaller counts"),
        ("a" * 1001, "more than 1000 characters"),
    ],
)
def test_what_cannot_be_matched_so_is_refused(source: str, why: str) -> None:
    with pytest.raises(PatternError, match=why):
        pattern(source)


def test_what_is_remembered_of_a_long_text_does_not_grow_with_it() -> None:
    """No two places of it are alike for this pattern."""
    chance = random.Random(0)
    text = "".join(chance.choice("ab") for _ in range(900))
    banned = pattern("a[ab]{0,450}a[ab]{0,450}c")
    tracemalloc.start()
    try:
        assert not banned.is_in(text)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
