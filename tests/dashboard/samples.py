"""Real runs for the dashboard's tests: a finished search, one under way, and large ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.toy import ToyRepository, diff_of_line, idea, set_parameter
from tests.tree import making
from tests.tree.runs import make_target, search
from treewright.kernel.storage.lease import Lease
from treewright.tree.records import events as ev
from treewright.tree.records.layout import LEASE
from treewright.tree.records.model import Decision, GateDecision, NodeArtifacts
from treewright.tree.records.store import RunStore
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run

RUN_ID = "run"
HOSTILE_TITLE = '<script>window.hacked = true</script><img src=x onerror="window.hacked = true">'


def finished(directory: Path) -> ToyRepository:
    """A search to depth 2 over ideas that help, hurt, cheat, break and attack the reader."""
    toy = make_target(directory / "a target")
    line = 1 + 5 * "ABCD".index("A")
    patch = diff_of_line("params.txt", "A 1.0", "A 2.5", line)
    toy.write("ideas/00_hostile.md", idea(HOSTILE_TITLE, patch))
    toy.commit("an idea that attacks the reader")
    search(toy.path, ideas_per_node=8, beam_width=2, max_depth=2, sweep_config_limit=8,
           dedupe_scope="none")  # fmt: skip
    return toy


def target_for_live(directory: Path) -> ToyRepository:
    """A repository with a sweep that waits for a file, so that a test controls its progress."""
    toy = ToyRepository.create(directory / "live target")
    waiting = 'echo "the sweep has begun"\nwhile [ ! -e "$GATE" ]; do sleep 0.05; done\n'
    sweep = (toy.path / "sweep.sh").read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{waiting}")
    toy.write("sweep.sh", sweep.replace("$GATE", str(directory / "gate")))
    patient = (toy.path / "treewright.toml").read_text().replace("= 60", "= 600")
    toy.write("treewright.toml", patient)
    toy.write("ideas/00_first.md", set_parameter("A", 3.0))
    toy.commit("a sweep that waits")
    return toy


@contextmanager
def searching(toy: ToyRepository, run_id: str = RUN_ID) -> Iterator[threading.Event]:
    """Run a search in a separate thread, and cancel it at the end."""
    cancel = threading.Event()

    def work() -> None:
        shape = Shape(ideas_per_node=1, beam_width=1, max_depth=1, sweep_config_limit=8)
        request = RunRequest(toy.path, run_id, shape=shape, preflight=False)
        with suppress(KeyboardInterrupt), open_run(request, cancel=cancel) as coordinator:
            coordinator.advance()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield cancel
    finally:
        cancel.set()
        thread.join()


def large(run_dir: Path, evaluations: int, each: int = 100) -> None:
    """Write a run with many evaluations through the store, as a coordinator does."""
    run_dir.mkdir(parents=True)
    lease = Lease.acquire(run_dir / LEASE)
    store = RunStore(run_dir, lease, lambda _: None)
    manifest = making.manifest(
        tree_run_id=run_dir.name,
        ideas_per_node=each,
        beam_width=10,
        max_depth=99,
        agent_config={"metrics": [{"name": "loss", "direction": "minimize", "primary": True}]},
    )
    store.record(ev.RunCreated(manifest=manifest))
    frontier, number, depth = ["n0000"], 0, 0
    while number < evaluations:
        depth += 1
        queued = []
        for parent in frontier:
            for _ in range(min(each, evaluations - number)):
                number += 1
                queued.append((number, parent))
        store.record(*(_queued(one, parent, depth) for one, parent in queued))
        store.record(*(ev.Started(eval_id=f"e{one:06d}", attempt=1) for one, _ in queued))
        store.record(*(making.finished(one) for one, _ in queued))
        frontier = _decide(store, queued, depth, last=number >= evaluations)
    store.snapshot()
    store.close()
    lease.release()


def _queued(number: int, parent: str, depth: int) -> ev.Queued:
    event = making.queued(number, depth)
    event.parent_node_id = parent
    return event


def _decide(store: RunStore, queued: list[tuple[int, str]], depth: int, last: bool) -> list[str]:
    manifest = store.manifest
    nodes = []
    for number, parent in queued[-10:]:
        evaluation = manifest.evaluations[f"e{number:06d}"]
        node = making.manifest().nodes["n0000"]
        node.node_id = f"n{len(manifest.nodes) + len(nodes):04d}"
        node.parent_node_id, node.depth = parent, depth
        node.idea_chain = [evaluation.idea_path]
        node.root_relative = node.parent_relative = evaluation.root_relative
        node.artifacts = NodeArtifacts(promoted_from_eval_id=evaluation.eval_id)
        nodes.append(node)
    promoted = {node.artifacts.promoted_from_eval_id: node.node_id for node in nodes}
    decisions = {}
    for number, _ in queued:
        key = f"e{number:06d}"
        fate = "promoted" if key in promoted else "gate_failed"
        gate = GateDecision(fate == "promoted", ["insufficient_signal"])
        decisions[key] = Decision(fate, gate, 1, promoted.get(key))
    frontier = [node.node_id for node in nodes]
    stop = "max_total_idea_evals" if last else None
    store.record(ev.Decided(depth=depth, decisions=decisions, nodes=nodes, frontier=frontier,
                            stop_reason=stop))  # fmt: skip
    return frontier
