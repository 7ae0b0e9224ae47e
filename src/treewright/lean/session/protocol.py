"""The protocol between treewright and a Lean process of either host: docs/lean-protocol.md.

JSON lines: requests on stdin, one reply for each on a separate pipe, in order. A request is one of
the types here, named by `op`, and each type of request names the type of its reply. The host
numbers states and environments. Names of constants in requests to a judge are raw JSON, as another
process wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, get_args

import msgspec

from treewright.kernel.text import jsontext
from treewright.lean.project.module_store import Header
from treewright.lean.session.answers import (
    Declaration,
    Diagnostic,
    Goal,
    SorryPlace,
    SyntaxNode,
)
from treewright.lean.session.knowledge import Exploration, Knowledge, TestResult


class Reply(msgspec.Struct):
    """The part that every reply has; the bare reply of an operation that returns nothing else.

    If not `ok`: `kind` (statement, parse, tactic, exhausted, timeout, cancelled, request, fatal)
    and `error`; after `fatal` the process ends. `heap` is in bytes. Every field of an operation has
    a default, because a reply that is not `ok` lacks it.
    """

    id: int | None
    ok: bool
    ms: float = 0.0
    heap: int = 0
    kind: str = ""
    error: str = ""


class StateReply(Reply):
    """A proof state."""

    state: int = 0
    goals: tuple[Goal, ...] = ()
    messages: tuple[Diagnostic, ...] = ()
    complete: bool = False
    uses_sorry: bool = False


class SurveyReply(Reply):
    """The knowledge about a goal."""

    survey: Knowledge | None = None


class TestReply(Reply):
    """The result of trying a goal on random values."""

    test: TestResult | None = None


class ExploreReply(Reply):
    """Equations over the functions of a goal."""

    explored: Exploration | None = None


class TextReply(Reply):
    """An elaborated text; without `env`, `messages` or `stopped` have the cause."""

    env: int | None = None
    messages: tuple[Diagnostic, ...] = ()
    stopped: str = ""
    imports: tuple[str, ...] = ()
    sorries: tuple[SorryPlace, ...] = ()
    unproved: tuple[str, ...] = ()


class ReferenceReply(Reply):
    """An elaborated original.

    `targets` are to be proved, and a candidate must declare `stated` with the same meaning; both
    are names as raw JSON of the process. `unknown` are names of the caller that the original does
    not declare, `trouble` is the error that concerns a target, `spent` says that the process cannot
    read another original, `library` are the imported library modules, and `own` the imported
    modules of the project that the host found by itself.
    """

    env: int | None = None
    messages: tuple[Diagnostic, ...] = ()
    stopped: str = ""
    imports: tuple[str, ...] = ()
    targets: msgspec.Raw = msgspec.Raw(b"[]")
    stated: msgspec.Raw = msgspec.Raw(b"[]")
    unknown: tuple[str, ...] = ()
    trouble: Diagnostic | None = None
    spent: bool = False
    library: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Its errors; no error concerns a target if there is no `trouble`."""
        return tuple(d for d in self.messages if d.severity == "error")

    @property
    def has_targets(self) -> bool:
        """Whether any declaration is to be proved."""
        return self.targets != b"[]"


class AuditReply(Reply):
    """What a declaration rests on; `kind` is the kind of the declaration."""

    name: str = ""
    axioms: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()


class ExportReply(Reply):
    """Declarations as data, and the names of imported project declarations in it."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    imported: msgspec.Raw = msgspec.Raw(b"[]")


class MeaningReply(Reply):
    """An original as data."""

    original: msgspec.Raw = msgspec.Raw(b"null")
    implemented: msgspec.Raw = msgspec.Raw(b"[]")


class JudgeReply(Reply):
    """Verdicts, as raw JSON."""

    rulings: msgspec.Raw = msgspec.Raw(b"[]")


class DeclarationsReply(Reply):
    """A page of declarations, and the number of all."""

    items: tuple[Declaration, ...] = ()
    total: int = 0


class ParseReply(Reply):
    """A syntax tree, or a problem; for `begins`, `problem` is the kind of the command."""

    root: SyntaxNode | None = None
    problem: str = ""
    known: bool = False
    stopped: str = ""


class HeadersReply(Reply):
    """The imports of each text."""

    headers: tuple[Header, ...] = ()


class CompileReply(Reply):
    """A compiled module in base64, or `messages` and `stopped` with the cause.

    With errors there is a module too if the host `lacks` something that it needs.
    """

    olean: str | None = None
    lacks: str = ""
    messages: tuple[Diagnostic, ...] = ()
    stopped: str = ""


class MemoryReply(Reply):
    """The memory in use in bytes, and the numbers of states and environments."""

    rss: int = 0
    states: int = 0
    envs: int = 0


class VersionReply(Reply):
    """The versions of Lean and Node."""

    lean: str = ""
    commit: str = ""
    node: str = ""


R = TypeVar("R", bound=Reply)


class Request(
    msgspec.Struct, Generic[R], kw_only=True, tag_field="op", tag=str.lower, omit_defaults=True
):
    """A request, which is answered with a reply of the type `R`.

    `LeanProcess.request` sets `id` and `max_ms`, the limit that Lean itself keeps.
    """

    id: int = 0
    max_ms: int | None = None


class Ping(Request[Reply]):
    """Do nothing: the reply shows that the process is alive."""


class Open(Request[TextReply]):
    """Import the modules of a header. The reply has `env`, or no `env` and `messages` with the
    cause."""

    text: str


class Elaborate(Request[TextReply]):
    """Elaborate a whole file (without `env`), or commands on an environment.

    `keep` the result as an environment; collect `sorries`; stop at text that the `policy` forbids
    (see verify/restrictions.py); `audit`: list declarations that rest on `sorry`, whatever the
    warnings say; with `sorries`, a host may end after the declaration `until`. An error that
    concerns a declaration with a `sorry` is the `trouble` of that `sorry`. With `statements` a host
    may leave out proofs of theorems without a `sorry`.
    """

    text: str
    env: int | None = None
    keep: bool = False
    sorries: bool = False
    audit: bool = False
    until: str | None = None
    statements: bool = False
    policy: dict[str, Any] | None = None


class Start(Request[StateReply]):
    """Open a proof of a statement, or of the statement of a declaration."""

    env: int
    statement: str | None = None
    declaration: str | None = None


class Tactic(Request[StateReply]):
    """Run a tactic, or several tactics on separate lines, that must not use declarations.

    `heartbeats` is Lean's measure of work; 0 leaves Lean's own limit.
    """

    state: int
    text: str
    heartbeats: int = 0
    without: Sequence[str] = ()


class Focus(Request[StateReply]):
    """Return the same state with some of its goals, by their positions."""

    state: int
    goals: Sequence[int]


class Survey(Request[SurveyReply]):
    """Return lemmas and facts for the first goal of a state; with `library`, also library
    lemmas."""

    state: int
    library: bool = False


class Test(Request[TestReply]):
    """Try the first goal of a state on random values."""

    state: int
    samples: int
    seed: int
    ms: int


class Explore(Request[ExploreReply]):
    """Return equations over the functions of the first goal of a state."""

    state: int
    size: int
    samples: int
    seed: int
    ms: int
    most: int


class Free(Request[Reply]):
    """Forget states and environments."""

    states: Sequence[int] = ()
    envs: Sequence[int] = ()


class Reset(Request[Reply]):
    """Forget every state, and every environment except imported ones and `env`."""

    env: int


class Audit(Request[AuditReply]):
    """Return the axioms and constants that a declaration rests on, as far as the host can see."""

    env: int
    name: str


class Export(Request[ExportReply]):
    """Export declarations of a text as data for a judge: `whole` with proofs, `stated` without."""

    env: int
    whole: msgspec.Raw
    stated: msgspec.Raw


class Reference(Request[ReferenceReply]):
    """Elaborate an original; the reply has its declarations and its open targets."""

    text: str
    targets: Sequence[str]


class Meaning(Request[MeaningReply]):
    """Export an original as data: its own `names`, and `imported` ones."""

    env: int
    names: msgspec.Raw
    imported: msgspec.Raw


class Judge(Request[JudgeReply]):
    """Return verdicts on exported data, in a process that has read no text.

    `library` are the library modules that the original imports; `original` is the reply of
    `meaning`. `stated` is None if there is no original to compare with.
    """

    data: msgspec.Raw
    allowed: Sequence[str]
    targets: msgspec.Raw | Sequence[str]
    stated: msgspec.Raw | None
    separately: bool
    library: Sequence[str]
    original: msgspec.Raw
    implemented: msgspec.Raw


class Declarations(Request[DeclarationsReply]):
    """Return the constants of the environment by name, in pages."""

    env: int
    prefix: str
    module: str
    offset: int
    limit: int
    types: bool
    plain: bool = False


class Parse(Request[ParseReply]):
    """Parse a text of a syntax category that stands after the text `after`."""

    text: str
    category: str
    after: str
    name: str


class Begins(Request[ParseReply]):
    """Return the command that begins in bytes [start, end) of a file.

    Commands from `start` on are not run.
    """

    text: str
    start: int
    end: int


class Headers(Request[HeadersReply]):
    """Return the imports of texts. Only the bundled host has this operation and the next three."""

    texts: Sequence[str]


class Provide(Request[Reply]):
    """Give the process compiled modules of a project, its options, and files that texts include."""

    modules: Sequence[dict[str, str]]
    options: Sequence[Any] = ()
    files: Sequence[dict[str, str]] = ()


class Compile(Request[CompileReply]):
    """Compile a module of a project. Its imports have been provided."""

    module: str
    text: str


class Renew(Request[Reply]):
    """Put the process back into its state after the start. Afterwards it does not judge."""


class Memory(Request[MemoryReply]):
    """Return the memory in use, and the numbers of states and environments."""


class Version(Request[VersionReply]):
    """Return the versions of Lean and Node."""


REQUESTS: dict[str, type[Request[Any]]] = {
    kind.__name__.lower(): kind for kind in Request.__subclasses__()
}
"""The type of each request, by its operation."""

BUNDLED_ONLY = frozenset({"headers", "provide", "compile", "renew", "test", "explore"})
"""Operations of the bundled host only: a native host gets its modules from Lake."""


@cache
def _reply_decoder(kind: type[Request[R]]) -> Callable[[bytes], R]:
    (base,) = kind.__orig_bases__  # pyright: ignore[reportAttributeAccessIssue]
    return jsontext.decoder(get_args(base)[0])


def decode_reply(request: Request[R], line: bytes) -> R:
    """Return the reply to a request. Raises msgspec.DecodeError if the line is none."""
    return _reply_decoder(type(request))(line)
