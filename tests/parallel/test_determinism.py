"""Every executor, number of workers, order of results and series of faults gives the same tree.

"Same" means every byte of the decisions: the manifest without clocks, worker names and attempts,
but with commit hashes."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.decisions import decisions, repeated_evaluations
from tests.parallel.harness import DRY, REAL, REAL_FLAGS, Shuffled, search
from tests.toy import ToyRepository
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism

pytestmark = pytest.mark.xdist_group("local-cluster")
PATIENT = FailureRules(retries=2, retried="faults", first_backoff_seconds=0.0)
SHAPES = {
    "wide": DRY,
    "deep": replace(DRY, ideas_per_node=3, beam_width=2, max_depth=3),
    "confirmed": replace(DRY, ideas_per_node=4, confirm_configs=4, max_total_idea_evals=11),
}
numbers = itertools.count()


def as_bytes(run_dir: Path) -> bytes:
    found = decisions(run_dir)
    found.pop("tree_run_id")
    text = json.dumps(found, indent=1).replace(run_dir.name, "RUN")
    return text.encode()


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> ToyRepository:
    return ToyRepository.create(tmp_path_factory.mktemp("determinism") / "target repo")


@pytest.fixture(scope="module")
def serial(repository: ToyRepository) -> dict[str, bytes]:
    """Return the decisions of the default, one evaluation after the other."""
    shapes = {**SHAPES, "real": REAL}
    return {name: as_bytes(search(repository.path, name, shape)) for name, shape in shapes.items()}


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    seed=st.integers(0, 2**32),
    capacity=st.sampled_from([1, 2, 3, 8, 50]),
    faults=st.sampled_from([0.0, 0.3, 0.8]),
    per_node=st.none() | st.integers(1, 2),
)
def test_the_order_of_completion_and_faults_change_no_decision(
    repository, serial, shape, seed, capacity, faults, per_node
):
    made: list[Shuffled] = []

    def make(work):
        made.append(Shuffled(work, seed, capacity, faults))
        return made[-1]

    policy = FailureRules(
        retries=2, retried="faults", first_backoff_seconds=0.0, max_per_node=per_node
    )
    run_dir = search(
        repository.path, f"x{next(numbers)}", SHAPES[shape], make_executor=make, policy=policy
    )
    assert as_bytes(run_dir) == serial[shape]
    assert repeated_evaluations(run_dir) == []
    if per_node is None and capacity == 3:
        assert any(executor.most_under_way == 3 for executor in made)


@pytest.mark.parametrize("seed", range(3))
def test_real_evaluations_in_random_order_with_faults_give_the_same_tree(repository, serial, seed):
    run_dir = search(
        repository.path,
        f"real-{seed}",
        REAL,
        make_executor=lambda work: Shuffled(work, seed, 4, 0.4),
        policy=PATIENT,
    )
    assert as_bytes(run_dir) == serial["real"]
    assert repeated_evaluations(run_dir) == []


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_real_evaluations_in_threads_give_the_same_tree(repository, serial, workers):
    run_dir = search(repository.path, f"threads-{workers}", REAL, parallelism=Parallelism(workers))
    assert as_bytes(run_dir) == serial["real"]


def test_a_local_cluster_gives_the_same_tree(repository, serial, treewright):
    done = treewright(
        "tree", *REAL_FLAGS, "--tree-run-id", "local-dask", "--repo", str(repository.path),
        "--parallel-backend", "dask", "--max-parallel-evals", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert as_bytes(repository.run_dir("local-dask")) == serial["real"]
    assert not (repository.run_dir("local-dask") / "cluster").exists()


def test_the_comparison_detects_a_different_tree(repository, serial):
    other = search(repository.path, "other", replace(DRY, beam_width=2))
    assert as_bytes(other) != serial["wide"]
    for name, found in serial.items():
        manifest = json.loads(found)
        assert len(manifest["nodes"]) >= 4, f"{name} decides too little to prove anything"
        assert manifest["current_depth"] >= 2
