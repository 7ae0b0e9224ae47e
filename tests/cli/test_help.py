"""`--help`: every option has a plain text, the usual options come first, defaults are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from tests.docs.test_docs import COMMANDS
from treewright.cli.main import cli
from treewright.orchestrator.config import OrchestratorConfig
from treewright.proving.cell_settings import CellSettings
from treewright.proving.settings import Settings, SourceSettings
from treewright.search.andor.policies import Mcts
from treewright.tree.run.creation import DEFAULT_SHAPE

MOST_OPTIONS = 20
"""More options than this need `--help-all`."""
LONG_COMMANDS = {
    "tree", "prove", "replay", "bank", "bg", "sorries", "ci", "mcp", "blueprint", "dashboard",
    "doctor", "mlflow", "lean install", "lean doctor", "lean check", "lean verify",
    "premises build", "premises search", "tickets complete",
}  # fmt: skip


def shown(name: str, flag: str = "--help") -> str:
    done = CliRunner().invoke(cli, [*name.split(), flag])
    assert done.exit_code == 0, done.output
    return done.stdout


def flags_in(text: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short_and_help_all_is_complete(name: str) -> None:
    params = [each for each in COMMANDS[name].params if isinstance(each, click.Option)]
    first, everything = flags_in(shown(name)), flags_in(shown(name))
    assert len(first) <= MOST_OPTIONS
    if "--help-all" in first:
        everything = flags_in(shown(name, "--help-all"))
        assert first < everything
    assert everything >= {each.opts[-1] for each in params if each.opts[-1].startswith("--")}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_text_with_its_default_in_one_form(name: str) -> None:
    context = click.Context(COMMANDS[name], info_name=name)
    for param in COMMANDS[name].get_params(context):
        if not isinstance(param, click.Option):
            continue
        record = param.get_help_record(context)
        assert record is not None
        usage, text = record
        assert text.endswith("."), usage
        assert text[0].isupper() or text.startswith(("inject", "stop", "boost")), usage
        assert not re.search(r"\[default|\[\w+\]$|\(default: ", text), usage


@pytest.mark.parametrize("name", sorted(LONG_COMMANDS))
def test_every_long_running_command_has_verbose(name: str) -> None:
    assert "-v, --verbose" in shown(name)


def default_of(name: str, flag: str) -> str:
    context = click.Context(COMMANDS[name])
    option = next(each for each in COMMANDS[name].params if flag in each.opts)
    assert isinstance(option, click.Option)
    record = option.get_help_record(context)
    assert record is not None
    found = re.search(r"\(default (.*?)\)[. ]", record[1])
    assert found is not None, record
    return found[1]


def values() -> list[tuple[str, str, object]]:
    """Options and the defaults of the records that they set."""
    policy, cells = msgspec.structs.asdict(Mcts()), msgspec.structs.asdict(CellSettings())
    portfolio = msgspec.structs.asdict(OrchestratorConfig())
    found: list[tuple[str, str, object]] = [("prove", name, policy[name]) for name in policy]
    found += [
        ("prove", name, value)
        for name, value in cells.items()
        if name not in ("algotypes", "schedule", "block_permanent")
    ]
    for name in ("simulations", "step_timeout", "seed", "batch", "refute"):
        found.append(("prove", name, getattr(Settings(), name)))
    found.append(("prove", "noise", SourceSettings().noise))
    for name in ("max_light", "max_heavy", "cpu_target", "speculation", "lean_sessions"):
        found.append(("bank", name, portfolio[name]))
    for name in ("ideas_per_node", "beam_width", "max_depth", "confirm_configs", "elites"):
        found.append(("tree", name, getattr(DEFAULT_SHAPE, name)))
    return found


@pytest.mark.parametrize(("command", "field", "value"), values())
def test_defaults_are_those_of_the_records(command: str, field: str, value: object) -> None:
    said = default_of(command, f"--{field.replace('_', '-')}")
    if isinstance(value, bool):
        value = ("no", "yes")[value]
    assert said == (f"{value:g}" if isinstance(value, float) else str(value))


def test_verbose_logs_and_shows_where_an_error_came_from(
    treewright: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    plain = treewright("compare", "none", "none", "--json")
    assert plain.stderr.count("\n") == 1
    done = treewright("replay", "none", "--verbose")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "treewright replay took" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("treewright: there is no proof run 'none'")


@pytest.mark.parametrize("arguments", [["--help"], ["prove", "--help"], ["tree", "--help-all"]])
def test_help_is_fast(arguments: list[str]) -> None:
    """Processor time, because other processes keep the machine busy; 0.2 s on an idle one."""
    code = (
        "import sys, time\n"
        "from treewright.cli.main import main\n"
        f"sys.argv = ['treewright', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(time.process_time(), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert float(done.stderr) < 0.6
