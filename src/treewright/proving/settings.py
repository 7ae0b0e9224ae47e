"""The settings of a proof search, and `run.json`: the record from which a run can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage.run_directory import RunEnvironment
from treewright.kernel.text import jsontext
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.llm.endpoint import Endpoint
from treewright.proving.cell_settings import CellSettings
from treewright.proving.learning import Lesson
from treewright.proving.tactics.environment_tactics import EnvironmentTactic
from treewright.search.andor.policies import Mcts, Policy, make

FORMAT_VERSION = 1
TRACE_VERSION = 1
"""The versions of run.json and trace.jsonl. A version is raised when the meaning of a field
changes; a run with another version is refused."""
MODEL_TOKENS = 400
MODEL_SECONDS = 30.0
"""The most tokens of a model's answer about a goal, and the most seconds for it."""
IN_SECONDS = {"unit": "SECONDS"}
Mode = Literal["centralized", "distributed"]


class StatementTarget(msgspec.Struct, frozen=True, tag="statement"):
    """A proposition, given as text."""

    statement: str
    imports: tuple[str, ...] = ("Init",)


class FileTarget(msgspec.Struct, frozen=True, tag="file"):
    """The sorries of a file, or of one of its declarations.

    `source` is the text when the run began.
    """

    path: str
    source: str
    declaration: str | None = None


Target = StatementTarget | FileTarget


class EndpointSettings(msgspec.Struct, frozen=True):
    """A chat endpoint that proposes tactics.

    `key_env` is the name of the environment variable with the key; the key itself is never stored.
    The prices give the cost in the result and the report; without them the cost is unknown.
    """

    url: str
    model: str
    key_env: str | None = None
    usd_per_million_prompt_tokens: float | None = None
    usd_per_million_completion_tokens: float | None = None

    def endpoint(self) -> Endpoint:
        """Return the endpoint for the chat client, with the limits of an answer."""
        return Endpoint(
            base_url=self.url,
            model=self.model,
            api_key_env=self.key_env,
            max_tokens=MODEL_TOKENS,
            timeout_seconds=MODEL_SECONDS,
            usd_per_million_prompt_tokens=self.usd_per_million_prompt_tokens,
            usd_per_million_completion_tokens=self.usd_per_million_completion_tokens,
        )


class SourceSettings(msgspec.Struct, frozen=True):
    """The tactic sources of a run.

    `premises` is the path of a premise index, `cache` the path of a ledger with cached tactics.
    `known`: whether to use Lean's knowledge about a goal, such as lemmas that fit it. `tactics` is
    the text of the user's file. `library` is the digest of the index of Lean's library, which is
    searched after everything else was tried. `learned` are the lessons of earlier searches
    (learning.py). `strategies`: whether whole strategies are tried before the search
    (portfolio.py); cells never try them. `environment` are the tactics of packages that the file
    has (tactics/environment_tactics.py).
    """

    tactics: str | None = None
    premises: str | None = None
    cache: str | None = None
    endpoint: EndpointSettings | None = None
    advice: Annotated[
        bool, Meta(description="Also ask Lean's `exact?`, which takes seconds for each goal.")
    ] = False
    noise: Annotated[
        float,
        Meta(ge=0, le=1, description="Share of seeded noise in the priors of tactics, 0 to 1."),
    ] = 0.1
    known: bool = False
    strategies: bool = False
    library: str | None = None
    learned: tuple[Lesson, ...] = ()
    environment: tuple[EnvironmentTactic, ...] = ()

    @property
    def outside(self) -> bool:
        """Whether suggestions come from a source that may have changed since."""
        return self.endpoint is not None or self.cache is not None or self.premises is not None


class Settings(msgspec.Struct, frozen=True):
    """Everything except its target that a search depends on.

    The described fields are options of `treewright prove`. `policy` is the policy of the
    centralized mode; cells take their constants from it. `cells` are for the distributed mode.
    `axioms` are those that a proof may rest on.
    """

    mode: Mode = "centralized"
    simulations: Annotated[int, Meta(ge=1, description="Most simulations for each goal.")] = 200
    time_limit: (
        Annotated[
            float,
            Meta(gt=0, description="Most seconds of search for each goal.", extra=IN_SECONDS),
        ]
        | None
    ) = None
    step_timeout: Annotated[
        float, Meta(gt=0, description="Most seconds for one tactic.", extra=IN_SECONDS)
    ] = 5.0
    seed: Annotated[int, Meta(description="Seed of all random choices.")] = 0
    batch: Annotated[int, Meta(ge=1, description="Tactics tried in one simulation.")] = 8
    refute: Annotated[bool, Meta(description="Also search for a proof of the goal's negation.")] = (
        True
    )
    policy: Policy = Mcts()
    sources: SourceSettings = SourceSettings()
    cells: CellSettings | None = None
    axioms: tuple[str, ...] = tuple(sorted(DEFAULT_AXIOMS))

    @property
    def searcher(self) -> str:
        """The mode and, in centralized mode, the policy, in words."""
        return f"{self.mode}, {self.policy.name}" if self.mode == "centralized" else self.mode


class LeanRecord(msgspec.Struct, frozen=True):
    """The Lean that a run used.

    `modules` are those of the project, with the sha256 of their texts.
    """

    backend: str
    version: str
    detail: str
    modules: dict[str, str] = {}


class GitRecord(msgspec.Struct, frozen=True):
    """The commit of the directory in which the run was started, if it is in a repository."""

    commit: str
    dirty: bool


class RunRecord(msgspec.Struct, frozen=True):
    """The content of `run.json`. It is written once, before the first goal is opened."""

    format_version: int
    trace_version: int
    run_id: str
    created_at: str
    mode: Mode
    target: Target
    settings: Settings
    seeds: dict[str, int]
    environment: RunEnvironment
    lean: LeanRecord
    git: GitRecord | None = None


def encode_document(record: msgspec.Struct) -> bytes:
    """Return a record as the indented JSON of `run.json` and `result.json`."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def read_run(path: Path) -> RunRecord:
    """Read a `run.json`.

    Raises UsageError without one or for another version, StorageError if damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no proof run here: {path.parent} has no run.json") from None
    try:
        document = jsontext.decode(data)
        for name, known in (("format_version", FORMAT_VERSION), ("trace_version", TRACE_VERSION)):
            if (version := document.get(name)) != known:
                raise UsageError(
                    f"{path} has {name} {version}, this treewright reads {known}; use the "
                    "treewright that wrote it"
                )
        return msgspec.convert(document, RunRecord, dec_hook=_policy)
    except (msgspec.DecodeError, AttributeError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None


def _policy(kind: type, recorded: Any) -> Policy:
    """Decode a recorded policy, which is tagged with its name."""
    if kind is not Policy or not isinstance(recorded, dict):
        raise TypeError(f"no {kind.__name__}")
    options = {key: value for key, value in recorded.items() if key != "type"}
    return make(recorded.get("type", ""), options)
