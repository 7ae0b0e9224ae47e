"""A candidate's life in git, through `Worktrees` and by bare commands."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.measure import Row, Table, medians, seconds, take_turns
from treewright.tree.repository.staging import stage_all
from treewright.tree.repository.worktrees import Worktrees

_FILES = 1_000
_IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")


def worktrees(quick: bool) -> Table:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        repo = _repository(Path(name) / "repo")
        run_dir = Path(name) / "run"
        ours = Worktrees(repo, run_dir, "bench")
        commit = _git(repo, "rev-parse", "HEAD").strip()
        numbers = iter(range(1_000_000))
        taken = medians(
            take_turns(
                {
                    "bare": lambda: _bare(repo, run_dir, f"b{next(numbers)}", commit),
                    "same": lambda: _same(repo, run_dir, f"s{next(numbers)}", commit),
                    "ours": lambda: _ours(ours, f"o{next(numbers)}", commit),
                },
                turns=5 if quick else 15,
            )
        )
    bare, same, mine = (1000 * taken[name] for name in ("bare", "same", "ours"))
    return Table(
        "worktrees",
        f"Candidate worktree: create, commit, remove ({_FILES:,} files)",
        [
            Row("git: add, commit, remove (5 commands)", bare, "ms"),
            Row("git: all that treewright does", same, "ms", "bare", same / bare),
            Row("treewright", mine, "ms", "bare", mine / bare, 1.25),
        ],
        "Treewright also lists what changed, reads back the commit's id and writes its files anew, "
        "which is what they are measured by: the second row is git alone doing all of that.",
    )


def _repository(path: Path) -> Path:
    path.mkdir(parents=True)
    _git(path, "init", "-q", "-b", "main")
    for number in range(_FILES):
        file = path / f"d{number // 50:02d}" / f"f{number:04d}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n" * 40)
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "files")
    return path


def _edit(checkout: Path) -> None:
    (checkout / "d00" / "f0000.txt").write_text("changed\n")


def _ours(trees: Worktrees, name: str, commit: str) -> float:
    def life() -> None:
        checkout = trees.add_candidate(name, commit)
        _edit(checkout)
        staged = stage_all(checkout)
        assert staged.changes
        trees.commit_candidate(name, "change", 1_700_000_000, staged, commit)
        trees.remove_candidate(name)

    return seconds(life)


def _bare(repo: Path, run_dir: Path, name: str, commit: str) -> float:
    checkout = run_dir / "cand" / name

    def life() -> None:
        _git(repo, "worktree", "add", "--quiet", "-B", name, str(checkout), commit)
        _edit(checkout)
        _git(checkout, "add", "--all")
        _git(checkout, "commit", "--quiet", "-m", "change")
        _git(repo, "worktree", "remove", "--force", str(checkout))
        _git(repo, "branch", "-D", "--quiet", name)

    return seconds(life)


def _same(repo: Path, run_dir: Path, name: str, commit: str) -> float:
    checkout = run_dir / "cand" / name

    def life() -> None:
        _git(repo, "worktree", "add", "--quiet", "-B", name, str(checkout), commit)
        _edit(checkout)
        _git(checkout, "add", "--all")
        _git(checkout, "diff", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
        _git(checkout, "commit", "--quiet", "--no-verify", "-m", "change")
        _git(checkout, "rev-parse", "HEAD", "HEAD^{tree}")
        pointer = (checkout / ".git").read_bytes()
        shutil.rmtree(checkout)
        checkout.mkdir()
        (checkout / ".git").write_bytes(pointer)
        _git(checkout, "reset", "--hard", "--quiet")
        _git(repo, "worktree", "remove", "--force", "--force", str(checkout))
        _git(repo, "branch", "-D", "--quiet", name)

    return seconds(life)


def _git(cwd: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *_IDENTITY, *args], cwd=cwd, check=True, capture_output=True, text=True
    )
    return done.stdout
