"""A proof run on disk, written line by line as a search writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from treewright.kernel.clock import timestamp
from treewright.proving.run import RunResult, write_result

HOSTILE = "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>"


class ProofRun:
    """Write `proof_runs/<run_id>` of a project, with one goal, `p ∧ q → q ∧ p`, and its records."""

    def __init__(self, project: Path, run_id: str = "proof") -> None:
        self.path = project / ".treewright" / "proof_runs" / run_id
        self.path.mkdir(parents=True)
        self.iterations = 0
        document = {
            "format_version": 1,
            "run_id": run_id,
            "target": "Swap.lean",
            "mode": "distributed",
            "settings": {"agents": 2},
            "created_at": timestamp(),
        }
        (self.path / "run.json").write_text(json.dumps(document), encoding="utf-8")
        root = {"id": 0, "key": "k0", "goals": [view("p ∧ q → q ∧ p")]}
        self.write("goal", goal=0, name="swap", statement="theorem swap : p ∧ q → q ∧ p", root=root)

    def write(self, kind: str, epoch: int = 1, **fields: Any) -> None:
        line = {"type": kind, "epoch": epoch, "at": timestamp(), **fields}
        with (self.path / "trace.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def end(self, proved: int, total: int, *, complete: bool = True) -> None:
        """Write `result.json`, as the prover does when it stops."""
        result = RunResult(
            run_id=self.path.name, directory=str(self.path), mode="distributed", proved=proved,
            total=total, complete=complete, file=None, goals=(),
        )  # fmt: skip
        write_result(self.path, result)

    def iterate(self, node: int, *attempts: dict[str, Any], agent: int = 0, **more: Any) -> None:
        self.iterations += 1
        fields: dict[str, Any] = {
            "iteration": self.iterations, "goal": 0, "agent": agent, "algotype": "uct",
            "path": [0, node] if node else [0], "node": node, "reason": "expanded",
            "candidates": [], "attempts": list(attempts), "value": 0.4, "root_value": 0.3,
            "counters": {"nodes": 4, "edges": 2, "solved": 0, "dead": 0, "attempts": 3},
            "new": [], "solved": [], "dead": [], "interventions": [],
        }  # fmt: skip
        self.write("iteration", **(fields | more))


def view(target: str, *hypotheses: tuple[str, str]) -> dict[str, Any]:
    return {"target": target, "hypotheses": [{"name": n, "type": t} for n, t in hypotheses]}


def solved(project: Path, run_id: str = "proof") -> ProofRun:
    """Write a search that split the goal in two, closed both parts, and followed one detour."""
    run = ProofRun(project, run_id)
    given = ("h", "p ∧ q")
    run.iterate(
        0,
        {"tactic": "simp", "outcome": "error", "detail": "simp made no progress"},
        {"tactic": "intro h", "outcome": "goals", "edge": 0, "children": [1]},
        new=[{"id": 1, "key": "k1", "goals": [view("q ∧ p", given)]}],
    )
    run.iterate(
        1,
        {"tactic": "constructor", "outcome": "goals", "edge": 1, "children": [2, 3]},
        agent=1,
        new=[
            {"id": 2, "key": "k2", "goals": [view("q", given)]},
            {"id": 3, "key": "k3", "goals": [view(f"p {HOSTILE}", given)]},
        ],
    )
    run.iterate(
        2,
        {"tactic": "exact h.2", "outcome": "closed", "edge": 2},
        solved=[2],
        interventions=[{"kind": "reroute", "agent": 0, "node": 2}],
    )
    run.iterate(
        3, {"tactic": "exact h.1", "outcome": "closed", "edge": 3}, agent=1, solved=[3, 1, 0]
    )
    run.write(
        "verdict", goal=0, status="proved", stop="solved", detail="", iterations=4, axioms=[],
        proof="intro h\nconstructor\n· exact h.2\n· exact h.1",
    )  # fmt: skip
    run.end(1, 1)
    return run
