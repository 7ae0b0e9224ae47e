"""A protected submodule is compared with its commit, like any other protected file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from tests.tree.test_users_repository import worktrees_of
from treewright.kernel.storage import untrusted
from treewright.tree.guard.protected_files import find_changed
from treewright.tree.repository.private_repository import private_repository

FETCH = "git -c protocol.file.allow=always submodule --quiet update --init --recursive\n"
EVIL = "echo evil >> lib/params.txt\n"
HIDDEN = (
    "",
    "git config -f .gitmodules submodule.lib.ignore all\n",
    "git config diff.ignoreSubmodules all\n",
    "git -C lib update-index --assume-unchanged params.txt\n",
    "git -C lib -c user.name=x -c user.email=x commit -qam evil; git add lib\n",
    "rm -f lib/.git\n",
    "rm -rf lib/.git; git init -q lib; git -C lib add .\n",
    "mv lib other; ln -s other lib\n",
)


def run(path: Path, script: str) -> None:
    subprocess.run(script, shell=True, cwd=path, check=True, capture_output=True)


@pytest.fixture
def around(toy: ToyRepository, tmp_path: Path) -> ToyRepository:
    inner = ToyRepository.create(tmp_path / "inner")
    outer = ToyRepository.create(tmp_path / "outer")
    allowed = ("-c", "protocol.file.allow=always")
    outer.git(*allowed, "submodule", "--quiet", "add", str(inner.path), "inner")
    outer.write("crlf.txt", "one\n")
    outer.write(".gitattributes", "crlf.txt eol=crlf\n")
    outer.commit("a submodule, and a file that is checked out otherwise\r")
    toy.git(*allowed, "submodule", "--quiet", "add", str(outer.path), "lib")
    toy.commit("a submodule")
    return toy


@pytest.mark.parametrize("known", [True, False], ids=["the user has it", "only the candidate"])
@pytest.mark.parametrize("isolated", [False, True])
def test_fetching_a_protected_submodule_does_not_change_it(
    around: ToyRepository, known: bool, isolated: bool
) -> None:
    head = around.git("rev-parse", "HEAD").strip()
    if not known:
        untrusted.remove_tree(around.path / ".git/modules")
    path = worktrees_of(around.path).add_candidate("e1", head)
    assert find_changed(around.path, path, head, ["lib"]) == []
    with private_repository(path):
        run(path, FETCH)
        run(path, "echo > lib/made-by-a-build; touch lib/params.txt")
        if isolated:  # as is done when an isolated command has ended
            assert untrusted.remove_named(".git", path)
    assert (path / "lib/inner/params.txt").exists()
    assert (path / "lib/crlf.txt").read_bytes() == b"one\r\n"
    assert find_changed(around.path, path, head, ["lib"]) == []


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("isolated", [False, True])
def test_a_hidden_change_of_a_protected_submodule_is_found(
    around: ToyRepository, hidden: str, isolated: bool
) -> None:
    head = around.git("rev-parse", "HEAD").strip()
    path = worktrees_of(around.path).add_candidate("e1", head)
    with private_repository(path):
        run(path, FETCH + EVIL + hidden)
        if isolated:
            assert untrusted.remove_named(".git", path)
    assert find_changed(around.path, path, head, ["lib"]) == ["lib"]


def test_a_change_in_a_nested_submodule_is_found(around: ToyRepository) -> None:
    head = around.git("rev-parse", "HEAD").strip()
    path = worktrees_of(around.path).add_candidate("e1", head)
    with private_repository(path):
        run(path, FETCH + "echo evil >> lib/inner/params.txt")
    assert find_changed(around.path, path, head, ["lib"]) == ["lib"]
    assert find_changed(around.path, path, head, ["sweep.sh"]) == []
