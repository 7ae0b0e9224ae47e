"""Reasoning that some models leave in their replies, between `<think>` and `</think>`.

It is no part of the answer: it quotes formats, tries edits and names ideas that it then drops.
"""

from __future__ import annotations

import re

_OPENING = re.compile(r"^[ \t]*<(think|thinking|thought|reasoning)>", re.MULTILINE)
_CLOSING = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def without_thoughts(reply: str) -> str:
    """Return the reply without its reasoning.

    A tag counts at the beginning of a line and outside of code blocks. Where the opening tag is
    missing, because the server put it into the prompt, everything up to the closing one goes;
    where the closing one is missing, because the reply was cut off, all the rest.
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
