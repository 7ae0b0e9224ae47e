"""`treewright prove --serve`, and the use of its Lean processes by other calls."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from treewright.cli.hosts import opened_host
from treewright.cli.output import echo

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host


def serve(flags: dict[str, Any]) -> None:
    """Until it is interrupted, or nobody came for a while."""
    from treewright.cli.signals import cancel_on_signals
    from treewright.lean.hosts.wasm.home import LeanHome
    from treewright.lean.warm.server import IDLE_SECONDS, WarmServer

    host = opened_host("wasm", None)
    assert isinstance(host, LeanHome)
    idle = flags.get("idle", IDLE_SECONDS / 60) * 60
    with cancel_on_signals() as cancel:
        WarmServer(host, idle_seconds=idle, announce=announce).run(cancel.is_set)


def warm_host(host: Host, flags: dict[str, Any]) -> contextlib.AbstractContextManager[Host]:
    """The Lean of a call, with a server's processes unless `--no-warm` says otherwise."""
    from treewright.lean.warm.client import warmed

    return warmed(host, announce) if flags.get("warm", True) else contextlib.nullcontext(host)


def announce(text: str) -> None:
    echo(f"treewright: {text}", err=True)
