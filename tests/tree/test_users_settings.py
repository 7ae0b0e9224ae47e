"""Git settings and unusual names of the user are no reason to reject a candidate."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from tests.tree.test_users_repository import live, worktrees_of
from treewright.tree.agents.checkout import Checkout
from treewright.tree.guard.protected_files import find_changed
from treewright.tree.repository.excluding import hide_from_status
from treewright.tree.repository.git import git, require_clean
from treewright.tree.repository.private_repository import private_repository
from treewright.tree.repository.staging import stage_all


def test_git_settings_in_the_environment_apply_to_every_command(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the repository often belongs to another user, and these settings permit its
    use."""
    head = toy.git("rev-parse", "HEAD").strip()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    live(worktrees_of(toy.path), "e1", head)


def test_agents_work_with_a_split_index(toy: ToyRepository) -> None:
    toy.git("config", "core.splitIndex", "true")
    toy.git("config", "splitIndex.maxPercentChange", "100")
    head = toy.git("rev-parse", "HEAD").strip()
    path = worktrees_of(toy.path).add_candidate("e1", head)
    with private_repository(path):
        subprocess.run(["git", "status"], cwd=path, check=True, capture_output=True)
    live(worktrees_of(toy.path), "e2", head)
    assert not list((toy.path / ".git/worktrees").glob("*/sharedindex.*"))


@pytest.mark.parametrize("ref", ["refs/tags/HEAD", "refs/heads/HEAD", "refs/remotes/HEAD/HEAD"])
def test_a_tag_or_branch_named_head_is_not_confused_with_head(toy: ToyRepository, ref: str) -> None:
    head = toy.git("rev-parse", "HEAD").strip()
    toy.commit("another")
    toy.git("update-ref", ref, "refs/heads/main")
    theirs = toy.git("for-each-ref")
    trees = worktrees_of(toy.path)
    commit = live(trees, "e1", head)
    assert toy.git("rev-parse", f"{commit}^").strip() == head
    trees.remove_candidate("e1")
    assert toy.git("for-each-ref") == theirs


@pytest.mark.parametrize("kind", ["with a NUL", "very long"])
def test_any_title_can_be_committed(toy: ToyRepository, kind: str) -> None:
    title = "a\0b" if kind == "with a NUL" else "x" * 200_000
    trees = worktrees_of(toy.path)
    path = trees.add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    (path / "params.txt").write_text("A 2\n")
    git(path, "add", "--all")
    made = trees.commit_candidate("e1", f"{title}\n\nIdea: x\n", 1_700_000_000)
    said = git(toy.path, "log", "-1", "--format=%B", made.commit)
    assert said.strip() == title.replace("\0", "\ufffd") + "\n\nIdea: x"


def test_an_agent_may_stage_any_number_of_ignored_files(toy: ToyRepository) -> None:
    """The names exceed the length limit of a command line."""
    path = worktrees_of(toy.path).add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    directory = path.joinpath("ignored", *(["d" * 200] * 15))
    checkout = Checkout.of(path)
    with checkout.in_private():
        directory.mkdir(parents=True)
        for number in range(1000):
            (directory / f"{number}").touch()
        (path / "ignored" / "[a-z]*").touch()
        (path / ".gitignore").write_text("ignored\n")
        subprocess.run(["git", "add", "--force", "."], cwd=path, check=True)
    assert len(checkout.stage().paths) == 1002


@pytest.mark.parametrize("name", ["Icon\r", "a\r\nb", "a\rb"])
def test_names_with_a_carriage_return_are_staged_and_compared(
    toy: ToyRepository, name: str
) -> None:
    """Repositories of macOS users often have a file named `Icon` and a carriage return."""
    toy.write(f"data/{name}", "one\n")
    head = toy.commit("a file")
    trees = worktrees_of(toy.path)
    path = trees.add_candidate("e1", head)
    assert find_changed(toy.path, path, head, ["data"]) == []
    (path / "data" / name).write_text("two\n")
    staged = Checkout.of(path).stage()
    assert staged.paths == [f"data/{name}"] == stage_all(path).paths
    trees.commit_candidate("e1", "x", 1_700_000_000, staged, head)
    assert find_changed(toy.path, path, head, ["data"]) == [f"data/{name}"]


@pytest.mark.parametrize("how", [("set", "ideas"), ("set", "--sparse-index", "ideas")])
def test_a_sparse_checkout_searches_over_complete_commits(
    toy: ToyRepository, how: tuple[str, ...]
) -> None:
    """Otherwise a candidate would be measured without some files of its commit, a new file outside
    the sparse part could not be staged, and protected files there would not be checked."""
    toy.write("data/rows.txt", "one\n")
    head = toy.commit("data")
    toy.git("sparse-checkout", *how)
    before = (toy.path / ".git/index").read_bytes()
    trees = worktrees_of(toy.path)
    require_clean(toy.path)
    path = trees.add_candidate("e1", head)
    assert (path / "data" / "rows.txt").exists()
    assert find_changed(toy.path, path, head, ["data"]) == []
    (path / "data" / "new.txt").write_text("two\n")
    staged = stage_all(path)
    made = trees.commit_candidate("e1", "x", 1_700_000_000, staged, head)
    assert (path / "data" / "new.txt").exists()
    trees.add_node("n0001", made.commit)
    assert (trees.node_path("n0001") / "data" / "new.txt").exists()
    assert not (toy.path / "data").exists()
    assert (toy.path / ".git/index").read_bytes() == before


def test_an_exclude_file_that_is_a_link_stays_a_link(toy: ToyRepository, tmp_path: Path) -> None:
    """Users keep such a file with their other dotfiles, for instance."""
    exclude, kept = toy.path / ".git/info/exclude", tmp_path / "excludes"
    kept.write_text("*.o\n")
    exclude.unlink()
    exclude.symlink_to(kept)
    hide_from_status(toy.path, ".treewright")
    assert exclude.is_symlink()
    assert kept.read_text() == "*.o\n/.treewright/\n"
