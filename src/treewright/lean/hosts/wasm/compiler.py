"""Compiles modules of a project with the bundled Lean.

Code of a module runs where the module is compiled or imported, and it can change that Lean process
in any way. So every module is compiled in a process that has run no other code: it gets only the
compiled modules that it imports. The output can then only depend on this module and its imports,
and all of them are in the key of the cache.

Headers are read in a process that imports and elaborates nothing. Its memory can be reset
(runtime/renewal.js), and it compiles the next module.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from treewright.lean.hosts.wasm.home import RUNTIME, LeanHome
from treewright.lean.hosts.wasm.manifest import CONTENTS
from treewright.lean.project.included_files import IncludedFile
from treewright.lean.project.lakefile import Options
from treewright.lean.project.module_store import Header
from treewright.lean.project.project import Compilation, Compiled, CompileError
from treewright.lean.session.errors import LeanError
from treewright.lean.session.process import NO_CODE, LeanProcess, ProcessLost
from treewright.lean.session.protocol import (
    Compile,
    CompileReply,
    Headers,
    Provide,
    R,
    Renew,
    Request,
)

COMPILE_SECONDS = 300.0
_MOST_BYTES = 512 << 20
"""Of Lean's memory: to make more of it as new is no quicker than a start."""
_AT_ITS_HEADER = "header"
_NEW, _HEADERS_READ, _COMPILED = "new", "headers read", "compiled"
_NO_CODE = (
    *("(interpreter)", "no executable code", "has no IR", "could not evaluate", "_redArg"),
    "has not been implemented",  # a metaprogram without code reports this
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
        return list(_ask(process, Headers(texts=texts), 60.0).headers)

    def compile(
        self,
        module: str,
        text: str,
        options: Options,
        imports: Iterable[Compiled],
        files: Sequence[IncludedFile] = (),
    ) -> Compilation:
        modules = [c.provided() for c in imports]
        included = [file.provided() for file in files]
        provided = Provide(modules=modules, options=options, files=included)
        try:
            # Earlier texts change the order of memory, and so the compiled bytes.
            process = self._lean(_NEW)
            self._state = _COMPILED
            _ask(process, provided, 60.0)
            reply = _ask(process, Compile(module=module, text=text), COMPILE_SECONDS)
        except LeanError as error:
            if str(error).startswith(NO_CODE):
                raise CompileError(str(error)) from error
            raise CompileError(f"the bundled Lean failed at it: {error}", fault=True) from error
        if reply.olean is None:
            # Imports are files that Lean reads: why it could not may be gone the next time.
            raise CompileError(_reason(reply), fault=reply.stopped == _AT_ITS_HEADER)
        lacks = f"{_reason(reply)}; the bundled Lean lacks {reply.lacks}" if reply.lacks else ""
        return Compilation(base64.b64decode(reply.olean), lacks)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._process = None

    @property
    def pid(self) -> int | None:
        """The id of the process, if one runs."""
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
        _ask(process, Renew(), 60.0)
    except LeanError:
        return False  # it has started threads, or is lost
    return True


def _ask(process: LeanProcess, request: Request[R], seconds: float) -> R:
    try:
        reply = process.request(request, soft=seconds, hard=seconds + 30.0)
    except ProcessLost as lost:
        raise LeanError(str(lost)) from lost
    if not reply.ok:
        raise LeanError(f"not done after {seconds:g} s" if reply.kind == "timeout" else reply.error)
    return reply


def _reason(reply: CompileReply) -> str:
    """Return the first error on one line; a missing feature of the bundled Lean is named as
    such."""
    errors = [d for d in reply.messages if d.severity == "error"]
    if not errors:
        return reply.stopped or "it was not finished"
    text = errors[0].text.splitlines()[0] if errors[0].text else ""
    first = f"line {errors[0].line}: {text}"
    if any(sign in d.text for d in errors for sign in _NO_CODE):
        return f"{NO_CODE}: {first}"
    return first


@cache
def _runtime_digest() -> str:
    """Return a digest of the runtime's JavaScript, because compiled modules depend on it."""
    total = hashlib.sha256()
    for path in sorted(RUNTIME.glob("*.js")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
