"""`treewright premises`: build and search an index of the declarations of Lean."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.lean_choice import (
    choose_lean,
    lean_options,
    open_choice,
    open_lean,
    project_for,
)
from treewright.cli.options import (
    FILE,
    POSITIVE,
    group,
    json_option,
    option,
    verbose_option,
)
from treewright.cli.output import ProgressLine, announce, echo
from treewright.kernel.errors import UsageError

if TYPE_CHECKING:
    from treewright.lean.processes import LeanProcesses
    from treewright.premises.index import Premise

_IMPORTS = option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE",
    default=("Init",),
    help="Module to import. Repeatable.",
)
_PATH = option(
    "--path",
    type=FILE,
    default_text="in the user cache",
    help="Index file. The user cache has one for each Lean, list of imports and project.",
)
_LEXICAL = option(
    "--lexical",
    is_flag=True,
    help="Use words and shape only, without embeddings. Needs no extra package.",
)


@group()
def premises() -> None:
    """Find declarations of the Lean environment by words, shape and meaning.

    Exit codes: 0 found, 1 nothing found or Lean failed, 2 wrong call or missing part.
    """


@premises.command()
@_IMPORTS
@option(
    "--module",
    metavar="NAME",
    default="",
    help="Only declarations of this module and its submodules.",
)
@option(
    "--limit", type=POSITIVE, default_text="no limit", help="Most premises to add in this call."
)
@_LEXICAL
@_PATH
@lean_options
@json_option
@verbose_option
def build(
    imports: tuple[str, ...],
    module: str,
    limit: int | None,
    lexical: bool,
    path: Path | None,
    requested: str | None,
    sandbox: bool | None,
    as_json: bool,
) -> None:
    """Build the index or update it. An interrupted build continues."""
    import msgspec

    from treewright.lean.processes import LeanProcesses
    from treewright.premises import vectors
    from treewright.premises.encoder import SentenceEncoder
    from treewright.premises.index_builder import build_lexical, build_vectors, default_path

    encoder = None
    if not lexical:  # a missing package is reported before the work
        vectors.require()
        encoder = SentenceEncoder(workers=os.cpu_count() or 1)
    choice = choose_lean(requested, sandbox)
    target = path or default_path(imports, choice, Path.cwd())
    progress = ProgressLine()
    echo(f"index: {target}", err=True)
    host = open_choice(choice)
    with LeanProcesses(host, project_for(host, Path.cwd())) as lean:
        session = lean.new_session(imports)
        report = build_lexical(session, target, module=module, limit=limit, progress=progress)
    if encoder is not None:
        embedded = build_vectors(target, encoder, progress=progress)
        report = msgspec.structs.replace(report, embedded=embedded)
    progress.close()
    if as_json:
        echo(json.dumps(msgspec.to_builtins(report), ensure_ascii=False))
        return
    echo(
        f"{report.premises} premises: {report.added} new, {report.changed} changed, "
        f"{report.removed} gone; "
        + ("no embeddings" if report.embedded is None else f"{report.embedded} embedded")
    )


@premises.command()
@click.argument("query")
@option("-k", "count", default=10, type=POSITIVE, help="Most premises to print.")
@_LEXICAL
@_IMPORTS
@_PATH
@lean_options
@json_option
@verbose_option
def search(
    query: str,
    count: int,
    lexical: bool,
    imports: tuple[str, ...],
    path: Path | None,
    requested: str | None,
    sandbox: bool | None,
    as_json: bool,
) -> None:
    """Rank premises for a goal, a statement, a name or plain words. `-` reads the query from stdin.

    If the user cache has no index yet, one without embeddings is built first.
    """
    import msgspec

    from treewright.premises.index import PremiseIndex

    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise UsageError("the query is empty; give a goal, a statement, a name or words")
    with PremiseIndex.open(path or _prepare_index(imports, requested, sandbox)) as index:
        by_words = lexical or not (path or index.has_embeddings)
        if by_words and not lexical:
            echo(
                "ranked by words and shape only; `treewright premises build` adds embeddings",
                err=True,
            )
        found = index.lexical(text, count) if by_words else index.search(text, count)
    if as_json:
        echo(json.dumps(msgspec.to_builtins(found), ensure_ascii=False))
    else:
        _print_premises(found)
    if not found:
        announce("no premise has any of these words")
        raise click.exceptions.Exit(1)


def _prepare_index(imports: tuple[str, ...], requested: str | None, sandbox: bool | None) -> Path:
    """Return the index in the user's cache; Lean is opened only if the index must be built."""
    from treewright.lean.choice import choose
    from treewright.premises.index_builder import default_path, ensure_index, is_finished

    choice = choose(requested or "auto", sandbox=bool(sandbox))
    target = default_path(imports, choice, Path.cwd())
    if is_finished(target):
        return target

    def opened() -> LeanProcesses:
        from treewright.lean.processes import LeanProcesses

        host = open_lean(requested, sandbox)
        return LeanProcesses(host, project_for(host, Path.cwd()))

    progress = ProgressLine()
    try:
        return ensure_index(opened, imports, path=target, announce=announce, progress=progress)
    finally:
        progress.close()


def _print_premises(found: tuple[Premise, ...]) -> None:
    for premise in found:
        echo(f"{premise.score:8.3f}  {premise.name} : {' '.join(premise.type.split())}")
        echo(f"          {premise.kind} of {premise.module}")
