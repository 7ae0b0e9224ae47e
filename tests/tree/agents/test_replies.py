"""Edits in a model's reply: read as meant, made whole or not at all, inside the worktree."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.tree.agents import edits, reply_edits
from treewright.tree.agents.backend import AgentFailure, RoleRequest
from treewright.tree.agents.edits import FileEdit, apply_patch
from treewright.tree.agents.offline_agents import PatchCoder
from treewright.tree.agents.reply_edits import Replacement
from treewright.tree.ideas.idea_text import fence_for


def block(path: str, search: str, replace: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


CHANGE = block("model.py", "RATE = 0.1\n", "RATE = 0.7\n")


def test_search_replace_among_prose(worktree: Path):
    reply_edits.apply_edits(f"I will raise the rate.\n\n{CHANGE}\nThat is all.\n", worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.7\nDEPTH = 3\n")


@pytest.mark.parametrize(
    "text",
    [
        "`model.py`:\n```python\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```",
        "**model.py**\n\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
        "```python\nmodel.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```",
        "text\n```python path=model.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```",
        "model.py\r\n<<<<<<< SEARCH\r\na\r\n=======\r\nb\r\n>>>>>>> REPLACE\r\n",
    ],
)
def test_the_ways_models_write_the_path(text: str):
    assert reply_edits.parse_edits(text).edits == (Replacement("model.py", "a\n", "b\n"),)


BARE = "<<<<<<< SEARCH\nRATE = 0.1\n=======\nRATE = 0.7\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "text",
    [
        BARE,
        f"I raise the rate, which is too low.\n\n{BARE}",
        f"Change 1:\n```python\n{BARE}```\n",
        f"```diff\n{BARE}```\n",
        f"### 1. Raise the rate e.g. to 0.7\n{BARE}",
        f"In `model.py` I raise the rate:\n{BARE}",
        f"program.py\n{BARE}",
        f"/home/user/project/model.py\n{BARE}",
        f"File: model.py\n{BARE}",
        f"```python:model.py\n{BARE}```\n",
        f"```python model.py\n{BARE}```\n",
        BARE.replace("<<<<<<<", "-------").replace(">>>>>>>", "+++++++"),
    ],
)
def test_a_block_without_a_path_is_for_the_only_editable_file(text: str, worktree: Path):
    reply_edits.apply_edits(text, worktree, ["model.py"])
    assert (worktree / "model.py").read_text().startswith("RATE = 0.7\nDEPTH = 3\n")


def test_without_a_path_a_block_is_for_the_file_of_the_block_before_it(worktree: Path):
    more = "<<<<<<< SEARCH\nDEPTH = 3\n=======\nDEPTH = 4\n>>>>>>> REPLACE\n"
    reply_edits.apply_edits(
        f"{CHANGE}and then also the depth\n{more}", worktree, ["README.md", "model.py"]
    )
    assert (worktree / "model.py").read_text().startswith("RATE = 0.7\nDEPTH = 4\n")


def test_a_file_is_found_by_the_end_of_its_path(worktree: Path):
    (worktree / "task").mkdir()
    (worktree / "task/program.py").write_text("RATE = 0.1\n")
    reply_edits.apply_edits(
        f"program.py\n{BARE}", worktree, ["README.md", "model.py", "task/program.py"]
    )
    assert (worktree / "task/program.py").read_text() == "RATE = 0.7\n"


def test_commentary_is_no_file_name(worktree: Path):
    text = f"This makes it converge faster:\n{BARE}"
    with pytest.raises(AgentFailure, match=r"no path.* README\.md, model\.py") as caught:
        reply_edits.apply_edits(text, worktree, ["README.md", "model.py"])
    assert "converge" not in caught.value.message


def test_the_error_names_the_block_and_shows_the_nearest_lines(worktree: Path):
    wrong = block("model.py", "def fit(x):\n    return  x*RATE\n", "def fit(x):\n    return x\n")
    with pytest.raises(AgentFailure, match=r"edit 2 of 2: .*nearest lines are 5-6") as caught:
        reply_edits.apply_edits(CHANGE + wrong, worktree)
    assert "\n" not in caught.value.message
    assert "def fit(x):\n    return x * RATE\n" in caught.value.detail


def test_whole_files_and_plain_code_blocks():
    text = "```python path=a/b.py\nx = 1\n```\nAs in\n```python\nnot an edit\n```\n"
    text += '```text path="with blank.txt"\nhi\n```\n'
    assert reply_edits.parse_edits(text).edits == (
        FileEdit("a/b.py", "x = 1\n"),
        FileEdit("with blank.txt", "hi\n"),
    )


def test_edits_build_on_each_other_in_order(worktree: Path):
    text = block("model.py", "RATE = 0.1\n", "RATE = 1\n") + block(
        "model.py", "RATE = 1\n", "X = 2\n"
    )
    text += block("new/file.py", "", "A = 1\n") + block("new/file.py", "A = 1\n", "A = 3\n")
    reply_edits.apply_edits(text, worktree)
    assert (worktree / "model.py").read_text().startswith("X = 2\n")
    assert (worktree / "new/file.py").read_text() == "A = 3\n"


def test_a_diff(worktree: Path):
    diff = "--- a/model.py\n+++ b/model.py\n@@ -1,2 +1,2 @@\n-RATE = 0.1\n+RATE = 8\n DEPTH = 3\n"
    reply_edits.apply_edits(f"Here:\n```diff\n{diff}```\n", worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 8\n")


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        ("I would rather not.", "edits_missing", "contains no edit"),
        (CHANGE + block("model.py", "NOT THERE\n", "x\n"), "edits_failed", "is not in"),
        (CHANGE + block("absent.py", "a\n", "x\n"), "edits_failed", "absent.py does not exist"),
        (CHANGE + block("README.md", "", "x\n"), "edits_failed", "README.md exists"),
        (CHANGE + block("twice.txt", "same\n", "x\n"), "edits_failed", "occurs 2 times"),
        (CHANGE + block("image.bin", "a\n", "x\n"), "edits_failed", "not a text file"),
        (CHANGE + block("README.md/x", "", "x\n"), "edits_failed", "README.md"),
        (CHANGE + "model.py\n<<<<<<< SEARCH\na\n", "edits_invalid", "not closed"),
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "edits_invalid", "no path"),
        (CHANGE + "```diff\n--- a/x\n```\n", "edits_invalid", "mixed"),
    ],
)
def test_nothing_is_changed_when_one_edit_is_wrong(
    reply: str, code: str, message: str, worktree: Path, run_git
):
    (worktree / "twice.txt").write_text("same\nother\nsame\n")
    (worktree / "image.bin").write_bytes(b"\xff\xfe\x00")
    before = run_git(worktree, "status", "--porcelain")
    with pytest.raises(AgentFailure, match=message) as caught:
        reply_edits.apply_edits(reply, worktree)
    assert caught.value.code == code
    assert run_git(worktree, "status", "--porcelain") == before


def test_a_write_that_fails_takes_the_others_back(worktree: Path, run_git):
    """`model.py/x.py` cannot be written, which shows only after two files were."""
    made = [
        FileEdit("deep/new.py", "a\n"),
        FileEdit("README.md", "b\n"),
        FileEdit("model.py/x", "c"),
    ]
    with pytest.raises(AgentFailure) as caught:
        edits.write_all(made, worktree)
    assert caught.value.code == "edits_failed"
    assert run_git(worktree, "status", "--porcelain") == ""
    assert not (worktree / "deep").exists()


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", b"END"])
def test_line_endings_and_last_line_are_kept(ending: bytes, last: bytes, worktree: Path):
    target = worktree / "model.py"
    target.write_bytes(ending.join([b"A = 1", b"B = 2", b"C = 3", last]))
    reply_edits.apply_edits(block("model.py", "B = 2\n", "B = 5\nB2 = 6\n"), worktree)
    expected = ending.join([b"A = 1", b"B = 5", b"B2 = 6", b"C = 3", last])
    assert target.read_bytes() == expected


OUTSIDE = [
    "../x", "a/../../x", "/etc/x", ".git/config", ".git", "a/.git/hooks/x", ".GIT/config",
    ".git./x", "link/x", "filelink", "", ".", "a\0b",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_outside_the_worktree_are_refused(path: str, worktree: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (worktree / "link").symlink_to(outside)
    (worktree / "filelink").symlink_to(outside / "file")
    with pytest.raises(AgentFailure) as caught:
        edits.write_all([FileEdit(path, "theirs")], worktree)
    assert caught.value.code == "edit_outside_worktree"
    assert [p.read_text() for p in outside.iterdir()] == ["mine"]


segments = st.sampled_from(["..", ".", "a", ".git", "b c", "", "~", "link", "ä"])


@settings(max_examples=60, deadline=None)
@given(st.lists(segments, min_size=1, max_size=5).map("/".join))
def test_no_path_reaches_outside(path: str):
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "worktree"
        root.mkdir()
        (root / "link").symlink_to(directory)
        (root / ".git").write_text("gitdir: elsewhere")
        try:
            edits.write_all([FileEdit(path, "x")], root)
        except AgentFailure:
            pass
        else:
            written = [p for p in root.rglob("*") if p.is_file() and p.name != ".git"]
            assert len(written) == 1
        assert [p.name for p in Path(directory).iterdir()] == ["worktree"]
        assert (root / ".git").read_text() == "gitdir: elsewhere"


lines = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=12).filter(
    lambda line: line.strip(" <=>") == line.strip() or not line.strip()
)
texts = st.lists(lines, max_size=8).map(lambda found: "".join(f"{line}\n" for line in found))


@settings(max_examples=60, deadline=None)
@given(texts, texts)
def test_whole_files_come_back_as_they_were_written(one: str, two: str):
    fence = fence_for(one + two) + "`"
    reply = "".join(f"{fence}text path=f{n}\n{body}{fence}\n" for n, body in enumerate((one, two)))
    assert reply_edits.parse_edits(reply).edits == (FileEdit("f0", one), FileEdit("f1", two))


@settings(max_examples=60, deadline=None)
@given(texts, texts.filter(bool), texts, texts)
def test_search_and_replace_comes_back_as_it_was_written(head, old, new, tail):
    current = head + old + tail
    edit = Replacement("f.txt", old, new)
    assert reply_edits.parse_edits(block("f.txt", old, new)).edits == (edit,)
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "f.txt"
        target.write_bytes(current.encode())
        stands = [
            start
            for start in range(len(current))
            if current.startswith(old, start) and (start == 0 or current[start - 1] == "\n")
        ]
        if len(stands) == 1:
            reply_edits.apply_edits(block("f.txt", old, new), Path(directory))
            assert target.read_bytes() == (head + new + tail).encode()
        else:
            with pytest.raises(AgentFailure, match="times"):
                reply_edits.apply_edits(block("f.txt", old, new), Path(directory))
            assert target.read_bytes() == current.encode()


def code(idea: str, worktree: Path) -> str:
    request = RoleRequest("coder", 1, "", idea, worktree, worktree.parent / "logs")
    return PatchCoder().run(request).text


def rate(new: str, header: str = "@@ -1,2 +1,2 @@") -> str:
    """A patch of the first line of model.py."""
    return f"--- a/model.py\n+++ b/model.py\n{header}\n-RATE = 0.1\n+{new}\n DEPTH = 3\n"


def test_several_blocks_are_one_patch(worktree: Path):
    one = rate("RATE = 0.5")
    two = "--- /dev/null\n+++ b/notes/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    code(f"# I\n\n```diff\n{one}```\n\nand\n\n~~~patch\n{two}~~~\n", worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.5\n")
    assert (worktree / "notes/new.txt").read_text() == "hello\n"


def test_missing_patch(worktree: Path):
    with pytest.raises(AgentFailure) as caught:
        code("# Words only\n\n```python\nx = 1\n```\n", worktree)
    assert caught.value.code == "patch_missing"


def test_nothing_is_applied_when_one_hunk_fails(worktree: Path, run_git):
    good = rate("RATE = 0.5")
    bad = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Not the title\n+# Title\n"
    with pytest.raises(AgentFailure) as caught:
        code(f"```diff\n{good}{bad}```\n", worktree)
    assert caught.value.code == "patch_failed"
    assert "README.md" in caught.value.message
    assert run_git(worktree, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/tmp/outside.txt", ".git/config", "link/outside.txt", ".git"]
)
def test_patches_cannot_leave_the_worktree(path: str, worktree: Path, tmp_path: Path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (worktree / "link").symlink_to(outside)
    git_file = (worktree / ".git").read_bytes()
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+mine\n"
    with pytest.raises(AgentFailure) as caught:
        apply_patch(patch, worktree)
    assert caught.value.code == "patch_failed"
    assert list(outside.iterdir()) == []
    assert not (worktree.parent / "outside.txt").exists()
    assert (worktree / ".git").read_bytes() == git_file


def test_miscounted_hunk_is_recounted_and_said(worktree: Path):
    patch = rate("RATE = 0.5", header="@@ -1,9 +1,7 @@")
    assert "counted again" in code(f"```diff\n{patch}```\n", worktree)


def test_lf_patch_on_a_crlf_file_keeps_crlf(worktree: Path):
    (worktree / "model.py").write_bytes(b"A = 1\r\nB = 2\r\n")
    apply_patch(
        "--- a/model.py\n+++ b/model.py\n@@ -1,2 +1,2 @@\n-A = 1\n+A = 5\n B = 2\n", worktree
    )
    assert (worktree / "model.py").read_bytes() == b"A = 5\r\nB = 2\r\n"


def test_patch_applies_in_a_repository_with_whitespace_rules(worktree: Path, run_git):
    """A user's `apply.whitespace = error` must not decide which ideas can be tried."""
    run_git(worktree, "config", "apply.whitespace", "error")
    apply_patch(rate("RATE = 0.5   "), worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.5   \n")


@pytest.mark.parametrize("header", ["@@ -2 +2 @@", "@@ -2,4 +2,7 @@"])
def test_a_patch_without_context_is_placed_by_its_lines_and_said(header: str, worktree: Path):
    """What `git diff -U0` writes, and models that save words."""
    patch = f"--- a/model.py\n+++ b/model.py\n{header}\n-DEPTH = 3\n+DEPTH = 4\n"
    assert "no context lines" in code(f"```diff\n{patch}```\n", worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.1\nDEPTH = 4\n\n")


def test_a_patch_without_context_must_still_match(worktree: Path, run_git):
    patch = "--- a/model.py\n+++ b/model.py\n@@ -2 +2 @@\n-DEPTH = 9\n+DEPTH = 4\n"
    with pytest.raises(AgentFailure, match="does not apply"):
        apply_patch(patch, worktree)
    assert run_git(worktree, "status", "--porcelain") == ""
