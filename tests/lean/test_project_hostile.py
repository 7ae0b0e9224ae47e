"""Projects with lying modules: their code runs only in the processes that read them.

Each of these had `theorem t : False` proved while one process read the original and ruled.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.here import project_replayer
from tests.lean.hijacking import BAD
from tests.lean.projects import opened, small_project
from treewright.lean.hosts.host import Launch
from treewright.lean.hosts.wasm.compiler import WasmCompiler
from treewright.lean.hosts.wasm.home import IMAGE_FILE, LeanHome, command, environment
from treewright.lean.project.project import CompileError
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict

OPTION = (
    "maxRecDepth 1000\\nset_option debug.skipKernelTC true\\n"
    "theorem bad : False := by decide +kernel\\nset_option maxRecDepth"
)


def _judged(shared: Replayer, root: Path, cache: Path, header: str, proof: str) -> Verdict:
    original = f"{header}theorem t : False := by\n  sorry\n"
    with project_replayer(shared, opened(root, cache)) as checker:
        return checker.text(original, original.replace("sorry", proof), ["t"])


def test_code_that_runs_at_import_cannot_give_the_judge_another_library(
    replayer: Replayer, hostile: tuple[Path, Path]
) -> None:
    verdict = _judged(replayer, *hostile, "import Foo.Evil\n", "exact bad")
    assert verdict.reason == "kernel", verdict


def test_a_module_is_not_the_librarys_because_its_name_begins_like_that(
    tmp_path: Path, replayer: Replayer, compiled: Path
) -> None:
    mid = "import Foo.Evil\nimport Lean.«../../../project/Foo/Evil»\n"
    root = small_project(tmp_path / "foo", Evil=BAD, Mid=mid)
    verdict = _judged(replayer, root, compiled, "import Foo.Mid\n", "exact bad")
    assert verdict.reason == "original", verdict
    assert "no module of Lean's library" in verdict.detail


def test_the_name_of_an_option_is_no_text(
    tmp_path: Path, replayer: Replayer, compiled: Path
) -> None:
    root = small_project(tmp_path / "foo", Basic="def one := 1\n")
    with (root / "lakefile.toml").open("a") as lakefile:
        lakefile.write(f'leanOptions = {{ "{OPTION}" = 1000 }}\n')
    verdict = _judged(replayer, root, compiled, "import Foo.Basic\n", "exact bad")
    assert verdict.reason == "error", verdict
    assert "bad" in verdict.detail


def test_a_project_whose_theorem_got_past_its_kernel_proves_nothing(
    tmp_path: Path, replayer: Replayer, compiled: Path
) -> None:
    root = small_project(tmp_path / "foo", Evil=BAD)
    verdict = _judged(replayer, root, compiled, "import Foo.Evil\n", "exact bad")
    assert verdict.reason == "kernel", verdict


HELPER = """open Lean in
def helper (unused : Nat) (s : Syntax) : MacroM Syntax := do
  if s.isOfKind `a then return s else `(True.intro)
syntax "helped" term : term
macro_rules | `(helped $x) => helper 3 x
macro "plain" t:term : tactic => `(tactic| trivial)
"""


def test_code_of_other_modules_is_found_by_its_generated_names(
    tmp_path: Path, replayer: Replayer, compiled: Path
) -> None:
    """A function with an unused argument has code of another name."""
    using = "import Foo.Helper\ntheorem Foo.uses : True := helped 5\n"
    project = opened(small_project(tmp_path / "foo", Helper=HELPER, Uses=using), compiled)
    assert project.problem_of("Foo.Uses") == ""
    original = "import Foo.Helper\ntheorem t : True := by\n  sorry\n"
    with project_replayer(replayer, project) as checker:
        for proof in ("plain 5", "exact helped 5"):
            assert checker.text(original, original.replace("sorry", proof)).proved


@pytest.mark.parametrize("name", ["Leanc", "LakeMain"])
def test_no_module_takes_the_place_of_leans_own(tmp_path: Path, home: LeanHome, name: str) -> None:
    root = small_project(tmp_path / "foo")
    (root / f"{name}.lean").write_text("def mine := 1\n")
    with (root / "lakefile.toml").open("a") as lakefile:
        lakefile.write(f'[[lean_lib]]\nname = "{name}"\n')
    problem = opened(root, tmp_path / "cache").problem_of(name)
    assert problem.startswith(f"{name} has the name of a module of Lean's own")


def test_a_home_may_be_behind_a_link(tmp_path: Path, home: LeanHome) -> None:
    link = tmp_path / "lean"
    link.symlink_to(home.path.parent)
    with HostSession(replace(home, path=link / home.path.name)) as session:
        assert session.ping() >= 0


class _WithoutLibrary(LeanHome):
    """A Lean that loses its library after its start, by a new installation or a lost disk."""

    def launch(self) -> Launch:
        return Launch(command(self), "/", environment(self.path / IMAGE_FILE))


@pytest.fixture
def without_library(tmp_path: Path, home: LeanHome) -> Iterator[WasmCompiler]:
    place = tmp_path / "home"
    (place / "lib").mkdir(parents=True)
    shutil.copy(home.path / "lean.js", place)
    for name in ("lean.wasm", "lean.symbols", IMAGE_FILE):
        (place / name).symlink_to(home.path / name)
    with closing(WasmCompiler(lambda: _WithoutLibrary(place, home.node))) as compiler:
        yield compiler


def test_a_library_that_cannot_be_read_for_a_while_breaks_no_module_for_ever(
    without_library: WasmCompiler,
) -> None:
    # It imports nothing that a process does not start with: there is nothing to be read.
    assert without_library.compile("Foo.One", "def one := 1\n", (), ())
    with pytest.raises(CompileError, match="unknown module prefix 'Init'") as caught:
        without_library.compile("Foo.Two", "import Init.Data.List\ndef two := 2\n", (), ())
    assert caught.value.fault  # so it is not kept


pytestmark = pytest.mark.xdist_group("lean-projects")
