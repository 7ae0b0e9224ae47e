"""`treewright doctor`: installed and missing parts, and its exit codes."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.lean.projects import small_project
from tests.readonly import read_only
from tests.toy import ToyRepository
from treewright.cli import doctor
from treewright.cli.main import cli
from treewright.kernel import health_checks as machine
from treewright.kernel.errors import MissingExtra, UsageError
from treewright.kernel.health_checks import Check
from treewright.lean import checkup as lean
from treewright.tree import checkup


def of(checks, name: str) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


def test_a_ready_repository_passes_every_check(toy: ToyRepository, treewright) -> None:
    done = treewright("doctor", "--json", cwd=toy.path)
    assert done.returncode == 0, done.stdout
    document = json.loads(done.stdout)
    assert document["ok"] is True
    status = {check["name"]: check["status"] for check in document["checks"]}
    for name in ("python", "git", "hard links", "fsync", "configuration", "baseline_csv"):
        assert status[name] == "ok", name
    assert toy.git("status", "--porcelain") == ""


def test_outside_a_repository_only_the_machine_counts(tmp_path: Path, treewright) -> None:
    done = treewright("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "not inside one" in done.stdout


def test_a_missing_requirement_exits_with_1(toy: ToyRepository, treewright) -> None:
    config = toy.path / "treewright.toml"
    config.write_text(config.read_text().replace("[tests]", "[testz]"))
    done = treewright("doctor", cwd=toy.path)
    assert done.returncode == 1
    assert "unknown key `testz`; did you mean `tests`?" in done.stdout


def test_commands_are_looked_up_tracked_and_protected(toy: ToyRepository) -> None:
    def after(old: str, new: str) -> list[Check]:
        text = (toy.path / "treewright.toml").read_text()
        (toy.path / "treewright.toml").write_text(text.replace(old, new))
        found = list(checkup.checks(toy.path))
        (toy.path / "treewright.toml").write_text(text)
        return found

    missing = of(after("sh sweep.sh", "A=1 no-such-program x"), "sweep.command")
    assert (missing.status, "no-such-program" in missing.detail) == ("failed", True)
    toy.write("new.sh", "")
    untracked = of(after("sh sweep.sh", "sh new.sh"), "sweep.command")
    assert (untracked.status, "not tracked" in untracked.detail) == ("failed", True)
    open_to_change = of(after('"sweep.sh", ', ""), "sweep.command")
    assert (open_to_change.status, "not protected" in open_to_change.detail) == ("warning", True)
    unfilled = of(after("sh sweep.sh", "FILL_IN"), "configuration")
    assert (unfilled.status, "sweep.command" in unfilled.detail) == ("failed", True)


def test_an_absent_or_damaged_baseline_is_reported(toy: ToyRepository) -> None:
    path = toy.path / "baseline.csv"
    path.write_text(path.read_text().replace("0,ok", "0,crashed"))
    assert of(checkup.checks(toy.path), "baseline_csv").status == "failed"
    path.unlink()
    assert of(checkup.checks(toy.path), "baseline_csv").status == "absent"


def test_keys_are_named_and_never_shown(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = '{ base_url = "http://127.0.0.1:9/v1", model = "m", api_key_env = "TOY_KEY" }'
    with (toy.path / "treewright.toml").open("a") as file:
        file.write(f'\n[agents.reviewer]\nbackend = "openai"\nendpoint = {endpoint}\n')
    assert of(checkup.checks(toy.path), "TOY_KEY").status == "failed"
    monkeypatch.setenv("TOY_KEY", "sk-very-secret")
    found = list(checkup.checks(toy.path))
    assert of(found, "TOY_KEY").status == "ok"
    assert not any("very-secret" in check.detail + check.hint for check in found)


def test_idea_sources_and_roles_are_probed(toy: ToyRepository) -> None:
    found = list(checkup.checks(toy.path))
    assert of(found, "ideas[0]").detail == "5 idea files in ideas"
    assert {of(found, f"agents.{role}").status for role in ("planner", "coder")} == {"ok"}
    with (toy.path / "treewright.toml").open("a") as file:
        file.write('\n[agents.coder]\nbackend = "command"\ncommand = ["no-such-agent"]\n')
    coder = of(checkup.checks(toy.path), "agents.coder")
    assert (coder.status, "no-such-agent" in coder.detail) == ("failed", True)


def test_agents_on_the_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "aider"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert of(checkup.checks(None), "aider").status == "ok"


def test_a_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine.importlib.metadata,
        "requires",
        lambda _: ["click>=8", "no-such-package>=1; extra == 'moon'"],
    )
    moon = of(machine.checks(None), "moon")
    assert moon.status == "absent"
    assert "treewright[moon]" in moon.hint


def test_a_cache_of_lean_without_its_extra_is_a_line_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of Lean are left out; all other checks run."""

    def missing() -> None:
        raise MissingExtra("the bundled Lean", "lean")

    monkeypatch.setattr(lean, "find_installed", missing)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    found = {check["name"]: check for check in json.loads(done.output)["checks"]}
    assert {"python", "git", "bundled Lean", "micro", "sketch"} <= found.keys()
    assert found["micro"]["status"] == found["bundled Lean"]["status"] == "absent"
    assert "treewright[lean]" in found["micro"]["hint"]


def test_every_named_part_has_checks() -> None:
    for name in doctor.PROVIDERS:
        assert callable(importlib.import_module(name).checks)


def test_a_part_that_cannot_be_checked_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_repo: Path | None) -> None:
        raise UsageError("the moon is in the way")

    monkeypatch.setattr(lean, "checks", broken)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["doctor"])
    assert done.exit_code == 1
    assert "the moon is in the way" in done.output
    assert "strategies" in done.output


def test_a_file_system_without_hard_links_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    found = of(machine.checks(tmp_path), "hard links")
    assert (found.status, "lease" in found.hint) == ("failed", True)
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_directory_is_reported(tmp_path: Path) -> None:
    with read_only(tmp_path):
        assert of(machine.checks(tmp_path), "file system").status == "failed"


def test_the_extra_all_includes_every_other_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    (whole,) = extras.pop("all")
    named = re.fullmatch(r"treewright\[(.*)\]", whole)
    assert named is not None
    assert named[1].split(",") == sorted(extras)
    assert set(machine.EXTRAS) == set(extras), "doctor says of each what it enables"


def test_an_extra_made_of_others_has_no_separate_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As the project file spells it, and as the metadata of a wheel does.
    for whole in ("treewright[llm]", "httpx>=1"):
        needs = ["numpy>=1", 'httpx>=1; extra == "llm"', f'{whole}; extra == "all"']
        monkeypatch.setattr("importlib.metadata.requires", lambda _, needs=needs: needs)
        extras = [check.name for check in machine.checks(None) if check.group == "extras"]
        assert extras == ["llm"]


def test_a_lake_project_below_the_root_of_a_repository_is_found(
    toy: ToyRepository, treewright
) -> None:
    below = small_project(toy.path / "proofs", A="theorem a : 1 = 1 := rfl\n")
    done = treewright("doctor", cwd=below / "Foo")
    said = " ".join(done.stdout.split())
    assert f"Lake project {below}; 0 modules built by lake" in said
    assert "its modules the bundled Lean has compiled 0, 1 when they are needed" in said
    assert "core tactics on the bundled Lean, with the modules of proofs" in said


def test_prompts_are_shown_with_their_length_and_their_files(toy: ToyRepository) -> None:
    role = """
[agents.coder]
backend = "openai"
prompt_tokens = 5000
endpoint = { base_url = "http://127.0.0.1:9/v1", model = "m" }
"""
    config = toy.path / "treewright.toml"
    config.write_text('task = "Make it quick."\n' + config.read_text() + role)
    toy.commit()
    found = of(checkup.checks(toy.path), "prompt of agents.coder")
    assert found.status == "ok"
    assert "of 5,000 tokens" in found.detail
    assert "params.txt" in found.detail
    assert "sweep.sh" not in found.detail
    config.write_text(config.read_text().replace("5000", "50"))
    assert of(checkup.checks(toy.path), "prompt of agents.coder").status == "failed"


def test_doctor_checks_the_imports_of_the_sweep(toy: ToyRepository) -> None:
    """Also by modules in the same directory and by named files, but not by attempted imports."""
    toy.write("sweep.py", "import json\nimport helper\n\nEVALUATOR = 'judge.py'\n")
    toy.write("helper.py", "import msgspec\n")
    toy.write("judge.py", "try:\n    import not_needed\nexcept ImportError:\n    pass\n")
    config = toy.path / "treewright.toml"
    config.write_text(config.read_text().replace("sh sweep.sh", f"{sys.executable} -I sweep.py"))
    toy.commit()
    found = of(checkup.checks(toy.path), "sweep.imports")
    assert (found.status, "msgspec" in found.detail) == ("ok", True)
    toy.write("judge.py", "from no_such_package.part import thing\n")
    found = of(checkup.checks(toy.path), "sweep.imports")
    assert found.status == "failed"
    assert "judge.py" in found.detail
    assert "No module named 'no_such_package'" in found.detail
    assert "install it for" in found.hint


def test_a_code_project_gets_no_checks_of_the_prover(toy: ToyRepository, treewright) -> None:
    said = treewright("doctor", cwd=toy.path).stdout
    assert "lean" not in said.lower().replace(
        "nothing here uses lean: `treewright doctor --all` checks that too.", ""
    ).replace("is clean", "")
    document = json.loads(treewright("doctor", "--json", cwd=toy.path).stdout)
    groups = {check["group"] for check in document["checks"]}
    assert groups.isdisjoint({"lean", "strategies"})
    document = json.loads(treewright("doctor", "--json", "--all", cwd=toy.path).stdout)
    assert {"lean", "strategies", "repository", "agents"} <= {
        check["group"] for check in document["checks"]
    }


def test_a_lean_project_gets_no_checks_of_the_tree_search(tmp_path: Path, treewright) -> None:
    toy = ToyRepository(tmp_path)
    toy.git("init", "-q")
    toy.write("lakefile.toml", 'name = "p"\n')
    done = treewright("doctor", "--json", cwd=tmp_path)
    groups = {check["group"] for check in json.loads(done.stdout)["checks"]}
    assert {"system", "lean", "strategies"} <= groups
    assert groups.isdisjoint({"repository", "agents"})
    assert "Nothing here uses the search over commits" in treewright("doctor", cwd=tmp_path).stdout
    toy.write("treewright.toml", "")
    done = treewright("doctor", "--json", cwd=tmp_path)
    assert {"lean", "repository"} <= {check["group"] for check in json.loads(done.stdout)["checks"]}
