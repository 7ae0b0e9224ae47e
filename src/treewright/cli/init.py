"""`treewright init`: write a commented treewright.toml for a repository."""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.output import echo
from treewright.kernel.errors import UsageError


@click.command()
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Target repository (default: the current one).",
)
@click.option("--force", is_flag=True, help="Replace a treewright.toml that exists.")
def init(repo: Path, force: bool) -> None:
    """Write a commented treewright.toml for a repository.

    Looks for tests, a sweep script, results and tunable code. What it cannot find out
    says FILL_IN in the file, and is listed with its line.
    """
    from treewright.kernel import atomic
    from treewright.tree import config
    from treewright.tree.repository.git import find_repository
    from treewright.tree.starter import render, survey

    root = find_repository(repo)
    path = root / config.DEFAULT_NAME
    if path.exists() and not force:
        raise UsageError(f"{path} exists; edit it, or replace it with --force")
    found = survey(root)
    text = render(found)
    atomic.write_text(path, text)
    config.load(path)
    echo(f"Wrote {path}")
    steps = [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if config.FILL_IN in line and not line.startswith("#")
    ]
    echo("\nNext:")
    if steps:
        echo(f"  fill in what {config.DEFAULT_NAME} does not know yet:")
        for step in steps:
            echo(f"    {step}")
    baseline = "" if found.results_csv else "--make-baseline "
    for command, purpose in (
        ("treewright doctor", "what is ready, what is missing"),
        (f"git add {path.name} && git commit -m 'Add {path.name}'", ""),
        ("treewright tree --dry-run", "the search with made-up results"),
        (f"treewright tree {baseline}--until-done", "the search"),
    ):
        echo(f"  {command:<45}  {purpose}".rstrip())
