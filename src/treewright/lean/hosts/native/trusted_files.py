"""Files outside the processes that native verdicts depend on, and their recorded state.

Native Lean runs code of the project's modules with the user's rights, before the judge imports the
library and the packages. So the state of these files is recorded before any text is read, with the
time of the last change, which no program can set. It is compared after each verdict. The
directories that contain them are recorded too, so that no file can be added or removed. The
project's own modules are compared too: an edited or recompiled module is not the one that was read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.lean.verify.verdict import ModuleDigest

PACKAGES = Path(".lake", "packages")
_MANIFEST = "lake-manifest.json"
_PARTS = (".olean", ".olean.server", ".olean.private", ".ir", ".ir.sig")
"""Of one compiled module; all but the first since Lean 4.22 and only of some."""
_COMPILED = (*_PARTS, ".so", ".dylib")
_State = tuple[int, ...]


def package_names(project: Path) -> frozenset[str]:
    """The packages that the project's manifest lists, as their directories are called."""
    try:
        manifest = json.loads((project / _MANIFEST).read_text(encoding="utf-8"))
        listed = [str(entry["name"]) for entry in manifest["packages"]]
    except (OSError, ValueError, TypeError, KeyError):
        return frozenset()
    return frozenset(name.replace("«", "").replace("»", "") for name in listed)


def is_package(path: Path, project: Path, names: frozenset[str]) -> bool:
    """Whether compiled modules there are a package's, and not the project's own."""
    packages = project.resolve() / PACKAGES
    place = path.resolve()
    if not place.is_relative_to(packages) or place == packages:
        return False
    return place.relative_to(packages).parts[0] in names


@dataclass(frozen=True, slots=True)
class TrustedFiles:
    """The recorded state of files: the judge's programs, trusted modules, the project's own
    modules."""

    programs: dict[Path, _State | None]
    places: tuple[Path, ...]
    believed: dict[Path, _State]
    own: tuple[Path, ...]
    sources: tuple[Path, ...]
    modules: dict[str, _State] = field(default_factory=dict[str, _State])

    @classmethod
    def record(
        cls,
        programs: Iterable[Path],
        believed: Iterable[Path],
        own: Sequence[Path],
        sources: Sequence[Path],
    ) -> TrustedFiles:
        """Return the state of these files now; `own` and `sources` are of the project itself."""
        places, own, sources = tuple(believed), tuple(own), tuple(sources)
        modules = {str(path): state for path, state in _states(own)}
        for path in [path for path in modules if path.endswith(_PARTS[0])]:
            text = _source(_module(Path(path), own), sources)
            if text is not None and (state := _now(text)) is not None:
                modules[str(text)] = state
        started = {path: _now(path) for path in programs}
        return cls(started, places, dict(_states(places)), own, sources, modules)

    def changed(self, names: Iterable[str]) -> str:
        """Return a file that changed or appeared since, or ''.

        Args:
            names: the project's own modules that the verdict depends on.
        """
        for path, state in self.programs.items():
            if _now(path) != state:
                return str(path)
        if (now := dict(_states(self.places))) != self.believed:
            both = now.items() ^ self.believed.items()
            return str(min(path for path, _ in both))
        for name in names:
            compiled, text = _compiled(name, self.own), _source(name, self.sources)
            if not compiled:
                return name
            for path in (*compiled, *([text] if text is not None else [])):
                if _now(path) != self.modules.get(str(path)):
                    return str(path)
        return ""

    def digests(self, names: Iterable[str]) -> tuple[ModuleDigest, ...]:
        """Of own modules: their texts, where they are found, and their compiled forms."""
        found = ((name, _compiled(name, self.own), _source(name, self.sources)) for name in names)
        return tuple(
            ModuleDigest(name, _sum([text] if text is not None else []), _sum(compiled))
            for name, compiled, text in found
        )


def _states(directories: Iterable[Path]) -> Iterator[tuple[Path, _State]]:
    """Of compiled files, and of directories and links on the way to them: a directory that was put
    in the place of another for a while, or a link to one, is as good as another file."""
    left, seen = [str(directory) for directory in directories], set[str]()
    while left:
        where = left.pop()
        if (state := _now(Path(where))) is None:
            continue
        yield Path(where), state
        if (real := os.path.realpath(where)) in seen:
            continue  # a link led back
        seen.add(real)
        with contextlib.suppress(OSError), os.scandir(where) as entries:
            for entry in entries:
                linked = entry.is_symlink()
                if Path(entry.path).is_dir() if linked else entry.is_dir():
                    left.append(entry.path)
                elif not (linked or entry.name.endswith(_COMPILED) or ".so." in entry.name):
                    continue
                elif (state := _now(Path(entry.path))) is not None:
                    yield Path(entry.path), state


def _now(path: Path) -> _State | None:
    """Return the state of a file, and of a link also the state of its target; None if it is
    gone."""
    try:
        about = path.lstat()
        if not stat.S_ISLNK(about.st_mode):
            return _state(about)
        return (*_state(about), *(_state(path.stat()) if path.exists() else ()))
    except OSError:
        return None


def _state(about: os.stat_result) -> _State:
    return about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns


def _module(compiled: Path, roots: Sequence[Path]) -> str:
    for root in roots:
        if compiled.is_relative_to(root):
            return ".".join(compiled.relative_to(root).with_suffix("").parts)
    return ""


def _compiled(name: str, roots: Sequence[Path]) -> list[Path]:
    """The parts of a module, there or not; none if it is not compiled."""
    first = _first(roots, name, _PARTS[0])
    whole = "" if first is None else str(first).removesuffix(_PARTS[0])
    return [Path(whole + part) for part in _PARTS] if whole else []


def _source(name: str, roots: Sequence[Path]) -> Path | None:
    return _first(roots, name, ".lean")


def _first(roots: Sequence[Path], name: str, suffix: str) -> Path | None:
    relative = Path(*name.replace("«", "").replace("»", "").split("."))
    places = (root / relative.with_name(relative.name + suffix) for root in roots)
    return next((place for place in places if place.is_file()), None)


def _sum(parts: Iterable[Path]) -> str:
    """The hash of a file; of several, the hash of what each is called behind its name and is."""
    found = [path for path in parts if path.is_file()]
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in found]
    if len(sums) < 2:
        return "".join(sums)
    named = (f"{''.join(path.suffixes)} {one}\n" for path, one in zip(found, sums, strict=True))
    return hashlib.sha256("".join(named).encode()).hexdigest()
