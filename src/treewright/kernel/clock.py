"""Wall-clock time as text: the timestamps of all records of runs."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def timestamp() -> str:
    """Return the time by RFC 3339, in UTC with milliseconds: `2026-02-04T09:00:00.123Z`."""
    return now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds from one timestamp to another; None if either is missing."""
    if not earlier or not later:
        return None
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
