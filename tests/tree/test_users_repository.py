"""A run works in any kind of user repository and changes none of the user's files and refs in
it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.readonly import bound_by_permissions
from tests.toy import ToyRepository
from treewright.tree.repository import git as git_module
from treewright.tree.repository.excluding import hide_from_status
from treewright.tree.repository.git import GitError, git
from treewright.tree.repository.staging import stage_all
from treewright.tree.repository.worktrees import Worktrees, resolve

BRANCH = "treewright/run/cand/e1"


def worktrees_of(repo: Path) -> Worktrees:
    hide_from_status(repo, ".treewright")
    return Worktrees(repo, repo / ".treewright/tree_runs/run", "run")


def live(trees: Worktrees, name: str, parent: str) -> str:
    """Create, commit and prepare a candidate for its sweep; return its commit."""
    path = trees.add_candidate(name, parent)
    (path / "params.txt").write_text(f"A {name}\n")
    staged = stage_all(path)
    assert staged.paths == ["params.txt"]
    made = trees.commit_candidate(name, "x", 1_700_000_000, staged, parent)
    (path / "left").write_text("by the tests")
    trees.pristine_candidate(name, made.commit)
    assert not (path / "left").exists()
    assert (path / "params.txt").read_text() == f"A {name}\n"
    assert git(path, "status", "--porcelain", "--ignored") == ""
    assert resolve(path, "HEAD") == made
    return made.commit


@pytest.mark.parametrize("where", ["main checkout", "another worktree", "a packed one"])
def test_a_branch_that_the_user_has_checked_out_is_never_moved(
    toy: ToyRepository, tmp_path: Path, where: str
) -> None:
    """The branch has a candidate's name, for instance because its worktree was removed by hand."""
    before = toy.git("rev-parse", "HEAD").strip()
    if where == "another worktree":
        toy.git("worktree", "add", "-q", "-b", BRANCH, str(tmp_path / "mine"))
    else:
        toy.git("switch", "-q", "-c", BRANCH)
    theirs = ToyRepository(tmp_path / "mine" if where == "another worktree" else toy.path)
    theirs.write("mine.txt", "my work\n")
    mine = theirs.commit("my work")
    if where == "a packed one":
        toy.git("pack-refs", "--all")
    trees = worktrees_of(toy.path)
    for attempt in (trees.add_candidate, trees.pristine_candidate):
        with pytest.raises(GitError):
            attempt("e1", before)
    trees.repair({}, [])
    trees.remove_candidate("e1")
    trees.remove_candidates(["e1"])
    assert theirs.git("rev-parse", "HEAD", BRANCH).split() == [mine, mine]
    assert theirs.git("status", "--porcelain") == ""
    assert (theirs.path / "mine.txt").read_text() == "my work\n"


def test_a_nodes_branch_that_the_user_has_checked_out_is_never_moved(toy: ToyRepository) -> None:
    root = toy.git("rev-parse", "HEAD").strip()
    trees = worktrees_of(toy.path)
    trees.add_node("n0000", root)
    toy.git("worktree", "remove", "--force", str(trees.node_path("n0000")))
    toy.git("switch", "-q", "treewright/run/node/n0000")
    mine = toy.commit("my work")
    with pytest.raises(GitError):
        trees.repair({"n0000": root}, [])
    assert toy.git("rev-parse", "HEAD").strip() == mine


KINDS = (
    *("plain", "packed", "worktree", "submodule", "link", "separate", "sha256", "shallow"),
    *("with a submodule", "bare", "own settings", "shared"),
)


def repository(toy: ToyRepository, place: Path, kind: str) -> Path:
    """Return the checkout of a repository of that kind with the files of `toy`."""
    allowed = ("-c", "protocol.file.allow=always")
    if kind == "packed":
        toy.git("gc", "-q")
        toy.git("pack-refs", "--all")
    elif kind == "worktree":
        toy.git("worktree", "add", "-q", "-b", "mine", str(place))
    elif kind == "submodule":
        around = ToyRepository.create(place)
        around.git(*allowed, "submodule", "--quiet", "add", str(toy.path), "part")
        return place / "part"
    elif kind == "link":
        place.symlink_to(toy.path)
    elif kind == "separate":
        toy.git("init", "-q", "--separate-git-dir", str(place))
        return toy.path
    elif kind == "sha256":
        place.mkdir()
        other = ToyRepository(place)
        other.git("init", "-q", "--object-format=sha256")
        other.write("params.txt", (toy.path / "params.txt").read_text())
        other.commit()
    elif kind == "shallow":
        toy.commit("second")
        toy.git("clone", "-q", "--depth", "1", f"file://{toy.path}", str(place))
    elif kind == "with a submodule":
        other = ToyRepository.create(place)
        toy.git(*allowed, "submodule", "--quiet", "add", str(other.path), "part")
        toy.commit("a submodule")
        return toy.path
    elif kind == "bare":
        toy.git("clone", "-q", "--bare", str(toy.path), f"{place}.git")
        git(Path(f"{place}.git"), "worktree", "add", "-q", str(place), "main")
    elif kind == "own settings":
        toy.git("config", "extensions.worktreeConfig", "true")
        toy.git("config", "--worktree", "core.abbrev", "12")
    else:
        toy.git("config", "core.sharedRepository", "group")
    return place if place.exists() else toy.path


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_works_in_every_kind_of_repository(
    toy: ToyRepository, tmp_path: Path, kind: str
) -> None:
    repo = repository(toy, tmp_path / "other place", kind)
    head = git(repo, "rev-parse", "HEAD").strip()
    listed = git(repo, "worktree", "list")
    trees = worktrees_of(repo)
    commit = live(trees, "e1", head)
    trees.add_node("n0001", commit)
    child = live(trees, "e2", commit)
    trees.repair({"n0001": commit}, ["e2"])
    assert (trees.candidate_path("e1").exists(), trees.candidate_path("e2").exists()) == (0, 1)
    assert git(repo, "rev-parse", f"{child}^").strip() == commit
    trees.remove_candidate("e2")
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/heads/treewright").split() == [
        "refs/heads/treewright/run/node/n0001"
    ]
    git(repo, "worktree", "remove", "--force", str(trees.node_path("n0001")))
    assert git(repo, "worktree", "list") == listed
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    assert git(repo, "status", "--porcelain") == ""


def test_files_of_a_shared_repository_keep_gits_group_permissions(
    toy: ToyRepository, tmp_path: Path
) -> None:
    toy.git("config", "core.sharedRepository", "group")
    path = worktrees_of(toy.path).add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    toy.git("worktree", "add", "-q", "-b", "mine/e1", str(tmp_path / "mine"))

    def modes(worktree: Path, branch: str) -> list[str]:
        record = Path(git(worktree, "rev-parse", "--absolute-git-dir").strip())
        ref = toy.path / ".git/refs/heads" / branch
        made = (record, record / "HEAD", record / "gitdir", record / "index", ref, ref.parent)
        return [oct(each.stat().st_mode) for each in made]

    assert modes(path, BRANCH) == modes(tmp_path / "mine", "mine/e1")


AS_A_USER = """
import sys
from pathlib import Path
from treewright.kernel.errors import TreewrightError
from treewright.tree.repository.worktrees import Worktrees
repo, commit = sys.argv[1:]
trees = Worktrees(Path(repo), Path(repo) / ".treewright/tree_runs/run", "run")
for attempt in (
    lambda: trees.add_candidate("e1", commit),
    lambda: trees.pristine_candidate("e1", commit),
    lambda: trees.repair({"n0000": commit}, []),
    lambda: trees.remove_candidate("e1"),
    lambda: trees.remove_candidates(["e1"]),
):
    try:
        attempt()
    except TreewrightError as error:
        assert "\\n" not in str(error), error
"""


@pytest.mark.parametrize("mode", [0o000, 0o555, 0o311])
@pytest.mark.parametrize("present", [True, False])
def test_unreadable_or_read_only_git_records_are_a_one_line_error(
    toy: ToyRepository, tmp_path: Path, mode: int, present: bool
) -> None:
    head = toy.git("rev-parse", "HEAD").strip()
    toy.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))
    if present:
        worktrees_of(toy.path).add_candidate("e1", head)
    records = toy.path / ".git/worktrees"
    records.chmod(mode)
    try:
        command = [sys.executable, "-c", AS_A_USER, str(toy.path), head]
        done = subprocess.run(
            bound_by_permissions(command), check=False, capture_output=True, text=True
        )
    finally:
        records.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "mine" / "params.txt").exists()
    assert str(tmp_path / "mine") in toy.git("worktree", "list")


def test_a_conflicting_branch_name_is_reported_before_any_command_runs(
    toy: ToyRepository, treewright
) -> None:
    toy.write("sweep.sh", f"touch '{toy.path.parent}/it ran'\nexit 1\n")
    toy.commit("a sweep that leaves a mark")
    toy.git("branch", "treewright")
    done = treewright("tree", "--repo", str(toy.path), "--tree-run-id", "run", "--until-done")
    assert done.returncode != 0
    said = done.stderr.strip().splitlines()[-1]
    assert "refs/heads/treewright" in said, said
    assert not (toy.path.parent / "it ran").exists()
    assert toy.git("worktree", "list").count("\n") == 1


THEIRS = (
    ("worktree", "prune", "--expire", "now"),
    ("pack-refs", "--all"),
    ("worktree", "add", "-q", "--detach", "../e1"),  # a name that a candidate has too
    ("worktree", "remove", "--force", "../e1"),
)


@pytest.mark.parametrize("together", [THEIRS[:1], THEIRS[1:2], THEIRS[2:], THEIRS])
def test_the_user_may_run_git_between_two_git_commands_of_the_search(
    toy: ToyRepository, together: tuple[tuple[str, ...], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = toy.git("rev-parse", "HEAD").strip()
    trees = worktrees_of(toy.path)
    trees.add_node("n0000", head)
    real = subprocess.run

    def run(command: list[str], **options):
        for theirs in together if command[0] == "git" else ():
            real(["git", *theirs], cwd=toy.path, check=True, capture_output=True)
        return real(command, **options)

    monkeypatch.setattr(git_module.subprocess, "run", run)
    commits = [live(trees, name, head) for name in ("e1", "e2", "e3")]
    assert len(set(commits)) == 3
    trees.add_node("n0001", commits[0])
    trees.remove_candidate("e1")
    trees.remove_candidates(["e2"])
    trees.repair({"n0000": head, "n0001": commits[0]}, [])
    monkeypatch.undo()
    assert toy.git("worktree", "list").count("\n") == 3
    assert toy.git("fsck", "--strict", "--no-dangling") == ""
    assert toy.git("status", "--porcelain") == ""
    assert toy.git("branch", "--list", "treewright/run/cand/*") == ""


def test_the_user_may_add_and_remove_worktrees_during_a_search(toy: ToyRepository) -> None:
    head = toy.git("rev-parse", "HEAD").strip()
    trees = worktrees_of(toy.path)
    trees.add_node("n0000", head)
    failed: list[str] = []
    over = threading.Event()

    def user() -> None:
        while not over.is_set():
            for theirs in THEIRS[1:]:
                while problem := attempt(*theirs):
                    # Git reads a record of a worktree and then looks for its directory. A
                    # process that removes it in between, even git, makes the command fail.
                    if "Invalid path" not in problem:
                        failed.append(f"{theirs}: {problem}")
                        break

    def attempt(*theirs: str) -> str:
        command = ["git", *theirs]
        done = subprocess.run(command, cwd=toy.path, check=False, capture_output=True, text=True)
        return done.stderr if done.returncode != 0 else ""

    thread = threading.Thread(target=user)
    thread.start()
    try:
        for _ in range(8):
            assert live(trees, "e1", head) != live(trees, "e2", head)
            trees.remove_candidate("e1")
            trees.remove_candidates(["e2"])
    finally:
        over.set()
        thread.join()
    assert failed == []
    trees.repair({"n0000": head}, [])
    assert toy.git("worktree", "list").count("\n") == 2
    assert toy.git("fsck", "--strict", "--no-dangling") == ""
    assert toy.git("status", "--porcelain") == ""
