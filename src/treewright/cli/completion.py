"""`treewright completion`: print the script that completes commands and options in a shell."""

from __future__ import annotations

import click

from treewright.cli.options import command
from treewright.cli.output import echo

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_TREEWRIGHT_COMPLETE"


@command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes `treewright` in SHELL: bash (4.4 or newer), zsh or fish.

    \b
    bash:  eval "$(treewright completion bash)"        in ~/.bashrc
    zsh:   eval "$(treewright completion zsh)"         in ~/.zshrc, after compinit
    fish:  treewright completion fish | source         in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from treewright.cli.main import cli

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    echo(completion_class(cli, {}, "treewright", _VARIABLE).source())
