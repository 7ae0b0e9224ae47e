"""The replay check: a verdict in the warm pair of processes, beside elaboration alone.

    python -m benchmarks.replay

Every proof of `bench/honest.jsonl` is checked in turns: elaborated by a session (what Lean itself
needs for the text), and by the replay check. The first round warms both up and is not counted.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer

CASES = Path(__file__).resolve().parent.parent / "bench" / "honest.jsonl"
ROUNDS = 3


def main() -> None:
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    home = ensure_installed()
    alone: list[float] = []
    verdicts: list[float] = []
    with HostSession(home) as session, Replayer(home) as replayer:
        begun = time.perf_counter()
        replayer.processes.warm_up()
        print(f"the pair starts in {time.perf_counter() - begun:.1f} s")
        for turn in range(ROUNDS + 1):
            for case in cases:
                begun = time.perf_counter()
                session.check(case["candidate"])
                middle = time.perf_counter()
                verdict = replayer.text(case["original"], case["candidate"], case["targets"])
                ended = time.perf_counter()
                assert verdict.proved, (case["name"], verdict)
                if turn:
                    alone.append((middle - begun) * 1000)
                    verdicts.append((ended - middle) * 1000)
    for name, times in (("elaborating the candidate", alone), ("a verdict", verdicts)):
        low, *_, high = statistics.quantiles(times, n=10)
        print(f"{name}: median {statistics.median(times):.0f} ms, p10 {low:.0f}, p90 {high:.0f}")
    print(f"ratio of the medians: {statistics.median(verdicts) / statistics.median(alone):.2f}")


if __name__ == "__main__":
    main()
