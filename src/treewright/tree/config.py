"""The configuration file `treewright.toml` (or JSON): task, metrics, commands, ideas and agents.

The file is read once, when a run starts, and recorded in the manifest, so a candidate that edits it
has no effect. Every key is typed. An unknown or ill-typed key is an error with its path and, if a
known key is similar, a suggestion.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.kernel.text.config_errors import explain
from treewright.llm.endpoint import Endpoint
from treewright.llm.usage import Usage

DEFAULT_NAME = "treewright.toml"
FILL_IN = "FILL_IN"
"""`treewright init` writes this for values that only the user knows. No run starts with it."""

PROMPT_TOKENS = 16_000
"""The default budget of a prompt; a token counts as `prompts.CHARS_A_TOKEN` characters."""

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e300)]
NonNegative = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
"""Finite, because an infinite weight or tolerance would silently decide every comparison, and
because a record cannot hold infinity, so that the run could not be resumed."""
Count = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Bound = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any table of the file."""


class Confined(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of an isolated command outside its worktree. Other commands have all rights."""

    network: bool = False
    writable_paths: list[Text] = []
    keep_variables: list[Text] = []


class SweepConfig(Table, Confined, frozen=True):
    """The command that measures a commit. See docs/sweep-contract.md.

    It runs in the `checkout` of the candidate or of the root. With `sealed`, results need a seal,
    which the first process that reads the command's stdin can make. With `reuse_results`, results
    of the same code from earlier runs count.
    """

    command: Text
    results_csv: str | None = None
    timeout_seconds: Positive = 3600.0
    checkout: Literal["candidate", "root"] = "candidate"
    sealed: bool = False
    reuse_results: bool = False

    def __post_init__(self) -> None:
        if self.checkout == "root" and self.results_csv is not None:
            raise ValueError(
                'results_csv is a file of the candidate\'s checkout; with checkout = "root" write '
                "to the path in TREEWRIGHT_RESULTS_CSV"
            )


class TestsConfig(Table, Confined, frozen=True):
    """A command that must exit 0 before a candidate is swept."""

    command: Text
    timeout_seconds: Positive = 1800.0


class LimitsConfig(Table, frozen=True):
    """Limits of tests and sweeps in megabytes. A missing key means no limit."""

    memory_mb: Count | None = None
    file_mb: Count | None = None


Slots = dict[Text, Annotated[list[str], msgspec.Meta(min_length=1)]]
"""Environment variables of parallel evaluations: the values of each variable by slot number."""


class MetricConfig(Table, frozen=True):
    """A numeric column of the results CSV. `tolerance`, `min` and `max` are in its unit.

    A change is told from noise by pairs over configs, by `repeats` of the whole sweep, or by
    `seeds`, where every config is the same question with another seed. A `deterministic` metric has
    no noise. With `seeds`, a gain must also show on `heldout_seeds` other seeds. A value outside
    `min` and `max` is a broken result, or a violated `constraint`.
    """

    name: Text
    direction: Literal["minimize", "maximize"]
    primary: bool = False
    weight: NonNegative = 1.0
    tolerance: NonNegative = 0.0
    deterministic: bool = False
    repeats: Annotated[int, msgspec.Meta(ge=2, le=1000)] | None = None
    seeds: Annotated[int, msgspec.Meta(ge=6, le=100_000)] | None = None
    heldout_seeds: Annotated[int, msgspec.Meta(ge=6, le=100_000)] | None = None
    min: Bound | None = None
    max: Bound | None = None
    constraint: bool = False

    def __post_init__(self) -> None:
        if self.deterministic and self.repeats is not None:
            raise ValueError("give either deterministic or repeats: the same number needs no mean")
        if self.seeds is not None and (self.deterministic or self.repeats is not None):
            raise ValueError("give seeds, repeats or deterministic, one of them")
        if self.seeds is None and self.heldout_seeds is not None:
            raise ValueError("heldout_seeds goes with seeds")
        if self.min is not None and self.max is not None and self.min >= self.max:
            raise ValueError("min must be below max")
        if self.constraint and self.min is None and self.max is None:
            raise ValueError("a constraint needs min or max")
        if self.constraint and self.primary:
            raise ValueError("a constraint must hold and is not ranked: it cannot be primary")

    def admits(self, value: float) -> bool:
        """Return whether the value is between the bounds, both included."""
        above = self.min is None or value >= self.min
        return above and (self.max is None or value <= self.max)


class EndpointConfig(Table, Endpoint, frozen=True, kw_only=True):
    """An OpenAI-compatible chat endpoint. The key is read from the environment, never stored."""


class DirectoryIdeas(Table, frozen=True, tag_field="source", tag="directory"):
    """The `.md` files of a directory, in name order."""

    path: Text


class CommandIdeas(Table, Confined, frozen=True, tag_field="source", tag="command"):
    """A program that writes idea files. See docs/ideas.md for its arguments.

    With `pass_arguments = false` it gets the environment variables only. With `isolated` it runs in
    the sandbox of the agents.
    """

    command: Text
    timeout_seconds: Positive = 1800.0
    pass_arguments: bool = True
    isolated: bool = False


class LlmIdeas(Table, frozen=True, tag_field="source", tag="llm"):
    """A chat model that proposes ideas.

    With `model_weights`, each request goes to one of these models, drawn by weight. `prompt`
    replaces the built-in prompt file; `prompt_tokens` bounds the whole prompt.
    """

    endpoint: EndpointConfig
    model_weights: dict[Text, Positive] = {}
    prompt: str | None = None
    prompt_tokens: Count = PROMPT_TOKENS


class MutateIdeas(Table, frozen=True, tag_field="source", tag="mutate"):
    """Single edits to the Python files declared tunable, made offline.

    `options` lists alternatives for string or boolean values by variable, keyword or
    dictionary-key name; `factors` are tried on numeric literals.
    """

    files: Annotated[list[Text], msgspec.Meta(min_length=1)]
    options: dict[str, list[str | bool | int | Bound]] = {}
    factors: Annotated[list[Positive], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: [0.5, 2.0]
    )


IdeaSourceConfig = DirectoryIdeas | CommandIdeas | LlmIdeas | MutateIdeas


class NoBackend(Table, frozen=True, tag_field="backend", tag="none"):
    """The role is left out: no plan is made, or every change is accepted."""


class PatchBackend(Table, frozen=True, tag_field="backend", tag="patch"):
    """Applies the patch that the idea itself carries. For the coder."""


PresetName = Literal["claude", "codex", "gemini", "aider"]


class CommandBackend(Table, Confined, frozen=True, tag_field="backend", tag="command"):
    """Any command-line agent, run in the worktree.

    `preset` is one of claude, codex, gemini, aider; `command` (a list of arguments) replaces it.
    `{prompt_file}` in an argument stands for the path of the prompt; without it the prompt is on
    stdin. `reads` names the preset that reads the output of a `command`. `max_cost_usd` and
    `max_tokens` bound one call: the agent gets them, and a call that could break a cap is not made.
    """

    preset: PresetName | None = None
    command: Annotated[list[Text], msgspec.Meta(min_length=1)] | None = None
    reads: PresetName | None = None
    max_cost_usd: Positive | None = None
    max_tokens: Count | None = None
    timeout_seconds: Positive = 1800.0
    prompt: str | None = None

    def __post_init__(self) -> None:
        if (self.preset is None) == (self.command is None):
            raise ValueError("give either preset or command")
        if self.preset is not None and self.reads is not None:
            raise ValueError("`reads` is for a `command`; a preset reads its own output")

    @property
    def most(self) -> Usage:
        """Return the configured bound of one call; zero for a missing limit."""
        return Usage(self.max_tokens or 0, 0, self.max_cost_usd or 0.0)


class OpenaiBackend(Table, frozen=True, tag_field="backend", tag="openai"):
    """A chat endpoint. The coder's reply carries the edits; see docs/agents.md.

    `prompt_tokens` bounds the whole prompt.
    """

    endpoint: EndpointConfig
    prompt: str | None = None
    prompt_tokens: Count = PROMPT_TOKENS


class ScriptedBackend(Table, frozen=True, tag_field="backend", tag="scripted"):
    """Replies read from a JSON file, for tests and rehearsals."""

    script: Text


BackendConfig = NoBackend | PatchBackend | CommandBackend | OpenaiBackend | ScriptedBackend


class AgentsConfig(Table, frozen=True):
    """The backends of the three roles."""

    planner: BackendConfig = NoBackend()
    coder: BackendConfig = PatchBackend()
    reviewer: BackendConfig = NoBackend()


Notice = Literal[
    "new_best", "paused", "steered", "cap_reached", "finished", "evaluated", "depth_done"
]


class NoticeConfig(Table, Confined, frozen=True):
    """A command that gets chosen events as JSON on stdin. See docs/notices.md."""

    command: Text
    events: Annotated[list[Notice], msgspec.Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["new_best", "paused", "cap_reached", "finished"]
    )
    timeout_seconds: Positive = 30.0
    isolated: bool = False
    finish_seconds: Positive = 5.0


class Config(Table, frozen=True):
    """The whole file.

    `task` is the user's description of the task; every prompt begins with it. `readable_paths` are
    protected files that models may see. `tactics` are for proof search, which reads them itself.
    """

    baseline_csv: Text
    sweep: SweepConfig
    metrics: Annotated[list[MetricConfig], msgspec.Meta(min_length=1)]
    ideas: Annotated[list[IdeaSourceConfig], msgspec.Meta(min_length=1)]
    task: str = ""
    tests: TestsConfig | None = None
    limits: LimitsConfig = LimitsConfig()
    slots: Slots = {}
    on_event: list[NoticeConfig] = []
    protected_paths: list[Text] = []
    readable_paths: list[Text] = []
    editable_blocks: list[Text] = []
    agents: AgentsConfig = AgentsConfig()
    isolation: Literal["none", "bubblewrap"] = "none"
    hidden_paths: list[Text] = []
    heldout_paths: list[Text] = []
    max_review_rounds: Count = 2
    proceed_on_max_review_rounds: bool = False
    seed: int = 0
    tactics: list[dict[str, str | list[str]]] = []

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        if len(set(names)) != len(names):
            raise ValueError("metrics have the same name twice")
        if sum(metric.primary for metric in self.metrics) != 1:
            raise ValueError("exactly one metric must have primary = true")
        if self.isolation == "none" and (self.hidden_paths or self.heldout_paths):
            key = "hidden_paths" if self.hidden_paths else "heldout_paths"
            raise ValueError(f'{key} hides nothing without isolation = "bubblewrap"')
        sources = [source for source in self.ideas if isinstance(source, CommandIdeas)]
        if self.isolation == "none" and any(each.isolated for each in (*sources, *self.on_event)):
            raise ValueError('isolated needs isolation = "bubblewrap"')

    @property
    def primary(self) -> MetricConfig:
        return next(metric for metric in self.metrics if metric.primary)

    @property
    def endpoints(self) -> list[EndpointConfig]:
        """Return the endpoints of agents and idea sources."""
        roles = (self.agents.planner, self.agents.coder, self.agents.reviewer)
        found = [role.endpoint for role in roles if isinstance(role, OpenaiBackend)]
        return found + [source.endpoint for source in self.ideas if isinstance(source, LlmIdeas)]

    @property
    def repeats(self) -> int:
        """Return the number of sweeps of a candidate, and of its parent."""
        return max(metric.repeats or 1 for metric in self.metrics)


def load(path: Path) -> Config:
    """Return the configuration in a file: TOML, or JSON with the extension `.json`.

    Raises:
        UsageError: the file is missing, unreadable or invalid.
    """
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
    """Return the paths of the keys that still have the value FILL_IN."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in unfilled(v, f"{path}.{k}".lstrip("."))]
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in unfilled(v, f"{path}[{i}]")]
    return [path] if value == FILL_IN else []
