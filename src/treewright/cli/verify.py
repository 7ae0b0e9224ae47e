"""`treewright lean verify`: does a candidate prove what the original leaves open?"""

from __future__ import annotations

from pathlib import Path

import click

from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, UsageError


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
@click.option("--timeout", default=120.0, show_default=True, help="Seconds for each text.")
@click.option(
    "--certificate",
    "place",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the certificate to this file too.",
)
@click.option("--paranoid", is_flag=True, help="Read every file of the Lean home first.")
def verify(
    original: Path,
    candidate: Path,
    targets: tuple[str, ...],
    axioms: tuple[str, ...],
    timeout: float,
    place: Path | None,
    paranoid: bool,
) -> None:
    """Check a proof against its original; print a certificate.

    ORIGINAL has `sorry` where CANDIDATE has proofs. Exit 0 only if every target is proved, says
    what it said, and rests on nothing that is not allowed.
    """
    from treewright.cli.lean import announced_progress, read_source
    from treewright.kernel import atomic
    from treewright.lean.replay import DEFAULT_AXIOMS, Replayer
    from treewright.lean.wasm.install import ensure_installed
    from treewright.lean.wasm.manifest import verify_home

    if timeout <= 0:
        raise UsageError("--timeout must be positive")
    texts = (read_source(original), read_source(candidate))
    home = ensure_installed(announced_progress())
    if paranoid:
        echo(f"{verify_home(home, full=True)} files of the Lean home verified", err=True)
    with Replayer(home, axioms=DEFAULT_AXIOMS | set(axioms)) as replayer:
        verdict = replayer.text(*texts, targets, declarations=True, timeout=timeout)
    if verdict.certificate is None:
        kind = "no verdict" if verdict.is_fault else "not proved"
        echo(f"{kind} ({verdict.reason}): {verdict.detail}", err=True)
        raise click.exceptions.Exit(EXIT_FAILURE)
    document = verdict.certificate.to_json()
    if place is not None:
        atomic.write_bytes(place, document)
    echo(document.decode(), nl=False)
    proved = ", ".join(verdict.certificate.targets)
    echo(f"proved: {proved}", err=True)
    for warning in verdict.certificate.warnings:
        echo(f"treewright: {warning}", err=True)
