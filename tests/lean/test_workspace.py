"""Lake workspaces are read without Lean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lean.projects import SAMPLE, copy_of_sample
from treewright.kernel.errors import UsageError
from treewright.lean.project.lakefile import read_package
from treewright.lean.project.workspace import Workspace, find_root, open_workspace


def workspace(start: Path) -> Workspace:
    found = open_workspace(start)
    assert found is not None
    return found


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_root_is_found_upwards_from_a_file(tmp_path: Path) -> None:
    assert find_root(SAMPLE / "Sample" / "Basic.lean") == SAMPLE
    assert find_root(SAMPLE / "helper" / "src") == SAMPLE / "helper"
    assert find_root(tmp_path) is None
    assert open_workspace(tmp_path) is None


def test_modules_and_files_of_the_sample() -> None:
    found = workspace(SAMPLE)
    path, options = found.locate("Sample.Basic") or (None, ())
    assert path == SAMPLE / "Sample" / "Basic.lean"
    assert options == (("autoImplicit", "false"),)
    assert found.module_of(SAMPLE / "Sample" / "Top.lean") == "Sample.Top"
    assert found.module_of(SAMPLE / "Sample.lean") == "Sample"
    assert found.module_of(SAMPLE / "Main.lean") == "Main"  # the root of an executable
    assert found.module_of(SAMPLE / "helper" / "src" / "Helper.lean") is None
    assert found.locate("Helper.Pairs") == (SAMPLE / "helper/src/Helper/Pairs.lean", ())
    assert found.locate("Sample.Nowhere") is None
    assert found.locate("Lean.Elab") is None
    assert "package mathlib" in found.missing("Mathlib.Data.Nat.Basic")


def test_a_package_below_lake_packages_is_found(tmp_path: Path) -> None:
    root = copy_of_sample(tmp_path)
    mathlib = root / ".lake/packages/mathlib"
    write(
        mathlib / "lakefile.lean", "import Lake\nopen Lake DSL\npackage mathlib\nlean_lib Mathlib\n"
    )
    file = write(mathlib / "Mathlib/Data/Nat/Basic.lean")
    found = workspace(root)
    assert found.locate("Mathlib.Data.Nat.Basic") == (file, ())
    assert found.notes == ()


def test_packages_without_sources_are_one_line_and_who_imports_one_is_told_which(
    tmp_path: Path,
) -> None:
    write(tmp_path / "lakefile.toml", 'name = "p"\n')
    names = ["mathlib", "batteries", "Qq"]
    packages = [{"name": name, "type": "git"} for name in names]
    write(tmp_path / "lake-manifest.json", json.dumps({"packages": packages}))
    found = workspace(tmp_path)
    assert found.notes == ("3 packages of the manifest are not there: mathlib, batteries, Qq",)
    where = tmp_path / ".lake" / "packages" / "batteries"
    assert f"(the package batteries is not in {where})" in found.missing("Batteries.Data.List")


@pytest.mark.parametrize(
    ("extra", "module", "owned"),
    [
        ('roots = ["Bar"]', "Bar.Deep.Er", True),
        ('roots = ["Bar"]', "Foo.Basic", False),
        ('roots = []\nglobs = ["Glob.*"]', "Glob", True),
        ('roots = []\nglobs = ["Glob.+"]', "Glob", False),
        ('roots = []\nglobs = ["Glob.+"]', "Glob.A", True),
        ('globs = ["One"]', "One.A", False),
        ("", "Foo.Basic", True),
        ("", "Foobar", False),
    ],
)
def test_which_modules_a_library_owns(tmp_path: Path, extra: str, module: str, owned: bool) -> None:
    write(tmp_path / "lakefile.toml", f'name = "p"\n[[lean_lib]]\nname = "Foo"\n{extra}\n')
    (library,) = read_package(tmp_path).targets
    assert library.owns(module) is owned


def test_sources_and_options_as_toml_gives_them(tmp_path: Path) -> None:
    write(
        tmp_path / "lakefile.toml",
        'name = "p"\nsrcDir = "src"\n[leanOptions]\npp.unicode.fun = true\nmaxHeartbeats = 7\n'
        '[[lean_lib]]\nname = "Foo"\nsrcDir = "lib"\nleanOptions = {autoImplicit = false}\n',
    )
    file = write(tmp_path / "src/lib/Foo.lean")
    assert workspace(tmp_path).locate("Foo") == (
        file,
        (("pp.unicode.fun", "true"), ("maxHeartbeats", "7"), ("autoImplicit", "false")),
    )


def test_a_lakefile_in_lean_by_what_can_be_read_of_it(tmp_path: Path) -> None:
    write(
        tmp_path / "lakefile.lean",
        """import Lake
open Lake DSL
-- lean_lib Commented
def extra := #[`Computed]

package «my-package» where
  leanOptions := #[⟨`autoImplicit, false⟩, ⟨`pp.unicode.fun, true⟩]

require mathlib from git "https://example.org/mathlib"

@[default_target]
lean_lib «Foo» where
  srcDir := "theories"
  globs := #[.andSubmodules `Foo, .submodules `Bar]

lean_lib Other where
  roots := extra

lean_exe tool where
  root := `Main
""",
    )
    package = read_package(tmp_path)
    foo, other, tool = package.targets
    assert package.name == "my-package"
    assert package.options == (("autoImplicit", "false"), ("pp.unicode.fun", "true"))
    assert foo.sources == tmp_path / "theories"
    assert foo.owns("Foo.A")
    assert foo.owns("Bar.A")
    assert not foo.owns("Bar")
    assert other.owns("Other")
    assert not other.owns("Computed")
    assert tool.owns("Main")
    assert not tool.owns("Main.A")
    assert package.notes == (
        "roots of Other in lakefile.lean is computed, and read as if it were not there",
    )


def test_a_lakefile_that_is_all_program_leaves_a_note(tmp_path: Path) -> None:
    write(tmp_path / "lakefile.lean", "import Lake\nopen Lake DSL\npackage odd\n")
    file = write(tmp_path / "Any/Where.lean")
    found = workspace(tmp_path)
    assert found.locate("Any.Where") == (file, ())
    assert "every file below the package counts" in found.notes[0]


def test_damaged_project_files_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "lakefile.toml", "name = ")
    with pytest.raises(UsageError, match="is not TOML"):
        open_workspace(tmp_path)
    write(tmp_path / "lakefile.toml", 'name = "p"\n')
    write(tmp_path / "lake-manifest.json", json.dumps({"packages": 3}))
    assert "cannot be read" in workspace(tmp_path).notes[0]
