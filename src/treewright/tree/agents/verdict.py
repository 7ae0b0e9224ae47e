"""The reviewer's last line."""

from __future__ import annotations

import re
from typing import Literal

Verdict = Literal["approve", "request_changes", "unparsable"]

_LINE = re.compile(r"[\s*_`>#-]*VERDICT:[\s*_`]*(APPROVE|REQUEST_CHANGES)[\s*_`.]*", re.IGNORECASE)


def parse(review: str) -> Verdict:
    """Only the last line with text counts: a reviewer may quote the two forms before it."""
    lines = [line for line in review.splitlines() if line.strip(" \t*_`")]
    match = _LINE.fullmatch(lines[-1]) if lines else None
    if match is None:
        return "unparsable"
    return "approve" if match[1].upper() == "APPROVE" else "request_changes"
