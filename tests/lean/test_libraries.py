"""Projects like the libraries that users have: modules, their metaprograms, included files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.here import project_replayer
from tests.lean.projects import opened, small_project
from treewright.lean import extract_sorries, replace_sorry
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.project.included_files import files_for_text, included_files
from treewright.lean.project.project import Project
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.errors import MissingModule
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer

pytestmark = pytest.mark.xdist_group("lean-projects")

META = """module
public meta import Lean.Elab.Command
public meta section
open Lean Elab Command Tactic
initialize marked : SimplePersistentEnvExtension Name NameSet ←
  registerSimplePersistentEnvExtension {
    addEntryFn := NameSet.insert
    addImportedFn := fun all => all.foldl (fun s names => names.foldl NameSet.insert s) {} }
initialize registerBuiltinAttribute {
  name := `marked
  descr := "remembers a declaration"
  add := fun name _ _ => modifyEnv (marked.addEntry · name) }
elab "closes" : tactic => do (← getMainGoal).assumption
syntax "each![" term,* "]" : term
macro_rules | `(each![$xs,*]) => `([$xs,*])
elab "#marked" : command => do
  logInfo m!"{(marked.getState (← getEnv)).toList}"
end
"""
BASE = """module
public import Foo.Meta
@[expose] public section
namespace Foo
@[marked] def shown (n : Nat) : Nat := n + 1
end Foo
end
def Foo.inner (n : Nat) : Nat := n + 2
public def Foo.outer (n : Nat) : Nat := Foo.inner n
def Foo.inside := 3
theorem Foo.same : True := trivial
"""
OTHER = """module
public import Foo.Base
import all Foo.Base
theorem Foo.same : True := trivial
theorem Foo.outer_eq (n : Nat) : Foo.outer n = Foo.inner n := rfl
theorem Foo.inside_eq : Foo.inside = 3 := rfl
public theorem Foo.kept (n : Nat) : Foo.shown n = n + 1 := rfl
#marked
"""
USER = """module
import Foo.Base
import Foo.Other
public theorem goal (p : Prop) (h : p) : p ∧ each![1, 2] = [1, 2] := by
  sorry
theorem marks (n : Nat) : Foo.shown n = 1 + n := by
  sorry
"""


def _checked(session: HostSession, text: str) -> CheckResult:
    result = session.check(text)
    assert isinstance(result, CheckResult), result
    return result


@pytest.fixture
def library(tmp_path: Path, compiled: Path) -> Project:
    root = small_project(tmp_path / "foo", Meta=META, Base=BASE, Other=OTHER, User=USER)
    return opened(root, compiled)


def test_modules_import_modules_with_scopes_attributes_and_metaprograms(
    home: LeanHome, library: Project
) -> None:
    with HostSession(home, project=library) as session:
        result = _checked(session, OTHER)
        assert result.errors == ()
        assert [d.text for d in result.diagnostics] == ["[Foo.shown]"]
        assert _checked(session, USER).unproved == ("goal", "marks")
        # A private name of another module is found by `import all` alone.
        hidden = "module\nimport Foo.Base\nexample : Foo.inside = 3 := rfl\n"
        assert _checked(session, hidden).errors
        assert not _checked(session, hidden.replace("import Foo", "import all Foo")).errors


def test_proofs_by_a_librarys_tactics_are_certified(
    replayer: Replayer, home: LeanHome, library: Project
) -> None:
    with HostSession(home, project=library) as session:
        places = {place.declaration: place for place in extract_sorries(session, USER)}
    proof = "constructor\ncloses\nrfl"
    with project_replayer(replayer, library) as checker:
        verdict = checker.text(USER, replace_sorry(USER, places["goal"], proof), ["goal"])
        assert verdict.proved, verdict
        proof = "simp [Foo.shown, Nat.add_comm]"
        verdict = checker.text(USER, replace_sorry(USER, places["marks"], proof), ["marks"])
        assert verdict.proved, verdict
        assert verdict.certificate is not None
        assert [module.name for module in verdict.certificate.modules] == [
            "Foo.Meta",
            "Foo.Base",
            "Foo.Other",
        ]
        wrong = replace_sorry(USER, places["marks"], "exact (Foo.kept n).trans (by sorry)")
        assert not checker.text(USER, wrong, ["marks"]).proved


LACKING = """module
import all Init.Control.Reader
public theorem broken (x y : ReaderT Nat Option Nat) (n : Nat) :
    (x <|> y).run n = (x.run n <|> y.run n) := (rfl)
public theorem works (n : Nat) : n + 0 = n := rfl
"""


def test_what_the_bundled_lean_lacks_leaves_the_rest_of_a_module(
    tmp_path: Path, compiled: Path, home: LeanHome, replayer: Replayer
) -> None:
    said: list[str] = []
    wrong = 'def wrong : Nat := "x"\ndef right := 1\n'
    project = opened(small_project(tmp_path / "foo", Lacks=LACKING, Wrong=wrong), compiled, said)
    text = "import Foo.Lacks\ntheorem t (n : Nat) : n + 0 = n := by\n  sorry\n"
    with project_replayer(replayer, project) as checker:
        assert checker.text(text, text.replace("sorry", "exact works n"), ["t"]).proved
        false = "import Foo.Lacks\ntheorem t (x y : ReaderT Nat Option Nat) (n : Nat) : "
        false += "(x <|> y).run n = (x.run n <|> y.run n) := by\n  sorry\n"
        refused = checker.text(false, false.replace("sorry", "exact broken x y n"), ["t"])
        assert (refused.reason, refused.detail) == (
            "sorry",
            "it rests on the sorry of broken, which is not in this text",
        )
    assert (
        "Foo.Lacks has open parts: line 4: Type mismatch; the bundled Lean lacks the private "
        "scope of Init.Control.Reader" in said
    )
    newer = "def wrong := Lean.not_there\ntheorem right : True := trivial\n"
    project = opened(small_project(tmp_path / "newer", Newer=newer, Wrong=wrong), compiled, said)
    assert project.problem_of("Foo.Newer") == ""
    assert said[-1].endswith("the bundled Lean lacks Lean.not_there, which the release may have")
    with HostSession(home, project=project) as session, pytest.raises(MissingModule):
        session.check("import Foo.Wrong\n")  # its error has nothing to do with the bundled Lean


def test_included_files_are_those_of_the_project(
    tmp_path: Path, compiled: Path, home: LeanHome
) -> None:
    text = 'def data : String := include_str "../data/some.txt"\n'
    root = small_project(tmp_path / "foo", Data=text)
    (root / "data").mkdir()
    (root / "data" / "some.txt").write_text("four")
    (tmp_path / "secret.txt").write_text("secret")
    user = "import Foo.Data\nexample : data.length = 4 := by decide\n"
    with HostSession(home, project=opened(root, compiled)) as session:
        assert _checked(session, user).errors == ()
        assert _checked(session, text).errors == ()
        outside = text.replace("../data/some", "../../secret")
        (root / "Foo" / "Outside.lean").write_text(outside)
        assert "no such file" in _checked(session, outside).errors[0].text
    (root / "data" / "some.txt").write_text("fives")
    project = opened(root, compiled)
    with HostSession(home, project=project) as session:
        assert _checked(session, user).errors, "the module was compiled with another file"
    assert project.changed() == ""
    (root / "data" / "some.txt").write_text("sixsix")
    assert project.changed() == "Foo.Data"


def test_a_file_that_two_texts_include_by_one_path_is_not_guessed(tmp_path: Path) -> None:
    text = 'def data : String := include_str "some.txt"\n'
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Text.lean").write_text(text)
        (tmp_path / name / "some.txt").write_text("the same")
    (found,) = files_for_text(text, tmp_path)
    assert (found.path, found.data) == ("some.txt", b"the same")
    (tmp_path / "b" / "some.txt").write_text("another")
    assert files_for_text(text, tmp_path) == ()
    assert included_files(text, tmp_path / "a", tmp_path / "b") == ()
