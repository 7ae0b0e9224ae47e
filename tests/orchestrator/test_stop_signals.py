"""A terminal that is closed stops the orchestrator in order, however often that is said."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.signals import as_from_a_terminal

SCRIPT = """
import asyncio, os, signal
from treewright.orchestrator.scheduling.stop_signals import stop_on_signals


async def work():
    stop = asyncio.Event()
    with stop_on_signals(stop.set) as came:
        os.kill(os.getpid(), signal.SIGHUP)
        try:
            await asyncio.wait_for(stop.wait(), PATIENCE)
        except asyncio.TimeoutError:
            pass
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        print("told" if came() else "not told")


asyncio.run(work())
"""


@pytest.mark.parametrize(("ignored", "said"), [(False, "told\n"), (True, "not told\n")])
def test_a_closed_terminal_stops_in_order_unless_it_is_ignored(ignored: bool, said: str) -> None:
    script = SCRIPT.replace("PATIENCE", "0.1" if ignored else "60")
    if ignored:
        script = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + script
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=as_from_a_terminal,
    )
    assert done.stdout == said
    assert done.returncode == 0, signal.Signals(-done.returncode)
