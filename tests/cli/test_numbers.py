"""Every numeric flag of every command refuses `nan` and `inf`."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from treewright.cli.main import cli


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def found(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name) or command
    return command


NUMBERS = [
    (path, option.opts[-1])
    for path in commands(cli)
    for option in found(path).params
    if isinstance(option.type, click.types.FloatParamType)
]


def test_some_flags_are_numeric() -> None:
    assert (("lean", "check"), "--timeout") in NUMBERS
    assert (("tree",), "--eval-timeout-seconds") in NUMBERS


@pytest.mark.parametrize("value", ["nan", "inf", "1e999"])
@pytest.mark.parametrize(("path", "flag"), NUMBERS, ids=lambda part: "".join(part))
def test_nan_and_infinity_are_refused_by_every_flag(
    path: tuple[str, ...], flag: str, value: str
) -> None:
    command = found(path)
    option = next(each for each in command.params if flag in each.opts)
    with pytest.raises(click.BadParameter, match=r"number|range"):
        option.type_cast_value(click.Context(command), value)


def test_the_refusal_of_nan_is_one_line() -> None:
    done = CliRunner().invoke(cli, ["prove", "--statement", "True", "--noise", "nan"])
    assert done.exit_code == 2
    assert "nan is not a number" in done.output
