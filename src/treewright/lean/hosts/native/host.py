"""The native host: the Lean program `host.lean`, run by a project's own toolchain.

The project is not changed. Native Lean code runs with the rights of the user. With `sandbox`,
bubblewrap leaves it only the toolchain, the project's modules (to read) and a directory for
temporary files.

A judge imports compiled modules and trusts them: the toolchain's library, and the packages of the
manifest below `.lake/packages`. The project's own modules are not on the judge's path; they come as
data. No other setting of Lake reaches a judge, and in particular no library to load.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from treewright.kernel.procs import sandbox as bubblewrap
from treewright.kernel.procs.sandbox import Mount
from treewright.lean.hosts.host import Launch, with_stack
from treewright.lean.hosts.native import host_program
from treewright.lean.hosts.native.toolchain import (
    Toolchain,
    lake_environment,
    require_toolchain,
    surroundings,
)
from treewright.lean.hosts.native.trusted_files import TrustedFiles, is_package, package_names
from treewright.lean.verify.verdict import ModuleDigest

_FLAG = "--sandbox"
OWN_MODULES = "TREEWRIGHT_OWN_MODULES"
# Lean makes paths of them.
_PLAIN_MODULE = re.compile(r"(«[^«»/\\.\0]+»|[^«»/\\.\0\s]+)(\.(«[^«»/\\.\0]+»|[^«»/\\.\0\s]+))*\Z")


@dataclass(frozen=True, slots=True)
class NativeHost:
    """A toolchain, and the project that it can import modules of."""

    toolchain: Toolchain
    project: Path | None = None
    sandbox: bool = False
    modules: dict[str, str] = field(default_factory=dict[str, str], hash=False)
    trusted_files: TrustedFiles | None = field(default=None, hash=False, compare=False)

    @property
    def backend(self) -> str:
        return "native"

    @property
    def detail(self) -> str:
        where = f" in {self.project.name}" if self.project is not None else ""
        return f"{self.toolchain.lean}{where}{', in a sandbox' if self.sandbox else ''}"

    def launch(self) -> Launch:
        program = host_program.compiled_host(self.toolchain)
        path = ":".join(p for p in (str(program), self.modules.get("LEAN_PATH", "")) if p)
        environment = {**surroundings(self.toolchain), **self.modules, "LEAN_PATH": path}
        environment[OWN_MODULES] = ":".join(self._own())
        command = [str(self.toolchain.lean), "--run", str(program / host_program.MAIN)]
        directory = self.project or Path("/")
        if self.sandbox:
            command = [*self._around(path, directory), *command]
            environment["HOME"] = environment["TMPDIR"] = bubblewrap.SCRATCH
        return Launch(with_stack(command), str(directory), environment)

    def _paths(self) -> list[str]:
        return [p for p in self.modules.get("LEAN_PATH", "").split(":") if p]

    def _own(self) -> list[str]:
        """Where compiled modules are that no judge believes; decided before any of them is read."""
        if self.trusted_files is not None:
            return list(map(str, self.trusted_files.own))
        if self.project is None:
            return self._paths()
        project, names = self.project, package_names(self.project)
        return [p for p in self._paths() if not is_package(Path(p), project, names)]

    def judging(self) -> NativeHost:
        own = set(self._own())
        believed = ":".join(p for p in self._paths() if p not in own)
        return replace(self, project=None, modules={"LEAN_PATH": believed})

    def with_trusted_files(self) -> NativeHost:
        """The same, and from now on it knows whether what verdicts rest on was changed."""
        own = self._own()
        packages = [Path(p) for p in self._paths() if p not in own]
        told = self.modules.get("LEAN_SRC_PATH", "").split(":")
        sources = [Path(p) for p in (str(self.project or ""), *told) if p]
        believed = [self.toolchain.prefix / "lib", *packages]
        programs = host_program.programs(self.toolchain)
        trusted_files = TrustedFiles.record(programs, believed, [Path(p) for p in own], sources)
        return replace(self, trusted_files=trusted_files)

    def changed(self, modules: Iterable[str]) -> str:
        changed = "" if self.trusted_files is None else self.trusted_files.changed(modules)
        return changed or host_program.changed_host(self.toolchain)

    def digests(self, modules: Iterable[str]) -> tuple[ModuleDigest, ...]:
        return () if self.trusted_files is None else self.trusted_files.digests(modules)

    def is_library(self, module: str) -> bool:
        return _PLAIN_MODULE.match(module) is not None

    def _around(self, path: str, directory: Path) -> list[str]:
        """Nothing to write to but /tmp, no network, no other processes to be seen."""
        project = [self.project] if self.project is not None else []
        seen = [self.toolchain.prefix, *project, *(Path(p) for p in path.split(":") if p)]
        mounts = [Mount("read", place) for place in dict.fromkeys(seen)]
        return bubblewrap.command_line(bubblewrap.SYSTEM, mounts, directory, what=_FLAG)

    def digest(self) -> str:
        return host_program.digest(self.toolchain)

    def lacking(self, problem: str) -> str:
        if self.project is None:
            return f"this toolchain has Init, Std and Lean, and there is no Lake project: {problem}"
        return (
            f"the project {self.project.name} has not got it compiled (run lake build): {problem}"
        )


def native_host(project: Path | None, *, sandbox: bool = False) -> NativeHost:
    """The host for a project; raises UsageError where there is none to be had."""
    toolchain = require_toolchain(project)
    if sandbox:
        bubblewrap.require(_FLAG)
    modules = lake_environment(toolchain, project) if project is not None else {}
    return NativeHost(toolchain, project, sandbox, modules).with_trusted_files()
