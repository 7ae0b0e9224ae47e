"""Lake projects for tests: the sample in `sample/`, and small ones made of texts."""

from __future__ import annotations

import shutil
from pathlib import Path

from treewright.lean.choice import open_project
from treewright.lean.project.module_store import ModuleStore
from treewright.lean.project.project import Project

SAMPLE = Path(__file__).resolve().parent / "sample"

BASIC = """namespace Foo
inductive Even : Nat → Prop
  | zero : Even 0
  | step {n} : Even n → Even (n + 2)

theorem Even.add {m n : Nat} (hm : Even m) (hn : Even n) : Even (m + n) := by
  induction hn with
  | zero => exact hm
  | step _ ih => exact ih.step
end Foo
"""
EVEN = """import Foo.Basic
theorem Foo.Even.double {n : Nat} (h : Foo.Even n) : Foo.Even (n + n) := by
  sorry
"""


def copy_of_sample(place: Path) -> Path:
    return shutil.copytree(SAMPLE, place / "sample")


def small_project(place: Path, **modules: str) -> Path:
    """A project `foo` with `Foo/NAME.lean` for each of `modules`."""
    (place / "Foo").mkdir(parents=True)
    (place / "lakefile.toml").write_text('name = "foo"\n[[lean_lib]]\nname = "Foo"\n')
    for name, text in modules.items():
        (place / "Foo" / f"{name}.lean").write_text(text)
    return place


def opened(root: Path, cache: Path, said: list[str] | None = None) -> Project:
    """A project with its compiled modules below a directory of the test; commands
    with that cache keep theirs there too."""
    announce = (said if said is not None else []).append
    project = open_project(root, announce, ModuleStore(cache / "modules"))
    assert project is not None
    return project
