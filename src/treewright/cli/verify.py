"""`treewright lean verify`: check a proof against the original file and print a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.lean_choice import empty_store, lean_options, open_lean, project_for
from treewright.cli.options import (
    FILE,
    command,
    option,
    read_user_file,
    timeout_option,
    verbose_option,
)
from treewright.cli.output import announce, echo
from treewright.kernel.errors import EXIT_FAILURE

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host
    from treewright.lean.verify.verdict import Certificate


@command()
@click.argument("original", type=FILE)
@click.argument("candidate", type=FILE)
@option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    default_text="all declarations that rest on sorry",
    help="Declaration that must be proved. Repeatable.",
)
@option(
    "--axiom",
    "axioms",
    multiple=True,
    metavar="NAME",
    help="Axiom that a proof may rest on, in addition to Lean's three. Repeatable.",
)
@timeout_option
@option(
    "--certificate",
    "certificate_file",
    type=FILE,
    help="Also write the certificate to this file.",
)
@option(
    "--paranoid",
    is_flag=True,
    help="Also verify every file of the bundled Lean and compile the project's modules again. With "
    "a toolchain of 4.35 or newer, also ask `lake comparator`.",
)
@lean_options
@verbose_option
def verify(
    original: Path,
    candidate: Path,
    targets: tuple[str, ...],
    axioms: tuple[str, ...],
    timeout: float,
    certificate_file: Path | None,
    paranoid: bool,
    requested: str | None,
    sandbox: bool | None,
) -> None:
    """Check a proof against its original; print a certificate.

    ORIGINAL has `sorry` where CANDIDATE has proofs. Exit code 0 only if every target is proved, has
    the statement of the original, and rests on allowed axioms only.
    """
    import contextlib

    from treewright.kernel.storage import atomic
    from treewright.lean.processes import LeanProcesses
    from treewright.lean.verify.verdict import DEFAULT_AXIOMS

    texts = (read_user_file(original), read_user_file(candidate))
    host = open_lean(requested, sandbox, original.resolve().parent)
    if paranoid:
        echo(_describe_deep_check(host), err=True)
    axiom_names = DEFAULT_AXIOMS | set(axioms)
    with (
        empty_store() if paranoid else contextlib.nullcontext() as store,
        LeanProcesses(host, project_for(host, original, store), axioms=axiom_names) as lean,
    ):
        verdict = lean.replayer.text(*texts, targets, declarations=True, timeout=timeout)
    if verdict.certificate is None:
        kind = "no verdict" if verdict.is_fault else "not proved"
        echo(f"{kind} ({verdict.reason}): {verdict.detail}", err=True)
        raise click.exceptions.Exit(EXIT_FAILURE)
    if paranoid:
        _require_comparator(host, texts, verdict.certificate)
    document = verdict.certificate.to_json()
    if certificate_file is not None:
        atomic.write_bytes(certificate_file, document)
    echo(document.decode(), nl=False)
    proved = ", ".join(verdict.certificate.targets)
    echo(f"proved: {proved}", err=True)
    for warning in verdict.certificate.warnings:
        announce(warning)


def _describe_deep_check(host: Host) -> str:
    """Verify the files of the bundled Lean, or say whether `lake comparator` will be asked."""
    from treewright.lean.hosts.native import comparator
    from treewright.lean.hosts.native.host import NativeHost
    from treewright.lean.hosts.wasm.home import LeanHome
    from treewright.lean.hosts.wasm.manifest import verify_home

    if isinstance(host, LeanHome):
        return f"{verify_home(host.path, full=True)} files of the Lean home verified"
    assert isinstance(host, NativeHost)
    return comparator.unavailable(host) or "lake comparator will be asked as well"


def _require_comparator(host: Host, texts: tuple[str, str], certificate: Certificate) -> None:
    """Ask `lake comparator` about the proof, if the toolchain has it; exit 1 if it objects."""
    from treewright.lean.hosts.native import comparator
    from treewright.lean.hosts.native.host import NativeHost

    if not isinstance(host, NativeHost) or comparator.unavailable(host):
        return
    problem = comparator.objection(host, *texts, certificate.targets, certificate.allowed_axioms)
    if problem:
        echo(f"not proved (comparator): {problem}", err=True)
        raise click.exceptions.Exit(EXIT_FAILURE)
