"""The native host: what the session costs over raw JSON lines, and what a header costs twice."""

from __future__ import annotations

import json
import time
from statistics import median

from benchmarks.measure import Row, Table, seconds, take_turns
from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.hosts.native.toolchain import find_toolchain, too_old
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession

ADAPTER_LIMIT = 1.10
AGAIN_LIMIT = 0.10
_TEXT = "import Lean.Data.Json\ntheorem t : 1 = 1 := rfl\n"
_STEP = "refine ⟨?_, ?_⟩ <;> simp_all"
_TITLE = "A native Lean: our session over raw JSON lines; the same header again"


def native(quick: bool) -> Table:
    """Skipped, with the reason, where there is no toolchain."""
    toolchain = find_toolchain(None)
    problem = toolchain if isinstance(toolchain, str) else too_old(toolchain)
    if problem or isinstance(toolchain, str):
        return Table("native", _TITLE, [], f"not measured: {problem}")
    with HostSession(NativeHost(toolchain)) as session:
        first = seconds(lambda: session.check(_TEXT))
        again = median(seconds(lambda: session.check(_TEXT)) for _ in range(5))
        opened = session.start("∀ p q r : Prop, p ∧ q ∧ r → r ∧ q ∧ p")
        assert isinstance(opened, ProofState)
        state = session.run_tactic(opened, "intro p q r h")
        assert isinstance(state, ProofState)
        contestants = {
            "session": lambda: seconds(lambda: session.run_tactic(state, _STEP)),
            "raw": lambda: _raw(session, state),
        }
        taken = take_turns(contestants, 100 if quick else 600)
    ours, raw = median(taken["session"]), median(taken["raw"])
    return Table(
        "native",
        f"{_TITLE} ({toolchain.name})",
        [
            Row("a step, raw lines", raw * 1e3, "ms"),
            Row("a step, session", ours * 1e3, "ms", "raw", ours / raw, ADAPTER_LIMIT),
            Row("check, new header", first * 1e3, "ms"),
            Row("check, same header", again * 1e3, "ms", "new", again / first, AGAIN_LIMIT),
        ],
    )


def _raw(session: HostSession, state: ProofState) -> float:
    """The same step as bytes there and back, with nothing made of them."""
    process = session._process
    fields = {"id": 0, "op": "tactic", "max_ms": 10000, "state": state.state, "text": _STEP}
    started = time.perf_counter()
    deadline = time.monotonic() + 60
    process._write(json.dumps(fields).encode() + b"\n", deadline)
    process._read_line(deadline)
    return time.perf_counter() - started
