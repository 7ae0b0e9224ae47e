"""What a Lake project adds to the start of a Lean session when its modules are compiled already."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.lean import cpu_seconds
from benchmarks.measure import Row, Table, take_turns
from treewright.lean.choice import open_project
from treewright.lean.hosts.wasm.install import ensure_installed
from treewright.lean.project.module_store import ModuleStore
from treewright.lean.session.host_session import HostSession

MODULES = 12
LIMIT = 1.10
_MODULE = """{imports}
namespace Many
inductive Even{n} : Nat → Prop
  | zero : Even{n} 0
  | step {{k : Nat}} : Even{n} k → Even{n} (k + 2)
{lemmas}
end Many
"""
_LEMMA = "theorem lemma_{n}_{k} (a b : Nat) : a + b + {k} = b + a + {k} := by omega\n"


def _write_project(root: Path) -> None:
    """A chain of modules with thirty lemmas each."""
    (root / "Many").mkdir()
    (root / "lakefile.toml").write_text('name = "many"\n[[lean_lib]]\nname = "Many"\n')
    for n in range(MODULES):
        imports = f"import Many.M{n - 1}" if n else ""
        lemmas = "".join(_LEMMA.format(n=n, k=k) for k in range(30))
        text = _MODULE.format(imports=imports, n=n, lemmas=lemmas)
        (root / "Many" / f"M{n}.lean").write_text(text)


def projects(quick: bool) -> Table:
    """CPU time until a session is open, ours and Lean's: with `Init`, and with a module."""
    home = ensure_installed()
    with tempfile.TemporaryDirectory() as place:
        root, store = Path(place) / "many", ModuleStore(Path(place) / "modules")
        root.mkdir()
        _write_project(root)
        last = f"Many.M{MODULES - 1}"

        def opened(name: str) -> float:
            before = time.process_time()
            project = open_project(root, store=store) if name != "Init" else None
            with HostSession(home, [name], project=project) as session:
                return time.process_time() - before + cpu_seconds(session.pid)

        started = time.perf_counter()
        first = open_project(root, store=store)
        assert first is not None
        compiled = first.modules_for([last])
        compiling = time.perf_counter() - started
        contestants = {"Init": lambda: opened("Init"), last: lambda: opened(last)}
        taken = take_turns(contestants, 3 if quick else 7)
    plain, full = median(taken["Init"]), median(taken[last])
    size = sum(len(module.data) for module in compiled) / 1e6
    return Table(
        "projects",
        f"A session that imports {MODULES} compiled modules of a project ({size:.1f} MB)",
        [
            Row("compile them, once", compiling, "s"),
            Row("start, Init", plain, "s CPU"),
            Row(f"start, {MODULES} modules", full, "s CPU", "start, Init", full / plain, LIMIT),
        ],
    )
