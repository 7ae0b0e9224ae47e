"""The baseline: made, checked before it is written, and stale when the code has changed since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.toy import PARAMS, ToyRepository

SEARCH = ("tree", "--tree-run-id", "run", "--ideas-per-node", "1", "--max-depth", "1")


def search(toy: ToyRepository, treewright, *flags: str):
    return treewright(*SEARCH, "--sweep-config-limit", "8", *flags, "--repo", str(toy.path))


def manifest(toy: ToyRepository) -> dict:
    return json.loads((toy.run_dir("run") / "manifest.json").read_text())


def without_baseline(toy: ToyRepository) -> None:
    (toy.path / "baseline.csv").unlink()
    toy.commit("no baseline yet")


def test_a_baseline_of_older_code_is_called_stale_in_log_and_report(toy, treewright) -> None:
    toy.write("params.txt", PARAMS.replace("A 1.0", "A 4.0"))
    toy.commit("better code, old baseline")
    done = search(toy, treewright, "--no-preflight")
    assert done.returncode == 0, done.stderr
    assert "params.txt changed since" in done.stderr
    assert "params.txt" in manifest(toy)["baseline_doubt"]
    assert "Stale baseline" in (toy.run_dir("run") / "TREE_SUMMARY.md").read_text()


def test_a_stale_baseline_that_the_root_contradicts_is_refused(toy, treewright) -> None:
    """With such a baseline every comparison would include the change of the code."""
    toy.write("helper.py", "")
    toy.commit("code that changes no number")
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    assert "helper.py changed since" in done.stderr
    toy.write("params.txt", PARAMS.replace("A 1.0", "A 4.0"))
    toy.commit("better code, old baseline")
    done = treewright(*SEARCH[:2], "other", "--repo", str(toy.path))
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "is not the root's: loss of config 0 is 16.5 there and 13.5 in a sweep" in line
    assert "run with --make-baseline to measure it again (and set repeats = 3" in line
    assert not toy.run_dir("other").exists()


def test_a_baseline_may_lie_outside_the_repository(toy, treewright, tmp_path) -> None:
    """Several checkouts share such a baseline. Regression: git was asked for its commit and
    failed."""
    (toy.path / "baseline.csv").rename(tmp_path / "shared.csv")
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", config.replace('"baseline.csv"', f'"{tmp_path}/shared.csv"'))
    toy.commit("a baseline elsewhere")
    (tmp_path / "shared.csv").touch()
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    assert "changed since" not in done.stderr


def test_a_baseline_of_the_same_code_with_other_numbers_gives_a_warning(toy, treewright) -> None:
    """Times measured at another hour differ; metrics that are measured in turns give no warning."""
    path = toy.path / "baseline.csv"
    rows = path.read_text().splitlines()
    config_id, status, loss, rest = rows[1].split(",", 3)
    rows[1] = f"{config_id},{status},{float(loss) * 1.05},{rest}"
    path.write_text("\n".join(rows) + "\n")
    toy.commit("a baseline of a slower hour")
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    (line,) = [each for each in done.stderr.splitlines() if "of the same code" in each]
    assert line.startswith(f"warning: loss of config 0 was {float(loss) * 1.05:.6g} in baseline")
    assert "set repeats = 3" in line


def kept_log(said: str) -> str:
    """Return the content of the log that a message ends with."""
    assert said.endswith(")"), said
    return Path(said.rpartition("(log: ")[2].removesuffix(")")).read_text()


def test_the_error_quotes_the_output_of_the_sweep(toy, treewright) -> None:
    """The run that could not start is removed; the log of its sweep is kept."""
    sweep = (toy.path / "sweep.sh").read_text()
    spoiling = 'sed -i s/,ok,/,failed,/ "$TREEWRIGHT_RESULTS_CSV"; echo first; echo no gpu'
    toy.write("sweep.sh", f"{sweep}\n{spoiling}\n")
    toy.commit("a sweep whose rows are not sound")
    done = search(toy, treewright)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert "config_id 0 has status 'failed'; it said: first | no gpu (log: " in said
    assert kept_log(said) == "first\nno gpu\n"
    without_baseline(toy)
    done = search(toy, treewright, "--make-baseline")
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "config_id 0 has status 'failed'; it said: first | no gpu (log: " in said
    assert kept_log(said) == "first\nno gpu\n"


@pytest.mark.parametrize("flags", [(), ("--make-baseline",)])
def test_the_error_names_the_module_that_a_sweep_cannot_import(
    toy, treewright, flags: tuple[str, ...]
) -> None:
    toy.write("sweep.sh", "python3 -c 'import no_such_package'\n")
    toy.commit("a sweep without its package")
    if flags:
        without_baseline(toy)
    done = search(toy, treewright, *flags)
    said = done.stderr.splitlines()[-1]
    assert "No module named 'no_such_package'" in said
    assert "Traceback" in kept_log(said)
    assert not toy.run_dir("run").exists()


@pytest.mark.parametrize("flags", [(), ("--make-baseline",)])
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("python3 -m no_such_module", "No module named no_such_module (on the root commit itself"),
        ("echo Ran 0 tests in 0.0s", "the test command runs no test on the root commit"),
    ],
)
def test_broken_tests_are_reported_before_any_model_call(
    toy, treewright, command: str, why: str, flags: tuple[str, ...]
) -> None:
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", config.replace("sh tests.sh", command))
    toy.commit("tests that do not work")
    if flags:
        without_baseline(toy)
    done = search(toy, treewright, *flags)
    assert done.returncode == 1, done.stderr
    assert why in done.stderr.splitlines()[-1]
    assert not toy.run_dir("run").exists()
    unseen = search(toy, treewright, *flags, "--no-preflight")
    assert unseen.returncode == ("Ran 0 tests" not in command), "the first failure looks again"


def test_a_broken_baseline_is_remade_on_request(toy, treewright) -> None:
    toy.write("baseline.csv", "")
    toy.commit("an empty baseline")
    done = search(toy, treewright)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("--make-baseline measures the root again")
    done = search(toy, treewright, "--make-baseline")
    assert done.returncode == 0, done.stderr


def test_a_dry_run_runs_no_tests(toy, treewright) -> None:
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", config.replace("sh tests.sh", "false"))
    toy.commit("tests that fail")
    without_baseline(toy)
    done = search(toy, treewright, "--dry-run", "--make-baseline")
    assert done.returncode == 0, done.stderr


def test_no_run_is_made_without_its_ideas(toy, treewright) -> None:
    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", config.replace('path = "ideas"', 'path = "idaes"'))
    toy.commit("a wrong path")
    done = search(toy, treewright)
    assert done.returncode == 2
    assert "there is no directory idaes for ideas" in done.stderr
    assert not toy.run_dir("run").exists()


def test_make_baseline_replaces_a_stale_one(toy, treewright) -> None:
    toy.write("params.txt", PARAMS.replace("A 1.0", "A 4.0"))
    toy.commit("better code, old baseline")
    done = search(toy, treewright, "--make-baseline")
    assert done.returncode == 0, done.stderr
    assert manifest(toy)["baseline_doubt"] is None
    assert ",13.500000," in (toy.path / "baseline.csv").read_text()


@pytest.mark.parametrize("path", ["README.md", "ideas/05_more.md", "treewright.toml"])
def test_changed_prose_ideas_and_configuration_do_not_make_a_baseline_stale(
    toy, treewright, path: str
) -> None:
    old = (toy.path / path).read_text() if (toy.path / path).exists() else ""
    toy.write(path, old + "\n# more\n")
    toy.commit("words")
    assert search(toy, treewright).returncode == 0
    assert manifest(toy)["baseline_doubt"] is None


def test_an_unsound_baseline_is_not_written(toy, treewright) -> None:
    without_baseline(toy)
    sweep = (toy.path / "sweep.sh").read_text().replace('"%d,ok,', '"%d,error,')
    toy.write("sweep.sh", sweep)
    toy.commit("a sweep whose rows fail")
    done = search(toy, treewright, "--make-baseline")
    assert done.returncode == 2
    assert "status 'error'" in done.stderr
    assert not (toy.path / "baseline.csv").exists()
    assert not toy.run_dir("run").exists()


def test_a_new_baseline_does_not_make_the_repository_dirty_for_the_next_run(
    toy, treewright
) -> None:
    without_baseline(toy)
    assert search(toy, treewright, "--make-baseline").returncode == 0
    again = treewright(
        "tree", "--tree-run-id", "next", "--ideas-per-node", "1", "--max-depth", "1",
        "--sweep-config-limit", "8", "--repo", str(toy.path),
    )  # fmt: skip
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    "flags",
    [
        ("--sweep-config-limit", "99"),
        ("--sweep-config-limit", "8", "--confirm-configs", "40"),
    ],
)
def test_a_run_that_cannot_start_leaves_no_files(toy, treewright, flags: tuple[str, ...]) -> None:
    sweep = (toy.path / "sweep.sh").read_text()
    toy.write("sweep.sh", sweep.replace("END {", "END { if (stop > 16) stop = 16;"))
    toy.commit("a sweep of sixteen configs")
    done = treewright(*SEARCH, *flags, "--repo", str(toy.path))
    assert done.returncode != 0
    assert "config_id 16" in done.stderr
    assert not toy.run_dir("run").exists()
    assert toy.git("for-each-ref", "refs/heads/treewright") == ""


def test_a_missing_agent_is_reported_before_the_run_starts(toy, treewright) -> None:
    config = (toy.path / "treewright.toml").read_text()
    agent = '\n[agents.coder]\nbackend = "command"\ncommand = ["no-such-agent"]\n'
    toy.write("treewright.toml", config + agent)
    toy.commit("an agent")
    done = search(toy, treewright)
    assert done.returncode == 2
    assert "no-such-agent" in done.stderr
    assert not toy.run_dir("run").exists()


@pytest.mark.parametrize("flags", [(), ("--make-baseline",)])
def test_the_error_for_a_wrong_metric_name_lists_the_columns(
    toy, treewright, flags: tuple[str, ...]
) -> None:
    path = toy.path / "treewright.toml"
    path.write_text(path.read_text().replace('name = "loss"', 'name = "lost"'))
    toy.commit("another name")
    done = search(toy, treewright, *flags)
    assert done.returncode != 0
    (line,) = [words for words in done.stderr.splitlines() if "`lost`" in words]
    assert "there is no column `lost`, as a metric of the configuration is called" in line
    assert "(`name` under [[metrics]]); its columns are " in line
    assert "loss" in line.partition("its columns are ")[2]
    assert ("If the sweep writes it by now, --make-baseline" in line) == (not flags)
