"""A step that does not end by itself within the time of a test."""

from __future__ import annotations


def _nested() -> str:
    """Loops in loops, with failing bodies: that takes long and stays shallow. A step that only
    recurses ends in less than a second of a quick machine, when Lean's stack is used up, and Lean
    with it. And what elaborates nothing does not see in every version that it is to end."""
    body = "(have : True := trivial; clear this)"
    for _ in range(6):
        body = f"(iterate 60 (first | ({body}; fail) | skip))"
    return body


SLOW = f"set_option maxHeartbeats 0 in\nset_option maxRecDepth 100000 in\n{_nested()}"
