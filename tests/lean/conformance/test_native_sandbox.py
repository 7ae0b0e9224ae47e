"""bubblewrap around native Lean, for real: what code in a text can reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession


@pytest.fixture(scope="module")
def sandboxed(bubblewrap: None, native: NativeHost) -> Iterator[HostSession]:
    with HostSession(dataclasses.replace(native, sandbox=True)) as session:
        yield session


def said(session: HostSession, command: str) -> str:
    result = session.check(command)
    assert isinstance(result, CheckResult), result
    return "\n".join(d.text for d in result.diagnostics)


def test_a_proof_works_in_the_sandbox(sandboxed: HostSession) -> None:
    result = sandboxed.check("theorem t (n : Nat) : n + 0 = n := rfl")
    assert isinstance(result, CheckResult)
    assert result.ok
    assert "in a sandbox" in sandboxed.info.detail


def test_nothing_outside_can_be_written_or_deleted(sandboxed: HostSession, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    for action in (
        f'IO.FS.writeFile "{victim}" "changed"',
        f'IO.FS.removeFile "{victim}"',
        f'IO.FS.writeFile "{Path.home() / "treewright-was-here"}" "x"',
        f'IO.FS.readFile "{victim}" >>= IO.println',
    ):
        text = said(sandboxed, f"#eval {action}").lower()
        assert "no such file" in text or "read-only" in text, action
    assert victim.read_text() == "as it was"


def test_the_toolchain_can_be_read_only(sandboxed: HostSession, native: NativeHost) -> None:
    target = native.toolchain.prefix / "bin" / "planted"
    text = said(sandboxed, f'#eval IO.FS.writeFile "{target}" "x"')
    assert "read-only" in text.lower()
    assert not target.exists()


def test_there_is_no_network_and_no_other_process(sandboxed: HostSession) -> None:
    listed = said(
        sandboxed,
        "#eval do return (← IO.Process.output "
        '{ cmd := "/bin/sh", args := #["-c", "ls /sys/class/net; ls /proc"] }).stdout',
    )
    assert "eth0" not in listed
    numbers = [
        word for word in listed.replace("\\n", " ").replace('"', " ").split() if word.isdigit()
    ]
    assert all(int(number) < 100 for number in numbers)
