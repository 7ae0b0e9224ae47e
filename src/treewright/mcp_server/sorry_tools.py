"""The tool that lists what a project leaves open."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import FileSorries, extract_source
from treewright.mcp_server.bounds import Limit, Offset, PathText, clipped, page
from treewright.mcp_server.call import Call
from treewright.mcp_server.check_tools import Seconds
from treewright.mcp_server.desk import Desk
from treewright.mcp_server.faults import Fault
from treewright.mcp_server.tool import Answer, Arguments, PagedAnswer, Tool
from treewright.orchestrator.goals.project import sorry_records


class SorriesArguments(Arguments, frozen=True):
    path: PathText = ""
    seconds: Seconds = 120.0
    limit: Limit = 50
    offset: Offset = 0


class OpenEnd(Answer, frozen=True):
    """Lines and columns count from 1; difficulty from 0 to 1."""

    file: str
    line: int
    column: int
    declaration: str
    goal: str
    difficulty: float


class Problem(Answer, frozen=True):
    """A file that Lean could not read to its end: what it leaves open is not known."""

    file: str
    error: str


class Sorries(PagedAnswer, frozen=True):
    """`complete`: every file was read, so there are no others."""

    sorries: list[OpenEnd]
    total: int
    files: int
    complete: bool
    problems: tuple[Problem, ...] = ()


def sorries(desk: Desk, given: SorriesArguments, call: Call) -> Sorries:
    start = desk.files.resolve(given.path or ".")
    files = desk.files.lean_files(start)
    if not files:
        raise UsageError(f"there is no Lean file in {desk.files.shown(start)!r}")
    found: list[OpenEnd] = []
    problems: list[Problem] = []
    for number, path in enumerate(files):
        name = desk.files.shown(path)
        call.go_on()
        call.progress(number, len(files), name)
        try:
            one = _file(desk, path, given.seconds, call)
        except UsageError as error:
            problems.append(Problem(name, str(error)))
            continue
        if one.error:
            problems.append(Problem(name, clipped(one.error, 500)))
        elif wrong := [each for each in one.diagnostics if each.severity == "error"]:
            problems.append(Problem(name, clipped(wrong[0].format(name), 500)))
        found += [
            OpenEnd(
                name, each.line, each.column, clipped(each.declaration, 200),
                clipped(each.goal, 1000), round(each.difficulty, 2),
            )
            for each in sorry_records(one, start)
        ]  # fmt: skip
    call.go_on()
    if problems and not found and len(problems) == len(files):
        first = problems[0]
        raise Fault(f"no file could be read by Lean; the first: {first.file}: {first.error}")
    shown, rest = page(found, given.offset, given.limit)
    return Sorries(
        shown,
        len(found),
        len(files),
        not problems,
        tuple(problems[: given.limit]),
        **rest,
    )


def _file(desk: Desk, path: Path, seconds: float, call: Call) -> FileSorries:
    text = desk.files.read(path)

    def ask(session: HostSession) -> FileSorries:
        one = extract_source(session, path, text, timeout=seconds)
        if session.alive:
            session.free([state for sorry in one.sorries for state in sorry.states])
        return one

    return desk.place(path).ask(call, ask)


TOOLS = (
    Tool(
        "lean_sorries",
        "Every sorry of a Lean project, directory or file, found by Lean itself: place, "
        "declaration, goal, difficulty. `problems` lists files that could not be read.",
        SorriesArguments,
        Sorries,
        sorries,
        lambda given: given.seconds * 20,
    ),
)
