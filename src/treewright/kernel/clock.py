"""Wall-clock time as text. The only place where run records get their timestamps."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def timestamp() -> str:
    """An RFC 3339 instant in UTC with milliseconds: `2026-02-04T09:00:00.123Z`."""
    return now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Seconds from one timestamp to another, or None where either is missing."""
    if not earlier or not later:
        return None
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
