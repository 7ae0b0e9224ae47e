"""Documents about a proof run, updated by reading only the new lines of its trace.

`trace.jsonl` is a journal (kernel/storage/journal.py). Pages get its records unchanged, but without
the candidates that were not tried, and in pieces of bounded size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from treewright.dashboard import run_files
from treewright.dashboard.live_run import Liveness, LiveRun, RunCache, read_liveness
from treewright.dashboard.roots import RunRef, parse_number
from treewright.dashboard.run_files import Signature, signature
from treewright.kernel.errors import StorageError
from treewright.kernel.storage import journal
from treewright.kernel.text import jsontext
from treewright.llm.usage_log import UsageLog
from treewright.proving.layout import LEASE, RESULT, RUN, TRACE, USAGE

_LARGEST_RUN_FILE = 4 << 20
_PIECE_BYTES = 4 << 20
_LONGEST_DETAIL = 300


class LiveProof(LiveRun):
    """One proof run with its records so far."""

    def __init__(self, run: RunRef) -> None:
        super().__init__(run.path, TRACE)
        self.run = run
        self.records: list[dict[str, Any]] = []
        self._usage: tuple[Signature, dict[str, Any] | None] | None = None

    def _clear(self) -> None:
        self.records = []

    def _add(self, line: journal.Line) -> None:
        """Add a record. A resumed run may repeat iterations; the later ones replace the earlier."""
        record = jsontext.decode(line.raw)
        if not isinstance(record, dict) or record.get("phase", "prove") != "prove":
            return
        record = _trimmed(record)
        before = len(self.records)
        while self.records and _superseded(self.records[-1], record):
            self.records.pop()
        if len(self.records) < before:
            self.generation += 1
        self.records.append(record)

    def usage(self) -> dict[str, Any] | None:
        """Return the usage of the run's model so far, or None without an answer."""
        with self.lock:
            path = run_files.resolve(self.run.path, USAGE)
            found = signature(path) if path is not None else (0, 0, 0)
            if self._usage is None or self._usage[0] != found:
                self._usage = found, _usage(path) if path is not None else None
            return self._usage[1]

    def records_since(self, version: str | None) -> dict[str, Any]:
        """Return the records after a version, as many as fit in one piece."""
        with self.lock:
            generation, _, known = (version or "").partition(".")
            count = parse_number(known) if generation == str(self.generation) else None
            fits = count is not None
            start = min(count, len(self.records)) if count is not None else 0
            stop, size = start, 0
            while stop < len(self.records) and size < _PIECE_BYTES:
                size += self.records[stop]["bytes"]
                stop += 1
            return {
                "version": f"{self.generation}.{stop}",
                "full": not fits,
                "more": stop < len(self.records),
                "records": self.records[start:stop],
            }


def _usage(path: Path) -> dict[str, Any] | None:
    try:
        log = UsageLog(path)
    except StorageError:
        return None
    return {"answers": log.answers, **msgspec.to_builtins(log.usage)} if log.answers else None


def describe(run: RunRef) -> dict[str, Any]:
    """Return the content of `run.json`."""
    return _document(run, RUN)


class _Outcome(msgspec.Struct, frozen=True):
    """The totals in `result.json`."""

    proved: int
    total: int
    complete: bool


def _outcome(run: RunRef) -> _Outcome | None:
    """Return the totals, or None before the run has finished or was interrupted."""
    try:
        return msgspec.convert(_document(run, RESULT), _Outcome)
    except msgspec.ValidationError:
        return None


def _document(run: RunRef, name: str) -> dict[str, Any]:
    read = run_files.read(run.path, name, _LARGEST_RUN_FILE)
    try:
        document = jsontext.decode(read[0]) if read else {}
    except msgspec.DecodeError:
        document = {}
    return document if isinstance(document, dict) else {}


def summary(live: LiveProof) -> dict[str, Any]:
    """Return the summary for the home page and the head of the run's page.

    Only `result.json` has the number of goals, because the trace of a file with several goals looks
    finished after each of them. `of` is None until `result.json` exists.
    """
    run = live.run
    with live.lock:
        records, problem = live.records, live.problem
        described = describe(run)
        verdicts = {r.get("goal"): r.get("status") for r in records if r["type"] == "verdict"}
        last = {r.get("goal"): r for r in records if r["type"] == "iteration"}
    outcome = _outcome(run)
    proved = sum(status == "proved" for status in verdicts.values())
    result = None
    if outcome is not None and outcome.complete:
        proved = outcome.proved
        result = f"{proved} of {outcome.total} goals proved"
    now = read_liveness(run.path / LEASE, result)
    if problem:
        now = Liveness("damaged", problem)
    return {
        "key": run.key,
        "kind": run.kind,
        "run_id": run.run_id,
        "created_at": described.get("created_at"),
        "target": _target_text(described.get("target")),
        "mode": described.get("mode"),
        "policy": _policy(described),
        "settings": described.get("settings"),
        "liveness": now,
        "progress": {
            "done": len(verdicts),
            "of": outcome.total if outcome is not None else None,
            "proved": proved,
        },
        "iterations": max((r.get("iteration", 0) for r in last.values()), default=0),
        "counters": _sum(r.get("counters") for r in last.values()),
        "usage": live.usage(),
        "eta_seconds": None,
        "problem": problem,
    }


def _policy(described: Mapping[str, Any]) -> str | None:
    """Return the policy of a centralized search; cells have algotypes."""
    if described.get("mode") != "centralized":
        return None
    recorded = described.get("settings")
    policy = recorded.get("policy") if isinstance(recorded, dict) else None
    return str(policy["type"]) if isinstance(policy, dict) and "type" in policy else None


def _target_text(target: object) -> str:
    """Return a target as text. It is a text, or a record with a path, a name or a statement."""
    known = ("path", "declaration", "statement")
    values = [target.get(name) for name in known] if isinstance(target, dict) else [target]
    return " ".join(value for value in values if isinstance(value, str) and value)


def _sum(counters: Iterable[object]) -> dict[str, int]:
    """Return the sums of the counters of all goals."""
    total: Counter[str] = Counter()
    for one in counters:
        if isinstance(one, dict):
            total.update({name: n for name, n in one.items() if isinstance(n, int)})
    return dict(total)


def _superseded(earlier: dict[str, Any], record: dict[str, Any]) -> bool:
    return (
        earlier["type"] == record["type"] == "iteration"
        and earlier.get("epoch", 0) < record.get("epoch", 0)
        and earlier.get("iteration", 0) >= record.get("iteration", 0)
    )


def _trimmed(record: dict[str, Any]) -> dict[str, Any]:
    """Remove the parts that no page shows, and add the size, which limits the pieces."""
    record.setdefault("type", "")
    candidates = record.pop("candidates", None)
    if isinstance(candidates, list):
        record["candidate_count"] = len(candidates)
    if record["type"] == "iteration":
        record.setdefault("interventions", [])
    for attempt in record.get("attempts") or ():
        if isinstance(attempt, dict) and isinstance(attempt.get("detail"), str):
            attempt["detail"] = attempt["detail"][:_LONGEST_DETAIL]
    record["bytes"] = len(msgspec.json.encode(record))
    return record


class ProofLibrary:
    """Proof runs in memory; the least recently used ones are dropped."""

    def __init__(self, most_bytes: int = 128 << 20) -> None:
        self._runs = RunCache(LiveProof, lambda live: live.weight, most_bytes)

    def open(self, run: RunRef) -> LiveProof:
        """Return a run with its new records."""
        live = self._runs.get(run).refresh()
        self._runs.shrink()
        return live
