"""The results of a bank run: as a file, as a table for people, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec

from treewright.kernel.clock import seconds_between
from treewright.kernel.storage import atomic
from treewright.orchestrator.ledger.store import Ledger
from treewright.orchestrator.running.bench import BankResults

_WIDTH, _HEIGHT, _MARGIN = 640, 300, 48
_STYLE = "text{font:12px sans-serif;fill:#333}.axis{stroke:#999}.curve{fill:none;stroke:#2a6;}"


def publish(results: BankResults, ledger: Ledger, directory: Path) -> Path:
    """Writes `bank-<timestamp>.json` and its picture; a second one of a second gets a number."""
    atomic.make_directory(directory)
    data = msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n"
    path = directory / f"bank-{results.timestamp}.json"
    number = 1
    while not atomic.create_exclusive(path, data):
        number += 1
        path = directory / f"bank-{results.timestamp}-{number}.json"
    drawn = picture(results, solved_times(ledger, results.run_id))
    atomic.write_bytes(path.with_suffix(".svg"), drawn.encode())
    return path


def table(results: BankResults) -> str:
    """What happened, in a few lines."""
    lines = [
        f"{results.goals_solved} of {results.goals_total} goals proved, "
        f"{results.goals_processed} processed, {results.elapsed_seconds:.1f} s",
        "",
        f"{'strategy':<10} {'used':>6} {'proved':>7} {'cancelled':>10}",
    ]
    for name, counts in results.strategies.items():
        lines.append(
            f"{name:<10} {counts['used']:>6} {counts['succeeded']:>7} {counts['cancelled']:>10}"
        )
    lines += [f"{name:<10} left out: {reason}" for name, reason in results.excluded.items()]
    lines += [
        "",
        f"Lean's CPU time {results.cpu_seconds:.1f} s, of which {results.wasted_cpu_seconds:.1f} s "
        f"in cancelled attempts; held back {results.throttled_seconds:.1f} s for other work",
    ]
    if results.skipped_lines:
        number, reason = results.skipped_lines[0]
        more = f" (and {len(results.skipped_lines) - 1} more)" if results.skipped_lines[1:] else ""
        lines.append(f"line {number} of the bank was left out: {reason}{more}")
    return "\n".join(lines)


def solved_times(ledger: Ledger, run_id: str) -> list[float]:
    """Seconds from the run's first start until each goal was proved, in order."""
    (run,) = ledger.query("SELECT started_at FROM runs WHERE run_id = ?", [run_id])
    rows = ledger.query(
        "SELECT MIN(timestamp) AS at FROM attempts WHERE run_id = ? AND success = 1 "
        "GROUP BY goal_id ORDER BY at",
        [run_id],
    )
    return [max(0.0, seconds_between(run["started_at"], row["at"]) or 0.0) for row in rows]


def picture(results: BankResults, times: Sequence[float]) -> str:
    """Goals proved over time, as a stair."""
    longest = max([*times, 1e-3])
    most = max(results.goals_total, 1)
    width, height = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN

    def point(seconds: float, count: int) -> str:
        x = _MARGIN + width * seconds / longest
        y = _HEIGHT - _MARGIN - height * count / most
        return f"{x:.1f} {y:.1f}"

    path = [f"M {point(0, 0)}"]
    for count, seconds in enumerate(times, start=1):
        path += [f"L {point(seconds, count - 1)}", f"L {point(seconds, count)}"]
    title = f"{results.goals_solved} of {results.goals_total} goals proved (run {results.run_id})"
    bottom, right = _HEIGHT - _MARGIN, _WIDTH - _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" role="img">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            f'<text x="{_MARGIN}" y="24">{escape(title)}</text>',
            f'<path class="axis" fill="none" d="M {_MARGIN} {_MARGIN} V {bottom} H {right}"/>',
            f'<path class="curve" stroke-width="2" d="{" ".join(path)}"/>',
            f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{longest:.1f} s</text>',
            f'<text x="{_MARGIN - 8}" y="{_MARGIN + 4}" text-anchor="end">{most}</text>',
            f'<text x="{_MARGIN - 8}" y="{bottom}" text-anchor="end">0</text>',
            "</svg>\n",
        ]
    )
