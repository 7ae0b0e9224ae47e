"""Options of the command line: headings in `--help`, `--help-all`, number types, shared options."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import click

from treewright.cli.output import echo
from treewright.kernel.errors import UsageError

if TYPE_CHECKING:
    import msgspec

F = TypeVar("F", bound=Callable[..., Any])

OUTPUT = "Output"
_DEFAULT_HEADING = "Options"
_HELP = "Help"
_HELP_ALL = "treewright.help_all"
_VERBOSE = "treewright.verbose"


class Number(click.FloatRange):
    """A finite number in a range. `nan` and `inf` are refused, because no limit holds for them."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number that can be used here.", param, ctx)
        return found

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "SECONDS" if self is SECONDS else "NUMBER"


class Count(click.IntRange):
    """A whole number in a range."""

    name = "integer"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "N"


SECONDS = Number(min=0.0, min_open=True)
POSITIVE = Count(min=1)
NOT_NEGATIVE = Count(min=0)
SHARE = Number(0.0, 1.0)
FILE = click.Path(path_type=Path, dir_okay=False)
DIRECTORY = click.Path(path_type=Path, file_okay=False)
PATH = click.Path(path_type=Path)


class Option(click.Option):
    """An option with a heading in the help, and its default in the first sentence of its text.

    Args:
        heading: The section of the help that lists the option.
        is_rare: Whether only `--help-all` lists the option.
        default_text: The default in words, where click's own default does not say it.
        help_from: A function that returns the help text, for texts that need an import.
    """

    def __init__(
        self,
        *args: Any,
        heading: str = _DEFAULT_HEADING,
        is_rare: bool = False,
        default_text: str | None = None,
        help_from: Callable[[], str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.heading = heading
        self.is_rare = is_rare
        self._default_text = default_text
        self._help_from = help_from

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        text = self._help_from() if self._help_from is not None else self.help or ""
        if default := self._shown_default():
            first, end, rest = text.partition(". ")
            text = f"{first.removesuffix('.')} (default {default}).{end[1:]}{rest}"
        return record[0], text

    def _shown_default(self) -> str:
        if self._default_text is not None:
            return self._default_text
        default = self.default
        if isinstance(default, bool):
            return ("no", "yes")[default] if self.secondary_opts else ""
        if isinstance(default, float):
            return f"{default:g}"
        if isinstance(default, tuple):
            return ", ".join(str(part) for part in default)
        return str(default) if isinstance(default, int | str | Path) else ""


class Command(click.Command):
    """A command with headings in its help. Only `--help-all` lists the rare options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        if any(getattr(param, "is_rare", False) for param in params):
            params.append(_HELP_ALL_OPTION)
        return params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {_DEFAULT_HEADING: []}
        hidden = 0
        for param in self.get_params(ctx):
            if getattr(param, "is_rare", False) and _HELP_ALL not in ctx.meta:
                hidden += 1
            elif isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                sections.setdefault(getattr(param, "heading", _HELP), []).append(record)
        if set(sections) <= {_DEFAULT_HEADING, OUTPUT, _HELP}:
            sections = {_DEFAULT_HEADING: [row for rows in sections.values() for row in rows]}
        for heading, rows in sections.items():
            if not rows:
                continue
            with formatter.section(heading):
                formatter.write_dl(rows)
        if hidden:
            formatter.write(f"\n{ctx.command_path} --help-all lists {hidden} more options.\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. With `--verbose`, log how long it took and where an error came from."""
        if _VERBOSE not in ctx.meta:
            return super().invoke(ctx)
        import logging

        started = time.monotonic()
        log = logging.getLogger("treewright")
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not isinstance(error, click.exceptions.Exit):
                log.debug("the command failed; the error comes from here:", exc_info=True)
            raise
        finally:
            log.debug("%s took %.1f s", ctx.command_path, time.monotonic() - started)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


def command(**attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command with grouped help of a function."""
    return click.command(cls=Command, **attributes)


def group() -> Callable[[Callable[..., Any]], Group]:
    """Return a decorator that makes a group of such commands of a function."""
    return click.group(cls=Group)


def option(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Return a decorator that adds an `Option` to a command."""
    return click.option(*declarations, cls=Option, **attributes)


def record_options(
    record: type[msgspec.Struct], heading: str, names: tuple[str, ...] = (), *, is_rare: bool = True
) -> Callable[[F], F]:
    """Return a decorator that adds an option for each described field of a settings record.

    The field gives the option's name, type, default and help text (the `description` of its
    `msgspec.Meta`). The `Meta` also gives the bounds of a number, and its unit in `extra`. An
    option that is not given stays None.

    Args:
        record: The settings record.
        heading: The section of the help that lists the options.
        names: The fields to take, in this order; all described ones if empty.
        is_rare: Whether only `--help-all` lists the options.
    """
    import msgspec

    fields = {field.name: field for field in msgspec.structs.fields(record)}
    options = []
    for name in names or fields:
        kind, default = fields[name].type, fields[name].default
        if NoneType in get_args(kind):
            (kind,) = set(get_args(kind)) - {NoneType}
        metas = getattr(kind, "__metadata__", ())
        said = {
            key: value
            for meta in metas
            for key in ("description", "ge", "gt", "le", "extra")
            if (value := getattr(meta, key)) is not None
        }
        if "description" not in said:
            continue
        kind = get_args(kind)[0]
        attributes: dict[str, Any] = {"help": said["description"], "heading": heading}
        flag = flag_name(name)
        if kind is bool:
            attributes |= {"is_flag": True, "default": None}
            if default:
                flag, attributes["default_text"] = f"{flag}/--no-{flag[2:]}", "yes"
        else:
            text = f"{default:g}" if isinstance(default, float) else str(default)
            attributes["default_text"] = "no limit" if default is None else text
            if get_origin(kind) is Literal:
                attributes["type"] = click.Choice(get_args(kind))
            else:
                lowest = said.get("gt", said.get("ge"))
                number = Count if kind is int else Number
                attributes["type"] = number(lowest, said.get("le"), min_open="gt" in said)
                attributes["metavar"] = said.get("extra", {}).get("unit")
        options.append(option(flag, is_rare=is_rare, **attributes))
    return combined(*options)


def combined(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator that adds several options, in the order of the arguments."""

    def add(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return add


def flag_name(parameter: str) -> str:
    """Return the flag of a parameter: `--max-depth` for `max_depth`."""
    return "--" + parameter.replace("_", "-")


def read_user_file(path: Path) -> str:
    """Return the text of a file that the user named.

    Raises:
        UsageError: The file cannot be read or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from error


def _default_ledger() -> Path:
    from treewright.orchestrator.ledger.schema import DEFAULT_PATH

    return DEFAULT_PATH


json_option = option(
    "--json", "as_json", is_flag=True, heading=OUTPUT, help="Print one JSON document on stdout."
)
ledger_option = option(
    "--ledger",
    "ledger_path",
    type=FILE,
    default=_default_ledger,
    default_text=".treewright/ledger.db",
    help="Ledger of attempts.",
)
timeout_option = option(
    "--timeout", type=SECONDS, default=120.0, help="Most seconds that Lean takes for one file."
)


LOOKUP_REPO = option(
    "--repo",
    type=DIRECTORY,
    default=Path("."),
    default_text="the current directory",
    help="Project in which a run is looked up by its id.",
)
TARGET_REPO = option(
    "--repo",
    type=DIRECTORY,
    default=Path("."),
    heading="Run",
    default_text="the current directory",
    help="Any directory inside the target repository.",
)


def _print_full_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_HELP_ALL] = True
        echo(ctx.get_help())
        ctx.exit()


_HELP_ALL_OPTION = Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_full_help,
    heading=_HELP,
    help="Show all options and exit.",
)


def _start_log(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Write every log record to stderr while the command runs."""
    if not value or ctx.resilient_parsing:
        return
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with contextlib.suppress(OSError):
                echo(self.format(record), err=True)

    log = logging.getLogger("treewright")
    handler, level = Lines(), log.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    ctx.meta[_VERBOSE] = True

    @ctx.call_on_close
    def stop() -> None:
        log.removeHandler(handler)
        log.setLevel(level)


verbose_option = option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_start_log,
    heading=OUTPUT,
    help="Log every step to stderr with its time, and show where an error came from.",
)


def is_verbose() -> bool:
    """Return whether the running command was given `--verbose`."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and _VERBOSE in ctx.meta
