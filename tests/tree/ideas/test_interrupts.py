"""Ctrl-C while ideas are being made is an interruption, not a failure of the source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.llm.endpoints import Step, completion, stand_in
from tests.parallel.harness import eventually
from tests.signals import as_from_a_terminal
from tests.toy import ToyRepository
from treewright.tree.config import CommandIdeas, EndpointConfig, LlmIdeas
from treewright.tree.ideas.source_factory import make_source


@pytest.fixture
def cancelled(make_context):
    """The context of a node in a run that is interrupted a moment later."""
    cancel = threading.Event()
    timer = threading.Timer(0.3, cancel.set)
    timer.start()
    yield make_context(cancel=cancel)
    timer.join()


def test_generator(cancelled) -> None:
    source = make_source(CommandIdeas(command="sleep 60", pass_arguments=False))
    with pytest.raises(KeyboardInterrupt):
        source.propose(cancelled, ())


def test_llm(cancelled) -> None:
    subprocess.run(["git", "init", "-q", str(cancelled.checkout)], check=True)
    with stand_in(Step(body=completion("late"), delay=60.0)) as it:
        source = make_source(LlmIdeas(endpoint=EndpointConfig(base_url=it.url, model="m")))
        with pytest.raises(KeyboardInterrupt):
            source.propose(cancelled, ())


def test_the_program_exits_with_130(toy: ToyRepository, tmp_path: Path) -> None:
    started = tmp_path / "started"
    text = (toy.path / "treewright.toml").read_text().partition("[[ideas]]")[0]
    generator = f"touch {started}; sleep 60"
    text += f'[[ideas]]\nsource = "command"\ncommand = "{generator}"\npass_arguments = false\n'
    toy.write("treewright.toml", text)
    toy.commit()
    command = [sys.executable, "-m", "treewright", "tree", "--repo", str(toy.path)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=as_from_a_terminal,
    ) as child:
        try:
            eventually(started.exists, "the generator runs")
            os.kill(child.pid, signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert said.splitlines()[-1].startswith("treewright: interrupted; run the same command again")
