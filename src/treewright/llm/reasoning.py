"""Reasoning that some models leave in their replies, between `<think>` and `</think>`.

Reasoning is no part of the answer: it quotes formats, tries edits and names ideas that it drops.
"""

from __future__ import annotations

import re

_OPENING = re.compile(r"^[ \t]*<(think|thinking|thought|reasoning)>", re.MULTILINE)
_CLOSING = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def without_reasoning(reply: str) -> str:
    """Return the reply without its reasoning.

    A tag counts at the beginning of a line and outside of code blocks. A closing tag without an
    opening one ends reasoning that began with the reply, because the server put the opening tag
    into the prompt. An opening tag without a closing one begins reasoning that was cut off.
    """
    at = 0
    while opening := _OPENING.search(reply, at):
        if _is_in_code(reply, opening.start()):
            at = opening.end()
            continue
        closing = re.compile(f"</{opening[1]}>").search(reply, opening.end())
        at = opening.start()
        reply = reply[:at] + (reply[closing.end() :] if closing else "")
    ends = [m for m in _CLOSING.finditer(reply) if not _is_in_code(reply, m.start())]
    return reply[ends[-1].end() :] if ends else reply


def _is_in_code(text: str, position: int) -> bool:
    return len(_FENCE.findall(text, 0, position)) % 2 == 1
