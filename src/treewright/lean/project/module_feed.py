"""Handing a project's compiled modules to a Lean process, before it imports them."""

from __future__ import annotations

from treewright.lean.hosts.wasm.compiler import as_given
from treewright.lean.project.project import Project
from treewright.lean.session.process import LeanProcess

_SECONDS = 60.0


class ModuleFeed:
    """What one process has been given. Without a project it does nothing."""

    def __init__(self, process: LeanProcess, project: Project | None) -> None:
        self._process = process
        self._project = project
        self._given: set[str] = set()
        if project is not None:
            self._provide([], options=list(project.options))

    def prepare(self, text: str) -> None:
        """Everything of the project that a text imports; MissingModule if it cannot be had."""
        if self._project is None:
            return
        reply = self._process.request("headers", soft=None, hard=_SECONDS, fields={"texts": [text]})
        imports = reply.headers[0].imports if reply.headers else ()
        if reply.headers and reply.headers[0].problem:
            return  # Lean says it better, where the text is read
        new = [m for m in self._project.modules_for(imports) if m.name not in self._given]
        if new:
            self._provide([as_given(module) for module in new])
            self._given.update(module.name for module in new)

    def _provide(self, modules: list[dict[str, str]], **more: object) -> None:
        fields = {"modules": modules, **more}
        self._process.request("provide", soft=None, hard=_SECONDS, fields=fields)
