"""Text from outside cannot control the terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from treewright.cli import main
from treewright.cli.output import Visible
from treewright.kernel.text.printable import visible
from treewright.orchestrator.marketplace.tickets import NewTicket, TicketTable

HOSTILE = "p \x1b]0;owned\x07\x1b[2J\x9b31m\r\u202eq\u2066 \x00 \U000e0041"
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
)


def test_control_sequences_are_shown_as_text() -> None:
    assert visible("a\x1b[2Jb\r") == "a\\u001b[2Jb\\u000d"
    assert not STEERING.search(visible(HOSTILE))
    plain = "∀ x : ℕ, x ≤ x\n\tdone «é» 👩\u200d🔬"
    assert visible(plain) == plain


def test_json_stays_the_same_json() -> None:
    for indent in (None, 2):
        text = json.dumps([HOSTILE], ensure_ascii=False, indent=indent)
        assert not STEERING.search(visible(text))
        assert json.loads(visible(text)) == [HOSTILE]


def test_streams_keep_their_line_endings() -> None:
    target = io.StringIO()
    Visible(target).write("a\rb\x1b,c\r\n")
    assert target.getvalue() == "a\\u000db\\u001b,c\r\n"


def test_commands_print_no_raw_text(
    treewright: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The row is written directly, without the checks of a request."""
    table = TicketTable(tmp_path / "l.db")
    name = table.request(NewTicket(HOSTILE, (f"x : {HOSTILE}",), HOSTILE, (HOSTILE,)), 1.0)
    table.close()
    claim = ["claim", name, "--as", "\x1b[2J"]
    for arguments in (["list"], ["list", "--json"], ["show", name], claim):
        done = treewright("tickets", *arguments, "--ledger", "l.db")
        assert not STEERING.search(done.stdout + done.stderr), arguments
        assert "u001b" in done.stdout + done.stderr
    refused = treewright("tickets", "show", "\x1b[2J", "--ledger", "l.db")
    assert refused.returncode == 2
    assert not STEERING.search(refused.stderr)


@pytest.mark.parametrize("stderr", ["2>&-", "2> /dev/full"])
def test_a_closed_stderr_ends_no_command(stderr: str) -> None:
    script = (
        "import sys; from treewright.cli import output; "
        "from treewright.kernel.procs.console import ignore_write_errors; ignore_write_errors(); "
        "sys.stderr.isatty(); output.echo('for people', err=True); output.echo('for programs')"
    )
    command = f'exec "{sys.executable}" -c "{script}" {stderr}'
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "for programs\n")


INTERRUPTED = """
import signal
from treewright.cli import output
from treewright.cli.signals import cancel_on_signals
from treewright.kernel.procs.console import ignore_write_errors
ignore_write_errors()
for number in range(200):
    with cancel_on_signals() as cancel:
        signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + number / 10**6)
        while not cancel.is_set():
            output.echo("for people", err=True)
print("in order")
"""


def test_a_signal_during_a_message_is_not_an_error() -> None:
    """The handler writes to the same stream: `reentrant call inside <_io.BufferedWriter>`."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"in order\n"), done.stderr[-1000:]
    lines = done.stderr.splitlines()
    assert lines.count(b"stopping; once more to stop at once") >= 1


WOULD_WAIT = """
import os, sys
from treewright.cli import output
from treewright.kernel.procs.console import ignore_write_errors
ignore_write_errors()
os.set_blocking(2, False)
for _ in range(100):
    output.echo("for people" * 1000, err=True)
output.echo("for programs")
"""


def test_text_beyond_the_capacity_of_a_stream_is_dropped() -> None:
    """Another program has set the terminal to non-blocking."""
    ours, theirs = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", WOULD_WAIT], stdout=subprocess.PIPE, stderr=theirs, check=False
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert (done.returncode, done.stdout) == (0, b"for programs\n")


def test_every_command_prints_through_one_function() -> None:
    """Only text with our own styles uses `click.echo`."""
    cli = Path(__file__).parents[2] / "src" / "treewright" / "cli"
    users = {path.name for path in cli.glob("*.py") if "click.echo(" in path.read_text()}
    assert users <= {"output.py", "doctor.py"}


def test_a_write_error_without_a_path_names_the_full_file_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "cli", fail)
    monkeypatch.setattr(fail, "main", fail, raising=False)
    monkeypatch.setattr(main, "is_full", lambda path: path == tmp_path)
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 1
    said = capsys.readouterr().err
    assert (
        said
        == f"treewright: no space left in {tmp_path}; free some and run the same command again\n"
    )
