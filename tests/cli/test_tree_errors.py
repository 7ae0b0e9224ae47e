"""Every wrong call: one line on stderr, an empty stdout, the documented exit code."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.toy import ToyRepository
from treewright.cli.main import cli
from treewright.kernel.errors import TreewrightError

DRY = ("--dry-run", "--ideas-per-node", "2", "--max-depth", "2", "--sweep-config-limit", "6")


def refused(toy: ToyRepository | Path, *flags: str) -> str:
    """Return the error of a call that must fail, made in this process."""
    place = toy.path if isinstance(toy, ToyRepository) else toy
    result = CliRunner().invoke(cli, ["tree", "--repo", str(place), *flags])
    assert result.stdout == ""
    if isinstance(result.exception, TreewrightError):
        assert "\n" not in str(result.exception)
        return f"{result.exception.exit_code}: {result.exception}"
    assert isinstance(result.exception, SystemExit), result.exception
    return f"{result.exit_code}: {result.stderr.strip().splitlines()[-1]}"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--tree-run-id", "../x"), "2: run id '../x' is not usable"),
        (("--tree-run-id", ""), "2: run id '' is not usable"),
        (("--confirm-configs", "3"), "2: --confirm-configs needs --sweep-config-limit"),
        (("--config", "none.toml"), "2: no configuration at "),
        (("--ideas-per-node", "0"), "2: Error: Invalid value for '--ideas-per-node'"),
        (("--beam-width", "-1"), "2: Error: Invalid value for '--beam-width'"),
        (("--max-depth", "x"), "2: Error: Invalid value for '--max-depth'"),
        (("--sweep-config-limit", "0"), "2: Error: Invalid value for '--sweep-config-limit'"),
        (("--max-total-idea-evals", "0"), "2: Error: Invalid value for '--max-total-idea-evals'"),
        (("--confirm-configs", "-1"), "2: Error: Invalid value for '--confirm-configs'"),
        (("--dedupe-scope", "some"), "2: Error: Invalid value for '--dedupe-scope'"),
        (("--lock-stale-seconds", "0"), "2: Error: Invalid value for '--lock-stale-seconds'"),
        (("--eval-timeout-seconds", "0"), "2: Error: Invalid value for '--eval-timeout-seconds'"),
        (("--eval-retries", "-1"), "2: Error: Invalid value for '--eval-retries'"),
        (("--cluster", "tcp://x"), "2: --cluster and --cluster-remote need --parallel-backend"),
        (("--no-such-flag",), "2: Error: No such option"),
        (("--report-only",), "2: --report-only and --validate-only need --tree-run-id"),
        (("--validate-only",), "2: --report-only and --validate-only need --tree-run-id"),
        (("--report-only", "--tree-run-id", "none"), "2: no tree run at "),
        (("--validate-only", "--tree-run-id", "none"), "2: no tree run at "),
        (("--report-only", "--tree-run-id", "a/b"), "2: run id 'a/b' is not usable"),
        (("--extend", *DRY), "2: --extend goes on with a run: name it with --tree-run-id"),
        (("--extend", "--tree-run-id", "nihgt", *DRY), "2: no tree run at "),
        (("--sweep-config-limit", "99"), "2: "),
    ],
)
def test_an_invalid_call_is_refused(toy: ToyRepository, flags, words: str) -> None:
    assert refused(toy, *flags).startswith(words)
    runs = toy.path / ".treewright" / "tree_runs"
    assert not list(runs.glob("*/manifest.json"))


@pytest.mark.parametrize("mode", ["--report-only", "--validate-only"])
@pytest.mark.parametrize(
    "flag",
    [
        ("--ideas-per-node", "2"), ("--beam-width", "2"), ("--max-depth", "2"), ("--dry-run",),
        ("--force",), ("--until-done",), ("--make-baseline",), ("--lock-stale-seconds", "5"),
        ("--config", "x.toml"), ("--no-stop-on-empty-frontier",), ("--dedupe-scope", "none"),
        ("--keep-failed-artifacts",), ("--keep-rejected-worktrees",), ("--eval-retries", "1"),
        ("--max-parallel-evals", "2"), ("--strict-fail",),
    ],
    ids=lambda value: value[0],
)  # fmt: skip
def test_reading_modes_refuse_flags_without_effect(toy, mode: str, flag) -> None:
    said = refused(toy, mode, "--tree-run-id", "run", *flag)
    assert said.startswith(f"2: {flag[0].replace('--no-stop', '--stop')} means nothing with")


def test_a_directory_that_is_not_a_repository_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith(f"2: {tmp_path} is not inside a git repository")
    assert refused(tmp_path / "none").startswith("2: ")


def test_a_repository_of_another_user_is_named_as_such(toy: ToyRepository, monkeypatch) -> None:
    """Git refuses to open it, as in a container with a mounted checkout."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    said = refused(toy)
    assert said.startswith(f"2: {toy.path} belongs to another user, and git does not open it")
    assert f"git config --global --add safe.directory {shlex.quote(str(toy.path))}" in said
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    inside = refused(toy.path / ".git")
    assert inside.startswith(f"2: git finds no working tree at {toy.path / '.git'}: this operation")


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    toy = ToyRepository(tmp_path)
    assert refused(toy).startswith(f"2: no configuration at {tmp_path / 'treewright.toml'}")
    (tmp_path / ".git" / "info" / "exclude").write_text("*\n")
    created = ToyRepository.create(tmp_path / "full")
    toy.write("treewright.toml", (created.path / "treewright.toml").read_text())
    assert "has no commit yet" in refused(toy)


def test_a_dirty_root_is_refused_for_a_new_run_only(toy: ToyRepository) -> None:
    assert invoke(toy, *DRY, "--tree-run-id", "run")["current_depth"] == 1
    toy.write("params.txt", "changed\n")
    said = refused(toy, *DRY, "--tree-run-id", "other")
    assert said.startswith("2: Root working tree must be clean to start a run (first change:  M p")
    assert invoke(toy, "--tree-run-id", "run")["tree_run_id"] == "run"
    toy.git("checkout", "-q", "params.txt")
    toy.write("new file", "")
    assert "Root working tree must be clean" in refused(toy, *DRY, "--tree-run-id", "other")


def test_a_detached_head_is_fine_if_clean(toy: ToyRepository) -> None:
    toy.git("checkout", "-q", "--detach")
    assert invoke(toy, *DRY)["current_depth"] == 1
    toy.write("params.txt", "changed\n")
    assert "Root working tree must be clean" in refused(toy, *DRY)


def test_the_error_for_a_missing_baseline_names_make_baseline(toy: ToyRepository) -> None:
    toy.git("rm", "-q", "baseline.csv")
    toy.commit("no baseline")
    assert "--make-baseline" in refused(toy, "--sweep-config-limit", "6")
    assert invoke(toy, *DRY)["current_depth"] == 1, "a dry run invents one"


def test_a_baseline_with_holes_is_refused(toy: ToyRepository) -> None:
    path = toy.path / "baseline.csv"
    path.write_text(path.read_text().replace("\n3,ok,", "\n3,failed,"))
    toy.commit("a hole")
    said = refused(toy, "--sweep-config-limit", "6")
    assert "not usable as a baseline: incomplete_rows: config_id 3 has status 'failed'" in said


SHAPES = [
    ("--ideas-per-node", "3", "2"), ("--beam-width", "4", "1"), ("--max-depth", "9", "2"),
    ("--sweep-config-limit", "7", "6"), ("--max-total-idea-evals", "5", "None"),
    ("--dedupe-scope", "none", "node_plus_ancestors"), ("--confirm-configs", "2", "0"),
]  # fmt: skip


def test_resuming_with_another_shape_is_refused_with_both_values(toy: ToyRepository) -> None:
    invoke(toy, *DRY, "--tree-run-id", "run")
    manifest = toy.run_dir("run") / "manifest.json"
    before = manifest.read_bytes()
    for flag, given, recorded in SHAPES:
        said = refused(toy, "--tree-run-id", "run", flag, given)
        assert said.startswith(f"2: {flag} is {given} here but {recorded} in run run")
    said = refused(toy, "--tree-run-id", "run", "--no-stop-on-empty-frontier")
    assert "--no-stop-on-empty-frontier is given here but --stop-on-empty-frontier in run" in said
    assert manifest.read_bytes() == before
    same = invoke(toy, *DRY, "--tree-run-id", "run", "--beam-width", "1")
    assert same["tree_run_id"] == "run"


def invoke(toy: ToyRepository, *flags: str) -> dict:
    result = CliRunner().invoke(cli, ["tree", "--repo", str(toy.path), *flags])
    assert result.exit_code == 0, result.stderr or result.exception
    return json.loads(result.stdout)


def test_json_goes_to_stdout_and_messages_to_stderr(toy: ToyRepository, treewright) -> None:
    done = treewright("tree", "--repo", str(toy.path), *DRY, "--until-done")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    document = json.loads(done.stdout)
    for key in ("tree_run_id", "current_depth", "stop_reason", "frontier", "best", "counts"):
        assert key in document
    assert document["tree_run_id"] in done.stderr
    assert "depth 1" in done.stderr
    assert "\x1b" not in done.stderr, "no colours where nobody sees them"
    assert Path(document["run_dir"]).is_dir()
    assert toy.git("status", "--porcelain") == ""


@pytest.mark.parametrize("arguments", [["--help"], ["tree", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from treewright.cli.main import main\n"
        f"sys.argv = ['treewright', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    heavy = {"numpy", "rich", "msgspec", "httpx", "dask", "distributed", "asyncio", "tomllib"}
    if "tree" in arguments:
        heavy.remove("msgspec")  # each policy describes itself
    assert not loaded & heavy
    assert "treewright" in loaded
    assert done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forest",), "No such command 'forest'; see `treewright --help`"),
        (("tre",), "No such command 'tre'. Did you mean 'tree'?; see `treewright --help`"),
        (("--frost",), "No such option '--frost'; see `treewright --help`"),
        (("tree", "--beam-widt", "3"), "No such option '--beam-widt'. Did you mean"),
        (
            ("tree", "--max-depth", "x"),
            "Invalid value for '--max-depth': 'x' is not a valid integer; "
            "see `treewright tree --help`",
        ),
        (("tree", "--beam-width"), "Option '--beam-width' requires an argument; see"),
        (("lean", "check"), "Missing argument 'FILES...'; see `treewright lean check --help`"),
    ],
)
def test_a_wrong_call_of_any_command_is_one_line(
    treewright, arguments: tuple[str, ...], words: str
) -> None:
    done = treewright(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"treewright: {words}")
    assert done.stderr.count("\n") == 1


def test_a_call_without_a_command_shows_the_help(treewright) -> None:
    done = treewright()
    assert done.returncode == 2
    assert "Commands:" in done.stderr
