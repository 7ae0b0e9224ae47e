"""`treewright lean verify`: does a candidate prove what the original leaves open?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from treewright.cli.hosts import host_options, opened_host
from treewright.cli.numbers import SECONDS
from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE

if TYPE_CHECKING:
    from treewright.lean.hosts.host import Host
    from treewright.lean.verify.certificate import Certificate


@click.command()
@click.argument("original", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("candidate", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="A declaration to be proved; again for more. Default: all that rest on sorry.",
)
@click.option(
    "--axiom",
    "axioms",
    multiple=True,
    help="An axiom that a proof may rest on, besides Lean's own three; again for more.",
)
@click.option(
    "--timeout", type=SECONDS, default=120.0, show_default=True, help="Seconds for each text."
)
@click.option(
    "--certificate",
    "place",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the certificate to this file too.",
)
@click.option(
    "--paranoid",
    is_flag=True,
    help="Also read every file of the bundled Lean and compile the project's modules anew, or ask "
    "`lake comparator` (4.35 and newer).",
)
@host_options
def verify(
    original: Path,
    candidate: Path,
    targets: tuple[str, ...],
    axioms: tuple[str, ...],
    timeout: float,
    place: Path | None,
    paranoid: bool,
    requested: str | None,
    sandbox: bool | None,
) -> None:
    """Check a proof against its original; print a certificate.

    ORIGINAL has `sorry` where CANDIDATE has proofs. Exit 0 only if every target is proved, says
    what it said, and rests on nothing that is not allowed.
    """
    from treewright.cli.lean import read_source
    from treewright.cli.projects import fresh_store, project_of
    from treewright.kernel.storage import atomic
    from treewright.lean.verify.replayer import Replayer
    from treewright.lean.verify.verdict import DEFAULT_AXIOMS

    texts = (read_source(original), read_source(candidate))
    host = opened_host(requested, sandbox, original.resolve().parent)
    if paranoid:
        echo(_look_closely(host), err=True)
    axiom_names = DEFAULT_AXIOMS | set(axioms)
    with (
        fresh_store(paranoid) as store,
        Replayer(host, axioms=axiom_names, project=project_of(host, original, store)) as replayer,
    ):
        verdict = replayer.text(*texts, targets, declarations=True, timeout=timeout)
    if verdict.certificate is None:
        kind = "no verdict" if verdict.is_fault else "not proved"
        echo(f"{kind} ({verdict.reason}): {verdict.detail}", err=True)
        raise click.exceptions.Exit(EXIT_FAILURE)
    if paranoid:
        _second_opinion(host, texts, verdict.certificate)
    document = verdict.certificate.to_json()
    if place is not None:
        atomic.write_bytes(place, document)
    echo(document.decode(), nl=False)
    proved = ", ".join(verdict.certificate.targets)
    echo(f"proved: {proved}", err=True)
    for warning in verdict.certificate.warnings:
        echo(f"treewright: {warning}", err=True)


def _look_closely(host: Host) -> str:
    """Before the check: what can be said about this Lean itself."""
    from treewright.lean.hosts.native import comparator
    from treewright.lean.hosts.native.host import NativeHost
    from treewright.lean.hosts.wasm.home import LeanHome
    from treewright.lean.hosts.wasm.manifest import verify_home

    if isinstance(host, LeanHome):
        return f"{verify_home(host, full=True)} files of the Lean home verified"
    assert isinstance(host, NativeHost)
    return comparator.unavailable(host) or "lake comparator will be asked as well"


def _second_opinion(host: Host, texts: tuple[str, str], certificate: Certificate) -> None:
    """After the check, with a toolchain that has one."""
    from treewright.lean.hosts.native import comparator
    from treewright.lean.hosts.native.host import NativeHost

    if not isinstance(host, NativeHost) or comparator.unavailable(host):
        return
    problem = comparator.objection(host, *texts, certificate.targets, certificate.allowed_axioms)
    if problem:
        echo(f"not proved (comparator): {problem}", err=True)
        raise click.exceptions.Exit(EXIT_FAILURE)
