"""Everything that must be equal between two runs of the same search: all but times and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_OF_THE_MOMENT = {
    "created_at",
    "queued_at",
    "started_at",
    "finished_at",
    "worker",
    "worker_pid",
    "attempt",
    "boot_id",
    "lost_alone",
    "lost_together",
    "pauses",
    "timings",
    "environment",
    "snapshot",
    "takeovers",
    "seconds",
    "rejected_worktrees_kept",
    "at",
    "command_id",
    "requested_at",
}


def decisions(run_dir: Path) -> dict[str, Any]:
    """Return the manifest without the fields that may differ."""
    return _strip(json.loads((run_dir / "manifest.json").read_text()))


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _strip(v) for k, v in value.items() if k not in _OF_THE_MOMENT}
    if isinstance(value, list):
        return [_strip(item) for item in value]
    return value


def events(run_dir: Path) -> list[dict[str, Any]]:
    lines = (run_dir / "events.jsonl").read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def repeated_evaluations(run_dir: Path) -> list[str]:
    """Return the evaluations that were started again after their outcome had been recorded."""
    finished: set[str] = set()
    repeated = []
    for event in events(run_dir):
        if event["type"] in ("completed", "failed"):
            finished.add(event["eval_id"])
        elif event["type"] == "started" and event["eval_id"] in finished:
            repeated.append(event["eval_id"])
    return repeated
