"""Candidates that try to change how they are measured."""

from __future__ import annotations

import json

import pytest

from tests.toy import ToyRepository, diff_of_line, idea

FORGED = 'echo "config_id,status,loss,cost" > "$TREEWRIGHT_RESULTS_CSV"'


def new_file(path: str, text: str) -> str:
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}"


def only_idea(toy: ToyRepository, text: str) -> None:
    for path in (toy.path / "ideas").glob("*.md"):
        path.unlink()
    toy.write("ideas/00_cheat.md", text)
    toy.commit("one idea")


def search(toy: ToyRepository, treewright, *flags: str) -> dict:
    done = treewright(
        "tree", "--tree-run-id", "run", "--ideas-per-node", "1", "--max-depth", "1",
        "--sweep-config-limit", "8", "--repo", str(toy.path), *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    manifest = json.loads((toy.run_dir("run") / "manifest.json").read_text())
    return manifest["evaluations"]["e000001"]


def make_tests_run(toy: ToyRepository, script: str) -> None:
    """The repository's own tests source a file that a candidate may add."""
    toy.write("tests.sh", f"test -s params.txt\nif [ -f {script} ]; then . ./{script}; fi\n")
    toy.commit("tests run the code")


@pytest.mark.parametrize("restores", [False, True], ids=["leaves it", "restores it"])
def test_code_that_the_tests_run_cannot_replace_the_sweep(
    toy: ToyRepository, treewright, restores: bool
) -> None:
    make_tests_run(toy, "extra.sh")
    forged = "cp sweep.sh .kept\\n" + FORGED
    if restores:
        forged += "\\ncp .kept sweep.sh"
    only_idea(toy, idea("Tidy up", new_file("extra.sh", f"printf '{forged}\\n' > sweep.sh")))
    evaluation = search(toy, treewright)
    assert evaluation["decision"]["fate"] == "evaluation_failed"
    assert evaluation["error"]["code"] == "protected_path_changed"
    assert "while the tests ran" in evaluation["error"]["message"]


def test_what_the_tests_leave_behind_is_not_there_in_the_sweep(
    toy: ToyRepository, treewright
) -> None:
    make_tests_run(toy, "extra.sh")
    patch = "printf 'A 9\\nB 9\\nC 9\\nD 1\\n' > params.txt"
    only_idea(toy, idea("Warm the cache", new_file("extra.sh", patch)))
    evaluation = search(toy, treewright)
    assert evaluation["decision"]["fate"] == "gate_failed"
    assert evaluation["parent_relative"]["primary_gain"] == 0.0


def test_code_that_changes_protected_files_only_in_the_held_out_sweep_is_not_confirmed(
    toy: ToyRepository, treewright
) -> None:
    toy.write("sweep.sh", (toy.path / "sweep.sh").read_text() + "\n[ ! -f x.sh ] || . ./x.sh\n")
    toy.commit("the sweep runs the code")
    change = '[ "$TREEWRIGHT_SWEEP_CONFIG_START" = 0 ] || echo >> tests.sh'
    patch = new_file("x.sh", change) + diff_of_line("params.txt", "A 1.0", "A 2.0", 1)
    only_idea(toy, idea("Better, at first", patch))
    evaluation = search(toy, treewright, "--confirm-configs", "4")
    assert evaluation["decision"]["fate"] == "not_confirmed"
    assert evaluation["confirmation"]["reasons"] == ["protected_path_changed"]
