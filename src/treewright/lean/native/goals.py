"""Reading Lean's printed goals back into data, for a backend that only prints them."""

from __future__ import annotations

import hashlib
import re

from treewright.lean.types import Goal, Hypothesis

_HYPOTHESIS = re.compile(r"^(?P<names>[^\s:⊢][^:⊢]*?) : (?P<rest>.*)$", re.DOTALL)


def parse_goal(text: str) -> Goal:
    """A goal from `case x`, `a b : T`, `y : T := v`, `⊢ target` lines.

    A line that begins with white space continues the one before it. The hash is that of the
    printed text: finer or coarser than the strict hash of the wasm backend, and not equal to it.
    """
    case: str | None = None
    items: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith("case ") and not items:
            case = line.removeprefix("case ").strip()
        elif line[:1].isspace() and items:
            items[-1] += "\n" + line
        else:
            items.append(line)
    hypotheses: list[Hypothesis] = []
    target = ""
    for item in items:
        if item.startswith("⊢"):
            target = item.removeprefix("⊢").strip()
            continue
        match = _HYPOTHESIS.match(item)
        if match is None:
            continue
        kind, separator, value = match["rest"].partition(" := ")
        hypotheses += [
            Hypothesis(name, kind, value if separator else None, "✝" not in name)
            for name in match["names"].split()
        ]
    metavariables = tuple(dict.fromkeys(re.findall(r"\?[\w.✝]+", text)))
    digest = hashlib.sha256(text.strip().encode()).hexdigest()
    return Goal(f"text:{digest[:16]}", target, digest, tuple(hypotheses), case, metavariables)
