"""Native projects with lying modules: the judge reads no text, and imports no project module."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest

from tests.lean import lying_module, native_projects
from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.verify.judge import Judge
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict


def adds(name: str, type_: str) -> str:
    """Commands that add a theorem which no kernel has looked at."""
    return f"""open Lean Elab Command in
set_option debug.skipKernelTC true in
run_cmd
  liftCoreM <| addDecl <| .thmDecl
    {{ name := `{name}, levelParams := [], type := {type_}, value := mkConst ``True.intro }}
"""


BAD = "import Lean.Elab.Command\n" + adds("bad", "mkConst ``False")
ONE_IS_TWO = "mkApp3 (mkConst ``Eq [levelOne]) (mkConst ``Nat) (mkNatLit 1) (mkNatLit 2)"


def judged(host: NativeHost, header: str, proof: str) -> Verdict:
    original = f"{header}theorem t : False := by\n  sorry\n"
    with Replayer(host) as checker:
        return checker.text(original, original.replace("sorry", proof), ["t"])


@pytest.fixture(scope="module")
def evil(native: NativeHost, tmp_path_factory: pytest.TempPathFactory) -> NativeHost:
    modules = {
        "Foo/Evil.lean": BAD,
        "Foo/Mid.lean": "import Foo.Evil\ntheorem middle : False := bad\n",
    }
    return native_projects.built(native, tmp_path_factory.mktemp("evil"), modules)


@pytest.mark.parametrize(
    ("header", "proof"),
    [
        ("import Foo.Evil\n", "exact bad"),
        ("import Foo.Mid\n", "exact middle"),
        (BAD, "exact bad"),
    ],
)
def test_an_unchecked_theorem_proves_nothing(evil: NativeHost, header: str, proof: str) -> None:
    verdict = judged(evil, header, proof)
    assert verdict.reason == "kernel", verdict
    assert verdict.detail.startswith("bad: ")


def test_a_module_is_not_the_librarys_because_of_its_name(evil: NativeHost) -> None:
    """The judge imports modules of the library and of packages only."""
    judge = evil.judging()
    assert str(evil.project) not in judge.launch().environment["LEAN_PATH"]
    assert not judge.is_library("Lean.«../../Foo/Evil»")
    assert not judge.is_library("..Foo")
    assert judge.is_library("Mathlib.Data.«A-b».C1")


def test_a_package_counts_as_it_is_compiled(native: NativeHost, tmp_path: Path) -> None:
    modules = {
        ".lake/packages/dep/Dep.lean": "theorem Dep.one : 1 = 1 := rfl\naxiom Dep.cheat : 1 = 2\n",
        "Foo.lean": "import Dep\ntheorem Foo.one : 1 = 1 := Dep.one\n",
    }
    host = native_projects.built(native, tmp_path, modules)
    original = "import Foo\ntheorem t : 1 = 1 := by\n  sorry\ntheorem u : 1 = 2 := by sorry\n"
    with Replayer(host) as checker:
        candidate = original.replace("by\n  sorry", "Foo.one")
        verdict = checker.text(original, candidate, ["t"])
        assert verdict.proved, verdict
        assert verdict.certificate is not None
        assert verdict.certificate.constants == 2  # t and Foo.one; Dep.one is imported
        cheated = original.replace("by sorry", "Dep.cheat")
        assert checker.text(original, cheated, ["u"]).reason == "axiom"


def test_modules_that_change_what_a_statement_means_are_noticed(
    native: NativeHost, tmp_path: Path
) -> None:
    evil = "import Lean.Elab.Command\n" + lying_module.EVIL + adds("Foo.wrong", ONE_IS_TWO)
    modules = {"Foo/Evil.lean": evil, "Foo/Basic.lean": "def Foo.one := 1\n"}
    with Replayer(native_projects.built(native, tmp_path, modules)) as checker:
        lying_module.assert_nothing_is_believed(checker)


ONE = {"Foo.lean": "theorem Foo.one : 1 = 1 := rfl\n"}
USES_ONE = "import Foo\ntheorem t : 1 = 1 := by\n  sorry\n"


@pytest.mark.parametrize("edited", ["Foo.lean", ".lake/build/lib/Foo.olean"])
def test_a_module_edited_between_search_and_check_is_noticed(
    native: NativeHost, tmp_path: Path, edited: str
) -> None:
    host = native_projects.built(native, tmp_path, ONE)
    candidate = USES_ONE.replace("sorry", "exact Foo.one")
    with Replayer(host) as checker:
        first = checker.text(USES_ONE, candidate)
        assert first.proved, first
        assert first.certificate is not None
        assert [module.name for module in first.certificate.modules] == ["Foo"]
        (tmp_path / edited).touch()
        verdict = checker.text(USES_ONE, candidate)
    assert verdict.is_fault
    assert verdict.detail == f"{tmp_path / edited} was changed since it was read: begin again"


def test_a_module_that_changes_a_package_while_it_is_imported_is_noticed(
    native: NativeHost, tmp_path: Path
) -> None:
    """Its code runs with the user's rights before the judge imports the package."""
    package = tmp_path / ".lake" / "packages" / "dep" / ".lake" / "build" / "lib" / "Dep.olean"
    evil = f"""import Dep
initialize do
  let place : System.FilePath := "{package}"
  if ← System.FilePath.pathExists "{tmp_path / "armed"}" then
    IO.FS.writeBinFile place (← IO.FS.readBinFile place)
"""
    modules = {
        ".lake/packages/dep/Dep.lean": "theorem Dep.one : 1 = 1 := rfl\n",
        "Foo.lean": evil,
    }
    host = native_projects.built(native, tmp_path, modules)
    candidate = USES_ONE.replace("sorry", "exact Dep.one")
    with Replayer(host) as checker:
        assert checker.text(USES_ONE, candidate).proved
    (tmp_path / "armed").touch()
    with Replayer(host) as checker:
        verdict = checker.text(USES_ONE, candidate)
    assert (verdict.reason, verdict.is_fault) == ("stale", True), verdict
    assert str(package) in verdict.detail


def test_a_module_that_the_manifest_does_not_list_is_judged_as_data(
    native: NativeHost, tmp_path: Path
) -> None:
    """A lakefile may have the project's own modules compiled there: the manifest has them not."""
    host = native_projects.built(native, tmp_path, {".lake/packages/self/Foo/Evil.lean": BAD})
    (tmp_path / "lake-manifest.json").write_text('{"packages": []}')
    host = dataclasses.replace(host, trusted_files=None).with_trusted_files()
    verdict = judged(host, "import Foo.Evil\n", "exact bad")
    assert verdict.reason == "kernel", verdict


def test_a_package_runs_no_code_in_a_judge(native: NativeHost, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    dep = f"""initialize do
  let place ← IO.FS.Handle.mk "{ran}" .append
  place.putStrLn "once"
theorem Dep.one : 1 = 1 := rfl
"""
    host = native_projects.built(native, tmp_path, {".lake/packages/dep/Dep.lean": dep})
    with Judge(host.judging()) as judge:
        data = msgspec.Raw(b'{"names":[],"levels":[],"exprs":[],"declarations":[]}')
        original = {"library": ["Init", "Dep"], "original": data, "implemented": []}
        (ruling,) = judge.rule_each(original, data, [], 60, ["t"])
    assert ruling.reason == "missing"
    assert not ran.exists()
