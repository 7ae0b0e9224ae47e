"""Reasoning that a model leaves in its reply."""

from __future__ import annotations

import pytest

from treewright.llm.chat import without_reasoning


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("<think>\nhm\n</think>\n\nanswer", "answer"),
        ("reasoning without an opening tag.</think>answer", "answer"),
        ("<think>a <think>b</think> c</think>\nanswer", "answer"),
        ("<think>\n</think>\nfirst\n<think>again</think>\nsecond", "first\n\nsecond"),
        ("<thinking>\n```python\nx\n</thinking>\nanswer", "answer"),
        ("<think>cut off", ""),
        ("no tags", "no tags"),
        ("```python\n<think>\n```\nin code", "```python\n<think>\n```\nin code"),
        ("```\nx = '</think>'\n```\nin code", "```\nx = '</think>'\n```\nin code"),
        ('say("<think>") to it', 'say("<think>") to it'),
    ],
)
def test_thoughts_are_left_out(reply: str, left: str) -> None:
    assert without_reasoning(reply).strip() == left
