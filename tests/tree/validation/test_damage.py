"""A sound run gives no finding; each kind of damage gives its own finding."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.toy import ToyRepository
from tests.tree.runs import FinishedRun
from treewright.tree.records.model import Evaluation, GateDecision, Manifest
from treewright.tree.validation import validate, write_report

REAL = {
    "ideas_per_node": 4,
    "beam_width": 2,
    "max_depth": 2,
    "sweep_config_limit": 8,
    "confirm_configs": 4,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return FinishedRun.make(tmp_path_factory.mktemp("real"), **REAL)


@pytest.fixture
def run(finished: FinishedRun) -> FinishedRun:
    finished.restore()
    return finished


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def first_rejected(manifest: Manifest) -> Evaluation:
    return next(
        e
        for e in manifest.evaluations.values()
        if e.decision is not None and e.decision.fate == "gate_failed"
    )


def results_of(run: FinishedRun, eval_id: str) -> Path:
    return run.run_dir / f"artifacts/{eval_id}_results.csv"


def swap_artifacts(run: FinishedRun) -> None:
    one, two = results_of(run, "e000001"), results_of(run, "e000003")
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)


def forge_csv(run: FinishedRun) -> None:
    """Write a better number into a CSV and adapt the digests in the records."""
    from treewright.kernel.storage.artifacts import sha256_file

    path = results_of(run, "e000001")
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([cells[0], cells[1], "1.000000", cells[3]])
    path.write_text("\n".join(lines) + "\n")
    digest, size = sha256_file(path), path.stat().st_size

    def change(manifest: Manifest) -> None:
        evaluation = manifest.evaluations["e000001"]
        assert evaluation.results_csv is not None
        kept = msgspec.structs.replace(evaluation.results_csv, sha256=digest, bytes=size)
        evaluation.results_csv = kept
        for node in manifest.nodes.values():
            if node.artifacts.promoted_from_eval_id == "e000001":
                node.artifacts.baseline = kept

    run.rewrite_history(change)


def forge_score(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        evaluation = manifest.evaluations["e000001"]
        assert evaluation.root_relative is not None
        evaluation.root_relative = msgspec.structs.replace(evaluation.root_relative, score=0.9)

    run.rewrite_history(change)


def forge_promotion(run: FinishedRun) -> None:
    """Record a candidate that fails the gate as promoted instead of another one."""

    def change(manifest: Manifest) -> None:
        rejected, winner = first_rejected(manifest), manifest.evaluations[run.promoted()]
        rejected.decision, winner.decision = winner.decision, rejected.decision
        manifest.nodes["n0001"].artifacts.promoted_from_eval_id = rejected.eval_id

    run.rewrite_history(change)


def forge_confirmation(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        evaluation = manifest.evaluations[run.promoted()]
        assert evaluation.confirmation is not None
        evaluation.confirmation = msgspec.structs.replace(evaluation.confirmation, shrinkage=-1.0)

    run.rewrite_history(change)


def drop_confirmation(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        manifest.evaluations[run.promoted()].confirmation = None

    run.rewrite_history(change)


def in_worktree(run: FinishedRun) -> ToyRepository:
    return ToyRepository(run.run_dir / "wt/n0001")


def commit_elsewhere(run: FinishedRun) -> None:
    """Replace a node's commit with one that changes a protected file."""
    checkout = in_worktree(run)
    checkout.write("sweep.sh", "true\n")
    commit = checkout.commit("cheat")
    tree = checkout.git("rev-parse", "HEAD^{tree}").strip()

    def change(manifest: Manifest) -> None:
        node = manifest.nodes["n0001"]
        node.commit, node.tree = commit, tree
        evaluation = manifest.evaluations[run.promoted()]
        evaluation.candidate_commit, evaluation.candidate_tree = commit, tree

    run.rewrite_history(change)


def orphan_commit(run: FinishedRun) -> None:
    tree = run.manifest.nodes["n0001"].tree
    commit = run.toy.git("commit-tree", "-m", "no parent", tree).strip()
    run.toy.git("update-ref", "refs/heads/treewright/run/node/n0001", commit)

    def change(manifest: Manifest) -> None:
        manifest.nodes["n0001"].commit = commit
        manifest.evaluations[run.promoted()].candidate_commit = commit

    run.rewrite_history(change)


def remove_commit(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        manifest.nodes["n0001"].commit = "1" * 40

    run.rewrite_history(change)


def edit_node(field: str, value: object) -> Callable[[FinishedRun], None]:
    return lambda run: run.rewrite_history(lambda m: setattr(m.nodes["n0001"], field, value))


def edit_run(field: str, value: object) -> Callable[[FinishedRun], None]:
    return lambda run: run.rewrite_history(lambda m: setattr(m, field, value))


def edit_eval(field: str, value: object) -> Callable[[FinishedRun], None]:
    return lambda run: run.rewrite_history(
        lambda m: setattr(m.evaluations["e000001"], field, value)
    )


def edit_decision(**fields: object) -> Callable[[FinishedRun], None]:
    def change(manifest: Manifest) -> None:
        evaluation = manifest.evaluations["e000001"]
        assert evaluation.decision is not None
        evaluation.decision = msgspec.structs.replace(evaluation.decision, **fields)

    return lambda run: run.rewrite_history(change)


def alter_key(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        ideas = manifest.nodes["n0000"].ideas
        ideas[0] = msgspec.structs.replace(ideas[0], key="0" * 64)

    run.rewrite_history(change)


def misplace_artifact(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        evaluation = manifest.evaluations["e000001"]
        assert evaluation.results_csv is not None
        evaluation.results_csv = msgspec.structs.replace(evaluation.results_csv, path="x.csv")

    run.rewrite_history(change)


def confirm_needlessly(run: FinishedRun) -> None:
    def change(manifest: Manifest) -> None:
        confirmation = manifest.evaluations[run.promoted()].confirmation
        first_rejected(manifest).confirmation = confirmation

    run.rewrite_history(change)


def branch(run: FinishedRun, *arguments: str) -> None:
    run.toy.git("branch", *arguments)


NODE_REF = "refs/heads/treewright/run/node/n0001"

DAMAGE: dict[str, tuple[str, Callable[[FinishedRun], object]]] = {
    "manifest deleted": (
        "manifest_missing",
        lambda run: (run.run_dir / "manifest.json").unlink(),
    ),
    "manifest truncated": (
        "manifest_unreadable",
        lambda run: (run.run_dir / "manifest.json").write_text('{"tree_run_id"'),
    ),
    "manifest of the future": (
        "manifest_version",
        lambda run: replace(
            run.run_dir / "manifest.json", '"format_version": 1', '"format_version": 99'
        ),
    ),
    "manifest edited by hand": (
        "manifest_checksum",
        lambda run: replace(run.run_dir / "manifest.json", '"beam_width": 2', '"beam_width": 3'),
    ),
    "manifest edited with its checksum": (
        "manifest_differs_from_events",
        lambda run: run.rewrite_manifest(lambda m: setattr(m, "beam_width", 3)),
    ),
    "events damaged in the middle": (
        "events_unreadable",
        lambda run: replace(run.run_dir / "events.jsonl", '{"type":"expanded"', '{"type":"'),
    ),
    "a CSV value edited": (
        "artifact_sha256",
        lambda run: replace(results_of(run, "e000001"), "ok,1", "ok,0"),
    ),
    "a CSV grown": (
        "artifact_size",
        lambda run: replace(results_of(run, "e000001"), "7,ok,", "7,ok,0"),
    ),
    "a CSV forged with its digests": ("score_differs", forge_csv),
    "two artifacts swapped": ("artifact_sha256", swap_artifacts),
    "an artifact deleted": (
        "artifact_unreadable",
        lambda run: results_of(run, "e000001").unlink(),
    ),
    "a path that leads outside": ("path_outside_run", edit_eval("experiment_dir", "../elsewhere")),
    "an experiment removed": (
        "path_missing",
        lambda run: shutil.rmtree(run.run_dir / "eval/e000002"),
    ),
    "summary.json deleted": (
        "summary_unreadable",
        lambda run: (run.run_dir / "eval/e000001/experiment/summary.json").unlink(),
    ),
    "summary.json edited": (
        "summary_differs",
        lambda run: replace(
            run.run_dir / "eval/e000001/experiment/summary.json",
            '"grade": "strong"',
            '"grade": "weak"',
        ),
    ),
    "a score forged everywhere": ("score_differs", forge_score),
    "a gate forged": (
        "gate_differs",
        edit_decision(gate=GateDecision(passed=False, reasons=[])),
    ),
    "a rank forged": ("rank_differs", edit_decision(rank=7)),
    "a fate forged": ("fate_differs", edit_decision(fate="beyond_beam")),
    "a failing candidate promoted": ("fate_differs", forge_promotion),
    "a confirmation forged": ("confirmation_differs", forge_confirmation),
    "a confirmation left out": ("confirmation_missing", drop_confirmation),
    "another stop reason": ("stop_reason_differs", edit_run("stop_reason", "empty_frontier")),
    "wrong frontier": ("frontier_differs", edit_run("frontier", ["n0001"])),
    "wrong list of expanded nodes": ("frontier_state", edit_run("expanded", ["n0000"])),
    "wrong status of a node": ("frontier_state", edit_node("status", "frontier")),
    "wrong idea chain": ("idea_chain", edit_node("idea_chain", ["node_ideas/n0000/idea_003.md"])),
    "wrong parent": ("dangling_reference", edit_node("parent_node_id", "n0009")),
    "wrong tree": ("tree_differs", edit_node("tree", "2" * 40)),
    "wrong depth count": ("depth_state", edit_run("current_depth", 1)),
    "unknown status pair": ("evaluation_state", edit_eval("task_state", "queued")),
    "another idea": ("evaluation_idea", edit_eval("idea_sha256", "0" * 64)),
    "evaluations out of order": (
        "ids_not_dense",
        lambda run: run.rewrite_history(lambda m: m.evaluations.pop("e000002")),
    ),
    "budget overrun": ("budget_exceeded", edit_run("max_total_idea_evals", 3)),
    "beam overrun": ("beam_overrun", edit_run("beam_width", 1)),
    "more ideas than allowed": ("expansion", edit_run("ideas_per_node", 1)),
    "another evaluation counted": (
        "spending",
        lambda run: run.rewrite_history(lambda m: setattr(m.spent, "evals", 99)),
    ),
    "an idea removed": (
        "idea_missing",
        lambda run: (run.run_dir / "node_ideas/n0000/idea_000.md").unlink(),
    ),
    "an idea altered": (
        "idea_sha256",
        lambda run: replace(run.run_dir / "node_ideas/n0000/idea_000.md", "A reason", "Another"),
    ),
    "a context snapshot altered": ("context_files", edit_node("context_idea_files", [])),
    "a context directory left out": ("context_dirs", edit_node("context_ideas_dirs", [])),
    "a dedupe key forged": ("idea_key", alter_key),
    "an artifact elsewhere": ("artifact_misplaced", misplace_artifact),
    "a needless confirmation": ("confirmation_needless", confirm_needlessly),
    "a key that is not the id": ("id_mismatch", edit_eval("eval_id", "e000009")),
    "a configuration that is none": ("config_invalid", edit_run("agent_config", {})),
    "a node with another limit": ("node_state", edit_node("sweep_config_limit", 3)),
    "a node with another ref": ("ref_name", edit_node("ref", "refs/heads/main")),
    "a promotion that leads elsewhere": (
        "promotion_link",
        edit_decision(promoted_to_node_id="n0003"),
    ),
    "a promotion to another node": (
        "promotion_differs",
        edit_decision(promoted_to_node_id="n0003"),
    ),
    "more queued than allowed": ("queue_differs", edit_run("max_total_idea_evals", 3)),
    "a ref deleted": ("ref_missing", lambda run: run.toy.git("update-ref", "-d", NODE_REF)),
    "a ref moved": ("ref_moved", lambda run: run.toy.git("update-ref", NODE_REF, "main")),
    "a commit gone": ("commit_missing", remove_commit),
    "a commit without its parent": ("not_descendant", orphan_commit),
    "a protected file changed": ("protected_path_changed", commit_elsewhere),
    "a worktree removed": (
        "worktree_missing",
        lambda run: shutil.rmtree(run.run_dir / "wt/n0001"),
    ),
    "a worktree dirtied": (
        "worktree_dirty",
        lambda run: (run.run_dir / "wt/n0001/params.txt").write_text("A 9\n"),
    ),
    "a worktree moved to another commit": (
        "worktree_commit",
        lambda run: type(run.toy)(run.run_dir / "wt/n0001").git(
            "checkout", "-q", "--detach", "main"
        ),
    ),
    "a stray candidate branch": (
        "stray_branch",
        lambda run: branch(run, "treewright/run/cand/e000001"),
    ),
    "a stray node branch": ("stray_branch", lambda run: branch(run, "treewright/run/node/n0099")),
    "a stray worktree": (
        "stray_worktree",
        lambda run: run.toy.git(
            "worktree", "add", "-q", "--detach", str(run.run_dir / "cand/n0001_heldout")
        ),
    ),
    "a stray directory": (
        "stray_directory",
        lambda run: (run.run_dir / "wt/n0099").mkdir(),
    ),
}


def test_an_untouched_run_has_no_findings(run: FinishedRun) -> None:
    manifest = run.manifest
    fates = {e.decision.fate for e in manifest.evaluations.values() if e.decision}
    assert fates >= {"promoted", "gate_failed", "evaluation_failed"}
    assert len(manifest.nodes) >= 4
    assert validate(run.run_dir, run.toy.path) == []


@pytest.mark.parametrize("name", DAMAGE)
def test_validation_finds_damage(run: FinishedRun, name: str) -> None:
    code, damage = DAMAGE[name]
    damage(run)
    findings = validate(run.run_dir, run.toy.path)
    assert code in {finding.code for finding in findings}, findings
    text = write_report(run.run_dir, findings).read_text()
    assert f"`{code}`" in text
    assert "## What to do" in text


def test_another_repository_is_a_finding(run: FinishedRun, tmp_path: Path) -> None:
    findings = validate(run.run_dir, tmp_path)
    assert {finding.code for finding in findings} == {"git_failed"}
    assert "not completed: git failed" in write_report(run.run_dir, findings).read_text()


def test_findings_come_in_a_fixed_order(run: FinishedRun) -> None:
    swap_artifacts(run)
    forge_score(run)
    (run.run_dir / "wt/n0001/params.txt").write_text("A 9\n")
    findings = validate(run.run_dir, run.toy.path)
    assert len(findings) > 3
    assert validate(run.run_dir, run.toy.path) == findings


def test_only_the_report_is_written(run: FinishedRun) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        return {
            path: (path.lstat().st_mtime_ns, path.lstat().st_size)
            for path in run.toy.path.rglob("*")
            if path.is_file()
        }

    before = files()
    write_report(run.run_dir, validate(run.run_dir, run.toy.path))
    after = files()
    assert {path.name for path in after.keys() - before.keys()} <= {"VALIDATION_REPORT.md"}
    assert {path for path in before if after.get(path) != before[path]} == set()
