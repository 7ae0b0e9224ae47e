"""The options that `bank` and `bg` share, and the settings and the Lean access made from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from treewright.cli.lean_choice import choose_lean, open_choice
from treewright.cli.options import combined, option, record_options
from treewright.cli.output import echo
from treewright.kernel.errors import UsageError
from treewright.orchestrator import strategies as strategy_registry
from treewright.orchestrator.config import OrchestratorConfig, from_profile, parse_timeouts

if TYPE_CHECKING:
    from treewright.orchestrator.scheduling.dispatch import AttemptBackend
    from treewright.orchestrator.workers.lean_access import LeanAccess

_STRATEGIES = "Strategies"
_SCHEDULING = "Scheduling"

portfolio_options = combined(
    option(
        "--strategy",
        "strategies",
        multiple=True,
        metavar="NAME",
        heading=_STRATEGIES,
        help_from=lambda: (
            f"Use only this strategy. Repeatable. {', '.join(strategy_registry.registered())}."
        ),
        default_text="all that are available",
    ),
    option(
        "--strategy-timeout",
        "timeouts",
        multiple=True,
        metavar="NAME=SECONDS",
        heading=_STRATEGIES,
        is_rare=True,
        help="Most seconds of a strategy for one goal. Repeatable.",
    ),
    option(
        "--lessons",
        is_flag=True,
        heading=_STRATEGIES,
        is_rare=True,
        help="Order tactics by the lessons of the ledger's searches. No gain has been measured.",
    ),
    option(
        "--profile",
        type=int,
        metavar="N",
        heading=_SCHEDULING,
        default_text="ORCH_PROFILE, else 1",
        help="Settings for a machine. 0: stubs without Lean; 1: a shared machine; 2: all of it.",
    ),
    record_options(OrchestratorConfig, _SCHEDULING),
)
place_options = combined(
    option(
        "--parallel-backend",
        metavar="NAME",
        heading=_SCHEDULING,
        is_rare=True,
        default_text="threadpool, with --cluster dask",
        help="Where attempts run: threadpool, dask, inline, or the executor of a plug-in.",
    ),
    option(
        "--cluster",
        metavar="ADDRESS",
        heading=_SCHEDULING,
        is_rare=True,
        help="Scheduler of a running dask cluster.",
    ),
)


def make_config(
    *,
    reuse: bool,
    profile: int | None,
    strategies: tuple[str, ...],
    timeouts: tuple[str, ...],
    **settings: int | float | None,
) -> OrchestratorConfig:
    """Return the settings of a profile, changed by the options that were given.

    Args:
        reuse: Whether earlier attempts in the ledger are used.
        settings: The other fields of `OrchestratorConfig`; None keeps the profile's value.
    """
    for name in ("max_heavy", "max_light", "speculation", "lean_sessions"):
        value = settings.get(name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    strategy_registry.require_known(strategies)
    return msgspec.structs.replace(
        from_profile(profile),
        reuse=reuse,
        strategies=strategies,
        timeouts=parse_timeouts(timeouts),
        **{name: value for name, value in settings.items() if value is not None},
    )


def open_lean_access(
    requested: str | None,
    sandbox: bool | None,
    backend: AttemptBackend,
    config: OrchestratorConfig,
    start: Path,
) -> LeanAccess:
    """Return the access to the Lean processes of a portfolio.

    Attempts on a cluster use the bundled Lean of the cluster's machines.
    """
    from treewright.lean.hosts.native.toolchain import require_toolchain
    from treewright.orchestrator.workers.lean_access import LeanAccess

    sessions = backend.lean_sessions(config)
    if config.profile == 0:
        return LeanAccess(sessions)
    if backend.is_remote:
        if requested == "native":
            raise UsageError("--lean native works on this machine; a cluster has the bundled Lean")
        requested = "wasm"
    choice = choose_lean(requested, sandbox, start if start.is_dir() else start.parent)
    if choice.backend == "wasm":
        return LeanAccess(
            sessions, start=start, announce=lambda text: echo(text, err=True), choice=choice
        )
    name = f"native-{require_toolchain(choice.project).name}"
    return LeanAccess(sessions, lambda: open_choice(choice), name, start=start, choice=choice)
