"""`python -m benchmarks.lean_long [LINES]`: a long file with the bundled Lean."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.lean.long_file import long_file

from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession

DEFAULT_LINES = 3000


def main() -> int:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_LINES
    text = long_file(lines)
    edited = text.replace("f0 n ≤ f0 n + 1", "f0 n ≤ 1 + f0 n")
    with HostSession(ensure_installed()) as session:
        rows: tuple[tuple[str, Callable[[], object]], ...] = (
            ("the goal at the top is open", lambda: _checked(session, text, until="early")),
            ("all of it, the first time", lambda: _checked(session, text)),
            ("all of it, again", lambda: _checked(session, text)),
            ("after an edit at its end", lambda: _checked(session, edited)),
        )
        print(f"{text.count(chr(10))} lines; seconds: CPU of Lean, and by the clock")
        for name, work in rows:
            cpu, begun = _cpu_seconds(session.pid), time.monotonic()
            work()
            spent = _cpu_seconds(session.pid) - cpu
            print(f"{name:32} {spent:7.2f} {time.monotonic() - begun:7.2f}", flush=True)
        print(f"heap: {session.heap_bytes >> 20} MB")
    return 0


def _checked(session: HostSession, text: str, until: str = "") -> None:
    done = session.check(text, sorries=True, until=until, timeout=3600)
    if not isinstance(done, CheckResult) or done.errors:
        raise SystemExit(f"not elaborated: {done}")


def _cpu_seconds(pid: int) -> float:
    """Of a process and all its threads."""
    ticks = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / 100


if __name__ == "__main__":
    sys.exit(main())
