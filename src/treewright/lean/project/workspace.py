"""A Lake workspace on disk: its root, its packages, its modules and their order. Starts no Lean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.lean.project.lakefile import LEAN, TOML, Options, Package, read_package

MANIFEST = "lake-manifest.json"
LIBRARY_ROOTS = frozenset({"Init", "Std", "Lean", "Lake"})
_PACKAGES = ".lake/packages"
_IMPORT = re.compile(r"^\s*(?:public\s+)?(?:meta\s+)?import\s+(?:all\s+)?([\w.«»]+)", re.MULTILINE)


def find_root(start: Path) -> Path | None:
    """The nearest directory with a Lake configuration, from a file or directory upwards."""
    here = start.resolve()
    for directory in (here, *here.parents):
        if any((directory / name).is_file() for name in (TOML, LEAN)):
            return directory
    return None


def is_library(module: str) -> bool:
    """Whether a module is Lean's own, by its name: no project may have one of that name."""
    return module.split(".", 1)[0] in LIBRARY_ROOTS


@dataclass(frozen=True, slots=True)
class Workspace:
    """The root package first. `notes` say what could not be read, `absent` which packages of the
    manifest have no sources here, and where they would be."""

    root: Path
    packages: tuple[Package, ...]
    notes: tuple[str, ...] = ()
    absent: tuple[tuple[str, Path], ...] = ()

    @property
    def name(self) -> str:
        """The name of the root package."""
        return self.packages[0].name

    @property
    def options(self) -> Options:
        """With which Lake elaborates the root package."""
        return self.packages[0].options

    def locate(self, module: str) -> tuple[Path, Options] | None:
        """The source file of a module, and the options it is compiled with."""
        if is_library(module):
            return None
        relative = Path(*module.replace("«", "").replace("»", "").split(".")).with_suffix(".lean")
        for package in self.packages:
            for target in package.targets:
                path = target.sources / relative
                if target.owns(module) and path.is_file():
                    return path, tuple(dict((*package.options, *target.options)).items())
        return None

    def module_of(self, path: Path) -> str | None:
        """The module that a file is, if it is one of the root package."""
        file = path.resolve()
        for target in self.packages[0].targets:
            sources = target.sources.resolve()
            if file.is_relative_to(sources) and file.suffix == ".lean":
                module = ".".join(file.relative_to(sources).with_suffix("").parts)
                if target.owns(module) and not is_library(module):
                    return module
        return None

    def package_directory(self, path: Path) -> Path:
        """Return the directory of the package that a file belongs to, or the root."""
        file = path.resolve()
        found = (p.directory for p in self.packages if file.is_relative_to(p.directory.resolve()))
        return max(found, key=lambda directory: len(directory.parts), default=self.root)

    def missing(self, module: str) -> str:
        """Why there is no such module, in words."""
        first = module.split(".", 1)[0]
        said = [*map(_not_there, self.absent), *self.notes]
        absent = [note for note in said if f"package {first.lower()} " in note.lower()]
        where = f" ({absent[0]})" if absent else ""
        return f"{module} is neither of Lean's own library nor of the project {self.name}{where}"


def open_workspace(
    start: Path, allowed: Callable[[Path], bool] = lambda directory: True
) -> Workspace | None:
    """The workspace that a path is in, or None. Packages in no allowed place are left out."""
    root = find_root(start)
    if root is None:
        return None
    own = read_package(root)
    packages = [own]
    notes = list(own.notes)
    absent: list[tuple[str, Path]] = []
    for name, directory, file in _manifest(root, notes):
        if not allowed(directory):
            notes.append(f"the package {name} may not be read where it is")
            continue
        if not directory.is_dir():
            absent.append((name, directory))
            continue
        try:
            package = read_package(directory, file)
        except UsageError as error:
            notes.append(f"the package {name} cannot be read: {error}")
            continue
        packages.append(package)
        notes += package.notes
    if len(absent) == 1:
        notes.append(_not_there(absent[0]))
    elif absent:  # a project with Mathlib has nine of them
        names = ", ".join(name for name, _ in absent)
        notes.append(f"{len(absent)} packages of the manifest are not there: {names}")
    return Workspace(root, tuple(packages), tuple(notes), tuple(absent))


def _not_there(package: tuple[str, Path]) -> str:
    name, place = package
    return f"the package {name} is not in {place}"


def _manifest(root: Path, notes: list[str]) -> Iterator[tuple[str, Path, str]]:
    """Name, directory and configuration file of each package that the manifest lists."""
    path = root / MANIFEST
    if not path.is_file():
        return
    try:
        data = json.loads(path.read_bytes())
        packages = [(entry, str(entry["name"])) for entry in data.get("packages", [])]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        notes.append(f"{path} cannot be read: {error}")
        return
    for entry, name in packages:
        plain = name.replace("«", "").replace("»", "")
        below = root / str(data.get("packagesDir") or _PACKAGES) / plain
        place = root / str(entry.get("dir", ".")) if entry.get("type") == "path" else below
        directory = place / str(entry.get("subDir") or ".")
        file = str(entry.get("configFile") or "")
        known = file if Path(file).suffix in (".toml", ".lean") else ""
        yield plain, directory, known if (directory / known).is_file() else ""


def written_imports(text: str) -> tuple[str, ...]:
    """What lines of a text say that it imports; Lean's parser may see less."""
    return tuple(_IMPORT.findall(text))


def by_imports(
    paths: Iterable[Path], workspace: Workspace, imports_of: Callable[[str], Sequence[str]]
) -> list[Path]:
    """As far as that can be: a ring of imports is taken apart somewhere."""
    order: list[Path] = []
    seen: set[Path] = set()
    wanted = list(paths)
    files = {workspace.module_of(path): path for path in wanted}

    def visit(path: Path) -> None:
        if path in seen:
            return
        seen.add(path)
        for needed in imports_of(read_text(path) or ""):
            if needed in files:
                visit(files[needed])
        order.append(path)

    for path in wanted:
        visit(path)
    return order


def by_written_imports(start: Path, paths: Sequence[Path]) -> list[Path]:
    """Where no Lean is asked: files that are in no project, or in one that cannot be read, stay."""
    try:
        workspace = open_workspace(start)
    except UsageError:
        workspace = None
    return list(paths) if workspace is None else by_imports(paths, workspace, written_imports)


def read_text(path: Path) -> str | None:
    """Return a file as text, or None if it cannot be read as UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
