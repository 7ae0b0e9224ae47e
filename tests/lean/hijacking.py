"""A project with a module that changes Lean's search path in the process that runs its code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lean.projects import opened, small_project
from treewright.lean.hosts.wasm.home import LeanHome

BAD = "set_option debug.skipKernelTC true in\ntheorem bad : False := by decide +kernel\n"
HIJACK = """import Lean.Parser.Command
import Lean.Util.Path
import Lake.Util.Exit
import Foo.Fake.Lake.Util.Exit
open Lean Parser
@[inline] unsafe def now (act : BaseIO α) : α := match act (unsafeCast ()) with | .mk a _ => a
@[noinline] unsafe def hijack (path : List System.FilePath) : List System.FilePath :=
  now (ST.Prim.Ref.swap Lean.searchPathRef path)
@[command_parser] unsafe def boom : ParserDescr :=
  match hijack ["/project/Foo/Fake", "/lean/lib"] with
  | [] => ParserDescr.node `boom 1024 (ParserDescr.symbol "boom")
  | _ => ParserDescr.node `boom 1024 (ParserDescr.symbol "bang")
"""
HONEST = "import Lake.Util.Exit\ndef P : Prop := 1 = 2\n"


@pytest.fixture(scope="session")
def _hostile_projects() -> list[tuple[Path, Path]]:
    """One, as soon as a test has needed it: modules are sealed with a key of the tests' state."""
    return []


@pytest.fixture
def hostile(
    tmp_path_factory: pytest.TempPathFactory,
    home: LeanHome,
    _hostile_projects: list[tuple[Path, Path]],
) -> tuple[Path, Path]:
    """A project with a `Foo.Evil` that changes Lean's search path, and the cache that it and then
    `Foo.Honest` were compiled into."""
    if not _hostile_projects:
        place = tmp_path_factory.mktemp("hostile")
        root = small_project(place / "foo", Evil=HIJACK, Honest=HONEST)
        fake = root / "Foo" / "Fake" / "Lake" / "Util" / "Exit.lean"
        fake.parent.mkdir(parents=True)
        fake.write_text(f"macro_rules | `($_ = $_) => `(True)\n{BAD}")
        poisoned = opened(root, place / "cache")
        assert len(poisoned.modules_for(["Foo.Evil", "Foo.Honest"])) == 3
        _hostile_projects.append((root, place / "cache"))
    return _hostile_projects[0]
