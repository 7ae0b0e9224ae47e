"""The Lean toolchain of a project: where it is, which version, what Lake says about its modules.

Nothing is fetched: a toolchain that elan would download first is one that is not there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from treewright.kernel.errors import UsageError

VARIABLE = "TREEWRIGHT_LEAN"
MINIMUM = (4, 14)
COMPARATOR = (4, 35)
_SECONDS = 120.0
_VERSION = re.compile(r"version (\d+)\.(\d+)\.(\d+)")
_PROJECT_FILES = ("lakefile.toml", "lakefile.lean", "lean-toolchain")
_PATHS = ("LEAN_PATH", "LEAN_SRC_PATH")
_FROM_LAKE = (*_PATHS, "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """An installed Lean: the directory with `bin/lean`, and the version it says it has."""

    prefix: Path
    version: tuple[int, ...]
    said: str

    @property
    def lean(self) -> Path:
        """The program that runs Lean."""
        return self.prefix / "bin" / "lean"

    @property
    def lake(self) -> Path:
        """The build tool."""
        return self.prefix / "bin" / "lake"

    @property
    def name(self) -> str:
        """The version in words, such as `4.28.0`."""
        return ".".join(map(str, self.version))

    @property
    def has_comparator(self) -> bool:
        """Whether `lake comparator` comes with it."""
        return self.version[:2] >= COMPARATOR


def find_project(start: Path) -> Path | None:
    """The Lake project that `start` is in."""
    here = start.resolve()
    for directory in (here, *here.parents):
        if any((directory / name).is_file() for name in _PROJECT_FILES):
            return directory
    return None


def find_toolchain(project: Path | None) -> Toolchain | str:
    """The toolchain for a project, or why there is none, in a few words."""
    if given := os.environ.get(VARIABLE):
        prefix = Path(given).expanduser().absolute()
        if not (prefix / "bin" / "lean").is_file():
            raise UsageError(f"{VARIABLE} names {prefix}, which has no bin/lean; correct it")
        return _read(prefix)
    elan = Path(os.environ.get("ELAN_HOME") or Path.home() / ".elan")
    wanted = pinned(project)
    if wanted and elan.is_dir():
        prefix = elan / "toolchains" / wanted.replace("/", "--").replace(":", "---")
        if (prefix / "bin" / "lean").is_file():
            return _read(prefix)
        return f"its toolchain {wanted} is not installed: run elan toolchain install {wanted}"
    found = shutil.which("lean")
    if found is None:
        return "no Lean toolchain is installed here"
    if Path(found).resolve().name == "elan":
        return "elan is there, but no lean-toolchain file says which Lean to use"
    return _read(Path(found).resolve().parent.parent)


def require_toolchain(project: Path | None) -> Toolchain:
    """The toolchain, which has to be there and new enough."""
    toolchain = find_toolchain(project)
    if isinstance(toolchain, str):
        raise UsageError(f"--lean native needs a Lean toolchain: {toolchain}")
    if problem := too_old(toolchain):
        raise UsageError(problem)
    return toolchain


def too_old(toolchain: Toolchain) -> str:
    """Return why the version cannot be used, or ''."""
    if toolchain.version[:2] >= MINIMUM:
        return ""
    least = ".".join(map(str, MINIMUM))
    return f"this is Lean {toolchain.name}, and --lean native needs {least} or newer"


def lake_environment(toolchain: Toolchain, project: Path) -> dict[str, str]:
    """Where Lake says the project's compiled modules are, and the like. May run its lakefile."""
    if not toolchain.lake.is_file():
        raise UsageError(f"{toolchain.prefix} has no bin/lake, which knows where the modules are")
    try:
        done = subprocess.run(
            [toolchain.lake, "env", "/usr/bin/env", "-0"],
            cwd=project,
            env=surroundings(toolchain),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"lake env does not run in {project}: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(f"lake env fails in {project}: {said[-1] if said else done.returncode}")
    entries = (entry.partition("=") for entry in done.stdout.decode().split("\0"))
    said = {name: value for name, _, value in entries if name in _FROM_LAKE}
    for name in _PATHS:
        if name in said:
            said[name] = ":".join(_of_project(said[name].split(":"), project, toolchain))
    return said


def _of_project(paths: list[str], project: Path, toolchain: Toolchain) -> list[str]:
    """Absolute, and without the toolchain's own library, which Lean finds by itself."""
    own = toolchain.prefix.resolve()
    absolute = [os.path.normpath(project / path) for path in paths if path]
    return [path for path in absolute if not Path(path).resolve().is_relative_to(own)]


def surroundings(toolchain: Toolchain) -> dict[str, str]:
    """The environment of the toolchain's programs."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": f"{toolchain.prefix / 'bin'}:/usr/bin:/bin"}


def pinned(project: Path | None) -> str:
    """Return the toolchain that the project's lean-toolchain file names, or ''."""
    file = project / "lean-toolchain" if project is not None else None
    if file is None or not file.is_file():
        return ""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    return text if ":" in text else f"leanprover/lean4:{text}" if text else ""


@cache
def _read(prefix: Path) -> Toolchain:
    lean = prefix / "bin" / "lean"
    try:
        done = subprocess.run(
            [lean, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"cannot run {lean}: {error}") from error
    found = _VERSION.search(done.stdout)
    if found is None:
        raise UsageError(f"{lean} does not say which version it is")
    return Toolchain(prefix, tuple(map(int, found.groups())), done.stdout.strip())
