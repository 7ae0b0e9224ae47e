"""Compiling modules of a project with the bundled Lean, in a process that reads nothing else.

Each module gets a Lean as it is after its start, with the compiled modules that it imports and no
others. Code of a module runs where it is compiled or imported and can change that Lean in any way:
what comes out is then the matter of this module and of those that import it, which have it in their
keys. So every module has a process of its own: one that code has run in is never made as new.
A module that imports none but Init is compiled on the environment that its process started with.
Headers are read by one that elaborates and imports nothing; that one is made as new
(runtime/renewal.js), and compiles the next module. Of what a search or a model wrote it may see the
header, and nobody here sees more.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.launch import RUNTIME
from treewright.lean.hosts.wasm.manifest import CONTENTS
from treewright.lean.project.lakefile import Options
from treewright.lean.project.module_store import Header
from treewright.lean.project.project import Compiled, CompileError
from treewright.lean.session.answers import Diagnostic
from treewright.lean.session.interface import LeanError
from treewright.lean.session.process import NO_CODE, LeanProcess, ProcessLost, Reply

COMPILE_SECONDS = 300.0
_MOST_BYTES = 512 << 20
"""Of Lean's memory: to make more of it as new is no quicker than a start."""
_AT_ITS_HEADER = "header"
_NEW, _HEADERS_READ, _COMPILED = "new", "headers read", "compiled"
_NO_CODE = (
    *("(interpreter)", "no executable code", "has no IR", "could not evaluate", "_redArg"),
    "has not been implemented",  # what a metaprogram that got no code was to do
)


class WasmCompiler:
    """Not for use by two threads at once; `Project` sees to that."""

    def __init__(self, home: Callable[[], LeanHome]) -> None:
        self._home = home
        self._process: LeanProcess | None = None
        self._state = _NEW

    @property
    def version(self) -> str:
        return f"{CONTENTS} {_runtime_digest()}"

    def has(self, module: str) -> bool:
        root = self._home().path / "lib" / module.split(".", 1)[0].strip("«»")
        return root.is_dir() or root.with_name(f"{root.name}.olean").is_file()

    def headers(self, texts: Sequence[str]) -> list[Header]:
        process = self._lean(_NEW, _HEADERS_READ)
        self._state = _HEADERS_READ
        return list(_ask(process, "headers", 60.0, texts=list(texts)).headers)

    def compile(
        self, module: str, text: str, options: Options, imports: Iterable[Compiled]
    ) -> bytes:
        given = [as_given(c) for c in imports]
        try:
            # What was read before changes the order of memory, and with it the bytes that come out.
            process = self._lean(_NEW)
            self._state = _COMPILED
            _ask(process, "provide", 60.0, modules=given, options=list(options))
            reply = _ask(process, "compile", COMPILE_SECONDS, module=module, text=text)
        except LeanError as error:
            if str(error).startswith(NO_CODE):
                raise CompileError(str(error)) from error
            raise CompileError(f"the bundled Lean failed at it: {error}", fault=True) from error
        if reply.olean is None:
            # Imports are files that Lean reads: why it could not may be gone the next time.
            raise CompileError(_reason(reply), fault=reply.stopped == _AT_ITS_HEADER)
        return base64.b64decode(reply.olean)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._process = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _lean(self, *states: str) -> LeanProcess:
        """A process that is in one of these states, or one as new."""
        home = self._home()  # looks at its files
        process = self._process
        if process is not None and process.alive:
            if self._state in states:
                return process
            if self._state == _HEADERS_READ and _renewed(process):
                self._state = _NEW
                return process
        self.close()
        self._state = _NEW
        self._process = LeanProcess(home)
        return self._process


def _renewed(process: LeanProcess) -> bool:
    """Whether a process has been made as new."""
    if process.heap_bytes > _MOST_BYTES:
        return False
    try:
        _ask(process, "renew", 60.0)
    except LeanError:
        return False  # it has started threads, or is lost
    return True


def _ask(process: LeanProcess, op: str, seconds: float, **fields: object) -> Reply:
    try:
        reply = process.request(op, soft=seconds, hard=seconds + 30.0, fields=fields)
    except ProcessLost as lost:
        raise LeanError(str(lost)) from lost
    if not reply.ok:
        raise LeanError(f"not done after {seconds:g} s" if reply.kind == "timeout" else reply.error)
    return reply


def as_given(module: Compiled) -> dict[str, str]:
    """A compiled module as a process is handed it."""
    return {"name": module.name, "olean": base64.b64encode(module.data).decode()}


def _reason(reply: Reply) -> str:
    """The first error, on one line; what the bundled Lean lacks is named as such."""
    errors = [d for d in reply.messages if d.severity == "error"]
    if not errors:
        return reply.stopped or "it was not finished"
    first = _one_line(errors[0])
    if any(sign in d.text for d in errors for sign in _NO_CODE):
        return f"{NO_CODE}: {first}"
    return first


def _one_line(error: Diagnostic) -> str:
    text = error.text.splitlines()[0] if error.text else ""
    return f"line {error.line}: {text}"


@cache
def _runtime_digest() -> str:
    """Of our own half of the host: what is compiled depends on it too."""
    total = hashlib.sha256()
    for path in sorted(RUNTIME.glob("*.js")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
