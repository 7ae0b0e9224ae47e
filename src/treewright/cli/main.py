"""The `treewright` program: run a command, and turn errors into one line and an exit code."""

from __future__ import annotations

import errno
import importlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

import treewright
from treewright.cli.options import command
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, TreewrightError
from treewright.kernel.operating_system import require_posix
from treewright.kernel.procs.console import ignore_write_errors
from treewright.kernel.storage.atomic import is_full

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# name -> (module, attribute, line of `treewright --help`, which imports no module)
COMMANDS = {
    "prove": ("treewright.cli.prove", "prove", "Search for proofs in Lean."),
    "replay": ("treewright.cli.replay", "replay", "Repeat a proof run and compare."),
    "lean": ("treewright.cli.lean", "lean", "Install, try and use a Lean 4."),
    "premises": (
        "treewright.cli.premises",
        "premises",
        "Find declarations that may help with a goal.",
    ),
    "blueprint": ("treewright.cli.blueprint", "blueprint", "Compare a leanblueprint with Lean."),
    "tickets": ("treewright.cli.tickets", "tickets", "Ask for lemmas, and supply them."),
    "tree": ("treewright.cli.tree", "tree", "Search over git commits."),
    "steer": ("treewright.cli.steer", "steer", "Change a tree run while it runs."),
    "compare": ("treewright.cli.run_views", "compare", "Compare several runs."),
    "mlflow": ("treewright.cli.run_views", "mlflow", "Copy a run to an MLflow tracking server."),
    "search": ("treewright.cli.search", "search", "Show and check searches made with the library."),
    "dashboard": ("treewright.cli.run_views", "dashboard", "Show runs live in a browser."),
    "export": ("treewright.cli.run_views", "export", "Write a run as one HTML file."),
    "bank": ("treewright.cli.portfolio", "bank", "Prove a bank of goals with a portfolio."),
    "bg": ("treewright.cli.portfolio", "bg", "Prove a project's sorries in the background."),
    "sorries": ("treewright.cli.sorries", "sorries", "List the open goals of a project."),
    "ci": ("treewright.cli.ci", "ci", "List and prove the new sorries of a change."),
    "mcp": ("treewright.cli.mcp", "mcp", "Serve Lean and searches to coding agents."),
    "ledger": ("treewright.cli.ledger", "ledger", "Show and export the recorded proof attempts."),
    "init": ("treewright.cli.init", "init", "Write a commented treewright.toml."),
    "completion": (
        "treewright.cli.main",
        "completion",
        "Print the script that completes commands in a shell.",
    ),
    "doctor": ("treewright.cli.doctor", "doctor", "Check the installation and the repository."),
}

# These commands start Lean, or serve on sockets that only the user can open.
NEEDS_POSIX = frozenset(
    ["prove", "replay", "lean", "premises", "blueprint", "bank", "bg", "sorries", "ci", "mcp"]
)


# Raised when the command is missing; older versions of click print the help themselves.
_NO_COMMAND: type[click.UsageError] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class LazyGroup(click.Group):
    """A group that imports the module of a command only when the command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        return getattr(importlib.import_module(module), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in NEEDS_POSIX:
            require_posix(f"`treewright {args[0]}`")
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            if near := get_close_matches(args[0], COMMANDS, n=1, cutoff=0.7):
                raise click.UsageError(f"{error.message} Did you mean '{near[0]}'?", ctx) from None
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names with their lines. The method of click would import every command."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        names = (name for name in COMMANDS if name.startswith(incomplete))
        return [CompletionItem(name, help=COMMANDS[name][2]) for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(treewright.__version__, prog_name="treewright")
def cli() -> None:
    """Grow search trees over slow and costly work, without losing any of it."""


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes `treewright` in SHELL: bash (4.4 or newer), zsh or fish.

    \b
    bash:  eval "$(treewright completion bash)"        in ~/.bashrc
    zsh:   eval "$(treewright completion zsh)"         in ~/.zshrc, after compinit
    fish:  treewright completion fish | source         in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    echo(completion_class(cli, {}, "treewright", "_TREEWRIGHT_COMPLETE").source())


def _format_usage_error(error: click.ClickException) -> str:
    """Return the message of a wrong call, and the `--help` command that explains it."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if not isinstance(error, click.UsageError):
        return message
    named = [name for name in sys.argv[1:2] if name in COMMANDS]
    path = error.ctx.command_path if error.ctx else " ".join(["treewright", *named])
    return f"{message}; see `{path} --help`"


def _format_os_error(error: OSError) -> str:
    """Return the message of an operating system's error, with the path that it is about.

    A write to a full disk names no path; then the full file systems are named.
    """
    said = error.strerror or str(error)
    if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return f"{said}: {error.filename or ''}"
    places = {str(Path.cwd()), tempfile.gettempdir(), str(Path.home())}
    full = [place for place in sorted(places) if is_full(Path(place))]
    where = f" in {' and '.join(full or sorted(places))}"
    return f"no space left{where}; free some and run the same command again"


def main() -> None:
    """Run the console script. docs/cli.md documents the exit codes."""
    ignore_write_errors()
    try:
        sys.exit(cli.main(prog_name="treewright", standalone_mode=False))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except _NO_COMMAND as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        echo(f"treewright: {_format_usage_error(error)}", err=True)
        sys.exit(error.exit_code)
    except TreewrightError as error:
        echo(f"treewright: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        echo(f"treewright: {_format_os_error(error)}", err=True)
        sys.exit(EXIT_FAILURE)
    except (KeyboardInterrupt, click.Abort):
        echo("treewright: interrupted; run the same command again to continue", err=True)
        sys.exit(EXIT_INTERRUPTED)
