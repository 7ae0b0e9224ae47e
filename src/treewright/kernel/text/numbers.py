"""Numbers as text for people."""

from __future__ import annotations


def value(number: float | None) -> str:
    """Return a number with six significant digits."""
    return "–" if number is None else f"{number:.6g}".replace("-", "−")


def signed(number: float | None) -> str:
    """Return a number with its sign and four significant digits."""
    return "–" if number is None else f"{number:+.4g}".replace("-", "−")


def percent(share: float | None) -> str:
    """Return a share of 1 as a signed percentage."""
    return "–" if share is None else f"{100 * share:+.2f} %".replace("-", "−")


def whole_percent(share: float | None, space: str = " ") -> str:
    """Return a share of 1 as a percentage without decimals."""
    return "–" if share is None else f"{round(100 * share)}{space}%"


def interval(low: float | None, high: float | None) -> str:
    """Return `[low, high]`, or an empty text if the noise is unknown."""
    return "" if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def gain(centre: float | None, low: float | None, high: float | None) -> str:
    """Return a gain with its interval."""
    return f"{signed(centre)} {interval(low, high)}".rstrip()


def seconds(duration: float | None) -> str:
    """Return a duration such as `0.52 s`, `42 s`, `3 min 05 s` or `2 h 10 min`."""
    if duration is None:
        return "–"
    if duration < 10:
        return f"{duration:.2f} s"
    whole = round(duration)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as `1 goal` or `2 goals`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
