"""`treewright.toml` (or JSON): what to improve, how it is measured, who does the work.

The file is read once, when a run starts, and recorded in the manifest; a candidate
that edits it changes nothing. Every key is typed; an unknown or ill-typed one is an
error with its path and, where a known key is near, a suggestion.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import typing
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from treewright.kernel.errors import UsageError

DEFAULT_NAME = "treewright.toml"
FILL_IN = "FILL_IN"
"""What `treewright init` writes where only the user knows. Loads, but no run starts with it."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
"""Not infinite: an infinite weight or tolerance would silently decide everything."""
Count = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class SweepConfig(_Table, frozen=True):
    """The command that measures a commit. See docs/sweep-contract.md."""

    command: Text
    results_csv: str | None = None
    timeout_seconds: Positive = 3600.0


class TestsConfig(_Table, frozen=True):
    """A command that must exit 0 before a candidate is swept."""

    command: Text
    timeout_seconds: Positive = 1800.0


class LimitsConfig(_Table, frozen=True):
    """What tests and sweeps may use, in megabytes; no key, no limit."""

    memory_mb: Count | None = None
    file_mb: Count | None = None


class MetricConfig(_Table, frozen=True):
    """A numeric column of the results CSV. `tolerance` is in the column's own unit."""

    name: Text
    direction: Literal["minimize", "maximize"]
    primary: bool = False
    weight: NonNegative = 1.0
    tolerance: NonNegative = 0.0


class EndpointConfig(_Table, frozen=True):
    """An OpenAI-compatible chat endpoint. The key is read from the environment, never stored.

    `max_concurrent` and `requests_per_minute` bound what all users of the same address and
    key ask of it together, in one process; see docs/parallel.md.
    """

    base_url: Text
    model: Text
    api_key_env: str | None = None
    temperature: NonNegative = 0.2
    max_tokens: Count = 4096
    timeout_seconds: Positive = 600.0
    max_concurrent: Count | None = None
    requests_per_minute: Count | None = None
    usd_per_million_prompt_tokens: NonNegative | None = None
    usd_per_million_completion_tokens: NonNegative | None = None


class DirectoryIdeas(_Table, frozen=True, tag_field="source", tag="directory"):
    """The `.md` files of a directory, in name order."""

    path: Text


class CommandIdeas(_Table, frozen=True, tag_field="source", tag="command"):
    """A program that writes idea files. See docs/ideas.md for its arguments.

    With `pass_arguments = false` it gets the environment variables only.
    """

    command: Text
    timeout_seconds: Positive = 1800.0
    pass_arguments: bool = True


class LlmIdeas(_Table, frozen=True, tag_field="source", tag="llm"):
    """An endpoint that is asked for ideas. `prompt` replaces the built-in prompt file;
    `context_chars` bounds how much of the repository's files it shows."""

    endpoint: EndpointConfig
    prompt: str | None = None
    context_chars: Count = 60_000


class MutateIdeas(_Table, frozen=True, tag_field="source", tag="mutate"):
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


class NoBackend(_Table, frozen=True, tag_field="backend", tag="none"):
    """The role is left out: no plan is made, or every change is accepted."""


class PatchBackend(_Table, frozen=True, tag_field="backend", tag="patch"):
    """Applies the patch that the idea itself carries. For the coder."""


class CommandBackend(_Table, frozen=True, tag_field="backend", tag="command"):
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


class OpenaiBackend(_Table, frozen=True, tag_field="backend", tag="openai"):
    """A chat endpoint. The coder's reply carries the edits; see docs/agents.md.

    `context_chars` bounds how much of the repository's files a prompt shows.
    """

    endpoint: EndpointConfig
    prompt: str | None = None
    context_chars: Count = 60_000


class ScriptedBackend(_Table, frozen=True, tag_field="backend", tag="scripted"):
    """Replies read from a JSON file, for tests and rehearsals."""

    script: Text


BackendConfig = NoBackend | PatchBackend | CommandBackend | OpenaiBackend | ScriptedBackend


class AgentsConfig(_Table, frozen=True):
    planner: BackendConfig = NoBackend()
    coder: BackendConfig = PatchBackend()
    reviewer: BackendConfig = NoBackend()


class Config(_Table, frozen=True):
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
            return msgspec.json.decode(data, type=Config)
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), type=Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {explain(str(error))}") from None
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


def explain(message: str) -> str:
    """msgspec's message with the key's path first, what is allowed, and what may be meant."""
    text, _, location = message.partition(" - at `")
    key_path = location.rstrip("`").removeprefix("$").removeprefix(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", text)
    if unknown:
        key = f"{key_path}.{unknown[1]}".lstrip(".")
        near = difflib.get_close_matches(unknown[1], sorted(_all_keys()), n=1)
        return f"unknown key `{key}`" + (f"; did you mean `{near[0]}`?" if near else "")
    missing = re.fullmatch(r"Object missing required field `(.+)`", text)
    if missing:
        key = f"{key_path}.{missing[1]}".lstrip(".")
        return f"missing key `{key}`"
    name = key_path.rpartition(".")[2]
    wrong = re.fullmatch(r"Invalid (?:enum )?value '(.*)'", text, re.DOTALL)
    if wrong and (choices := _choices(name)):
        text = f"{wrong[1]!r} is not one of {', '.join(f'`{choice}`' for choice in choices)}"
        near = [choice for choice in choices if wrong[1] and choice.startswith(wrong[1].lower())]
        near = near or difflib.get_close_matches(wrong[1].lower(), choices, n=1)
        text += f"; did you mean `{near[0]}`?" if near else ""
    elif text.startswith(("Expected `array`, got `str`", "Expected `array | null`, got `str`")):
        text = f'must be a list, not a string: write `{name} = ["..."]`'
    elif text == "Expected `array`, got `object`":
        text = f"must be a list: write `[[{name}]]`, with two brackets"
    return f"`{key_path}`: {text}" if key_path else text


def _structs() -> list[type[msgspec.Struct]]:
    found: list[type[msgspec.Struct]] = [_Table]
    for struct in found:
        found.extend(struct.__subclasses__())
    return found


def _all_keys() -> set[str]:
    return {key for struct in _structs() for key in struct.__struct_fields__}


def _choices(key: str) -> list[str]:
    """The values that a key may have, where they are listed: `direction`, `backend`, ..."""
    found: dict[str, None] = {}
    for struct in _structs():
        tables = struct.__struct_config__
        if tables.tag_field == key and isinstance(tables.tag, str):
            found[tables.tag] = None
        kind = typing.get_type_hints(struct).get(key)
        for part in (kind, *typing.get_args(kind)):
            if typing.get_origin(part) is Literal:
                found.update(dict.fromkeys(typing.get_args(part)))
    return list(found)
