"""What works through a project does so in the order of imports; other commands know its modules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.here import Program
from tests.lean.projects import BASIC, EVEN, small_project
from treewright.lean.project import module_store, workspace

pytestmark = pytest.mark.xdist_group("lean-projects")

Z = "import Foo.Basic\ntheorem Foo.z : 1 + 1 = 2 := by sorry\n"
A = "import Foo.Z\ntheorem Foo.a : 2 + 2 = 4 := by sorry\n"
BLUEPRINT = r"""\begin{theorem}\lean{Foo.Even.add}
\end{theorem}
\begin{proof}\leanok\end{proof}
\begin{theorem}\lean{Foo.Even.double}\leanok
\end{theorem}
\begin{proof}\leanok\end{proof}
"""


@pytest.fixture
def root(tmp_path: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module_store, "cache_directory", lambda: compiled)
    return small_project(tmp_path / "foo", Basic=BASIC, Even=EVEN, A=A, Z=Z)


def test_bg_goes_in_the_order_of_imports(root: Path, treewright_here: Program) -> None:
    (root / "Foo" / "Even.lean").unlink()
    patient = ("--cpu-target", "1000", "--strategy", "micro", "--strategy-timeout", "micro=300")
    done = treewright_here("bg", ".", "--once", "--in-place", "--json", *patient, cwd=root)
    assert done.returncode == 0, done.stderr
    proved = [p["declaration"] for p in json.loads(done.stdout)["proved"]]
    assert proved == ["Foo.z", "Foo.a"]
    assert "sorry" not in (root / "Foo" / "A.lean").read_text()


def test_files_are_ordered_where_no_lean_is_asked(root: Path, tmp_path: Path) -> None:
    files = sorted((root / "Foo").glob("*.lean"))
    names = [path.stem for path in workspace.by_written_imports(root, files)]
    assert names == ["Basic", "Z", "A", "Even"]
    assert workspace.by_written_imports(tmp_path, files) == files


def test_a_ticket_may_import_modules(root: Path, treewright_here: Program) -> None:
    asked = treewright_here(
        "tickets", "request", "Foo.Even 2", "--import", "Foo.Basic", "--json", cwd=root
    )
    assert asked.returncode == 0, asked.stderr
    ticket = json.loads(asked.stdout)["ticket_id"]
    proof = root / "proof.txt"
    for script, code in (("exact .zero\n", 1), ("exact .step .zero\n", 0)):
        proof.write_text(script)
        done = treewright_here("tickets", "complete", ticket, str(proof), cwd=root)
        assert done.returncode == code, done.stderr
    shown = treewright_here("tickets", "show", ticket, "--json", cwd=root)
    assert json.loads(shown.stdout)["status"] == "completed"


def test_premises_of_a_module(root: Path, treewright_here: Program, tmp_path: Path) -> None:
    index = ("--path", str(tmp_path / "index"), "--lexical")
    imports = ("--import", "Foo.Basic")
    built = treewright_here(
        "premises", "build", *imports, "--module", "Foo", *index, "--json", cwd=root
    )
    assert built.returncode == 0, built.stderr
    assert json.loads(built.stdout)["premises"] > 0
    found = treewright_here(
        "premises", "search", "Foo.Even (m + n)", *imports, *index, "--json", cwd=root
    )
    assert "Foo.Even.add" in [premise["name"] for premise in json.loads(found.stdout)]


def test_a_blueprint_of_a_project(root: Path, treewright_here: Program) -> None:
    source = root / "blueprint" / "src"
    source.mkdir(parents=True)
    (source / "content.tex").write_text(BLUEPRINT)
    done = treewright_here("blueprint", ".", "--json", "--lean", "wasm", cwd=root)
    assert done.returncode == 1, done.stderr
    entries = json.loads(done.stdout)["entries"]
    drift = {next(iter(entry["lean"])): entry["drift"] for entry in entries}
    assert drift == {
        "Foo.Even.add": ["statement_not_marked"],
        "Foo.Even.double": ["proof_marked_but_open"],
    }
