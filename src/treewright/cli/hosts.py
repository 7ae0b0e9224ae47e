"""`--lean` and `--sandbox`: which Lean a command opens. The choice and its reason are said once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.output import echo

if TYPE_CHECKING:
    from treewright.lean.choice import Choice
    from treewright.lean.hosts.host import Host
    from treewright.lean.hosts.wasm.install import Progress
    from treewright.lean.project.project import Project
    from treewright.orchestrator.config import OrchestratorConfig
    from treewright.orchestrator.scheduling.dispatch import Attempting
    from treewright.orchestrator.workers.lean_access import LeanAccess
    from treewright.proving.settings import RunRecord, Target

BACKENDS = ("auto", "wasm", "native")


sandbox_option = click.option(
    "--sandbox",
    is_flag=True,
    default=None,
    help="Run native Lean inside bubblewrap; wasm is a sandbox of its own.",
)


def host_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `requested` and `sandbox`."""
    lean = click.option(
        "--lean",
        "requested",
        type=click.Choice(BACKENDS),
        help="auto takes native inside a Lake project whose toolchain is installed. [auto]",
    )
    return lean(sandbox_option(command))


def chosen(requested: str | None, sandbox: bool | None, start: Path | None = None) -> Choice:
    """The choice, said on stderr."""
    from treewright.lean.choice import choose, other_version

    choice = choose(requested or "auto", start, sandbox=bool(sandbox))
    echo(f"Lean backend: {choice}", err=True)
    if note := other_version(choice, start):
        echo(f"warning: {note}", err=True)
    if choice.backend == "native" and not sandbox:
        echo(
            "native Lean runs code of the texts it reads with your rights; see --sandbox", err=True
        )
    return choice


def opened_host(requested: str | None, sandbox: bool | None, start: Path | None = None) -> Host:
    """The Lean that was asked for; the bundled one is installed on first use."""
    return host_of(chosen(requested, sandbox, start))


def opened_lean(
    requested: str | None, sandbox: bool | None, path: Path
) -> tuple[Host, Project | None]:
    """The Lean for a file or directory. The bundled one is given the modules of its project."""
    from treewright.cli.projects import announce
    from treewright.lean.choice import open_lean

    start = path.resolve()
    choice = chosen(requested, sandbox, start if start.is_dir() else start.parent)
    return open_lean(choice, start, announce, progress_of(choice))


def lean_for(
    target: Target, requested: str | None, sandbox: bool | None
) -> tuple[Host, Project | None]:
    """The Lean for a target; with the bundled one, the Lake project of the file to prove."""
    from treewright.proving.settings import FileTarget

    if isinstance(target, FileTarget):
        return opened_lean(requested, sandbox, Path(target.path))
    return opened_host(requested, sandbox), None


def lean_of_run(record: RunRecord, sandbox: bool | None = None) -> tuple[Host, Project | None]:
    """The kind of Lean that a run was made with."""
    return lean_for(record.target, record.lean.backend, sandbox)


def host_of(choice: Choice) -> Host:
    from treewright.lean.choice import open_host

    return open_host(choice, progress_of(choice))


def progress_of(choice: Choice) -> Progress:
    """Told while the bundled Lean is installed; a toolchain is there or not."""
    from treewright.cli.lean import announced_progress
    from treewright.lean.hosts.wasm.install import silent

    return silent if choice.backend == "native" else announced_progress()


def lean_access(
    requested: str | None,
    sandbox: bool | None,
    where: Attempting,
    config: OrchestratorConfig,
    start: Path,
) -> LeanAccess:
    """The Lean processes of a portfolio. What runs on a cluster takes the bundled Lean there."""
    from treewright.kernel.errors import UsageError
    from treewright.lean.hosts.native.toolchain import require_toolchain
    from treewright.orchestrator.workers.lean_access import LeanAccess

    sessions = where.lean_sessions(config)
    if config.profile == 0:
        return LeanAccess(sessions)
    if where.elsewhere:
        if requested == "native":
            raise UsageError("--lean native works on this machine; a cluster has the bundled Lean")
        requested = "wasm"
    choice = chosen(requested, sandbox, start if start.is_dir() else start.parent)
    if choice.backend == "wasm":
        return LeanAccess(
            sessions, start=start, announce=lambda text: echo(text, err=True), choice=choice
        )
    name = f"native-{require_toolchain(choice.project).name}"
    return LeanAccess(sessions, lambda: host_of(choice), name, start=start, choice=choice)
