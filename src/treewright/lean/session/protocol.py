"""The protocol between treewright and a Lean process of either host: docs/lean-protocol.md.

JSON lines: requests on stdin, one reply for each on a separate pipe, in order. A request is one of
the types here, named by `op`; a reply is a `Reply`, and each operation uses some of its fields.
The host numbers states and environments. Names of constants in requests to a judge are raw JSON, as
another process wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from treewright.lean.project.module_store import Header
from treewright.lean.session.answers import (
    Declaration,
    Diagnostic,
    Goal,
    SorryPlace,
    SyntaxNode,
)
from treewright.lean.session.knowledge import Exploration, Knowledge, TestResult


class Request(msgspec.Struct, kw_only=True, tag_field="op", tag=str.lower, omit_defaults=True):
    """A request. `max_ms` is the limit that Lean itself keeps; without it there is no limit."""

    id: int
    max_ms: int | None = None


class Ping(Request):
    """Do nothing: the reply shows that the process is alive."""


class Open(Request):
    """Import the modules of a header. The reply has `env`, or no `env` and `messages` with the
    cause."""

    text: str


class Elaborate(Request):
    """Elaborate a whole file (without `env`), or commands on an environment.

    `keep` the result as an environment; collect `sorries`; stop at text that the `policy` forbids
    (see verify/restrictions.py); `audit`: list declarations that rest on `sorry`, whatever the
    warnings say; with `sorries`, a host may end after the declaration `until`. An error that
    concerns a declaration with a `sorry` is the `trouble` of that `sorry`.
    """

    text: str
    env: int | None = None
    keep: bool = False
    sorries: bool = False
    audit: bool = False
    until: str | None = None
    policy: dict[str, Any] | None = None


class Start(Request):
    """Open a proof of a statement, or of the statement of a declaration."""

    env: int
    statement: str | None = None
    declaration: str | None = None


class Tactic(Request):
    """Run a tactic, or several tactics on separate lines. `heartbeats`: Lean's measure of work."""

    state: int
    text: str
    heartbeats: int = 0


class Focus(Request):
    """Return the same state with some of its goals, by their positions."""

    state: int
    goals: list[int]


class Survey(Request):
    """Return lemmas and facts for the first goal of a state; with `library`, also library
    lemmas."""

    state: int
    library: bool = False


class Test(Request):
    """Try the first goal of a state on random values."""

    state: int
    samples: int
    seed: int
    ms: int


class Explore(Request):
    """Return equations over the functions of the first goal of a state."""

    state: int
    size: int
    samples: int
    seed: int
    ms: int
    most: int


class Free(Request):
    """Forget states and environments."""

    states: list[int] = []
    envs: list[int] = []


class Reset(Request):
    """Forget every state, and every environment except imported ones and `env`."""

    env: int


class Audit(Request):
    """Return the axioms and constants that a declaration rests on, as far as the host can see."""

    env: int
    name: str


class Export(Request):
    """Export declarations of a text as data for a judge: `whole` with proofs, `stated` without."""

    env: int
    whole: msgspec.Raw
    stated: msgspec.Raw


class Reference(Request):
    """Elaborate an original; the reply has its declarations and its open targets."""

    text: str
    targets: list[str]


class Meaning(Request):
    """Export an original as data: its own `names`, and `imported` ones."""

    env: int
    names: msgspec.Raw
    imported: msgspec.Raw


class Judge(Request):
    """Return verdicts on exported data, in a process that has read no text.

    `library` are the library modules that the original imports; `original` is the reply of
    `meaning`. `stated` is None if there is no original to compare with.
    """

    data: msgspec.Raw
    allowed: list[str]
    targets: msgspec.Raw | list[str]
    stated: msgspec.Raw | None
    separately: bool
    library: list[str]
    original: msgspec.Raw
    implemented: msgspec.Raw


class Declarations(Request):
    """Return the constants of the environment by name, in pages."""

    env: int
    prefix: str
    module: str
    offset: int
    limit: int
    types: bool
    plain: bool = False


class Parse(Request):
    """Parse a text of a syntax category that stands after the text `after`."""

    text: str
    category: str
    after: str
    name: str


class Begins(Request):
    """Return the command that begins in bytes [start, end) of a file.

    Commands from `start` on are not run.
    """

    text: str
    start: int
    end: int


class Headers(Request):
    """Return the imports of texts. Only the bundled host has this operation and the next three."""

    texts: list[str]


class Provide(Request):
    """Give the process compiled modules of a project, and its options, before their import."""

    modules: list[dict[str, str]]
    options: list[Any] = []


class Compile(Request):
    """Compile a module of a project. Its imports have been provided."""

    module: str
    text: str


class Renew(Request):
    """Put the process back into its state after the start. Afterwards it does not judge."""


class Memory(Request):
    """Return the memory in use, and the numbers of states and environments."""


class Version(Request):
    """Return the versions of Lean and Node."""


REQUESTS: dict[str, type[Request]] = {
    kind.__name__.lower(): kind
    for kind in (
        Ping,
        Open,
        Elaborate,
        Start,
        Tactic,
        Focus,
        Survey,
        Test,
        Explore,
        Free,
        Reset,
        Audit,
        Export,
        Reference,
        Meaning,
        Judge,
        Declarations,
        Parse,
        Begins,
        Headers,
        Provide,
        Compile,
        Renew,
        Memory,
        Version,
    )
}
"""The type of each request, by its operation."""

BUNDLED_ONLY = frozenset({"headers", "provide", "compile", "renew"})
"""Operations of the bundled host only: a native host gets its modules from Lake."""


class Reply(msgspec.Struct):
    """A reply, with every field that a reply may have.

    Always: `id`, `ok`, `ms`, `heap` (bytes). If not `ok`: `kind` (statement, parse, tactic,
    exhausted, timeout, cancelled, request, fatal) and `error`; after `fatal` the process ends.
    """

    id: int | None
    ok: bool
    ms: float = 0.0
    heap: int = 0
    kind: str = ""  # of the error, or of the declaration that `audit` asked about
    error: str = ""
    # start, tactic, focus
    state: int = 0
    goals: tuple[Goal, ...] = ()
    messages: tuple[Diagnostic, ...] = ()
    complete: bool = False
    uses_sorry: bool = False
    # survey
    survey: Knowledge | None = None
    # test
    test: TestResult | None = None
    # explore
    explored: Exploration | None = None
    # open, elaborate, reference
    env: int | None = None
    stopped: str = ""
    imports: tuple[str, ...] = ()
    sorries: tuple[SorryPlace, ...] = ()
    unproved: tuple[str, ...] = ()
    # audit
    name: str = ""
    axioms: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()
    # export
    data: msgspec.Raw = msgspec.Raw(b"null")
    imported: msgspec.Raw = msgspec.Raw(b"[]")
    # reference
    targets: msgspec.Raw = msgspec.Raw(b"[]")
    stated: msgspec.Raw = msgspec.Raw(b"[]")
    unknown: tuple[str, ...] = ()
    trouble: Diagnostic | None = None  # the error that concerns a target
    spent: bool = False
    library: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    # meaning
    original: msgspec.Raw = msgspec.Raw(b"null")
    implemented: msgspec.Raw = msgspec.Raw(b"[]")
    # judge
    rulings: msgspec.Raw = msgspec.Raw(b"[]")
    # declarations
    items: tuple[Declaration, ...] = ()
    total: int = 0
    # memory
    rss: int = 0
    states: int = 0
    envs: int = 0
    # version
    lean: str = ""
    commit: str = ""
    node: str = ""
    # parse, begins
    root: SyntaxNode | None = None
    problem: str = ""
    known: bool = False
    # headers, compile
    headers: tuple[Header, ...] = ()
    olean: str | None = None


def message(op: str, number: int, soft: float | None, fields: Mapping[str, Any]) -> Request:
    """Return the request with these fields and a limit of `soft` seconds for Lean."""
    limit = None if soft is None else max(1, round(soft * 1000))
    return REQUESTS[op](id=number, max_ms=limit, **fields)
