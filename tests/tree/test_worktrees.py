"""Worktrees of candidates and nodes: isolated, exact, and removed in time."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.readonly import bound_by_permissions, read_only
from tests.toy import ToyRepository
from tests.tree.runs import search
from tests.waiting import until
from treewright.kernel.errors import UsageError
from treewright.tree.agents.checkout import Checkout
from treewright.tree.guard import protected_files
from treewright.tree.guard.protected_files import find_changed, match_protected
from treewright.tree.records import store
from treewright.tree.repository import objects, worktrees
from treewright.tree.repository.excluding import hide_from_status
from treewright.tree.repository.git import GitError, git, require_clean, try_git
from treewright.tree.repository.private_repository import private_repository, repositories
from treewright.tree.repository.staging import stage_all
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.validation import validate

UTF_7 = "working-tree-encoding=UTF-7"


class Place:
    """A repository with the worktrees of one run."""

    def __init__(self, toy: ToyRepository) -> None:
        self.toy = toy
        hide_from_status(toy.path, ".treewright")
        run_dir = toy.run_dir("run")
        run_dir.mkdir(parents=True)
        self.trees = Worktrees(toy.path, run_dir, "run")
        self.head = toy.git("rev-parse", "HEAD").strip()

    def candidate(self, name: str = "e1") -> Path:
        return self.trees.add_candidate(name, self.head)

    def branches(self) -> set[str]:
        listed = self.toy.git("for-each-ref", "--format=%(refname:short)", "refs/heads")
        return set(listed.split()) - {"main"}

    def listed(self) -> int:
        return len(self.toy.git("worktree", "list").splitlines()) - 1


@pytest.fixture
def place(toy: ToyRepository) -> Place:
    return Place(toy)


def test_a_candidate_is_added_committed_and_removed(place: Place) -> None:
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    (path / "new dir").mkdir()
    (path / "new dir" / "ü file").write_text("x")
    assert sorted(stage_all(path).paths) == ["new dir/ü file", "params.txt"]
    done = place.trees.commit_candidate("e1", "Title\n\n# not a comment\n", 1_700_000_000)
    raw = place.toy.git("cat-file", "commit", done.commit)
    assert f"tree {done.tree}\nparent {place.head}\n" in raw
    assert "author Treewright <treewright@localhost> 1700000000 +0000" in raw
    assert "# not a comment" in raw
    assert place.branches() == {"treewright/run/cand/e1"}
    place.trees.remove_candidate("e1")
    assert (place.branches(), place.listed(), path.exists()) == (set(), 0, False)
    place.trees.remove_candidate("e1")
    assert place.toy.git("status", "--porcelain") == ""


def test_ignored_files_are_removed_before_the_measurement(place: Place) -> None:
    place.toy.write(".gitignore", "*.cache\nbuild/\n")
    place.head = place.toy.commit("ignores")
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    (path / "results.cache").write_text("forged")
    (path / "build").mkdir()
    (path / "build" / "left").write_text("x")
    stage_all(path)
    place.trees.commit_candidate("e1", "x", 1)
    assert not (path / "results.cache").exists()
    assert not (path / "build").exists()
    assert try_git(path, "status", "--porcelain", "--ignored").stdout == ""


def test_content_hidden_by_an_ident_attribute_is_not_measured(place: Place) -> None:
    """Git stores `$Id$` for the file and considers the changed file equal."""
    path = place.candidate()
    (path / ".gitattributes").write_text("params.txt ident\n")
    (path / "params.txt").write_text("A 2.0 $Id: all the answers $\n")
    stage_all(path)
    done = place.trees.commit_candidate("e1", "x", 1)
    assert "answers" not in (path / "params.txt").read_text()
    (path / "params.txt").write_text("A 2.0 $Id: all the answers $\n")
    place.trees.pristine_candidate("e1", done.commit)
    assert "answers" not in (path / "params.txt").read_text()
    assert try_git(path, "status", "--porcelain").stdout == ""


def test_content_converted_by_removed_attributes_is_not_measured(place: Place) -> None:
    """The attributes file is ignored, and so not in the commit; git stores the converted content
    and does not rewrite a file with the recorded size and time."""
    path = place.candidate()
    (path / ".gitignore").write_text(".gitignore\n.gitattributes\n")
    (path / ".gitattributes").write_text("params.txt working-tree-encoding=UTF-7\n")
    (path / "params.txt").write_text("A 9.0\n#+AAo-A 1.0\n")
    os.utime(path / "params.txt", (1.6e9, 1.6e9))
    stage_all(path)
    done = place.trees.commit_candidate("e1", "x", 1)
    recorded = place.toy.git("show", f"{done.commit}:params.txt")
    assert recorded == "A 9.0\n#\nA 1.0\n"
    assert (path / "params.txt").read_text() == recorded
    place.trees.pristine_candidate("e1", done.commit)
    assert (path / "params.txt").read_text() == recorded


@pytest.mark.parametrize("add", [stage_all, lambda path: Checkout.of(path).tree()])
def test_objects_of_a_commit_are_synced_when_they_are_staged(
    place: Place, add: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written once for inspection and once durably: the first write is kept."""
    version = tuple(map(int, place.toy.git("version").split()[2].split(".")[:2]))
    if version < (2, 36):
        pytest.skip("git tells what it syncs from 2.36 on")
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    told = tmp_path / "told"
    told.mkdir()
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(told))
    add(path)
    said = [json.loads(line) for at in told.iterdir() for line in at.read_text().splitlines()]
    adding = [e["sid"] for e in said if e["event"] == "cmd_name" and e["name"] == "add"]
    synced = [e["value"] for e in said if e["sid"] in adding and e.get("category") == "fsync"]
    assert sum(map(int, synced)) > 0


def linked_directory(path: Path) -> None:
    (path / "ideas").rename(path / "zz")
    (path / "ideas").symlink_to("zz")


def skipped(path: Path) -> None:
    git(path, "update-index", "--skip-worktree", "params.txt")
    (path / "params.txt").write_text("the answer\n")


@pytest.mark.parametrize(
    "leave",
    [
        linked_directory,
        skipped,
        lambda path: os.mkfifo(path / "the answer"),
        lambda path: (path / "the answer").mkdir(),
        lambda path: (path / "params.txt").chmod(0o640),
        lambda path: (path / "ideas").chmod(0o750),
        lambda path: os.link(path / "params.txt", path.parent / "the answer"),
        lambda path: os.utime(path / "params.txt", (1.6e9, 1.6e9)),
        lambda path: os.setxattr(path / "params.txt", "user.answer", b"9"),
        lambda path: os.setxattr(path, "user.answer", b"9"),
    ],
    ids=[
        *("linked directory", "skipped file", "pipe", "empty directory", "mode of a file"),
        *("mode of a directory", "hard link", "time", "attribute", "attribute of all"),
    ],
)
def test_files_left_by_the_tests_are_removed_before_the_sweep(
    place: Place, leave: Callable[[Path], object]
) -> None:
    path = place.candidate()
    fresh = standing(place.trees.add_candidate("e2", place.head))
    try:
        leave(path)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        pytest.skip("this file system keeps no attributes")
    place.trees.pristine_candidate("e1", place.head)
    assert standing(path) == fresh


def standing(directory: Path) -> dict[str, tuple[object, ...]]:
    """Return all that code can read in a checkout, except times of this minute."""
    found = {}
    for path in (directory, *directory.rglob("*")):
        at = path.lstat()
        is_old = at.st_mtime < time.time() - 1e6
        text = path.read_bytes() if path.is_file() and path.name != ".git" else b""
        facts = (oct(at.st_mode), path.is_dir() or at.st_nlink, is_old, os.listxattr(path), text)
        found[str(path.relative_to(directory))] = facts
    return found


def test_a_search_works_with_submodule_recurse(place: Place, tmp_path: Path) -> None:
    other = ToyRepository.create(tmp_path / "other")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path))
    place.toy.git(*add, "part")
    place.head = place.toy.commit("a submodule")
    place.toy.git("config", "submodule.recurse", "true")
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    assert stage_all(path).paths == ["params.txt"]
    done = place.trees.commit_candidate("e1", "x", 1)
    place.trees.pristine_candidate("e1", done.commit)
    assert list((path / "part").iterdir()) == []


def test_files_in_the_directory_of_a_submodule_are_not_measured(place: Place) -> None:
    """Git neither adds nor removes such files."""
    place.toy.git("update-index", "--add", "--cacheinfo", f"160000,{place.head},lib/part")
    place.toy.git("commit", "-q", "-m", "a submodule")
    place.head = place.toy.git("rev-parse", "HEAD").strip()
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    (path / "lib" / "part" / "answers.py").write_text("x")
    assert stage_all(path).paths == ["params.txt"]
    place.trees.commit_candidate("e1", "x", 1)
    assert list((path / "lib" / "part").iterdir()) == []


def test_emptying_the_directory_of_a_submodule_follows_no_link(
    place: Place, tmp_path: Path
) -> None:
    """The tests may replace a parent directory with a link."""
    place.toy.git("update-index", "--add", "--cacheinfo", f"160000,{place.head},lib/part")
    place.toy.git("commit", "-q", "-m", "a submodule")
    place.head = place.toy.git("rev-parse", "HEAD").strip()
    path = place.candidate()
    mine = tmp_path / "mine"
    (mine / "part").mkdir(parents=True)
    (mine / "part" / "letter").write_text("x")
    shutil.rmtree(path / "lib")
    (path / "lib").symlink_to(mine)
    place.trees.pristine_candidate("e1", place.head)
    assert (mine / "part" / "letter").exists()
    assert not (path / "lib").is_symlink()
    assert list((path / "lib" / "part").iterdir()) == []


PRISTINE = """
import sys
from pathlib import Path
from treewright.tree.repository.worktrees import Worktrees
repo, run_dir, commit = sys.argv[1:]
Worktrees(Path(repo), Path(run_dir), "run").pristine_candidate("e1", commit)
"""


@pytest.mark.parametrize("directory", ["lib", "kept"])
def test_a_read_only_directory_does_not_stop_the_run(place: Place, directory: str) -> None:
    """The directory holds a submodule or a file. Regression: restoring it failed in each invocation
    of the run."""
    place.toy.write("kept/file", "as it was")
    place.toy.commit("a directory")
    place.toy.git("update-index", "--add", "--cacheinfo", f"160000,{place.head},lib/part")
    place.toy.git("commit", "-q", "-m", "a submodule")
    place.head = place.toy.git("rev-parse", "HEAD").strip()
    path = place.candidate()
    (path / "lib" / "part" / "left").write_text("x")
    (path / "kept" / "file").write_text("another")
    (path / directory).chmod(0o555)
    arguments = [str(place.toy.path), str(place.trees.run_dir), place.head]
    command = [sys.executable, "-c", PRISTINE, *arguments]
    subprocess.run(bound_by_permissions(command), check=True)
    assert list((path / "lib" / "part").iterdir()) == []
    assert (path / "kept" / "file").read_text() == "as it was"
    assert git(path, "rev-parse", "HEAD").strip() == place.head


def test_a_worktree_that_cannot_be_restored_is_a_git_error(place: Place) -> None:
    """A GitError is attributed to the candidate; any other error would be a fault of the
    program."""
    place.toy.git("update-index", "--add", "--cacheinfo", f"160000,{place.head},lib/part")
    place.toy.git("commit", "-q", "-m", "a submodule")
    place.head = place.toy.git("rev-parse", "HEAD").strip()
    path = place.candidate()
    (path / "lib" / "part" / "left").write_text("x")
    with read_only(path / "lib"), pytest.raises(GitError):
        place.trees.pristine_candidate("e1", place.head)


def test_a_full_disk_is_not_attributed_to_the_candidate(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is simulated: a real one would have to fill up between two calls. tests/faults has a
    small real disk."""
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    stage_all(path)

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worktrees.untrusted, "create", full)
    with pytest.raises(OSError, match="No space left"):
        place.trees.commit_candidate("e1", "x", 1)


def test_a_repository_nested_by_an_agent_is_not_measured(place: Place) -> None:
    path = place.candidate()
    made = path / "made"
    made.mkdir()
    for command in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
        git(made, *command)
    (made / "answers.py").write_text("x")
    assert stage_all(path).paths == ["made"]
    place.trees.commit_candidate("e1", "x", 1)
    assert list(made.iterdir()) == []


def test_files_left_in_the_private_repository_are_gone_at_the_measurement(place: Place) -> None:
    path = place.candidate()
    with private_repository(path):
        private, _ = repositories(path)
        (private / "modules").mkdir()
        (private / "modules" / "answers.py").write_text("x")
    (path / "params.txt").write_text("A 2.0\n")
    stage_all(path)
    done = place.trees.commit_candidate("e1", "x", 1)
    assert not private.exists()
    with private_repository(path):
        (private / "modules").mkdir()
    place.trees.pristine_candidate("e1", done.commit)
    assert not private.exists()


def test_a_pristine_candidate_is_exactly_the_commit(place: Place) -> None:
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    stage_all(path)
    done = place.trees.commit_candidate("e1", "x", 1)
    (path / "params.txt").write_text("A 9.0\n")
    (path / "left behind").write_text("x")
    (path / "sweep.sh").unlink()
    place.trees.pristine_candidate("e1", done.commit)
    assert (path / "params.txt").read_text() == "A 2.0\n"
    assert (path / "sweep.sh").exists()
    assert not (path / "left behind").exists()
    shutil.rmtree(path)
    place.trees.pristine_candidate("e1", done.commit)
    assert (path / "params.txt").read_text() == "A 2.0\n"


@pytest.mark.parametrize("left", ["directory", "branch", "worktree", "files", "half"])
def test_a_candidate_can_be_recreated_from_any_leftovers(place: Place, left: str) -> None:
    path = place.trees.candidate_path("e1")
    if left in ("directory", "half"):
        path.mkdir(parents=True)
    elif left == "branch":
        place.toy.git("branch", "treewright/run/cand/e1", place.head)
    else:
        place.candidate()
        (path / "params.txt").write_text("half")
    if left == "files":
        (path / ".git").unlink()
    if left == "half":
        (path / ".git").write_text("gitdir: /nonexistent\n")
    assert place.candidate() == path
    assert (path / "params.txt").read_text() != "half"
    assert place.listed() == 1


def test_repair_removes_strays_and_restores_nodes(place: Place) -> None:
    place.candidate("e1")
    place.candidate("e2")
    (place.trees.candidate_path("e3")).mkdir()
    place.toy.git("branch", "treewright/run/cand/e4", place.head)
    shutil.rmtree(place.trees.candidate_path("e2"))
    place.trees.repair({"n0000": place.head}, ["e1"])
    assert place.branches() == {"treewright/run/cand/e1", "treewright/run/node/n0000"}
    assert place.listed() == 2
    assert [path.name for path in (place.trees.run_dir / "cand").iterdir()] == ["e1"]
    assert (place.trees.node_path("n0000") / "params.txt").exists()
    shutil.rmtree(place.trees.node_path("n0000"))
    place.trees.repair({"n0000": place.head}, [])
    assert (place.trees.node_path("n0000") / "params.txt").exists()
    with pytest.raises(GitError, match="of node n0001 is not in"):
        place.trees.repair({"n0001": "f" * 40}, [])


def test_repair_finishes_a_checkout_that_was_killed(place: Place) -> None:
    place.toy.write(".gitattributes", "params.txt filter=slow\n")
    place.head = place.toy.commit("a file that takes long to write")
    started = place.toy.path / "started"
    place.toy.git("config", "filter.slow.clean", "cat")
    place.toy.git("config", "filter.slow.smudge", f"touch '{started}'; sleep 60; cat")
    path, branch = place.trees.node_path("n0001"), "treewright/run/node/n0001"
    add = ["git", "worktree", "add", "--quiet", "-B", branch, str(path), place.head]
    with subprocess.Popen(add, cwd=place.toy.path, start_new_session=True) as adding:
        until(started.exists)
        os.killpg(adding.pid, signal.SIGKILL)
    place.toy.git("config", "filter.slow.smudge", "cat")
    place.trees.repair({"n0001": place.head}, [])
    assert (path / "params.txt").exists()
    assert git(path, "status", "--porcelain") == ""


def test_repair_removes_locks_of_dead_processes(place: Place) -> None:
    """Regression: a search that was killed while git changed a ref could not be continued."""
    theirs = place.toy.path / ".git/refs/heads/theirs.lock"
    locks = [
        place.toy.path / f".git/refs/heads/treewright/run/{name}.lock"
        for name in ("cand/e1", "node/n0001")
    ]
    for lock in (theirs, *locks):
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    place.trees.repair({"n0001": place.head}, ["e1"])
    place.trees.add_candidate("e1", place.head)
    assert theirs.exists()
    assert not any(lock.exists() for lock in locks)


def test_other_runs_and_other_worktrees_are_left_alone(place: Place, tmp_path: Path) -> None:
    place.toy.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))
    place.toy.git("branch", "treewright/run2/cand/e1")
    place.trees.repair({}, [])
    assert place.branches() == {"mine", "treewright/run2/cand/e1"}
    assert place.listed() == 1


PROTECTED = ["sweep.sh", "tests/", "./data", "conf/*.toml", "**/golden.csv", "/top.txt"]


@pytest.mark.parametrize(
    "path",
    [
        "sweep.sh", "tests/a.py", "tests/deep/er/b.py", "data", "data/x.csv", "data/sub/y.csv",
        "conf/a.toml", "conf/sub/a.toml", "golden.csv", "a/golden.csv", "a/b/golden.csv",
        "top.txt", "sweep.sh/inside",
    ],
)  # fmt: skip
def test_a_path_is_protected(path: str) -> None:
    assert match_protected([path], PROTECTED) == [path]


@pytest.mark.parametrize(
    "path", ["sweep.shx", "sub/sweep.sh", "mytests/a.py", "datax", "conf/a.yml", "sub/top.txt"]
)
def test_a_path_is_not_protected(path: str) -> None:
    assert match_protected([path], PROTECTED) == []


@pytest.mark.parametrize(
    ("change", "touched"),
    [
        ("mv sweep.sh renamed.sh", ["sweep.sh"]),
        ("mv params.txt data/params.txt", ["data/params.txt"]),
        ("rm -r data; ln -s ideas data", ["data", "data/rows.txt"]),
        ("ln -s ../params.txt data/link", ["data/link"]),
        ("chmod +x data/rows.txt", ["data/rows.txt"]),
        ("mkdir data/new; echo > data/new/file", ["data/new/file"]),
        ("rm sweep.sh; mkdir sweep.sh; echo > sweep.sh/x", ["sweep.sh", "sweep.sh/x"]),
        ("echo '*.txt eol=crlf' > sub.txt; echo > ordinary", []),
    ],
)
def test_every_way_of_changing_a_protected_file_is_found(place, change, touched) -> None:
    place.toy.write("data/rows.txt", "data\n")
    place.head = place.toy.commit("data")
    path = place.candidate()
    subprocess.run(change, shell=True, cwd=path, check=True)
    assert sorted(match_protected(stage_all(path).paths, ["sweep.sh", "data"])) == touched


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("echo x >> sweep.sh", ["sweep.sh"]),
        ("rm sweep.sh", ["sweep.sh"]),
        ("echo x >> sweep.sh; git add sweep.sh", ["sweep.sh"]),
        ("echo x >> sweep.sh; git -c user.name=x -c user.email=x commit -qam x", ["sweep.sh"]),
        ("git update-index --assume-unchanged sweep.sh; echo x >> sweep.sh", ["sweep.sh"]),
        ("rm .git; echo x >> sweep.sh", ["sweep.sh"]),
        ("rm .git; git init -q .; git add -A; echo x >> sweep.sh", ["sweep.sh"]),
        ("mv data other; ln -s other data; echo x > other/rows.txt", ["data/rows.txt"]),
        ("mv data other; ln -s other data", ["data/rows.txt"]),
        ("cp sweep.sh other; rm sweep.sh; ln -s other sweep.sh", ["sweep.sh"]),
        ("rm sweep.sh; mkfifo sweep.sh", ["sweep.sh"]),
        ("chmod +x data/rows.txt", ["data/rows.txt"]),
        ("echo '* text' > .gitattributes; printf 'data\\r\\n' > data/rows.txt", ["data/rows.txt"]),
        (f"echo '* {UTF_7}' > .gitattributes; echo +AGQ-ata > data/rows.txt", ["data/rows.txt"]),
        ("touch sweep.sh; echo x > data/new; echo x >> params.txt", []),
        ("git checkout -q --detach; git branch other", []),
    ],
)
def test_hidden_tampering_is_found(place: Place, script: str, seen) -> None:
    place.toy.write("data/rows.txt", "data\n")
    place.head = place.toy.commit("data")
    path = place.candidate()
    subprocess.run(script, shell=True, cwd=path, check=True)
    assert find_changed(place.toy.path, path, place.head, ["sweep.sh", "data"]) == seen
    assert place.toy.git("status", "--porcelain") == ""
    assert place.toy.git("symbolic-ref", "HEAD") == "refs/heads/main\n"


def test_unchanged_files_are_recognised_without_git(place: Place, monkeypatch) -> None:
    path = place.candidate()
    asked = []
    for module in (protected_files, objects):
        monkeypatch.setattr(module, "git", lambda *args: (asked.append(args[1]), git(*args))[1])
    for _ in range(3):
        assert find_changed(place.toy.path, path, place.head, ["sweep.sh"]) == []
    assert asked == ["ls-tree"]


def test_files_that_git_converts_on_checkout_are_compared_correctly(place: Place) -> None:
    place.toy.write(".gitattributes", "*.txt eol=crlf\n")
    place.toy.write("data/rows.txt", "one\ntwo\n")
    place.head = place.toy.commit("data")
    rows = place.candidate() / "data" / "rows.txt"
    assert rows.read_bytes() == b"one\r\ntwo\r\n"
    for text, seen in ((b"one\r\ntwo\r\n", []), (b"one\r\n", ["data/rows.txt"])):
        rows.write_bytes(text)
        assert find_changed(place.toy.path, rows.parents[1], place.head, ["data"]) == seen


def test_a_worktree_without_git_does_not_use_the_surrounding_repository(place: Place) -> None:
    path = place.candidate()
    (path / ".git").unlink()
    with pytest.raises(GitError, match="not a git repository"):
        git(path, "rev-parse", "HEAD")
    with pytest.raises(GitError):
        stage_all(path)


def test_the_root_must_be_clean(toy: ToyRepository) -> None:
    require_clean(toy.path)
    toy.write("params.txt", "x")
    with pytest.raises(UsageError, match="Root working tree must be clean"):
        require_clean(toy.path)
    toy.git("checkout", "-q", "--detach")
    with pytest.raises(UsageError, match="Root working tree must be clean"):
        require_clean(toy.path)
    toy.git("checkout", "-q", "params.txt")
    require_clean(toy.path)


def test_globally_ignored_files_do_not_make_the_root_dirty(
    toy: ToyRepository, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "ignores").write_text("*.swp\n")
    (tmp_path / "config").write_text(f"[core]\nexcludesFile = {tmp_path / 'ignores'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    toy.write("a.swp", "")
    require_clean(toy.path)


def test_hiding_the_state_directory_edits_only_the_repositorys_own_excludes(toy) -> None:
    exclude = toy.path / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_bytes(b"mine \xff")
    for _ in range(2):
        hide_from_status(toy.path, ".treewright")
    assert exclude.read_bytes() == b"mine \xff\n/.treewright/\n"
    toy.write(".treewright/x", "")
    assert toy.git("status", "--porcelain") == ""


def test_a_removed_exclude_line_is_added_again(toy: ToyRepository) -> None:
    hide_from_status(toy.path, ".treewright")
    exclude = toy.path / ".git/info/exclude"
    exclude.write_text(exclude.read_text() + "!/.treewright/\n")
    toy.write(".treewright/x", "x")
    hide_from_status(toy.path, ".treewright")
    assert toy.git("status", "--porcelain") == ""
    again = exclude.read_text()
    hide_from_status(toy.path, ".treewright")
    assert exclude.read_text() == again


def test_ten_thousand_files_are_staged_in_seconds(tmp_path: Path) -> None:
    toy = ToyRepository(tmp_path / "large repo")
    toy.path.mkdir()
    toy.git("init", "-q", "-b", "main")
    files = "".join(
        f'M 644 inline "package {number // 100}/file {number % 100}.txt"\ndata 5\n{number:05d}\n'
        for number in range(10_000)
    )
    who = "committer Test <test@localhost> 0 +0000"
    stream = f"commit refs/heads/main\n{who}\ndata 4\nmany\n{files}\n"
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=toy.path, input=stream.encode(), check=True
    )
    place = Place(toy)
    path = place.candidate()
    (path / "package 7" / "file 3.txt").write_text("changed\n")
    assert stage_all(path).paths == ["package 7/file 3.txt"]
    done = place.trees.commit_candidate("e1", "x", 1)
    (path / "package 99" / "file 99.txt").write_text("tampered\n")
    protected = ["package 9*"]
    assert find_changed(toy.path, path, done.commit, protected) == ["package 99/file 99.txt"]
    assert worktrees.resolve(toy.path, done.commit).tree == done.tree
    place.trees.remove_candidate("e1")
    assert not path.exists()


def test_the_users_worktree_at_a_candidates_path_is_left_alone(
    place: Place, tmp_path: Path
) -> None:
    """A parent's worktree is not guarded while its candidate's sweep runs."""
    mine = tmp_path / "mine"
    place.toy.git("worktree", "add", "-q", "-b", "mine", str(mine))
    git(mine, "commit", "-q", "--allow-empty", "-m", "of the user")
    before = git(mine, "rev-parse", "HEAD")
    (mine / "precious.txt").write_text("not committed\n")
    path = place.candidate()
    path.rename(tmp_path / "gone")
    path.symlink_to(mine)
    assert place.trees.pristine_candidate("e1", place.head) == path
    assert not path.is_symlink()
    assert (path / "params.txt").read_bytes() == (place.toy.path / "params.txt").read_bytes()
    assert (mine / "precious.txt").read_text() == "not committed\n"
    assert git(mine, "rev-parse", "HEAD") == before


def test_a_worktree_of_another_repository_is_not_used_as_a_candidate(
    place: Place, tmp_path: Path
) -> None:
    path = place.candidate()
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(place.toy.path), str(other))
    (other / "params.txt").write_text("worse\n")
    git(other, "commit", "-q", "-a", "-m", "worse")
    git(other, "replace", place.head, "HEAD")
    path.rename(tmp_path / "gone")
    git(other, "worktree", "add", "-q", "--detach", str(path), place.head)
    assert place.trees.pristine_candidate("e1", place.head) == path
    assert (path / "params.txt").read_bytes() == (place.toy.path / "params.txt").read_bytes()
    assert str(place.toy.path) in (path / ".git").read_text()


def test_git_replacements_do_not_change_a_commit(place: Place) -> None:
    right = (place.toy.path / "params.txt").read_text()
    place.toy.write("params.txt", "worse\n")
    worse = place.toy.commit("worse")
    place.toy.git("replace", place.head, worse)
    assert (place.candidate() / "params.txt").read_text() == right


def test_a_thousand_nested_directories_can_be_committed(place: Place) -> None:
    path = place.candidate()
    deep = "/".join(["d"] * 1200)
    try:
        subprocess.run(["mkdir", "-p", deep], cwd=path, check=True)
        subprocess.run(["sh", "-c", f"echo x > {deep}/file"], cwd=path, check=True)
        staged = stage_all(path)
        done = place.trees.commit_candidate("e1", "deep", 1, staged, place.head)
        assert git(path, "show", f"{done.commit}:{deep}/file") == "x\n"
    finally:  # pytest cannot remove them: it would fail, and so would every later run
        place.trees.remove_candidate("e1")
    assert not path.exists()


@pytest.mark.parametrize("file", ["sweep.sh", "params.txt"])
def test_a_change_staged_after_the_check_is_an_error(place: Place, file: str) -> None:
    path = place.candidate()
    (path / "params.txt").write_text("A 2.0\n")
    staged = stage_all(path)
    (path / file).write_text("echo forged\n")
    git(path, "add", file)
    with pytest.raises(GitError, match="what was committed is not what was staged"):
        place.trees.commit_candidate("e1", "x", 1, staged, place.head)


def test_a_file_named_head_can_be_committed(toy: ToyRepository) -> None:
    toy.write("HEAD", "not a commit\n")
    toy.commit("a file with an odd name")
    run_dir = search(toy.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    assert store.load(run_dir).evaluations["e000001"].status == "completed"
    assert validate(run_dir, toy.path) == []
