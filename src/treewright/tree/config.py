"""`treewright.toml` (or JSON): what to improve, how it is measured, who does the work.

The file is read once, when a run starts, and recorded in the manifest; a candidate
that edits it changes nothing. Every key is typed; an unknown or ill-typed one is an
error with its path and, where a known key is near, a suggestion.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from treewright.kernel import jsontext
from treewright.kernel.errors import UsageError
from treewright.kernel.explaining import explain
from treewright.llm.endpoint import Endpoint

DEFAULT_NAME = "treewright.toml"
FILL_IN = "FILL_IN"
"""What `treewright init` writes where only the user knows. Loads, but no run starts with it."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
"""Not infinite: an infinite weight or tolerance would silently decide everything."""
Count = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any table of the file."""


class SweepConfig(Table, frozen=True):
    """The command that measures a commit. See docs/sweep-contract.md."""

    command: Text
    results_csv: str | None = None
    timeout_seconds: Positive = 3600.0


class TestsConfig(Table, frozen=True):
    """A command that must exit 0 before a candidate is swept."""

    command: Text
    timeout_seconds: Positive = 1800.0


class LimitsConfig(Table, frozen=True):
    """What tests and sweeps may use, in megabytes; no key, no limit."""

    memory_mb: Count | None = None
    file_mb: Count | None = None


class MetricConfig(Table, frozen=True):
    """A numeric column of the results CSV. `tolerance` is in the column's own unit."""

    name: Text
    direction: Literal["minimize", "maximize"]
    primary: bool = False
    weight: NonNegative = 1.0
    tolerance: NonNegative = 0.0


class EndpointConfig(Table, Endpoint, frozen=True, kw_only=True):
    """An OpenAI-compatible chat endpoint. The key is read from the environment, never stored."""


class DirectoryIdeas(Table, frozen=True, tag_field="source", tag="directory"):
    """The `.md` files of a directory, in name order."""

    path: Text


class CommandIdeas(Table, frozen=True, tag_field="source", tag="command"):
    """A program that writes idea files. See docs/ideas.md for its arguments.

    With `pass_arguments = false` it gets the environment variables only.
    """

    command: Text
    timeout_seconds: Positive = 1800.0
    pass_arguments: bool = True


class LlmIdeas(Table, frozen=True, tag_field="source", tag="llm"):
    """An endpoint that is asked for ideas. `prompt` replaces the built-in prompt file;
    `context_chars` bounds how much of the repository's files it shows."""

    endpoint: EndpointConfig
    prompt: str | None = None
    context_chars: Count = 60_000


class MutateIdeas(Table, frozen=True, tag_field="source", tag="mutate"):
    """Single edits to the Python files declared tunable, made offline.

    `options` lists alternatives for string or boolean values by variable, keyword or
    dictionary-key name; `factors` are tried on numeric literals.
    """

    files: Annotated[list[Text], msgspec.Meta(min_length=1)]
    options: dict[str, list[str | bool | int | float]] = {}
    factors: Annotated[list[Positive], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: [0.5, 2.0]
    )


IdeaSourceConfig = DirectoryIdeas | CommandIdeas | LlmIdeas | MutateIdeas


class NoBackend(Table, frozen=True, tag_field="backend", tag="none"):
    """The role is left out: no plan is made, or every change is accepted."""


class PatchBackend(Table, frozen=True, tag_field="backend", tag="patch"):
    """Applies the patch that the idea itself carries. For the coder."""


class CommandBackend(Table, frozen=True, tag_field="backend", tag="command"):
    """Any command-line agent, run in the worktree.

    `preset` is one of claude, codex, gemini, aider; `command` (a list of arguments)
    replaces it. `{prompt_file}` in an argument stands for the prompt's path; without
    it the prompt is on stdin.
    """

    preset: Literal["claude", "codex", "gemini", "aider"] | None = None
    command: Annotated[list[Text], msgspec.Meta(min_length=1)] | None = None
    timeout_seconds: Positive = 1800.0
    prompt: str | None = None

    def __post_init__(self) -> None:
        if (self.preset is None) == (self.command is None):
            raise ValueError("give either preset or command")


class OpenaiBackend(Table, frozen=True, tag_field="backend", tag="openai"):
    """A chat endpoint. The coder's reply carries the edits; see docs/agents.md.

    `context_chars` bounds how much of the repository's files a prompt shows.
    """

    endpoint: EndpointConfig
    prompt: str | None = None
    context_chars: Count = 60_000


class ScriptedBackend(Table, frozen=True, tag_field="backend", tag="scripted"):
    """Replies read from a JSON file, for tests and rehearsals."""

    script: Text


BackendConfig = NoBackend | PatchBackend | CommandBackend | OpenaiBackend | ScriptedBackend


class AgentsConfig(Table, frozen=True):
    planner: BackendConfig = NoBackend()
    coder: BackendConfig = PatchBackend()
    reviewer: BackendConfig = NoBackend()


class Config(Table, frozen=True):
    """The whole file."""

    baseline_csv: Text
    sweep: SweepConfig
    metrics: Annotated[list[MetricConfig], msgspec.Meta(min_length=1)]
    ideas: Annotated[list[IdeaSourceConfig], msgspec.Meta(min_length=1)]
    tests: TestsConfig | None = None
    limits: LimitsConfig = LimitsConfig()
    protected_paths: list[Text] = []
    agents: AgentsConfig = AgentsConfig()
    max_review_rounds: Count = 2
    proceed_on_max_review_rounds: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        if len(set(names)) != len(names):
            raise ValueError("metrics have the same name twice")
        if sum(metric.primary for metric in self.metrics) != 1:
            raise ValueError("exactly one metric must have primary = true")

    @property
    def primary(self) -> MetricConfig:
        return next(metric for metric in self.metrics if metric.primary)


def load(path: Path) -> Config:
    """Reads TOML, or JSON by extension."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"no configuration at {path}; run `treewright init` or give --config"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        if path.suffix == ".json":
            return jsontext.decode(data, type=Config)
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), type=Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {explain(str(error), Table)}") from None
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid {path.suffix[1:] or 'TOML'}: {error}") from None


def unfilled(value: object, path: str = "") -> list[str]:
    """Paths of the keys that still say FILL_IN."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in unfilled(v, f"{path}.{k}".lstrip("."))]
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in unfilled(v, f"{path}[{i}]")]
    return [path] if value == FILL_IN else []
