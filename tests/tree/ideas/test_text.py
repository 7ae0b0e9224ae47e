"""Idea text: when two are the same, and which patches they carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.tree.ideas import idea_text

anything = st.text(max_size=60)
lines = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8), max_size=8)


PATCH = "--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-RATE = 0.1\n+RATE = 0.01\n"


@given(anything)
def test_normalising_twice_is_normalising_once(raw: str):
    assert idea_text.normalise(idea_text.normalise(raw)) == idea_text.normalise(raw)


@given(lines, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", " ", "\t "]))
def test_line_endings_and_trailing_blanks_do_not_matter(parts, ending: str, blanks: str):
    written = ending.join(part + blanks for part in parts)
    assert idea_text.key(written + ending * 2) == idea_text.key("\n".join(parts))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("    x = 1\n", "  x = 1\n"),  # indentation is meaning
        ("a\n\nb\n", "a\nb\n"),  # so is a paragraph
        ("RATE 0.1", "RATE 0.2"),
        ("Rate", "rate"),
    ],
)
def test_what_makes_a_new_idea(one: str, two: str):
    assert idea_text.key(one) != idea_text.key(two)


def test_byte_order_mark_and_unicode_form_do_not_matter():
    assert idea_text.key("\ufeffgro\u0308ße\n\n\n\nx") == idea_text.key("gr\u00f6ße\n\nx\n")


@given(
    st.lists(lines, min_size=1, max_size=3), st.sampled_from(["diff", "patch", "DIFF", "diff x"])
)
def test_patches_come_back_byte_for_byte(bodies, info: str):
    wanted = ["".join(f" {line}\r\n" for line in body) for body in bodies]
    fence = idea_text.fence_for("".join(wanted))
    markdown = "# Title\n\n" + "\n".join(f"{fence}{info}\n{body}{fence}\nprose" for body in wanted)
    assert idea_text.patches(markdown) == wanted


def test_a_diff_of_a_markdown_file_is_not_cut_at_its_fences():
    body = "--- a/x.md\n+++ b/x.md\n@@ -1,3 +1,3 @@\n ```\n-a\n+b\n ```\n"
    assert idea_text.patches(f"```diff\n{body}```\n") == [body]


def test_blocks_that_are_no_patch():
    assert idea_text.patches("```python\n-a\n```\n    ```diff\n    -a\n    ```\n") == []
    assert idea_text.patches("```diff\nnever closed\n") == []
    assert idea_text.patches("````text\n```diff\n-a\n```\n````\n") == []


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# One\ntwo", "One"),
        ("words\n\n## Two #\n", "Two #"),
        ("\ufeff# One\rtwo", "One"),
        ("only words\nmore", "only words"),
        ("", ""),
        (f"```diff\n{PATCH}```\n", "Change model.py: RATE = 0.01"),
        (f"```diff\n{PATCH}", "Change model.py: RATE = 0.01"),  # read in part
        (f"~~~patch\r\n{PATCH}~~~\r\n", "Change model.py: RATE = 0.01"),
        (f"```diff\n{PATCH}```\n\nLower the rate.\n", "Lower the rate."),
        (f"```diff\n{PATCH}```\n## Lower\n", "Lower"),
        ("```python\n# a comment\n```\nWords\n", "Words"),
        ("```diff\n--- /dev/null\n+++ b/a b.py\t\n@@ -0,0 +1 @@\n+\n```", "Add a b.py"),
        ("```diff\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n```", "Delete old.py"),
        ("```python\nx = 1\n```\n", ""),
    ],
)
def test_title(markdown: str, expected: str):
    assert idea_text.title(markdown) == expected
