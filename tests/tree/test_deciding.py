"""Candidates cannot reach the files that decide about them: baselines, ideas and old results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.decisions import decisions, events
from tests.toy import ToyRepository, diff_of_line, idea, set_parameter
from tests.tree.runs import search
from tests.tree.test_cheats import new_file
from treewright.kernel.errors import StorageError
from treewright.tree.records import store
from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

SHAPE = {"ideas_per_node": 3, "beam_width": 1, "max_depth": 2, "sweep_config_limit": 8}
WORSE_BASELINE = (
    "for f in ../../artifacts/*.csv; do chmod u+w $f; sed -i -E 's/,ok,[0-9.]+/,ok,900.0/' $f; done"
)


def sweeping_the_code(toy: ToyRepository, name: str = "x.sh") -> None:
    """Make the sweep run a file that a candidate may add, as real sweeps import the code."""
    toy.write("sweep.sh", f"[ ! -f {name} ] || . ./{name}\n" + (toy.path / "sweep.sh").read_text())


def cheat(command: str) -> str:
    return idea("Tidy up", new_file("x.sh", command))


def three_ideas(toy: ToyRepository, first: str) -> None:
    for path in (toy.path / "ideas").glob("*.md"):
        path.unlink()
    toy.write("ideas/00_cheat.md", first)
    toy.write("ideas/01_help.md", set_parameter("A", 2.0))
    toy.write("ideas/02_hurt.md", set_parameter("B", 0.5))
    toy.commit("a cheat among others")


def fate(manifest: Manifest, eval_id: str) -> str:
    decision = manifest.evaluations[eval_id].decision
    assert decision is not None
    return decision.fate


def assert_measured_as_it_is(manifest: Manifest, eval_id: str, gain: float, became: str) -> None:
    evaluation = manifest.evaluations[eval_id]
    assert evaluation.error is None
    for compared in (evaluation.parent_relative, evaluation.root_relative):
        assert compared is not None
        assert compared.primary_gain == pytest.approx(gain)
    assert fate(manifest, eval_id) == became


def assert_other_candidates_unaffected(toy: ToyRepository, manifest: Manifest) -> None:
    """Assert that the other candidates are judged as in a run without the cheat, with the original
    baseline."""
    assert_measured_as_it_is(manifest, "e000002", 1.0, "promoted")
    assert_measured_as_it_is(manifest, "e000003", -0.5, "gate_failed")
    kept = toy.run_dir("run") / "artifacts" / "root_baseline.csv"
    assert kept.read_bytes() == (toy.path / "baseline.csv").read_bytes()
    promoted = {node.artifacts.promoted_from_eval_id for node in manifest.nodes.values()}
    assert "e000001" not in promoted
    assert validate(toy.run_dir("run"), toy.path) == []


@pytest.mark.parametrize("workers", [1, 3])
def test_a_candidate_that_rewrites_the_baseline_is_refused_alone(
    toy: ToyRepository, workers: int
) -> None:
    sweeping_the_code(toy)
    three_ideas(toy, cheat(WORSE_BASELINE))
    request = RunRequest(
        toy.path, "run", shape=Shape(**SHAPE), parallelism=Parallelism(max_evals=workers)
    )
    with open_run(request) as coordinator:
        while coordinator.advance():
            pass
    manifest = store.load(toy.run_dir("run"))
    cheated = manifest.evaluations["e000001"]
    # With several workers another evaluation may find the change and is retried: see below.
    if workers == 1 or cheated.error is not None:
        assert cheated.error is not None
        assert cheated.error.code == "deciding_file_changed"
        assert "artifacts/root_baseline.csv" in cheated.error.message
        assert fate(manifest, "e000001") == "evaluation_failed"
    else:
        assert_measured_as_it_is(manifest, "e000001", 0.0, "gate_failed")
    assert_other_candidates_unaffected(toy, manifest)


def test_a_candidate_that_rewrites_the_baseline_and_fails_is_blamed_itself(
    toy: ToyRepository,
) -> None:
    """Otherwise the next candidate that passes would be blamed for the change."""
    sweeping_the_code(toy)
    three_ideas(toy, cheat(f"{WORSE_BASELINE}; exit 1"))
    with open_run(RunRequest(toy.path, "run", shape=Shape(**SHAPE))) as coordinator:
        while coordinator.advance():
            pass
    manifest = store.load(toy.run_dir("run"))
    cheated = manifest.evaluations["e000001"]
    assert cheated.error is not None
    assert cheated.error.code == "deciding_file_changed"
    assert_other_candidates_unaffected(toy, manifest)


def test_a_cheat_that_another_evaluation_finds_is_measured_by_the_original_baseline(
    toy: ToyRepository,
) -> None:
    """The other evaluations are held until the baseline is rewritten, and the cheat until one of
    them has found the change and was requeued: the change cannot be attributed, and no candidate
    gains by it."""
    wait = "until {}; do sleep 0.02; done"
    noticed = wait.format("grep -q deciding_file_changed ../../events.jsonl")
    three_ideas(toy, cheat(f"{WORSE_BASELINE}; touch ../../cheated; {noticed}"))
    held = f"[ -f x.sh ] || {wait.format('test -e ../../cheated')}\n"
    toy.write("sweep.sh", held + (toy.path / "sweep.sh").read_text())
    sweeping_the_code(toy)
    toy.commit("a gate")
    three = Parallelism(max_evals=3)
    request = RunRequest(toy.path, "run", shape=Shape(**SHAPE), parallelism=three, preflight=False)
    with open_run(request) as coordinator:
        while coordinator.advance():
            pass
    manifest = store.load(toy.run_dir("run"))
    sent_back = {
        event["eval_id"]
        for event in events(toy.run_dir("run"))
        if event["type"] == "requeued" and event["reason"] == "deciding_file_changed"
    }
    assert sent_back
    assert sent_back <= {"e000002", "e000003"}
    assert_measured_as_it_is(manifest, "e000001", 0.0, "gate_failed")
    assert_other_candidates_unaffected(toy, manifest)


def test_a_baseline_changed_between_invocations_is_restored_from_the_repository(
    toy: ToyRepository,
) -> None:
    with open_run(RunRequest(toy.path, "run", shape=Shape(**SHAPE))) as coordinator:
        coordinator.advance()
    kept = toy.run_dir("run") / "artifacts"
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    promoted = store.load(toy.run_dir("run")).nodes["n0001"].baseline_results_csv_path
    for path in (kept / "root_baseline.csv", toy.run_dir("run") / promoted):
        path.chmod(0o644)
        path.write_text("config_id,status,loss,cost\n0,ok,900.0,1.0\n")
    (kept / "root_baseline.csv").unlink()
    (kept / "root_baseline.csv").mkdir()
    toy.git("gc", "--quiet", "--prune=now")
    with open_run(RunRequest(toy.path, "run")) as coordinator:
        coordinator.advance()
    assert {name: (kept / name).read_bytes() for name in before} == before
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_changed_baseline_without_a_copy_is_a_one_line_error(toy: ToyRepository) -> None:
    with open_run(RunRequest(toy.path, "run", shape=Shape(**SHAPE))) as coordinator:
        coordinator.advance()
    baseline = toy.run_dir("run") / "artifacts" / "root_baseline.csv"
    baseline.chmod(0o644)
    baseline.write_text("config_id,status,loss,cost\n")
    refs = toy.git("for-each-ref", "--format=delete %(refname)", "refs/treewright/")
    subprocess.run(
        ["git", "update-ref", "--stdin"], cwd=toy.path, input=refs, text=True, check=True
    )
    with (
        pytest.raises(StorageError, match="is not the file that was recorded") as raised,
        open_run(RunRequest(toy.path, "run")),
    ):
        pass
    assert "\n" not in str(raised.value)


def test_decision_files_are_read_only(toy: ToyRepository) -> None:
    run_dir = search(toy.path, **SHAPE)
    modes = {path.stat().st_mode & 0o222 for path in (run_dir / "artifacts").iterdir()}
    assert modes == {0}


def test_code_that_rewrites_later_ideas_has_no_effect(toy: ToyRepository, tmp_path: Path) -> None:
    sweeping_the_code(toy)
    three_ideas(toy, cheat("for f in ../../node_ideas/n0000/*.md; do echo nothing > $f; done"))
    with open_run(RunRequest(toy.path, "run", shape=Shape(**SHAPE))) as coordinator:
        coordinator.advance()
    manifest = store.load(toy.run_dir("run"))
    assert manifest.evaluations["e000002"].error is None
    assert manifest.evaluations["e000002"].decision.fate == "promoted"  # pyright: ignore


def test_a_cheat_in_the_held_out_sweep_is_not_confirmed(toy: ToyRepository, treewright) -> None:
    sweeping_the_code(toy)
    only = f'[ "$TREEWRIGHT_SWEEP_CONFIG_START" = 0 ] || {{ {WORSE_BASELINE}; }}'
    patch = new_file("x.sh", only) + diff_of_line("params.txt", "A 1.0", "A 2.0", 1)
    three_ideas(toy, idea("Better, at first", patch))
    done = treewright(
        "tree", "--tree-run-id", "run", "--ideas-per-node", "1", "--max-depth", "1",
        "--sweep-config-limit", "8", "--confirm-configs", "4", "--repo", str(toy.path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = json.loads((toy.run_dir("run") / "manifest.json").read_text())
    evaluation = manifest["evaluations"]["e000001"]
    assert evaluation["decision"]["fate"] == "not_confirmed"
    assert evaluation["confirmation"]["reasons"] == ["deciding_file_changed"]
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_cheat_does_not_change_the_decisions_about_other_candidates(toy: ToyRepository) -> None:
    """The context of an honest candidate does not depend on the other candidates."""
    sweeping_the_code(toy)
    three_ideas(toy, cheat(WORSE_BASELINE))
    cheated = decisions(search(toy.path, **SHAPE))
    gains = cheated["evaluations"]["e000002"]["root_relative"]
    assert gains["primary_gain"] == pytest.approx(1.0)
