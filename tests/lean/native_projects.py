"""The native host of this machine, and Lake projects as it sees them.

A toolchain is looked for as the program does it: TREEWRIGHT_LEAN, elan, PATH. Projects are
compiled by its own Lean, where Lake puts modules, or by Lake itself.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from treewright.kernel.storage.user_directories import STATE_VARIABLE, state_directory
from treewright.lean.hosts.native import toolchain
from treewright.lean.hosts.native.host import NativeHost

# Read before the tests' own environment is cleared of such settings.
_GIVEN = os.environ.get(toolchain.VARIABLE)
_OWN = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
_STATE = state_directory()


@cache
def found() -> NativeHost | str:
    """The native host without a project, or why there is none."""
    with pytest.MonkeyPatch.context() as patch:
        if _GIVEN:
            patch.setenv(toolchain.VARIABLE, _GIVEN)
        for name, value in _OWN.items():
            patch.setenv(name, value)
        tool = toolchain.find_toolchain(None)
        if isinstance(tool, str):
            return tool
        return toolchain.too_old(tool) or NativeHost(tool)


def required() -> NativeHost:
    host = found()
    if isinstance(host, str):
        pytest.skip(f"no native host: {host}")
    return host


def settings() -> dict[str, str]:
    """For commands that are to find it too. Its program is sealed with the user's key: compiled
    once, not for each run of the tests."""
    host = found()
    if isinstance(host, str):
        return {}
    return {toolchain.VARIABLE: str(host.toolchain.prefix), STATE_VARIABLE: str(_STATE)}


def lake_build(native: NativeHost, root: Path, *targets: str) -> None:
    command = [native.toolchain.lake, "build", *targets]
    environment = toolchain.surroundings(native.toolchain)
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def built(native: NativeHost, root: Path, modules: dict[str, str]) -> NativeHost:
    """The host for a project of these texts, by path and in the order of their imports.

    What lies below `.lake/packages` is compiled as a package of that name.
    """
    (root / "lakefile.toml").write_text('name = "foo"\n')
    libraries: dict[Path, None] = {}
    for name, text in modules.items():
        package = root.joinpath(*Path(name).parts[:3]) if name.startswith(".lake/") else root
        library = package / ".lake" / "build" / "lib"
        libraries[library] = None
        source = root / name
        target = library / source.relative_to(package).with_suffix(".olean")
        source.parent.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        subprocess.run(
            [native.toolchain.lean, "-o", target, source],
            cwd=package,
            env={"LEAN_PATH": ":".join(map(str, libraries))},
            check=True,
            capture_output=True,
            timeout=300,
        )
    packages = [{"name": p.name} for p in sorted((root / ".lake" / "packages").glob("*"))]
    (root / "lake-manifest.json").write_text(json.dumps({"packages": packages}))
    path = ":".join(map(str, libraries))
    host = dataclasses.replace(native, project=root, modules={"LEAN_PATH": path})
    return host.with_trusted_files()
