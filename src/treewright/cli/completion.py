"""`treewright completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

from treewright.cli.output import echo

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_TREEWRIGHT_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes `treewright` in SHELL: bash (4.4 or newer), zsh or fish.

    \b
    bash:  eval "$(treewright completion bash)"        in ~/.bashrc
    zsh:   eval "$(treewright completion zsh)"         in ~/.zshrc, behind compinit
    fish:  treewright completion fish | source         in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from treewright.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    echo(found(cli, {}, "treewright", _VARIABLE).source())
