"""Damaged files, full disks, read-only directories, lost commits: a one-line error, and no lost
work."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.decisions import decisions, repeated_evaluations
from tests.faults.running import (
    RUN,
    SHAPE,
    Gate,
    Search,
    add_gate,
    copy_of,
    finish,
    nothing_runs,
    one_line,
    search,
)
from tests.readonly import read_only
from tests.toy import ToyRepository

pytestmark = pytest.mark.xdist_group("storage")
DRY = (
    "--ideas-per-node", "4", "--beam-width", "2", "--max-depth", "2", "--sweep-config-limit", "6",
    "--dry-run",
)  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> ToyRepository:
    toy = ToyRepository.create(tmp_path_factory.mktemp("template") / "repo")
    add_gate(toy)
    return toy


@pytest.fixture(scope="module")
def expected(template: ToyRepository, tmp_path_factory) -> dict[str, dict]:
    """Return the decisions of undisturbed runs, dry and real."""
    found = {}
    for name, shape in (("dry", DRY), ("real", SHAPE)):
        toy = copy_of(template, tmp_path_factory.mktemp(name) / "repo")
        finish(toy, *shape)
        found[name] = decisions(toy.run_dir(RUN))
    return found


@pytest.fixture(scope="module")
def halfway(template: ToyRepository, tmp_path_factory) -> ToyRepository:
    """Return a dry run that has finished the first of two depths."""
    toy = copy_of(template, tmp_path_factory.mktemp("half") / "repo")
    search(toy, *DRY)
    return toy


@pytest.fixture
def half_dry(halfway: ToyRepository, tmp_path: Path) -> ToyRepository:
    return copy_of(halfway, tmp_path / "target repo")


@pytest.fixture
def half_real(template: ToyRepository, tmp_path: Path) -> ToyRepository:
    """Return a real run in the same state; not a copy, because git records absolute paths of
    worktrees."""
    toy = copy_of(template, tmp_path / "target repo")
    search(toy, *SHAPE)
    return toy


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "garbage"])
def test_a_lost_manifest_is_rebuilt(half_dry: ToyRepository, expected, damage: str) -> None:
    path = half_dry.run_dir(RUN) / "manifest.json"
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "truncated": data[: len(data) // 2]}.get(damage, b"\0\xff"))
    finish(half_dry)
    assert decisions(half_dry.run_dir(RUN)) == expected["dry"]
    assert repeated_evaluations(half_dry.run_dir(RUN)) == []


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        (b'"format_version": 1', b'"format_version": 7', 2, "has format_version 7"),
        (b'"beam_width": 2', b'"beam_width": 4', 1, "was edited by hand or damaged"),
    ],
)
def test_a_changed_manifest_is_refused(half_dry, expected, old, new, code, words) -> None:
    path = half_dry.run_dir(RUN) / "manifest.json"
    data = path.read_bytes()
    path.write_bytes(data.replace(old, new, 1))
    for flags in ((), ("--report-only",)):
        done = search(half_dry, *flags, code=code)
        assert words in one_line(done.err)
        assert done.out == ""
    assert path.read_bytes() == data.replace(old, new, 1), "nothing was overwritten"
    path.unlink() if code == 1 else path.write_bytes(data)
    finish(half_dry)
    assert decisions(half_dry.run_dir(RUN)) == expected["dry"]


def test_a_damaged_history_is_refused_with_its_position(half_dry: ToyRepository) -> None:
    run_dir = half_dry.run_dir(RUN)
    (run_dir / "manifest.json").unlink()
    lines = (run_dir / "events.jsonl").read_bytes().split(b"\n")
    lines[3] = lines[3][:40]
    (run_dir / "events.jsonl").write_bytes(b"\n".join(lines))
    said = one_line(search(half_dry, code=1).err)
    assert "damaged before byte" in said
    assert "events.jsonl" in said


@pytest.mark.parametrize("limit", [300, 3_000, 9_000, 16_000])
def test_a_write_that_fails_anywhere_loses_nothing(
    template: ToyRepository, expected, tmp_path: Path, limit: int
) -> None:
    """A limit on file size makes writes fail as a full disk would."""
    toy = copy_of(template, tmp_path / "target repo")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    # Python would also truncate the modules that it compiles, for every later process.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = search(toy, *DRY, "--until-done", code=1, preexec_fn=small_files, env=env)
    assert "cannot write" in one_line(done.err) or "File too large" in done.err
    finish(toy, *DRY)
    assert decisions(toy.run_dir(RUN)) == expected["dry"]
    assert repeated_evaluations(toy.run_dir(RUN)) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root; CI has it")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_run_continues_after_its_disk_was_full(
    template: ToyRepository, expected, tmp_path: Path, small_disk: Path
) -> None:
    toy = copy_of(template, small_disk / "target repo")
    gate = Gate(tmp_path / "gate")
    first = Search(toy, *SHAPE, "--until-done", env=gate.environment)
    gate.wait()
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    gate.open()
    assert first.end() == 1
    assert "no space left" in one_line(first.err).lower()
    assert nothing_runs(toy)
    again = search(toy, "--until-done", code=1)
    assert "no space left" in one_line(again.err).lower()
    ballast.unlink()
    finish(toy)
    assert decisions(toy.run_dir(RUN)) == expected["real"]
    assert repeated_evaluations(toy.run_dir(RUN)) == []


@pytest.fixture
def sealed(half_dry: ToyRepository) -> Iterator[ToyRepository]:
    """Return a run directory that cannot be written, not even by root."""
    with read_only(half_dry.path / ".treewright"), read_only(half_dry.run_dir(RUN)):
        yield half_dry


def test_a_read_only_run_directory_is_an_error(sealed: ToyRepository) -> None:
    said = one_line(search(sealed, code=2).err)
    assert "not writable" in said
    assert str(sealed.run_dir(RUN)) in said
    assert search(sealed, "--report-only").out, "the report is as it would be written"


def test_a_new_run_in_a_read_only_repository_is_an_error(sealed: ToyRepository) -> None:
    command = [sys.executable, "-m", "treewright", "tree", "--dry-run", "--tree-run-id", "other",
               "--repo", str(sealed.path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    one_line(done.stderr)


def test_a_missing_promoted_commit_is_an_error(half_real, tmp_path: Path, expected) -> None:
    toy = half_real
    manifest = json.loads((toy.run_dir(RUN) / "manifest.json").read_text())
    commit = manifest["nodes"]["n0001"]["commit"]
    kept = shutil.copytree(toy.path / ".git", tmp_path / "backup")
    shutil.rmtree(toy.run_dir(RUN) / "wt")
    toy.git("worktree", "prune")
    toy.git("update-ref", "-d", f"refs/heads/treewright/{RUN}/node/n0001")
    toy.git("reflog", "expire", "--expire=now", "--all")
    toy.git("gc", "-q", "--prune=now")
    before = (toy.run_dir(RUN) / "events.jsonl").read_text().count("failed")
    said = one_line(search(toy, "--until-done", code=1).err)
    assert f"commit {commit[:12]} of node n0001 is not in" in said
    assert (toy.run_dir(RUN) / "events.jsonl").read_text().count("failed") == before
    toy.git("fetch", "-q", str(kept), f"refs/heads/treewright/{RUN}/node/n0001")
    finish(toy)
    assert decisions(toy.run_dir(RUN)) == expected["real"]


def test_objects_that_vanish_under_a_ref_stop_the_run(half_real: ToyRepository) -> None:
    toy = half_real
    manifest = json.loads((toy.run_dir(RUN) / "manifest.json").read_text())
    tree = manifest["nodes"]["n0001"]["tree"]
    (toy.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    before = dict(manifest["evaluations"])
    assert "git" in one_line(search(toy, "--until-done", code=1).err)
    after = json.loads((toy.run_dir(RUN) / "manifest.json").read_text())["evaluations"]
    assert {name: after[name]["status"] for name in before} == {
        name: before[name]["status"] for name in before
    }
    assert all(after[name]["status"] != "failed" for name in set(after) - set(before))
