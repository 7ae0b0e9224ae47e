"""Packages and targets of a Lake configuration, read without running it.

`lakefile.toml` is data. `lakefile.lean` is a program: the fields of `package`, `lean_lib` and
`lean_exe` are read if they are literals, and `notes` name the others. Defaults are Lake's: the root
of a library is its name, its sources are in the package's directory, and the root of an executable
is its name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.errors import UsageError

TOML = "lakefile.toml"
LEAN = "lakefile.lean"
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Glob:
    """`Foo` is one module, `Foo.*` it and those below it, `Foo.+` only those below it."""

    module: str
    itself: bool = True
    below: bool = False

    @classmethod
    def parse(cls, text: str) -> Glob:
        """Return the glob that a lakefile writes so."""
        if text.endswith(".*"):
            return cls(text[:-2], below=True)
        if text.endswith(".+"):
            return cls(text[:-2], itself=False, below=True)
        return cls(text)

    def matches(self, module: str) -> bool:
        """Whether a module is one of the glob's."""
        if module == self.module:
            return self.itself
        return self.below and (not self.module or module.startswith(f"{self.module}."))


@dataclass(frozen=True, slots=True)
class Target:
    """A library or an executable: where its sources are, and which modules are its own."""

    name: str
    sources: Path
    globs: tuple[Glob, ...]
    options: Options = ()

    def owns(self, module: str) -> bool:
        """Whether a module belongs to the target."""
        return any(glob.matches(module) for glob in self.globs)


@dataclass(frozen=True, slots=True)
class Package:
    """One package. `notes` name the parts of its configuration that could not be read."""

    name: str
    directory: Path
    targets: tuple[Target, ...]
    options: Options = ()
    notes: tuple[str, ...] = ()


def read_package(directory: Path, file: str = "") -> Package:
    """The package in a directory; `file` is its configuration if it has another name."""
    path = directory / file if file else directory / TOML
    if not file and not path.is_file():
        path = directory / LEAN
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from None
    if path.suffix == ".toml":
        return _from_toml(directory, path, text)
    return _from_lean(directory, text)


# -- lakefile.toml ----------------------------------------------------------------------------


def _from_toml(directory: Path, path: Path, text: str) -> Package:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    notes: list[str] = []
    sources = directory / _text(data, "srcDir", ".")
    targets = [
        *(_library(entry, sources, notes) for entry in _tables(data, "lean_lib")),
        *(_program(entry, sources, notes) for entry in _tables(data, "lean_exe")),
    ]
    name = _text(data, "name", directory.name)
    options = _options(data.get("leanOptions"), notes)
    return Package(name, directory, tuple(targets), options, tuple(notes))


def _tables(data: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    entries = data.get(key, [])
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield entry


def _library(entry: Mapping[str, Any], sources: Path, notes: list[str]) -> Target:
    name = _plain(entry["name"])
    roots = _texts(entry, "roots") or (name,)
    globs = tuple(Glob.parse(_plain(glob)) for glob in _texts(entry, "globs"))
    own = tuple(Glob(_plain(root), below=True) for root in roots)
    options = _options(entry.get("leanOptions"), notes)
    return Target(name, sources / _text(entry, "srcDir", "."), (*own, *globs), options)


def _program(entry: Mapping[str, Any], sources: Path, notes: list[str]) -> Target:
    name = _plain(entry["name"])
    root = _plain(_text(entry, "root", name))
    options = _options(entry.get("leanOptions"), notes)
    return Target(name, sources / _text(entry, "srcDir", "."), (Glob(root),), options)


def _text(data: Mapping[str, Any], key: str, default: str) -> str:
    value = data.get(key, default)
    return value if isinstance(value, str) else default


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key, ())
    values = [value] if isinstance(value, str) else value
    return tuple(item for item in values if isinstance(item, str))


def _plain(name: str) -> str:
    return name.replace("«", "").replace("»", "")


# Options become commands, so only plain names are accepted.
_OPTION_NAME = re.compile(r"[A-Za-z_][\w!?']*(\.[A-Za-z_][\w!?']*)*\Z")


def _options(value: object, notes: list[str]) -> Options:
    found: list[tuple[str, str]] = []

    def walk(prefix: str, entry: object) -> None:
        if isinstance(entry, dict):
            for key, inner in entry.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif not _OPTION_NAME.match(prefix):
            notes.append(f"the option {prefix[:40]!r} has a name that no option has")
        elif isinstance(entry, (bool, int)):
            found.append((prefix, str(entry).lower()))
        elif isinstance(entry, str) and not set(entry) & set('"\\\r\n'):
            found.append((prefix, f'"{entry}"'))
        else:
            notes.append(f"the option {prefix} is not read")

    walk("", value or {})
    return tuple(found)


# -- lakefile.lean ----------------------------------------------------------------------------

_COMMENT = re.compile(r"/-.*?-/|--[^\n]*", re.DOTALL)
_NAME = r"(?:«[^»]+»|[\w.]+|\"[^\"]+\")"
_COMMAND = re.compile(
    rf"^(?:@\[[^\]]*\]\s*)*(package|lean_lib|lean_exe)\s+({_NAME})(.*?)"
    r"(?=^(?:@\[|package\b|lean_lib\b|lean_exe\b|require\b|script\b|target\b|post_update\b|def\b"
    r"|open\b|import\b|meta\b|abbrev\b|extern_lib\b|module_facet\b|package_facet\b)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_FIELD = re.compile(
    r"(?:^|[{,])\s*(srcDir|roots|globs|root|leanOptions)\s*:=\s*"
    r"(.*?)(?=^\s*\w+\s*:=|,\s*\w+\s*:=|^\s*\}|\}\s*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LITERAL_NAME = re.compile(r"^`([\w.«»]+)$")
_GLOB = re.compile(r"^(?:(?:Glob)?\.(one|submodules|andSubmodules)\s+)?`([\w.«»]+)$")
_OPTION = re.compile(r"⟨\s*`([\w.]+)\s*,\s*(true|false|\d+|\"[^\"\\]*\")\s*⟩")
_BELOW = {"one": "", "submodules": ".+", "andSubmodules": ".*", None: ""}


def _from_lean(directory: Path, text: str) -> Package:
    package = directory.name
    sources = directory
    options: Options = ()
    targets: list[Target] = []
    notes: list[str] = []
    for kind, name, body in _COMMAND.findall(_COMMENT.sub("", text)):
        plain = _plain(name.strip('"'))
        entry: dict[str, Any] = {"name": plain}
        for field, value in _FIELD.findall(body):
            _read_field(entry, field, value.strip(), plain, notes)
        if kind == "package":
            package, sources = plain, directory / _text(entry, "srcDir", ".")
            options = _options(entry.get("leanOptions"), notes)
        else:
            make = _library if kind == "lean_lib" else _program
            targets.append(make(entry, sources, notes))
    if not targets:
        notes.append(
            f"{LEAN} of {package} names no lean_lib or lean_exe that can be read without running "
            "it: every file below the package counts as a module"
        )
        targets.append(Target(package, sources, (Glob("", itself=False, below=True),)))
    return Package(package, directory, tuple(targets), options, tuple(notes))


def _read_field(
    entry: dict[str, Any], field: str, value: str, owner: str, notes: list[str]
) -> None:
    """Puts a literal where the same key of a TOML table would be; says so if it is none."""
    items = [item.strip() for item in value.removeprefix("#[").removesuffix("]").split(",")]
    items = [item for item in items if item]
    if field == "leanOptions":
        found = _OPTION.findall(value)
        if len(found) == value.count("⟨"):
            entry[field] = {key: _value(text) for key, text in found}
            return
    elif field == "srcDir" and re.fullmatch(r'"[^"]*"', value):
        entry[field] = value.strip('"')
        return
    elif field == "root" and (name := _LITERAL_NAME.match(value)):
        entry[field] = name[1]
        return
    elif field == "roots" and all(_LITERAL_NAME.match(item) for item in items):
        entry[field] = [item[1:] for item in items]
        return
    elif field == "globs" and all(_GLOB.match(item) for item in items):
        matches = [_GLOB.match(item) for item in items]
        entry[field] = [f"{m[2]}{_BELOW[m[1]]}" for m in matches if m is not None]
        return
    notes.append(f"{field} of {owner} in {LEAN} is computed, and read as if it were not there")


def _value(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text.strip('"')
