"""`bench/attacks.jsonl`, texts that try to pass for proofs; `honest.jsonl`, proofs that must."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"


@dataclass(frozen=True, slots=True)
class Attack:
    """A candidate that does not prove the original's target, although it may seem to."""

    family: str
    name: str
    original: str
    candidate: str
    target: str


@dataclass(frozen=True, slots=True)
class Honest:
    """A candidate that proves the original's open target."""

    name: str
    original: str
    candidate: str
    targets: tuple[str, ...]


def attacks() -> list[Attack]:
    return [Attack(**row) for row in _rows("attacks.jsonl")]


def honest() -> list[Honest]:
    return [Honest(**{**row, "targets": tuple(row["targets"])}) for row in _rows("honest.jsonl")]


def _rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (BENCH / name).read_text("utf-8").splitlines()]
