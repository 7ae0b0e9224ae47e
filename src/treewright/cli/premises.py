"""`treewright premises`: build, search."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.hosts import chosen, host_of, host_options, opened_host
from treewright.cli.output import echo, rewrite
from treewright.kernel.errors import UsageError

if TYPE_CHECKING:
    from treewright.lean.session.interface import LeanSession
    from treewright.premises.index import Premise

_IMPORTS = click.option(
    "--import",
    "imports",
    multiple=True,
    default=("Init",),
    show_default=True,
    help="A module to import; give it again for more.",
)
_PATH = click.option(
    "--path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The index file; the user cache by default, one per Lean, imports and project.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@click.group()
def premises() -> None:
    """Declarations of the Lean environment, found by words, shape and meaning.

    Exit codes: 0 fine, 1 nothing found or Lean failed, 2 wrong call or missing part.
    """


class _Progress:
    """One line on stderr: rewritten on a terminal, one every few seconds elsewhere."""

    def __init__(self, every: float = 5.0) -> None:
        self._terminal = sys.stderr.isatty()
        self._every = 0.1 if self._terminal else every
        self._what, self._last = "", float("-inf")

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        finished = total > 0 and done >= total
        if what == self._what and not finished and now - self._last < self._every:
            return
        if self._terminal and self._what and what != self._what:
            echo(err=True)
        self._what, self._last = what, now
        line = f"  {what}: {done}{f' of {total}' if total else ''}"
        if self._terminal:
            rewrite(f"{line:<60}")
        else:
            echo(line, err=True)

    def close(self) -> None:
        if self._terminal and self._what:
            echo(err=True)


@premises.command()
@_IMPORTS
@click.option("--module", default="", help="Only this module and those below it.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many new premises.")
@click.option("--lexical", is_flag=True, help="Words and shape only: no embeddings, no extra.")
@_PATH
@host_options
@_JSON
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
    """Make the index, or bring it up to date; continues where it was interrupted."""
    import msgspec

    from treewright.cli.projects import project_of
    from treewright.lean.session.host_session import HostSession
    from treewright.premises import vectors
    from treewright.premises.encoder import SentenceEncoder
    from treewright.premises.index_builder import build_lexical, build_vectors, default_path

    encoder = None
    if not lexical:  # what is missing is said before the work, not after it
        vectors.require()
        encoder = SentenceEncoder(workers=os.cpu_count() or 1)
    choice = chosen(requested, sandbox)
    target = path or default_path(imports, choice, Path.cwd())
    progress = _Progress()
    echo(f"index: {target}", err=True)
    host = host_of(choice)
    with HostSession(host, imports, project=project_of(host, Path.cwd())) as session:
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
@click.option("-k", "count", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--lexical", is_flag=True, help="Rank by words and shape only; needs no extra.")
@_IMPORTS
@_PATH
@host_options
@_JSON
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
    """Rank premises for a goal, a statement, a name or plain words. `-` reads from stdin.

    The index of the user cache is made first if it is not there: by words and shape alone.
    """
    import msgspec

    from treewright.premises.index import PremiseIndex

    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise UsageError("the query is empty; give a goal, a statement, a name or words")
    with PremiseIndex.open(path or _ready_index(imports, requested, sandbox)) as index:
        by_words = lexical or not (path or index.has_embeddings)
        if by_words and not lexical:
            echo(
                "ranked by words and shape alone; `treewright premises build` adds meaning",
                err=True,
            )
        found = index.lexical(text, count) if by_words else index.search(text, count)
    if as_json:
        echo(json.dumps(msgspec.to_builtins(found), ensure_ascii=False))
    else:
        _show(found)
    if not found:
        echo("treewright: no premise has any of these words", err=True)
        raise click.exceptions.Exit(1)


def _ready_index(imports: tuple[str, ...], requested: str | None, sandbox: bool | None) -> Path:
    """The index in the user's cache. Lean is opened only if it has to be made."""
    from treewright.lean.choice import choose
    from treewright.premises.index_builder import default_path
    from treewright.premises.library import ensure_index, is_finished

    choice = choose(requested or "auto", sandbox=bool(sandbox))
    target = default_path(imports, choice, Path.cwd())
    if is_finished(target):
        return target

    def opened() -> LeanSession:
        from treewright.cli.projects import project_of
        from treewright.lean.session.host_session import HostSession

        host = opened_host(requested, sandbox)
        return HostSession(host, imports, project=project_of(host, Path.cwd()))

    progress = _Progress()
    try:
        return ensure_index(opened, imports, path=target, announce=_announce, progress=progress)
    finally:
        progress.close()


def _announce(text: str) -> None:
    echo(f"treewright: {text}", err=True)


def _show(found: tuple[Premise, ...]) -> None:
    for premise in found:
        echo(f"{premise.score:8.3f}  {premise.name} : {' '.join(premise.type.split())}")
        echo(f"          {premise.kind} of {premise.module}")
