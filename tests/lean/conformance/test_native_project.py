"""Modules of a project on the native host: compiled by its own Lean, imported, proved with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lean import native_projects
from treewright.lean.hosts.native.host import NativeHost
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.errors import MissingModule
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer

_MODULES = {
    "Foo/Basic.lean": "namespace Foo\n"
    "def double (n : Nat) : Nat := n + n\n"
    "theorem double_eq (n : Nat) : double n = 2 * n := by unfold double; omega\n"
    'notation:max "⟪" n "⟫" => double n\n'
    "end Foo\n",
    "Foo/Even.lean": "import Foo.Basic\n"
    "def Foo.Even (n : Nat) : Prop := ∃ k, n = double k\n"
    "axiom Foo.cheat : ∀ n, Foo.Even n\n"
    "theorem Foo.later (n : Nat) : Foo.Even n := by sorry\n",
}
_ORIGINAL = """import Foo.Even
open Foo

theorem even_two_mul (n : Nat) : Even (2 * n) := by
  sorry
"""


@pytest.fixture(scope="module")
def built(native: NativeHost, tmp_path_factory: pytest.TempPathFactory) -> NativeHost:
    return native_projects.built(native, tmp_path_factory.mktemp("project"), _MODULES)


@pytest.fixture(scope="module")
def replaying(built: NativeHost) -> Iterator[Replayer]:
    with Replayer(built) as replayer:
        yield replayer


def test_modules_of_the_project_are_imported(built: NativeHost) -> None:
    with HostSession(built, ["Foo.Even"]) as session:
        result = session.check("import Foo.Even\nopen Foo\nexample : ⟪2⟫ = 4 := rfl\n")
        assert isinstance(result, CheckResult)
        assert result.ok, result
        assert [d.module for d in session.declarations("Foo.double_eq")] == ["Foo.Basic"]
        with pytest.raises(MissingModule, match="run lake build"):
            session.check("import Foo.Absent\n")


def test_a_proof_with_them_is_certified(replaying: Replayer) -> None:
    proof = "exact ⟨n, (double_eq n).symm⟩"
    verdict = replaying.text(_ORIGINAL, _ORIGINAL.replace("sorry", proof))
    assert verdict.proved, verdict
    assert verdict.certificate is not None
    assert verdict.certificate.targets == ("even_two_mul",)


def test_an_axiom_of_a_module_does_not_become_a_proof(replaying: Replayer) -> None:
    verdict = replaying.text(_ORIGINAL, _ORIGINAL.replace("sorry", "exact cheat _"))
    assert (verdict.reason, verdict.axioms) == ("axiom", ("Foo.cheat",))


def test_a_proof_that_uses_an_imported_sorry_is_refused(replaying: Replayer) -> None:
    verdict = replaying.text(_ORIGINAL, _ORIGINAL.replace("sorry", "exact later _"))
    assert verdict.reason == "sorry", verdict
    assert verdict.detail == "it rests on the sorry of Foo.later, which is not in this text"


def test_an_import_more_is_refused(replaying: Replayer) -> None:
    original = _ORIGINAL.replace("import Foo.Even", "import Foo.Basic").replace(
        "Even (2 * n)", "double n = 2 * n"
    )
    candidate = original.replace("import Foo.Basic", "import Foo.Even").replace(
        "sorry", "exact double_eq n"
    )
    assert replaying.text(original, candidate).reason in ("escape", "error")
