"""The tool `lean_premises`, which finds declarations that may help with a goal."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.mcp_server.answer_limits import Name, clipped
from treewright.mcp_server.call import Call
from treewright.mcp_server.server_state import ServerState
from treewright.mcp_server.tool import Answer, Arguments, Tool


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


def search(server: ServerState, given: PremisesArguments, call: Call) -> Premises:
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


TOOLS = (
    Tool(
        "lean_premises",
        "Find declarations of Lean's library that may help with a goal. Returns at most `count`, "
        "the best first, each with name, type, module and score. The first call builds the index "
        "in some seconds; `treewright premises build` adds embeddings.",
        PremisesArguments,
        Premises,
        search,
    ),
)
