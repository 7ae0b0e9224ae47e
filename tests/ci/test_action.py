"""The steps of action.yml as a runner does them: its shell, its files, a shallow clone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.test_docs import COMMANDS, flags
from tests.lean import native_projects
from tests.lean.projects import small_project

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]

OLD = "def twice (n : Nat) : Nat := n + n\n"
USE = """import Foo.Old
theorem kept (n : Nat) : twice n = 3 := by
  sorry
theorem closed : twice 1 = 2 := by
  sorry
"""
# Its import does not exist at the base, and the import of the base does not exist here.
CHANGED = """import Foo.New
-- A line more.
theorem added (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  sorry
theorem kept (n : Nat) : twice n = 3 := by
  sorry
theorem closed : twice 1 = 2 := by
  rfl
theorem wrong : (1 : Nat) = 2 := by
  sorry
theorem again (p q : Prop) (hp : p) (hq : q) : q ∧ p := by
  sorry
"""


class Runner:
    """A job: the files that its steps have written, and the contexts that expressions read."""

    def __init__(self, workspace: Path, temporary: Path, event: dict[str, Any]) -> None:
        self.workspace = workspace
        self.temporary = temporary
        self.added_to_path: list[str] = []
        self.contexts: dict[str, Any] = {
            "inputs": {name: given["default"] for name, given in ACTION["inputs"].items()},
            "github": {"event": event},
            "steps": {},
        }
        self.summary = ""

    def value(self, text: str) -> str:
        return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: self._evaluate(found[1]), text)

    def _evaluate(self, expression: str) -> str:
        for path in expression.split("||"):
            found: Any = self.contexts
            for part in path.strip().split("."):
                found = found.get(part, {}) if isinstance(found, dict) else {}
            if found:
                return str(found)
        return ""

    def run(self, step: dict[str, Any], **more: str) -> subprocess.CompletedProcess[str]:
        """Run one `run` step, with the files and the shell that a runner gives it."""
        assert step["shell"] == "bash"
        files = {name: self.temporary / name for name in ("OUTPUT", "STEP_SUMMARY", "PATH")}
        for file in files.values():
            file.write_text("")
        script = self.temporary / "step.sh"
        script.write_text(self.value(step["run"]))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env={
                **os.environ,
                "PATH": ":".join([*self.added_to_path, os.environ["PATH"]]),
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(ROOT),
                "RUNNER_TEMP": str(self.temporary),
                **{f"GITHUB_{name}": str(file) for name, file in files.items()},
                **{name: self.value(given) for name, given in step.get("env", {}).items()},
                **more,
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        lines = files["OUTPUT"].read_text().splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        self.contexts["steps"][step.get("id", "")] = {"outputs": outputs}
        self.summary += files["STEP_SUMMARY"].read_text()
        self.added_to_path = [*files["PATH"].read_text().splitlines(), *self.added_to_path]
        return done


def step(name: str) -> dict[str, Any]:
    (found,) = [each for each in STEPS if each["name"] == name]
    return found


@pytest.fixture
def runner(tmp_path: Path, git_binary: str) -> Runner:
    """Return a job for a pull request as checkout leaves it: only its last commit, without the
    base."""
    origin = small_project(tmp_path / "origin", Old=OLD, Use=USE)

    def git(*arguments: str, cwd: Path = origin) -> str:
        settings = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        command = [git_binary, *settings, *arguments]
        done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "base")
    base = git("rev-parse", "HEAD")
    git("switch", "-qc", "change")
    git("mv", "Foo/Old.lean", "Foo/New.lean")
    (origin / "Foo" / "Use.lean").write_text(CHANGED)
    git("commit", "-qam", "change")
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    git("clone", "-q", "--depth=1", "-b", "change", origin.as_uri(), str(workspace), cwd=tmp_path)
    temporary.mkdir()
    return Runner(workspace, temporary, {"pull_request": {"base": {"sha": base}}})


@pytest.fixture
def installed(runner: Runner) -> Runner:
    """Put the program under test on the path, as the install step does."""
    program = runner.temporary / "treewright"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m treewright "$@"\n')
    program.chmod(0o755)
    runner.added_to_path.append(str(runner.temporary))
    return runner


def test_the_action_is_installed_and_found_by_the_next_step(runner: Runner) -> None:
    """The packages installed for the tests play the registry: pip's own variables forbid downloads.
    The content of the checkout's wheel is real."""
    packages = sysconfig.get_path("purelib")
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_COMPILE": "1"}
    offline["PIP_NO_BUILD_ISOLATION"] = "0"  # pip reads this as: no isolation
    done = runner.run(step("Install Treewright"), PYTHONPATH=packages, **offline)
    assert done.returncode == 0, done.stdout + done.stderr
    place = runner.temporary / "treewright"
    assert runner.added_to_path == [str(place / "bin")]
    (package,) = place.glob("lib/python*/site-packages/treewright")
    source = ROOT / "src" / "treewright"
    assert data_files(package) == data_files(source)
    runner.contexts["inputs"]["base"] = "HEAD"
    assert runner.run(step("Find the base")).returncode == 0
    done = runner.run(step("Check the sorries"), PYTHONPATH=packages)
    assert done.returncode == 0, done.stderr
    assert runner.value("${{ steps.check.outputs.new }}") == "0"


def data_files(package: Path) -> set[str]:
    """Return every file of the package by its path in it."""
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_a_pull_request_is_checked(installed: Runner, git_binary: str) -> None:
    runner = installed
    inputs = runner.contexts["inputs"]
    inputs |= {"lean": "wasm", "fail-on": "unproved", "simulations": "20"}
    found = runner.run(step("Find the base"))
    assert found.returncode == 0, found.stderr
    done = runner.run(step("Check the sorries"))
    assert done.returncode == 1, done.stdout + done.stderr  # `wrong` has no proof
    outputs = {name: runner.value(given["value"]) for name, given in ACTION["outputs"].items()}
    patch = outputs.pop("patch")
    assert outputs == {"new": "3", "removed": "1", "proved": "2", "unproved": "1", "problems": "0"}
    first, *_, last = done.stdout.splitlines()
    assert first == f"::stop-commands{last.removesuffix('::')}"
    assert len(last) > 30
    assert ": kept: " not in done.stdout
    assert "new: Foo/Use.lean:4:3: added: proved" in done.stdout
    # It follows from `kept`, which is open: it has no proof and is not in the patch.
    assert "new: Foo/Use.lean:10:3: wrong: " in done.stdout
    assert "wrong: proved" not in done.stdout
    assert "removed: Foo/Use.lean:5:3: closed" in done.stdout
    assert "## Treewright: 3 new sorries (2 proved), 1 removed" in runner.summary
    assert "+++ b/Foo/Use.lean" in runner.summary
    status = subprocess.run(
        [git_binary, "status", "--porcelain"], cwd=runner.workspace, capture_output=True, check=True
    )
    assert status.stdout == b""
    subprocess.run([git_binary, "apply", patch], cwd=runner.workspace, check=True)
    text = (runner.workspace / "Foo" / "Use.lean").read_text()
    assert text.count("sorry") == 2
    runs = runner.workspace / ".treewright" / "proof_runs"
    certified = [json.loads(path.read_text())["certificate"] for path in runs.glob("*/result.json")]
    assert [bool(each) for each in certified].count(True) == 2


def test_the_action_uses_the_toolchain_of_the_project(installed: Runner, git_binary: str) -> None:
    """Return the summary if there is one. Without it, the job prints one line."""
    installed.contexts["inputs"] |= {"lean": "native", "simulations": "20"}
    assert installed.run(step("Find the base")).returncode == 0
    native = native_projects.found()
    if isinstance(native, str):
        done = installed.run(step("Check the sorries"))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "toolchain" in done.stderr
        pytest.skip(f"the rest needs a Lean toolchain: {native}")
    native_projects.lake_build(native, installed.workspace, "Foo.Use")
    done = installed.run(step("Check the sorries"), **native_projects.settings())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "new: Foo/Use.lean:4:3: added: proved" in done.stdout
    assert "wrong: proved" not in done.stdout
    outputs = {name: installed.value(given["value"]) for name, given in ACTION["outputs"].items()}
    # The base imports a module that is no longer built, so all its sorries count as new.
    assert (outputs["proved"], outputs["unproved"], outputs["problems"]) == ("2", "2", "0")
    assert "new: Foo/Use.lean:6:3: kept: " in done.stdout
    subprocess.run([git_binary, "apply", outputs["patch"]], cwd=installed.workspace, check=True)
    native_projects.lake_build(native, installed.workspace, "Foo.Use")


def test_a_missing_base_is_reported_in_one_line(runner: Runner) -> None:
    runner.contexts["github"] = {"event": {}}
    done = runner.run(step("Find the base"))
    assert done.returncode == 2
    assert done.stderr == "treewright: there is nothing to compare with; set the input base\n"
    runner.contexts["inputs"]["base"] = "0" * 40  # the base of the first push of a branch
    done = runner.run(step("Find the base"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    runner.contexts["inputs"]["base"] = "main"  # a branch that is missing in the clone
    assert runner.run(step("Find the base")).returncode == 0
    assert re.fullmatch(r"[0-9a-f]{40}", runner.value("${{ steps.base.outputs.commit }}"))


def test_the_action_matches_its_documentation() -> None:
    assert ACTION["runs"]["using"] == "composite"
    page = (ROOT / "docs" / "ci.md").read_text()
    for name in (*ACTION["inputs"], *ACTION["outputs"]):
        assert f"`{name}`" in page, name
    scripts = [each for each in STEPS if "run" in each]
    assert len(scripts) == 3
    for each in scripts:
        # Text of a user or an event reaches a script as a variable, never as part of the script.
        assert "${{" not in each["run"]
        subprocess.run(["bash", "-n"], input=each["run"].encode(), check=True)
        for flag in re.findall(r"\((--[a-z-]+)|(?<=\" )(--[a-z-]+)", each["run"]):
            assert "".join(flag) in flags(COMMANDS["ci"])
    used = set(re.findall(r"inputs\.([a-z-]+)", json.dumps(STEPS)))
    assert used == set(ACTION["inputs"])
