"""A second opinion by `lake comparator`, which comes with Lean 4.35 and newer.

The comparator compiles the original and the candidate as two modules of a temporary package that
requires the project. It checks by its own rules that the second proves the statements of the
first.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.hosts.native.toolchain import COMPARATOR, surroundings

_SECONDS = 1800.0


def unavailable(host: NativeHost) -> str:
    """Why it cannot be asked, or ''."""
    if host.toolchain.has_comparator:
        return ""
    least = ".".join(map(str, COMPARATOR))
    return f"lake comparator comes with Lean {least} and newer; this is {host.toolchain.name}"


def objection(
    host: NativeHost,
    original: str,
    candidate: str,
    targets: Sequence[str],
    axioms: Sequence[str],
) -> str:
    """Return the comparator's objection to the candidate in one line, or ''."""
    with tempfile.TemporaryDirectory(prefix="treewright-comparator-") as name:
        package = Path(name)
        (package / "Challenge.lean").write_text(original, encoding="utf-8")
        (package / "Solution.lean").write_text(candidate, encoding="utf-8")
        (package / "lakefile.toml").write_text(_lakefile(host.project), encoding="utf-8")
        if host.project is not None and (host.project / "lean-toolchain").is_file():
            pinned = (host.project / "lean-toolchain").read_bytes()
            (package / "lean-toolchain").write_bytes(pinned)
        question = {
            "challenge_module": "Challenge",
            "solution_module": "Solution",
            "theorem_names": list(targets),
            "permitted_axioms": list(axioms),
        }
        (package / "comparator.json").write_text(json.dumps(question), encoding="utf-8")
        try:
            done = subprocess.run(
                [host.toolchain.lake, "comparator", "comparator.json"],
                cwd=package,
                env=surroundings(host.toolchain),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return f"lake comparator could not be asked: {error}"
    if done.returncode == 0:
        return ""
    said = (done.stderr or done.stdout).strip().splitlines()
    return f"lake comparator refuses it: {said[-1] if said else f'code {done.returncode}'}"


def _lakefile(project: Path | None) -> str:
    text = 'name = "comparison"\n'
    for module in ("Challenge", "Solution"):
        text += f'\n[[lean_lib]]\nname = "{module}"\n'
    if project is not None:
        text += f"\n[[require]]\nname = {json.dumps(_package_name(project))}\n"
        text += f"path = {json.dumps(str(project))}\n"
    return text


def _package_name(project: Path) -> str:
    """The name in its lakefile, or that of its directory."""
    import tomllib

    try:
        return str(tomllib.loads((project / "lakefile.toml").read_text())["name"])
    except (OSError, ValueError, KeyError):
        return project.name
