"""The same inputs give the same decisions at another path, for another user, and in other steps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.decisions import decisions
from tests.faults.running import RUN, copy_of, finish, search
from tests.toy import ToyRepository, idea

SHAPE = (
    "--ideas-per-node", "3", "--beam-width", "2", "--max-depth", "2",
    "--sweep-config-limit", "6", "--confirm-configs", "3",
)  # fmt: skip
DRY = ("--ideas-per-node", "3", "--beam-width", "2", "--max-depth", "3", "--dry-run")

HOSTILE_GIT = """
[user]
name = Somebody Else
email = else@example.org
[commit]
gpgSign = true
cleanup = strip
template = /nonexistent
[core]
excludesFile = {ignores}
hooksPath = {hooks}
[i18n]
commitEncoding = ISO-8859-1
[apply]
whitespace = fix
[diff]
noprefix = true
renames = copies
[status]
showUntrackedFiles = no
"""


def test_path_user_language_and_pace_do_not_change_the_bytes(
    toy: ToyRepository, tmp_path: Path
) -> None:
    new_file = "--- /dev/null\n+++ b/extra.local\n@@ -0,0 +1 @@\n+ä  \n"
    change = "--- a/params.txt\n+++ b/params.txt\n@@ -1,2 +1,2 @@\n-A 1.0\n+A 2.5\n # keep\n"
    toy.write("ideas/00_aa.md", idea("#1 Größeres A", change + new_file))
    toy.commit("an idea that adds a file with blanks at its end")
    elsewhere = copy_of(toy, tmp_path / "else where")
    finish(toy, *SHAPE)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "pre-commit", "commit-msg"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "ignores").write_text("*.local\n")
    config = tmp_path / "gitconfig"
    config.write_text(HOSTILE_GIT.format(ignores=tmp_path / "ignores", hooks=hooks))
    other = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": str(config),
        "TZ": "Pacific/Kiritimati",
        "LANG": "tr_TR.UTF-8",
        "GIT_AUTHOR_NAME": "Another",
        "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
        "PYTHONHASHSEED": "12345",
    }
    steps = 0
    while True:
        done = search(elsewhere, *SHAPE, env=other, umask=0o077)
        steps += 1
        if json.loads(done.out)["stop_reason"]:
            break
    assert steps == 2, "one invocation, one depth"
    first, second = toy.run_dir(RUN), elsewhere.run_dir(RUN)
    assert decisions(first) == decisions(second)
    nodes = json.loads((first / "manifest.json").read_text())["nodes"]
    assert len(nodes) > 2
    for node in nodes.values():
        raw = toy.git("cat-file", "commit", node["commit"])
        assert raw == elsewhere.git("cat-file", "commit", node["commit"])
    assert "extra.local" in toy.git("ls-tree", "--name-only", nodes["n0001"]["commit"])
    summaries = sorted(path.relative_to(first) for path in first.glob("eval/*/*/summary.json"))
    for path in summaries:
        ours, theirs = (json.loads((place / path).read_text()) for place in (first, second))
        assert ours["scoring_summary"] == theirs["scoring_summary"]


def test_a_finished_run_is_not_changed(toy: ToyRepository) -> None:
    first = finish(toy, *DRY)
    events = (toy.run_dir(RUN) / "events.jsonl").read_text().count('"type":"started"')
    second = finish(toy, *DRY)
    assert second == first
    assert (toy.run_dir(RUN) / "events.jsonl").read_text().count('"type":"started"') == events


def test_the_cap_on_evaluations_holds_in_the_middle_of_a_depth(toy: ToyRepository) -> None:
    for number in range(12):
        toy.write(f"ideas/x{number:02d}.md", f"# Idea {number}\n")
    toy.commit("more ideas")
    whole = copy_of(toy, toy.path.with_name("whole"))
    unlimited = finish(whole, *DRY)
    assert unlimited["counts"]["evaluations"] > 4
    capped = finish(toy, *DRY, "--max-total-idea-evals", "4")
    assert capped["stop_reason"] == "max_total_idea_evals"
    assert capped["counts"]["evaluations"] == capped["budget"]["evals"] == 4
    assert capped["budget"]["evals_left"] == 0
    ours, all_of_them = decisions(toy.run_dir(RUN)), decisions(whole.run_dir(RUN))
    for eval_id, evaluation in ours["evaluations"].items():
        expected = all_of_them["evaluations"][eval_id]
        assert evaluation["root_relative"] == expected["root_relative"]


@pytest.mark.parametrize("stop", [True, False])
def test_an_empty_frontier_stops_the_run_unless_it_is_to_continue(
    toy: ToyRepository, stop: bool
) -> None:
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number in range(5):
        toy.write(f"ideas/{number}.md", f"# Idea without a patch {number}\n")
    toy.commit("ideas that cannot be applied")
    flags = ("--ideas-per-node", "2", "--max-depth", "4", "--sweep-config-limit", "6")
    if not stop:
        flags += ("--no-stop-on-empty-frontier",)
    found = finish(toy, *flags)
    assert found["stop_reason"] == ("empty_frontier" if stop else "no_new_ideas")
    assert found["counts"]["failed"] == found["counts"]["evaluations"] == (2 if stop else 5)
    assert found["frontier"] == ([] if stop else ["n0000"])
    assert found["best"]["node_id"] == "n0000"
