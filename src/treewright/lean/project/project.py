"""`Project`: the compiled modules that a text imports, in order.

A `Project` is a snapshot: the text of a module is read when the module is first needed, and that
text counts from then on. `changed` names modules that were edited since. A module is compiled once
for its text and its imports, by a process of the host, and kept in the cache. A module that does
not compile has a one-line problem, which only concerns the modules that import it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from treewright.kernel.errors import TreewrightError
from treewright.lean.project.included_files import (
    IncludedFile,
    files_for_text,
    included_files,
)
from treewright.lean.project.lakefile import Options
from treewright.lean.project.module_store import Header, ModuleStore, Poisoned, digest_of
from treewright.lean.project.workspace import Workspace, by_imports, is_library, read_text
from treewright.lean.session.errors import MissingModule

Announce = Callable[[str], None]


class CompileError(TreewrightError):
    """A module does not compile; one line says why. `fault`: it might, another time."""

    def __init__(self, message: str, *, fault: bool = False) -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module in its compiled form, and what that was made from."""

    name: str
    path: Path
    source: str  # sha256 of its text
    key: str
    digest: str  # sha256 of its compiled form
    data: bytes = field(repr=False)

    def provided(self) -> dict[str, str]:
        """Return the module as a Lean process is given it."""
        return {"name": self.name, "olean": base64.b64encode(self.data).decode()}


class Compilation(NamedTuple):
    """The compiled form of a module; `lacks` names what of it is open, and why."""

    data: bytes
    lacks: str = ""


class Compiler(Protocol):
    """A host that reads headers and compiles modules, one after the other."""

    @property
    def version(self) -> str:
        """Names everything about the host that decides what compiled modules are."""
        ...

    def has(self, module: str) -> bool:
        """Whether Lean would look for a module of this name in its own library."""
        ...

    def headers(self, texts: Sequence[str]) -> list[Header]:
        """Return the imports of texts."""
        ...

    def compile(
        self,
        module: str,
        text: str,
        options: Options,
        imports: Iterable[Compiled],
        files: Sequence[IncludedFile],
    ) -> Compilation:
        """Return the compiled form of a module.

        Args:
            imports: the compiled modules that it imports.
            files: the files that it includes.

        Raises:
            CompileError: it has errors, and the host lacks nothing that it needs.
        """
        ...

    def close(self) -> None:
        """End its process."""
        ...


@dataclass(slots=True)
class _Module:
    """A module in the snapshot; `problem` is the reason why it cannot be imported."""

    path: Path
    text: str
    source: str
    options: Options
    header: Header
    files: tuple[IncludedFile, ...] = ()
    problem: str = ""
    compiled: Compiled | None = None


class Project:
    """May be used by several threads."""

    def __init__(
        self,
        workspace: Workspace,
        compiler: Compiler,
        store: ModuleStore | None = None,
        announce: Announce = lambda text: None,
        read: Callable[[Path], str | None] = read_text,
    ) -> None:
        self.workspace = workspace
        self._read = read
        self._compiler = compiler
        self._store = store or ModuleStore()
        self._announce = announce
        self._lock = threading.RLock()
        self._modules: dict[str, _Module | str] = {}  # or why there is none
        self._depth = 0
        self._told = False  # that nothing is kept

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Keeps the compiler, a large process, until the outermost of these blocks ends."""
        with self._lock:
            if not self._told and self._store.problem:
                self._announce(f"compiled modules are not kept: {self._store.problem}")
                self._told = True
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._compiler.close()

    @property
    def options(self) -> Options:
        """The options with which Lake elaborates the root package."""
        return self.workspace.options

    def modules_for(self, imports: Iterable[str]) -> tuple[Compiled, ...]:
        """Return the compiled modules of the project for some imports, each after its own imports.

        Raises:
            MissingModule: a module is missing or does not compile; the message has the chain of
                imports.
        """
        with self.compiling():
            order: dict[str, Compiled] = {}
            for name in imports:
                if not is_library(name):
                    self._collect(name, order, ())
            return tuple(order.values())

    def problem_of(self, name: str) -> str:
        """Why a module cannot be imported, or ''. It is compiled to find out."""
        try:
            self.modules_for([name])
        except MissingModule as error:
            return str(error)
        return ""

    def imports_of(self, text: str) -> tuple[str, ...]:
        """Return the imports of a text, read by Lean's own parser."""
        with self.compiling():
            return self._header(text).imports

    def ordered(self, paths: Iterable[Path]) -> list[Path]:
        """Return the files, each after the files it imports; a cycle of imports is cut
        somewhere."""
        with self.compiling():
            return by_imports(paths, self.workspace, self.imports_of)

    def files_for(self, text: str) -> tuple[IncludedFile, ...]:
        """Return the files that a text of the project includes."""
        return files_for_text(text, self.workspace.root)

    def changed(self, names: Iterable[str] | None = None) -> str:
        """A module that was edited since it was read (of these, or of all); '' if none was."""
        with self._lock:
            for name in self._modules if names is None else names:
                module = self._modules.get(name)
                if isinstance(module, _Module) and self._is_changed(module):
                    return name
        return ""

    def _is_changed(self, module: _Module) -> bool:
        text = self._read(module.path)
        return text != module.text or self._included(module.path, module.text) != module.files

    def _included(self, path: Path, text: str) -> tuple[IncludedFile, ...]:
        return included_files(text, path.parent, self.workspace.package_directory(path))

    # -- one module -----------------------------------------------------------------------

    def _collect(self, name: str, order: dict[str, Compiled], above: tuple[str, ...]) -> None:
        """Puts a module behind everything it imports."""
        if name in order:
            return
        if name in above:
            ring = " imports ".join((*above[above.index(name) :], name))
            raise MissingModule(f"a cycle of imports: {ring}")
        module = self._modules.get(name)
        if module is None:
            module = self._modules[name] = self._load(name)
        if isinstance(module, str):
            raise MissingModule(_chain(above, module))
        own: dict[str, Compiled] = {}
        for needed in module.header.imports:
            if not is_library(needed):
                self._collect(needed, own, (*above, name))
        if module.compiled is None and not module.problem:
            self._compile(name, module, tuple(own.values()))
        if module.compiled is None:
            raise MissingModule(_chain(above, module.problem))
        order.update(own)
        order[name] = module.compiled

    def _load(self, name: str) -> _Module | str:
        found = self.workspace.locate(name)
        if found is None:
            return self.workspace.missing(name)
        if self._compiler.has(name):
            return (
                f"{name} has the name of a module of Lean's own, which it would import: rename it"
            )
        path, options = found
        text = self._read(path)
        if text is None:
            return f"{name} cannot be read from {path} as UTF-8"
        header = self._header(text)
        source = hashlib.sha256(text.encode()).hexdigest()
        problem = f"{name} has a header that Lean cannot read: {header.problem}"
        files = self._included(path, text)
        problem = problem if header.problem else ""
        return _Module(path, text, source, options, header, files, problem)

    def _header(self, text: str) -> Header:
        key = _sum("header", self._compiler.version, text)
        header = self._store.read_header(key)
        if header is None:
            (header,) = self._compiler.headers([text])
            self._store.write_header(key, header)
        return header

    def _compile(self, name: str, module: _Module, imports: tuple[Compiled, ...]) -> None:
        options = [part for option in module.options for part in option]
        direct = [c.key for c in imports if c.name in module.header.imports]
        version = self._compiler.version
        files = [part for file in module.files for part in (file.path, digest_of(file.data))]
        key = _sum("module", version, name, module.text, *options, *files, "imports", *direct)
        data = self._stored(key, name)
        if data is None:
            with self._store.compiling(key):
                data = self._stored(key, name)  # another process may have compiled it meanwhile
                if data is None:
                    data = self._compiled_now(key, name, module, imports)
        if isinstance(data, str):
            module.problem = f"{name} does not compile: {data}"
        else:
            module.compiled = Compiled(name, module.path, module.source, key, digest_of(data), data)

    def _compiled_now(
        self, key: str, name: str, module: _Module, imports: tuple[Compiled, ...]
    ) -> bytes | str:
        """The compiled form or why there is none; kept, unless a fault is why."""
        self._announce(f"compiling {name}")
        try:
            data, lacks = self._compiler.compile(
                name, module.text, module.options, imports, module.files
            )
        except CompileError as error:
            if not error.fault:
                self._store.write_problem(key, name, str(error))
            return str(error)
        if lacks:
            self._announce(f"{name} has open parts: {lacks}")
        self._store.write(key, name, data)
        return data

    def _stored(self, key: str, name: str) -> bytes | str | None:
        """Return the compiled form, the reason why there is none, or None if the module is
        untried."""
        try:
            return self._store.read(key, name) or self._store.read_problem(key, name)
        except Poisoned as poisoned:
            self._announce(f"{poisoned}: {name} is compiled again")
            return None


def _sum(*parts: str) -> str:
    """One sha256 over texts, each with its length."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode()
        total.update(f"{len(data)}:".encode() + data)
    return total.hexdigest()


def _chain(above: tuple[str, ...], problem: str) -> str:
    return f"{problem} (imported by {', by '.join(reversed(above))})" if above else problem
