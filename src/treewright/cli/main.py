"""The `treewright` program: finds the command, turns errors into one line and an exit code."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import click

import treewright
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, TreewrightError
from treewright.kernel.operating_system import require_posix
from treewright.kernel.procs.stderr import ignore_write_errors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# name -> (module, attribute, help line shown in `treewright --help` without importing it)
COMMANDS = {
    "prove": ("treewright.cli.prove", "prove", "Search for proofs in Lean."),
    "replay": ("treewright.cli.replay", "replay", "Repeat a proof run and compare."),
    "lean": ("treewright.cli.lean", "lean", "A real Lean 4: install, doctor, check, verify."),
    "premises": (
        "treewright.cli.premises",
        "premises",
        "Find declarations that may help with a goal.",
    ),
    "blueprint": ("treewright.cli.blueprint", "blueprint", "Does a blueprint agree with Lean?"),
    "tickets": ("treewright.cli.tickets", "tickets", "Lemmas that somebody needs."),
    "tree": ("treewright.cli.tree", "tree", "Beam search over git commits."),
    "steer": ("treewright.cli.steer", "steer", "Change a tree run while it is there."),
    "compare": ("treewright.cli.compare", "compare", "Which of several runs found more."),
    "mlflow": ("treewright.cli.mlflow", "mlflow", "A run in an MLflow tracking server."),
    "search": ("treewright.cli.search", "search", "Searches made with the library."),
    "dashboard": ("treewright.cli.dashboard", "dashboard", "See every search live, in a browser."),
    "export": ("treewright.cli.export", "export", "Write a run as one HTML file."),
    "bank": ("treewright.cli.bank", "bank", "Prove a bank of goals with a portfolio."),
    "bg": ("treewright.cli.bg", "bg", "Prove a project's sorries in the background."),
    "sorries": ("treewright.cli.sorries", "sorries", "Every open goal of a project."),
    "ci": ("treewright.cli.ci", "ci", "New and removed sorries of a change, with proofs."),
    "mcp": ("treewright.cli.mcp", "mcp", "Lean and searches as tools for coding agents."),
    "ledger": ("treewright.cli.ledger", "ledger", "What was tried: stats, attempts, export."),
    "init": ("treewright.cli.init", "init", "Write a commented treewright.toml here."),
    "completion": ("treewright.cli.completion", "completion", "Completion for your shell."),
    "doctor": ("treewright.cli.doctor", "doctor", "Say what is installed and what is not."),
}

# Commands that start Lean, or serve on sockets of one user.
NEEDS_POSIX = frozenset(
    ["prove", "replay", "lean", "premises", "blueprint", "bank", "bg", "sorries", "ci", "mcp"]
)


# The help in place of a missing command; older versions of click just print it.
_HELP: type[click.UsageError] | tuple[()] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class LazyGroup(click.Group):
    """Imports a command's module only when that command runs."""

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
        """Names with their lines; click's own way would import every command for that."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        fitting = (name for name in COMMANDS if name.startswith(incomplete))
        return [CompletionItem(name, help=COMMANDS[name][2]) for name in fitting]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(treewright.__version__, prog_name="treewright")
def cli() -> None:
    """Grow search trees over work that is slow, costly and easy to lose."""


def _one_line(error: click.ClickException) -> str:
    """What is wrong with the call, and where to look it up."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if not isinstance(error, click.UsageError):
        return message
    named = [name for name in sys.argv[1:2] if name in COMMANDS]
    path = error.ctx.command_path if error.ctx else " ".join(["treewright", *named])
    return f"{message}; see `{path} --help`"


def main() -> None:
    """Entry point of the console script. Exit codes are documented in docs/cli.md."""
    ignore_write_errors()
    try:
        sys.exit(cli.main(prog_name="treewright", standalone_mode=False))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except _HELP as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        echo(f"treewright: {_one_line(error)}", err=True)
        sys.exit(error.exit_code)
    except TreewrightError as error:
        echo(f"treewright: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        echo(f"treewright: {error.strerror or error}: {error.filename or ''}", err=True)
        sys.exit(EXIT_FAILURE)
    except (KeyboardInterrupt, click.Abort):
        echo("treewright: interrupted; run the same command again to continue", err=True)
        sys.exit(EXIT_INTERRUPTED)
