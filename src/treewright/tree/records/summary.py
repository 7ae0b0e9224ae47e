"""`summary.json` of an evaluation: its scores, and the comparisons they are based on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.text import jsontext
from treewright.tree.records.model import Comparison, EvalOutcome

FORMAT_VERSION = 1


def write(
    path: Path,
    outcome: EvalOutcome,
    *,
    eval_id: str,
    parent_node_id: str,
    idea_path: str,
    parent_commit: str,
    parent_relative: Comparison | None,
    root_relative: Comparison | None,
) -> None:
    """Write a summary. Its `recommendation` is the comparison with the parent, for the gate."""
    recommendation = outcome.parent_relative
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "eval_id": eval_id,
        "parent_node_id": parent_node_id,
        "parent_commit": parent_commit,
        "candidate_commit": outcome.candidate_commit,
        "idea_path": idea_path,
        "results_csv": outcome.results_csv,
        "scoring_summary": {
            "recommendation": recommendation,
            "parent_relative": parent_relative or {"recommendation": recommendation},
            "root_relative": root_relative or {"recommendation": outcome.root_relative},
        },
        "review_rounds": outcome.review_rounds,
        "approved": outcome.approved,
        "usage": outcome.usage,
        "timings": outcome.timings,
        "error": outcome.error,
    }
    atomic.write_bytes(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def read(path: Path) -> dict[str, Any] | None:
    """Return the document, or None if there is no readable one."""
    try:
        return jsontext.decode(untrusted.read(path, untrusted.LARGEST_TEXT))
    except (OSError, msgspec.DecodeError):
        return None
