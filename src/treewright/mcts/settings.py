"""What shapes a proof search, and `run.json`: the record from which a run can be repeated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel import atomic, jsontext
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.rundir import RunEnvironment
from treewright.lean.replay import DEFAULT_AXIOMS
from treewright.mcts.cell_settings import CellSettings
from treewright.mcts.policy import Policy

FORMAT_VERSION = 1
TRACE_VERSION = 2
"""Since 2 a trace has the search for the negation in it, and what a verdict rests on."""
_PUBLIC_ENDPOINT = "https://api.openai.com/"
Mode = Literal["centralized", "distributed"]


class StatementTarget(msgspec.Struct, frozen=True, tag="statement"):
    """A proposition, given as text."""

    statement: str
    imports: tuple[str, ...] = ("Init",)


class FileTarget(msgspec.Struct, frozen=True, tag="file"):
    """The sorries of a file, or of one of its declarations; the text as it was then."""

    path: str
    source: str
    declaration: str | None = None


Target = StatementTarget | FileTarget


class EndpointSettings(msgspec.Struct, frozen=True):
    """A chat endpoint that proposes tactics.

    `key_env` names the environment variable with its key; the key itself is never here. Without
    a name none is sent, but to the endpoint that `OPENAI_API_KEY` is for.
    """

    url: str
    model: str
    key_env: str | None = None

    def key(self) -> str:
        """The key, now; empty if there is none for this endpoint."""
        name = self.key_env
        if name is None and self.url.startswith(_PUBLIC_ENDPOINT):
            name = "OPENAI_API_KEY"
        return os.environ.get(name, "").strip() if name else ""


class SourceSettings(msgspec.Struct, frozen=True):
    """Where tactics come from.

    `tactics` is the text of the user's file; `advice` is Lean's own search (`exact?`), seconds a
    goal.
    """

    tactics: str | None = None
    premises: str | None = None
    cache: str | None = None
    endpoint: EndpointSettings | None = None
    advice: bool = False
    noise: float = 0.1

    @property
    def outside(self) -> bool:
        """Whether answers come from something that may have changed since."""
        return self.endpoint is not None or self.cache is not None or self.premises is not None


class Settings(msgspec.Struct, frozen=True):
    """Everything a search depends on but its target. `cells` are for the distributed mode.

    `axioms` are those that a proof may rest on.
    """

    mode: Mode = "centralized"
    simulations: int = 200
    time_limit: float | None = None
    step_timeout: float = 5.0
    seed: int = 0
    batch: int = 8
    refute: bool = True
    policy: Policy = Policy()
    sources: SourceSettings = SourceSettings()
    cells: CellSettings | None = None
    axioms: tuple[str, ...] = tuple(sorted(DEFAULT_AXIOMS))


class LeanRecord(msgspec.Struct, frozen=True):
    """Which Lean answered."""

    backend: str
    version: str
    detail: str


class GitRecord(msgspec.Struct, frozen=True):
    """The commit of the directory the run was started in, if it is in a repository."""

    commit: str
    dirty: bool


class RunRecord(msgspec.Struct, frozen=True):
    """`run.json`. Written once, before the first goal is opened."""

    format_version: int
    run_id: str
    created_at: str
    mode: Mode
    target: Target
    settings: Settings
    seeds: dict[str, int]
    environment: RunEnvironment
    lean: LeanRecord
    git: GitRecord | None = None
    trace_version: int = 1


def write_run(path: Path, record: RunRecord) -> None:
    atomic.write_bytes(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def read_run(path: Path) -> RunRecord:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no proof run here: {path.parent} has no run.json") from None
    try:
        version = jsontext.decode(data).get("format_version")
        if version != FORMAT_VERSION:
            raise UsageError(
                f"{path} is of format {version}; this treewright reads format {FORMAT_VERSION}"
            )
        return jsontext.decode(data, type=RunRecord)
    except (msgspec.DecodeError, AttributeError) as error:
        raise StorageError(f"{path} is damaged: {error}") from None
