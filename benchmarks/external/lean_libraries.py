"""How many modules of a Lean library `lean check` takes as shipped, and why not the others.

    python -m benchmarks.external.lean_libraries --out modules.jsonl /tmp/batteries /tmp/cedar-lean

Each path is a Lake project that was checked out with the packages it needs in `.lake/packages`.
Every module of the project is checked by the bundled Lean in a session of its own, imports first.
One JSON line per module goes to `--out`; lines of modules that are there already are kept, so an
interrupted run is continued. The table counts two halves apart: the *held-out* half has the modules
with an even sha256 of their names. Whoever changes the bundled Lean looks at failures of the other
half only.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from treewright.lean.choice import check_files, open_project
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.project.project import Project
from treewright.lean.session.answers import CheckResult, SessionLost, Timeout
from treewright.lean.session.errors import MissingModule

CHECK_SECONDS = 300.0
_NOT_MODULES = {".lake", ".git", "build"}
_LONGEST_REASON = 200


class ModuleResult(msgspec.Struct, frozen=True):
    """The check of one module; `reason` is empty if the module opens."""

    library: str
    module: str
    held_out: bool
    opens: bool
    reason: str
    seconds: float


def is_held_out(module: str) -> bool:
    """Whether a module belongs to the half whose failures are not looked at one by one."""
    return _hash(module) % 2 == 0


def _hash(module: str) -> int:
    return int.from_bytes(hashlib.sha256(module.encode()).digest())


def modules_of(root: Path, project: Project) -> dict[str, Path]:
    """Return the modules of a project by name: the files that an `import` of it would find."""
    found = {}
    for path in sorted(root.rglob("*.lean")):
        parts = path.relative_to(root).with_suffix("").parts
        if _NOT_MODULES & set(parts):
            continue
        for start in range(len(parts)):  # a library may be in a subdirectory
            name = ".".join(parts[start:])
            located = project.workspace.locate(name)
            if located is not None and located[0].resolve() == path.resolve():
                found[name] = path
                break
    return found


def check_module(home: LeanHome, project: Project, path: Path) -> str:
    """Return '' if `lean check` takes a file, or the reason in one line."""
    source = path.read_text(encoding="utf-8")
    try:
        ((_, result),) = check_files(
            home, [(path, source)], lambda _: project, timeout=CHECK_SECONDS
        )
    except MissingModule as missing:
        return _one_line(str(missing))
    return _reason(result)


def _reason(result: CheckResult | Timeout | SessionLost) -> str:
    if isinstance(result, Timeout):
        return f"not finished after {CHECK_SECONDS:g} s"
    if isinstance(result, SessionLost):
        return _one_line(f"the session was lost: {result.reason}")
    errors = [d for d in result.diagnostics if d.severity == "error"]
    if errors:
        return _one_line(f"line {errors[0].line}: {errors[0].text}")
    if result.unproved:
        return _one_line(f"it rests on a sorry: {', '.join(result.unproved)}")
    return _one_line(result.stopped)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_REASON]


def measure(
    root: Path, known: set[tuple[str, str]], only: str, every: int
) -> Iterator[ModuleResult]:
    """Check the modules of a project whose results are not known: one of `every`, by hash."""
    home = ensure_installed()
    project = open_project(root, lambda text: print(text, file=sys.stderr))
    if project is None:
        raise SystemExit(f"{root} is no Lake project")
    paths = {path: name for name, path in modules_of(root, project).items()}
    with project.compiling():
        for path in project.ordered(paths):
            name = paths[path]
            if (root.name, name) in known or not re.search(only, name):
                continue
            if _hash(name) // 2 % every:
                continue
            started = time.perf_counter()
            reason = check_module(home, project, path)
            seconds = round(time.perf_counter() - started, 2)
            yield ModuleResult(root.name, name, is_held_out(name), not reason, reason, seconds)


def cause(reason: str) -> str:
    """Return a reason without names and places, to count it with its like."""
    if chain := re.search(r"^(\S+) does not compile: ", reason):
        return f"an import does not compile ({chain[1].split('.')[0]})"
    if missing := re.search(r"^(\w+)\S* is neither of Lean's own", reason):
        return f"needs {missing[1]}"
    plain = re.sub(r"^line \d+: ", "", reason)
    return re.sub(r"[`'‘«][^`'’»]*[`'’»]", "…", plain)[:70]


def summary(results: Iterable[ModuleResult]) -> str:
    """Return a table of modules that open, per library and half, and the causes of the others."""
    results = list(results)
    lines = ["| library | half | modules | open | share |", "|---|---|---|---|---|"]
    for library in [*dict.fromkeys(r.library for r in results), "all"]:
        for half in ("tuned", "held out"):
            rows = [
                r
                for r in results
                if library in ("all", r.library) and r.held_out == (half == "held out")
            ]
            opened = sum(r.opens for r in rows)
            share = opened / len(rows) if rows else 0.0
            lines.append(f"| {library} | {half} | {len(rows)} | {opened} | {share:.0%} |")
    causes = Counter(cause(r.reason) for r in results if not r.opens)
    lines += ["", "| cause | modules |", "|---|---|"]
    lines += [f"| {text} | {count} |" for text, count in causes.most_common(40)]
    return "\n".join(lines)


def read_results(path: Path) -> list[ModuleResult]:
    """Return the results of an earlier run."""
    if not path.is_file():
        return []
    return [msgspec.json.decode(line, type=ModuleResult) for line in path.read_bytes().splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="*", type=Path, help="Lake projects")
    parser.add_argument("--out", type=Path, required=True, help="JSON Lines, one per module")
    parser.add_argument("--only", default="", help="a regular expression on names of modules")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="a sample: 1 of N")
    options = parser.parse_args()
    results = read_results(options.out)
    known = {(r.library, r.module) for r in results}
    for root in options.checkouts:
        for result in measure(root.resolve(), known, options.only, options.every):
            results.append(result)
            with options.out.open("ab") as file:
                file.write(msgspec.json.encode(result) + b"\n")
    print(summary(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
