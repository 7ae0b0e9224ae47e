"""Proof that Lean works here: its files, versions, start-up time, speed, a checked theorem."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from treewright.lean.hosts.host import Host
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.manifest import verify_home
from treewright.lean.session.answers import ProofState
from treewright.lean.session.interface import LeanError, LeanSession
from treewright.lean.verify.replayer import Replayer

STATEMENT = "∀ p q r : Prop, (p ∧ q) ∧ r → r ∧ q ∧ p"
SCRIPT = (
    "intro p q r h",
    "obtain ⟨⟨hp, hq⟩, hr⟩ := h",
    "refine ⟨hr, ?_, ?_⟩",
    "all_goals assumption",
)
_ROUNDS = 25


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What `treewright lean doctor` prints."""

    backend: str
    reason: str
    lean: str
    detail: str
    startup_seconds: float
    steps_per_second: float
    median_step_ms: float
    replay: str
    proof: str
    home_files_verified: int = 0


def examine(session: LeanSession, reason: str, host: Host) -> DoctorReport:
    """Prove a theorem step by step, repeatedly, and once through the replay check.

    Every file of the bundled Lean is read and compared with the installed one.
    """
    files = verify_home(host, full=True) if isinstance(host, LeanHome) else 0
    times: list[float] = []
    for _ in range(_ROUNDS):
        state = session.start(STATEMENT)
        for tactic in SCRIPT:
            if not isinstance(state, ProofState):
                raise LeanError(f"Lean works, but not as it should: {state}")
            begun = time.perf_counter()
            state = session.run_tactic(state, tactic)
            times.append(time.perf_counter() - begun)
        if not (isinstance(state, ProofState) and state.complete):
            raise LeanError(f"Lean did not close a simple goal: {state}")
    with Replayer(host) as replayer:
        verdict = replayer.theorem(STATEMENT, "\n".join(SCRIPT))
    if not verdict.proved:
        raise LeanError(f"the replay check did not accept a correct proof: {verdict.detail}")
    info = session.info
    return DoctorReport(
        info.backend,
        reason,
        info.lean,
        info.detail,
        round(info.startup_seconds, 2),
        round(len(times) / sum(times), 1),
        round(statistics.median(times) * 1000, 2),
        "proved",
        STATEMENT,
        files,
    )
