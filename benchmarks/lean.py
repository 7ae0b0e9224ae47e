"""Lean sessions: start-up, steps per second, adapter overhead, two sessions against one.

    python -m benchmarks.lean

Every comparison is made side by side in this one run, in alternating blocks.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.lean_goals import GOALS
from treewright.lean.hosts.wasm.home import RUNTIME, LeanHome, node_flags
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession

# (goal, how to get to the state, the step that is measured)
MIX: tuple[tuple[str, str, str], ...] = (
    ("∀ p q : Prop, p ∧ q → q ∧ p", "skip", "intro p q h"),
    ("∀ p q : Prop, p ∧ q → q ∧ p", "intro p q h", "constructor"),
    ("∀ p q : Prop, p ∧ q → q ∧ p", "intro p q h", "exact ⟨h.2, h.1⟩"),
    ("∀ p q : Prop, p ∨ q → q ∨ p", "intro p q h", "cases h"),
    ("∀ p q : Prop, p ∨ q → q ∨ p", "intro p q h", "exact h.1"),
    ("∀ xs : List Nat, xs ++ [] = xs", "intro xs", "simp"),
    ("∀ xs : List Nat, xs ++ [] = xs", "intro xs", "induction xs"),
    ("∀ a b : Nat, a < b → a + 1 ≤ b", "intro a b h", "omega"),
    ("∀ a b : Nat, a < b → a + 1 ≤ b", "intro a b h", "exact h"),
    ("∀ a b c : Nat, a = b → b = c → a = c", "intro a b c h k", "grind"),
    ("∀ a b : Nat, a + b = b + a", "intro a b", "rw [Nat.add_comm]"),
    ("∀ a b : Nat, a + b = b + a", "intro a b", "exact Nat.add_comm a b"),
)
ROUNDS = 60


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its threads: what a step costs whatever else runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def states(session: HostSession) -> list[tuple[ProofState, str]]:
    result = []
    for goal, approach, step in MIX:
        start = session.start(goal)
        assert isinstance(start, ProofState)
        state = session.run_tactic(start, approach)
        assert isinstance(state, ProofState)
        result.append((state, step))
    return result


class RawLines:
    """The least a client can do: a line out, a line in, nothing decoded."""

    def __init__(self, home: LeanHome) -> None:
        read, self._cancel = os.pipe()
        os.set_blocking(read, False)
        replies, replies_write = os.pipe()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", 'ulimit -s 524288; exec "$@"', "sh", str(home.node),
             *node_flags(home), str(home.path / "lean.js"), "treewright-session.lean"],
            env={"PATH": "/usr/bin:/bin", "TREEWRIGHT_RUNTIME": str(RUNTIME),
                 "TREEWRIGHT_CANCEL_FD": str(read), "TREEWRIGHT_REPLY_FD": str(replies_write)},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(read, replies_write),
        )  # fmt: skip
        os.close(read)
        os.close(replies_write)
        assert self.process.stdin is not None
        self.stdin = self.process.stdin
        self.replies = os.fdopen(replies, "rb")
        while not (line := self.replies.readline()).startswith(b'{"ready"'):
            if not line:
                raise SystemExit("the raw Lean process ended before it was ready")
        self.identity = 0
        self.ask({"op": "open", "text": "import Init\n"})
        self.states: list[tuple[int, str]] = []
        for goal, approach, step in MIX:
            start = json.loads(self.ask({"op": "start", "env": 1, "statement": goal}))
            moved = json.loads(
                self.ask({"op": "tactic", "state": start["state"], "text": approach})
            )
            self.states.append((moved["state"], step))

    def ask(self, message: dict[str, object]) -> bytes:
        self.identity += 1
        line = json.dumps({"id": self.identity, "max_ms": 10_000, **message}, ensure_ascii=False)
        self.stdin.write(line.encode() + b"\n")
        self.stdin.flush()
        return self.replies.readline()

    def round(self) -> list[float]:
        times = []
        for state, step in self.states:
            begun = time.perf_counter()
            self.ask({"op": "tactic", "state": state, "text": step})
            times.append(time.perf_counter() - begun)
        return times

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.replies.close()
        os.close(self._cancel)


def adapter_round(session: HostSession, work: list[tuple[ProofState, str]]) -> list[float]:
    times = []
    for state, step in work:
        begun = time.perf_counter()
        session.run_tactic(state, step)
        times.append(time.perf_counter() - begun)
    return times


def throughput(sessions: list[HostSession], seconds: float) -> float:
    """Steps per second of all sessions together, each in a thread of its own."""
    counts = [0] * len(sessions)
    prepared = [states(session) for session in sessions]
    deadline = time.perf_counter() + seconds

    def work(index: int) -> None:
        while time.perf_counter() < deadline:
            counts[index] += len(adapter_round(sessions[index], prepared[index]))

    run_all([lambda i=i: work(i) for i in range(len(sessions))])
    return sum(counts) / seconds


def run_all(jobs: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    home = ensure_installed()
    starts, costs = [], []
    for _ in range(3):
        begun = time.perf_counter()
        with HostSession(home) as session:
            starts.append(time.perf_counter() - begun)
            costs.append(cpu_seconds(session.pid))
    print(f"load average before          {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"ready, processor time        {statistics.median(costs):.2f} s on all cores together")
    shown = [round(s, 2) for s in starts]
    print(f"ready, Init imported         {statistics.median(starts):.2f} s  (of 3: {shown})")

    with HostSession(home) as one, HostSession(home) as two:
        raw = RawLines(home)
        try:
            work = states(one)
            for _ in range(15):  # warm up: V8 compiles what is used
                adapter_round(one, work)
                raw.round()
            mine: list[list[float]] = []
            bare: list[list[float]] = []
            spent = cpu_seconds(one.pid)
            own = [0.0, 0.0]  # processor time of this thread: adapter, raw lines
            for _ in range(ROUNDS):
                begun = time.thread_time()
                mine.append(adapter_round(one, work))
                own[0] += time.thread_time() - begun
                begun = time.thread_time()
                bare.append(raw.round())
                own[1] += time.thread_time() - begun
            spent = cpu_seconds(one.pid) - spent
        finally:
            raw.close()
        medians = [statistics.median(r[i] for r in mine) for i in range(len(MIX))]
        for (_, _, step), median in zip(MIX, medians, strict=True):
            print(f"  {step:<26} {median * 1000:6.2f} ms")
        everything = sorted(t for r in mine for t in r)
        print(f"steps per second             {len(MIX) * ROUNDS / sum(map(sum, mine)):.0f}")
        print(
            f"step median / p90 / p99      {statistics.median(everything) * 1000:.1f} / "
            f"{everything[int(len(everything) * 0.9)] * 1000:.1f} / "
            f"{everything[int(len(everything) * 0.99)] * 1000:.1f} ms"
        )
        print(f"processor time per step      {spent / (len(MIX) * ROUNDS) * 1000:.1f} ms")
        micro = [seconds / (len(MIX) * ROUNDS) * 1e6 for seconds in own]
        share = (own[0] - own[1]) / spent * 100
        print(f"Python per step              {micro[0]:.0f} us, raw lines {micro[1]:.0f} us")
        print(f"adapter over raw, processor  {share:+.1f} % of Lean's own processor time")
        ratio = statistics.median(sum(m) / sum(b) for m, b in zip(mine, bare, strict=True))
        print(f"adapter over raw, wall       {(ratio - 1) * 100:+.1f} %")

        throughput([two], 8.0)  # as warm as the other
        singles, doubles = [], []
        for _ in range(3):
            singles.append(throughput([one], 3.0))
            doubles.append(throughput([one, two], 3.0))
        print(f"one session                  {statistics.median(singles):.0f} steps/s")
        print(f"two sessions                 {statistics.median(doubles):.0f} steps/s")
        gain = statistics.median(doubles) / statistics.median(singles)
        print(f"two over one                 {gain:.2f} x")
    print(f"load average after           {os.getloadavg()[0]:.1f}; goals in the soak: {len(GOALS)}")


if __name__ == "__main__":
    main()
