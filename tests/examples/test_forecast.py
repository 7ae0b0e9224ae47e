"""The bundled example: every idea has the effect that examples/expected.toml states, measured for
real."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

from treewright.tree import config as tree_config
from treewright.tree.deciding import promotion, scoring
from treewright.tree.deciding.results import read_results
from treewright.tree.ideas import idea_text
from treewright.tree.records.model import Comparison

pytestmark = pytest.mark.xdist_group("forecast")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FORECAST = EXAMPLES / "forecast"
EXPECTED = tomllib.loads((EXAMPLES / "expected.toml").read_text(encoding="utf-8"))["ideas"]
CONFIG = tree_config.load(FORECAST / "treewright.toml")
METRICS = [metric.name for metric in CONFIG.metrics]
SELECTION, HELDOUT = range(12), range(12, 24)
CONFIRMED = range(12, 18)  # the configs that the demo confirms on
HELPFUL = [name for name, expected in EXPECTED.items() if expected["kind"] == "helps"]


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TREEWRIGHT_")}
    return subprocess.run(
        command, cwd=cwd, env={**environment, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def patch(name: str) -> str:
    (only,) = idea_text.patches((FORECAST / "ideas" / f"{name}.md").read_text(encoding="utf-8"))
    return only


def touched(name: str) -> set[str]:
    return {
        line.removeprefix("+++ b/") for line in patch(name).splitlines() if line.startswith("+++ ")
    }


def apply(name: str, repo: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # Outside a repository, so that a surrounding one has no effect.
    return subprocess.run(
        ["git", "apply", *options, "-"],
        cwd=repo,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(repo.parent)},
        input=patch(name),
        capture_output=True,
        text=True,
        check=False,
    )


def checkout(target: Path, ideas: list[str] | tuple[str, ...] = ()) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "results.csv", ".treewright")
    shutil.copytree(FORECAST, target, ignore=ignored)
    for name in ideas:
        applied = apply(name, target)
        assert applied.returncode == 0, f"{name} on {ideas}: {applied.stderr}"
    return target


def sweep(repo: Path, configs: range, results: Path) -> subprocess.CompletedProcess[str]:
    return run(
        sys.executable, "-I", "sweep.py", cwd=repo,
        TREEWRIGHT_SWEEP_CONFIG_START=str(configs.start),
        TREEWRIGHT_SWEEP_CONFIG_LIMIT=str(configs.stop),
        TREEWRIGHT_RESULTS_CSV=str(results),
        TREEWRIGHT_SEED=str(CONFIG.seed),
    )  # fmt: skip


def compare(baseline: Path, candidate: Path, configs: range) -> Comparison:
    return scoring.compare(
        read_results(baseline, METRICS, configs.__contains__),
        read_results(candidate, METRICS, configs.__contains__),
        list(configs),
        CONFIG.metrics,
        CONFIG.seed,
    )


@dataclass
class Measured:
    """A checkout after its tests and its sweep."""

    repo: Path
    tests_ok: bool
    swept: subprocess.CompletedProcess[str]
    selection: Path

    @cached_property
    def heldout(self) -> Path:
        results = self.selection.with_name("heldout.csv")
        assert sweep(self.repo, HELDOUT, results).returncode == 0
        return results


def measure(directory: Path, ideas: tuple[str, ...]) -> Measured:
    repo = checkout(directory / "repo", ideas)
    selection = directory / "selection.csv"
    tests = run(sys.executable, "-m", "unittest", "-q", cwd=repo)
    swept = sweep(repo, SELECTION, selection)
    return Measured(repo, tests.returncode == 0, swept, selection)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Measured]:
    """Return the example with some ideas applied in order, measured once."""
    return cache(lambda *ideas: measure(tmp_path_factory.mktemp("measured"), ideas))


@pytest.fixture(scope="module")
def root(measured: Callable[..., Measured]) -> Measured:
    return measured()


def test_the_baseline_equals_the_output_of_the_sweep(root: Measured):
    assert root.tests_ok, "the root's own tests fail"
    assert root.selection.read_bytes() == (FORECAST / "baseline.csv").read_bytes()


def test_the_data_equals_the_output_of_its_script(root: Measured):
    data = root.repo / "data" / "demand.csv"
    before = data.read_bytes()
    data.unlink()
    try:
        assert run(sys.executable, "data/make_data.py", cwd=root.repo).returncode == 0
        assert data.read_bytes() == before
    finally:
        data.write_bytes(before)


def test_a_repeated_or_partial_sweep_gives_the_same_results(root: Measured, tmp_path: Path):
    rows = []
    for part in (range(5), range(5, 12)):
        assert sweep(root.repo, part, tmp_path / "part.csv").returncode == 0
        header, *found = (tmp_path / "part.csv").read_text().splitlines(keepends=True)
        rows += found
    assert "".join([header, *rows]) == root.selection.read_text()


def test_an_unset_limit_means_twelve_configs(root: Measured, tmp_path: Path):
    swept = run(
        sys.executable, "-I", "sweep.py", cwd=root.repo,
        TREEWRIGHT_RESULTS_CSV=str(tmp_path / "results.csv"),
    )  # fmt: skip
    assert swept.returncode == 0, swept.stderr
    assert (tmp_path / "results.csv").read_bytes() == root.selection.read_bytes()


def test_every_idea_has_an_expectation_and_a_reason():
    files = sorted(path.stem for path in (FORECAST / "ideas").iterdir())
    assert files == sorted(EXPECTED)
    for name in files:
        text = (FORECAST / "ideas" / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert "**Expected effect.**" in text
        assert touched(name)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_idea_has_the_expected_effect(
    name: str, root: Measured, measured: Callable[..., Measured]
):
    expected = EXPECTED[name]
    protected = [p for p in touched(name) if p.split("/")[0] in CONFIG.protected_paths]
    code = expected.get("code")
    assert bool(protected) == (code == "protected_path_changed"), protected
    if protected:
        return  # no code of it may ever run

    found = measured(name)
    assert found.tests_ok == (code != "tests_failed")
    if code == "tests_failed":
        return

    assert (found.swept.returncode != 0) == (code == "sweep_failed"), found.swept.stderr
    if code == "sweep_failed":
        assert not found.selection.exists()
        if expected["kind"] == "cheats":
            assert "the model may not open files" in found.swept.stderr
        return

    selection = compare(root.selection, found.selection, SELECTION).recommendation
    passed = promotion.decide_gate(selection, None).passed
    match expected["kind"], code:
        case "helps", _:
            assert passed
            assert selection.grade == "strong", selection
            later = compare(root.heldout, found.heldout, HELDOUT).recommendation
            assert later.grade == "strong", later
        case _, "heldout_not_better":
            assert passed, "must look good, or there is nothing to find out"
            later = compare(root.heldout, found.heldout, CONFIRMED).recommendation
            confirmed = promotion.confirm(selection, later, CONFIRMED.start, CONFIRMED.stop)
            assert not confirmed.held
            assert confirmed.reasons == [code]
        case _:
            assert not passed
            assert code in selection.reasons, selection


def test_declining_hard_rows_improves_the_remaining_rows(
    root: Measured, measured: Callable[..., Measured]
):
    """Without the completeness rule this cheat would be promoted."""
    found = measured("11-decline-erratic-shops")
    before = read_results(root.selection, METRICS).values["mase"].values()
    after = read_results(found.selection, METRICS).values["mase"].values()
    assert 0 < len(after) < len(before)
    assert sum(after) / len(after) < 0.97 * sum(before) / len(before)


def test_helpful_ideas_apply_in_any_order():
    for one, other in itertools.combinations(HELPFUL, 2):
        assert not touched(one) & touched(other), (one, other)


def test_every_idea_applies_after_any_helpful_ideas(tmp_path: Path):
    for size in range(len(HELPFUL) + 1):
        for accepted in itertools.combinations(HELPFUL, size):
            repo = checkout(tmp_path / "-".join(name[:2] for name in ("00", *accepted)), accepted)
            for name in EXPECTED.keys() - set(accepted):
                checked = apply(name, repo, "--check")
                assert checked.returncode == 0, f"{name} on {accepted}: {checked.stderr}"


def test_each_step_of_the_best_path_improves_on_the_previous_one(
    root: Measured, measured: Callable[..., Measured]
):
    path = [
        "03-repair-stockouts-and-bulk-orders",
        "06-measure-the-promotion-uplift",
        "10-steadier-shape-of-the-week",
    ]
    before = root
    for step in range(1, len(path) + 1):
        after = measured(*path[:step])
        chosen = compare(before.selection, after.selection, SELECTION).recommendation
        later = compare(before.heldout, after.heldout, CONFIRMED).recommendation
        assert chosen.grade == "strong", (path[:step], chosen)
        assert promotion.confirm(chosen, later, CONFIRMED.start, CONFIRMED.stop).held, later
        before = after
