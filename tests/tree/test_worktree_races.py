"""git's worktree commands trip over each other; ours take turns."""

from __future__ import annotations

import threading

from tests.toy import ToyRepository
from treewright.tree.repository.worktrees import Worktrees


def test_many_threads_add_and_remove_candidates_at_once(toy: ToyRepository, tmp_path) -> None:
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    commit = toy.git("rev-parse", "HEAD").strip()
    start = threading.Barrier(16)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait()
            for turn in range(4):
                name = f"e{number:03d}{turn}"
                path = trees.add_candidate(name, commit)
                assert (path / "params.txt").exists()
                trees.remove_candidate(name)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert toy.git("worktree", "list").count("\n") == 1
    assert toy.git("for-each-ref", "refs/heads/treewright") == ""
