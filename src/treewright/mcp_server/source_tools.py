"""Tools that read: `lean_check` and `lean_sorries` read sources, `lean_premises` the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import FileSorries, extract_source
from treewright.mcp_server.call import Call, Fault, answered
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.tool import (
    Answer,
    Arguments,
    Limit,
    Name,
    Offset,
    PagedAnswer,
    PathText,
    Text,
    clipped,
    page,
    tool,
)
from treewright.mcp_server.warm_lean import WarmLean
from treewright.orchestrator.goals.sorry_goals import sorry_records

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400, description="Most seconds for Lean.")]


class Source(msgspec.Struct, frozen=True):
    """A Lean text, and the Lean for it."""

    text: str
    lean: WarmLean


def read_source(server: ServerState, path: str, text: str, project: str = "") -> Source:
    """Return the text of a file, or a given text with the Lean of the project at `project`."""
    if bool(path) == bool(text):
        raise UsageError("give one of `path` and `text`")
    if path:
        if project:
            raise UsageError(
                "`project` goes with `text`; the project of a file is found by its path"
            )
        file = server.files.resolve(path)
        return Source(server.files.read(file), server.lean_for(file))
    start = server.files.resolve(project) if project else server.files.first
    return Source(text, server.lean_for(start))


class Message(Answer, frozen=True):
    """A message of Lean. Lines and columns count from 1."""

    severity: str
    line: int
    column: int
    text: str


class CheckArguments(Arguments, frozen=True):
    path: PathText = ""
    text: Text = ""
    project: PathText = ""
    seconds: Seconds = 60.0
    limit: Limit = 50
    offset: Offset = 0


class Checked(PagedAnswer, frozen=True):
    """The result of a check. `ok` means that there is no error and no `sorry`."""

    ok: bool
    errors: int
    warnings: int
    sorries: list[str]
    messages: list[Message]


@tool("lean_check", lambda given: given.seconds)
def check(server: ServerState, given: CheckArguments, call: Call) -> Checked:
    """Check a Lean 4 file (`path`) or a text (`text`) with Lean, for at most `seconds`.

    Returns errors, warnings, and the declarations that rest on sorry. An error result means that
    the check gave no answer; it never means that the text is correct.
    """
    source = read_source(server, given.path, given.text, given.project)
    result = answered(source.lean.ask(call, lambda s: s.check(source.text, timeout=given.seconds)))
    call.raise_if_stopped()
    shown, rest = page(result.diagnostics, given.offset, given.limit)
    counts = [diagnostic.severity for diagnostic in result.diagnostics]
    return Checked(
        result.ok,
        counts.count("error"),
        counts.count("warning"),
        [clipped(name, 200) for name in result.unproved[: given.limit]],
        [Message(d.severity, d.line, d.column + 1, clipped(d.text)) for d in shown],
        **rest,
    )


class SorriesArguments(Arguments, frozen=True):
    path: PathText = ""
    seconds: Seconds = 120.0
    limit: Limit = 50
    offset: Offset = 0


class SorryEntry(Answer, frozen=True):
    """A sorry. Lines and columns count from 1; `difficulty` is a guess from 0 to 1."""

    file: str
    line: int
    column: int
    declaration: str
    goal: str
    difficulty: float


class Problem(Answer, frozen=True):
    """A file that Lean could not read completely; it may have further sorries."""

    file: str
    error: str


class Sorries(PagedAnswer, frozen=True):
    """The sorries. `complete` means that every file was read, so there are no others."""

    sorries: list[SorryEntry]
    total: int
    files: int
    complete: bool
    problems: tuple[Problem, ...] = ()


@tool("lean_sorries", lambda given: given.seconds * 20)
def sorries(server: ServerState, given: SorriesArguments, call: Call) -> Sorries:
    """List every sorry of a Lean project, directory or file (`path`), as Lean finds it;
    `seconds` limits each file.

    Returns position, declaration, goal and a difficulty from 0 to 1. `problems` lists the files
    that Lean could not read.
    """
    start = server.files.resolve(given.path or ".")
    files = server.files.lean_files(start)
    if not files:
        raise UsageError(f"there is no Lean file in {server.files.shown(start)!r}")
    found: list[SorryEntry] = []
    problems: list[Problem] = []
    for number, path in enumerate(files):
        name = server.files.shown(path)
        call.raise_if_stopped()
        call.progress(number, len(files), name)
        try:
            one = _extract_file(server, path, given.seconds, call)
        except UsageError as error:
            problems.append(Problem(name, str(error)))
            continue
        if one.error:
            problems.append(Problem(name, clipped(one.error, 500)))
        elif wrong := [each for each in one.diagnostics if each.severity == "error"]:
            problems.append(Problem(name, clipped(wrong[0].format(name), 500)))
        found += [
            SorryEntry(
                name, each.line, each.column, clipped(each.declaration, 200),
                clipped(each.goal, 1000), round(each.difficulty, 2),
            )
            for each in sorry_records(one, start)
        ]  # fmt: skip
    call.raise_if_stopped()
    if problems and not found and len(problems) == len(files):
        first = problems[0]
        raise Fault(f"Lean could read no file; the first error: {first.file}: {first.error}")
    shown, rest = page(found, given.offset, given.limit)
    return Sorries(
        shown,
        len(found),
        len(files),
        not problems,
        tuple(problems[: given.limit]),
        **rest,
    )


def _extract_file(server: ServerState, path: Path, seconds: float, call: Call) -> FileSorries:
    text = server.files.read(path)

    def ask(session: HostSession) -> FileSorries:
        one = extract_source(session, path, text, timeout=seconds)
        if session.alive:
            session.free([state for sorry in one.sorries for state in sorry.states])
        return one

    return server.lean_for(path).ask(call, ask)


# -- premises --------------------------------------------------------------------------------


class PremisesArguments(Arguments, frozen=True):
    query: Annotated[
        str, msgspec.Meta(max_length=20_000, description="Goal, statement, name or plain words.")
    ]
    count: Annotated[
        int, msgspec.Meta(ge=1, le=100, description="Most declarations to return.")
    ] = 10
    by: Annotated[
        Literal["words", "meaning"],
        msgspec.Meta(
            description="Ranking. `meaning` needs treewright[premises] and an index with "
            "embeddings."
        ),
    ] = "words"
    imports: Annotated[
        tuple[Name, ...],
        msgspec.Meta(min_length=1, max_length=20, description="Modules to search."),
    ] = ("Init",)


class Found(Answer, frozen=True):
    name: str
    type: str
    module: str
    score: float


class Premises(Answer, frozen=True):
    premises: list[Found]
    ranking: str


@tool("lean_premises")
def premises(server: ServerState, given: PremisesArguments, call: Call) -> Premises:
    """Find declarations of Lean's library that may help with a goal.

    Returns at most `count`, the best first, each with name, type, module and score. The first call
    builds the index in some seconds; `treewright premises build` adds embeddings.
    """
    if not given.query.strip():
        raise UsageError("the query is empty; give a goal, a statement, a name or words")
    with server.premises(given.imports, call) as index:
        rank = index.lexical if given.by == "words" else index.search
        found = rank(given.query, given.count)
    return Premises(
        [
            Found(clipped(p.name, 300), clipped(" ".join(p.type.split()), 600), p.module,
                  round(p.score, 4))
            for p in found
        ],
        "words" if given.by == "words" else "words and meaning",
    )  # fmt: skip
