"""`treewright init` writes a file that loads and that a search can start from."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.kernel.errors import UsageError
from treewright.tree import config as configuration
from treewright.tree.ideas import mutate_source
from treewright.tree.run.creation import NewRun, Shape
from treewright.tree.starter import render_survey, survey


def repository(path: Path, files: dict[str, str]) -> Path:
    path.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=path, check=True)
    for name, text in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return path


def written(repo: Path) -> configuration.Config:
    path = repo / "treewright.toml"
    path.write_text(render_survey(survey(repo)))
    return configuration.load(path)


def test_empty_repository_gets_placeholders_that_a_run_names(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r", {"README.md": "hello"})
    config = written(repo)
    endpoints = ["ideas[0].endpoint", "agents.coder.endpoint"]
    assert configuration.unfilled(config) == [
        "sweep.command",
        "metrics[0].name",
        *(f"{endpoint}.{key}" for endpoint in endpoints for key in ("base_url", "model")),
    ]
    new_run = NewRun(repo, repo / "x", "x", config, repo / "treewright.toml", Shape())
    with pytest.raises(UsageError, match=r"treewright\.toml: `sweep\.command` still says FILL_IN"):
        new_run.check()


def test_python_package_in_src_is_imported_from_the_candidate(tmp_path: Path) -> None:
    repo = repository(
        tmp_path / "r",
        {
            "src/pkg/__init__.py": "",
            "src/pkg/model.py": "RATE = 0.1\n",
            "tests/test_model.py": "def test_it(): pass\n",
            "pyproject.toml": "[tool.pytest.ini_options]\n",
            "scripts/sweep.py": 'HEADER = "config_id,status,accuracy,seconds"\n',
        },
    )
    config = written(repo)
    assert config.tests is not None
    assert config.tests.command.startswith("PYTHONPATH=src python")
    assert config.tests.command.endswith("-m pytest -q")
    assert config.sweep.command.endswith("scripts/sweep.py")
    assert [(m.name, m.direction, m.primary) for m in config.metrics] == [
        ("accuracy", "maximize", True),
        ("seconds", "minimize", False),
    ]
    assert {"tests", "scripts/sweep.py", "pyproject.toml"} <= set(config.protected_paths)
    assert tunable_files(config) == ["src/pkg/**/*.py"]
    text = (repo / "treewright.toml").read_text()
    assert "# (in the column's own unit). The primary metric ranks candidates; weights say" in text


def tunable_files(config: configuration.Config) -> list[str]:
    (source,) = config.ideas
    assert isinstance(source, configuration.MutateIdeas)
    return list(source.files)


@pytest.mark.parametrize("name", ["evaluator.py", "score_model.py", "metrics.py", "run_eval.py"])
def test_scoring_files_are_protected_and_not_mutated(tmp_path: Path, name: str) -> None:
    repo = repository(tmp_path / "r", {"model.py": "RATE = 0.1\n", name: "LIMIT = 3\n"})
    config = written(repo)
    assert tunable_files(config) == ["model.py"]
    assert name in config.protected_paths


def test_scoring_files_inside_a_package_are_protected(tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "", "pkg/model.py": "RATE = 0.1\n", "pkg/metrics.py": "K = 3\n"}
    repo = repository(tmp_path / "r", files)
    config = written(repo)
    assert "pkg/metrics.py" in config.protected_paths
    (source,) = config.ideas
    assert isinstance(source, configuration.MutateIdeas)
    assert "pkg/metrics.py" not in mutate_source.tunable_files(source, repo, config.protected_paths)
    assert "pkg/model.py" in mutate_source.tunable_files(source, repo, config.protected_paths)


def test_metrics_come_from_measured_columns_of_a_results_file(tmp_path: Path) -> None:
    repo = repository(
        tmp_path / "r",
        {
            "bench.sh": "echo config_id,status,size,loss,name\n",
            "out/results.csv": "config_id,status,size,loss,name\n0,ok,8,0.5,a\n1,ok,16,1,b\n",
            "other.csv": "a,b\n1,2\n",
        },
    )
    config = written(repo)
    assert config.baseline_csv == "out/results.csv"
    assert [metric.name for metric in config.metrics] == ["loss"]
    assert config.sweep.command == "sh bench.sh"
    assert config.tests is None


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tests/test_a.py": "import unittest\n"}, "-m unittest discover -s tests -q"),
        ({"tests/test_a.py": "import unittest\n", "tests/__init__.py": ""}, "-m unittest -q"),
        ({"test_a.py": "import unittest\n"}, "-m unittest -q"),
        ({"tests/test_a.py": "import unittest\n", "conftest.py": ""}, "-m pytest -q"),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"Cargo.toml": ""}, "cargo test --quiet"),
        ({"go.mod": ""}, "go test ./..."),
        ({"Makefile": "all:\n\ntest: all\n"}, "make test"),
    ],
)
def test_the_test_command_is_recognised(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    config = written(repository(tmp_path / "r", files))
    assert config.tests is not None
    assert config.tests.command.endswith(command)


def test_awkward_file_names_are_quoted(tmp_path: Path) -> None:
    name = 'my "odd" dir/sweep.py'
    repo = repository(tmp_path / "r", {name: "TREEWRIGHT_RESULTS_CSV"})
    config = written(repo)
    assert name in config.protected_paths
    done = subprocess.run(
        ["sh", "-c", config.sweep.command.replace("python3 ", "echo ").replace("python ", "echo ")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{name}\n"


def test_command_refuses_to_overwrite_and_its_file_starts_a_search(
    toy: ToyRepository, treewright
) -> None:
    kept = (toy.path / "treewright.toml").read_text()
    refused = treewright("init", cwd=toy.path)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (toy.path / "treewright.toml").read_text() == kept
    done = treewright("init", "--force", "--repo", str(toy.path))
    assert done.returncode == 0, done.stderr
    assert "FILL_IN" not in done.stdout
    toy.commit("configuration")
    run = treewright(
        "tree", "--sweep-config-limit", "10", "--ideas-per-node", "1", "--max-depth", "1",
        cwd=toy.path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["best"]["node_id"] == "n0001"


def test_the_next_steps_mention_a_missing_baseline(tmp_path: Path, treewright) -> None:
    repo = repository(tmp_path / "r", {"a.txt": ""})
    done = treewright("init", "--no-sweep-template", cwd=repo)
    assert "--make-baseline" in done.stdout
    lines = (repo / "treewright.toml").read_text().splitlines()
    listed = [line.split(":") for line in done.stdout.splitlines() if ", line " in line]
    assert len(listed) == 4
    for place, _ in listed:
        assert "FILL_IN" in lines[int(place.split()[-1]) - 1]


def test_a_repository_without_a_sweep_gets_a_sealed_one(tmp_path: Path, treewright) -> None:
    repo = repository(tmp_path / "r", {"a.txt": ""})
    done = treewright("init", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert "treewright_sweep.py: `question`, `answer` and `judge`" in done.stdout
    found = configuration.load(repo / "treewright.toml")
    assert (found.sweep.checkout, found.sweep.sealed) == ("root", True)
    assert "treewright_sweep.py" in found.protected_paths
    assert not any(key.startswith(("sweep", "metrics")) for key in configuration.unfilled(found))
    (repo / "treewright.toml").unlink()
    sweep = repo / "treewright_sweep.py"
    sweep.write_text(sweep.read_text() + "# filled in\n")
    assert treewright("init", cwd=repo).returncode == 0
    assert sweep.read_text().endswith("# filled in\n"), "it was there"


def test_a_sweep_that_locates_the_candidate_runs_from_the_roots_checkout(tmp_path: Path) -> None:
    script = 'cd "$TREEWRIGHT_CANDIDATE" && ./measure > "$TREEWRIGHT_RESULTS_CSV"\n'
    repo = repository(tmp_path / "r", {"sweep.sh": script})
    assert written(repo).sweep.checkout == "root"


def test_init_outside_a_repository_is_an_error(tmp_path: Path, treewright) -> None:
    done = treewright("init", cwd=tmp_path)
    assert done.returncode == 2
    assert "not inside a git repository" in done.stderr
