"""Blueprints: reading, drift, and bytes that stay unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.orchestrator.test_ledger import attempt
from treewright.kernel.errors import UsageError
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.blueprint import latex, sync
from treewright.orchestrator.blueprint.sync import (
    inspect_declarations,
    proved_in_ledger,
    with_ledger_proofs,
)
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.marketplace.market import Marketplace
from treewright.orchestrator.types import PROJECT_CLASS

pytestmark = pytest.mark.xdist_group("lean-session")

CONTENT = r"""\chapter{One}
% \begin{theorem}\lean{Commented.out}\leanok\end{theorem}
\input{more}
\begin{theorem}[Title with {braces]}]
  \label{thm:sum}
  \uses{def:double, % a comment with \uses{x}
        thm:nowhere}
  \lean{Demo.sum_comm,
    Demo.sum_zero}
  Sums commute, 100\% of them.
\end{theorem}
\begin{proof}
  \uses{def:double}
  By arithmetic. \verb|\leanok|
\end{proof}

\begin{lemma}\label{lem:open}\lean{Demo.open_end}\leanok
Not done.
\end{lemma}
\begin{proof}\leanok
  Wishful.
\end{proof}
\begin{verbatim}
\begin{theorem}\lean{In.verbatim}\end{theorem}
\end{verbatim}
\begin{corollary}\lean{Demo.gone}
  \leanok
  \begin{enumerate}\item one\end{enumerate}
\end{corollary}
"""
MORE = (
    "\\begin{definition}\\label{def:double}\r\n  \\lean{Demo.double}Doubling caf\xe9.\r\n"
    "\\end{definition}\r\n"
)
LEAN = """
namespace Demo
def double (n : Nat) : Nat := n + n
theorem sum_comm (a b : Nat) : a + b = b + a := Nat.add_comm a b
theorem sum_zero (a : Nat) : a + 0 = a := rfl
theorem open_end (a : Nat) : a = a := by sorry
end Demo
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    source = tmp_path / "blueprint" / "src"
    source.mkdir(parents=True)
    (source / "content.tex").write_bytes(CONTENT.encode())
    (source / "more.tex").write_bytes(MORE.encode("latin-1"))  # not UTF-8, and CRLF
    (tmp_path / "Demo.lean").write_text(LEAN)
    (tmp_path / "lakefile.toml").write_text('name = "demo"\n')
    return tmp_path


def read(project: Path) -> latex.Blueprint:
    return latex.read(sync.find_entry_file(project))


def test_what_is_read(project: Path) -> None:
    definition, theorem, lemma, corollary = read(project).statements
    assert (definition.label, definition.lean) == ("def:double", ["Demo.double"])
    assert theorem.label == "thm:sum"
    assert theorem.lean == ["Demo.sum_comm", "Demo.sum_zero"]
    assert theorem.uses == ["def:double", "thm:nowhere"]
    assert theorem.leanok == []
    assert theorem.proof is not None
    assert (theorem.proof.uses, theorem.proof.leanok) == (["def:double"], [])
    assert lemma.proof is not None
    assert (len(lemma.leanok), len(lemma.proof.leanok)) == (1, 1)
    assert (corollary.proof, len(corollary.leanok)) == (None, 1)


def test_proofs_elsewhere_custom_environments_and_loops(tmp_path: Path) -> None:
    (tmp_path / "content.tex").write_text(
        r"\newtheorem{satz}{Satz}\input{content}\input{absent}"
        r"\begin{satz}\label{a}\lean{A}\end{satz}\begin{satz*}\label{b}\lean{B}\end{satz*}"
        r"\begin{proof}\proves{a}\leanok\end{proof}\begin{theorem"
    )
    blueprint = latex.read(tmp_path / "content.tex")
    first, second = blueprint.statements
    assert first.proof is not None
    assert first.proof.leanok
    assert second.proof is None
    assert len(blueprint.problems) == 2
    with pytest.raises(UsageError, match="no blueprint"):
        sync.find_entry_file(tmp_path / "nowhere")


@pytest.fixture
def own_lean(home: LeanHome) -> Iterator[HostSession]:
    """Return a session of its own: one that hundreds of tests have used may run out of bounds."""
    with HostSession(home) as session:
        yield session


def test_lean_s_word_on_every_declaration(
    own_lean: HostSession, replayer: Replayer, project: Path
) -> None:
    lean = own_lean
    wanted = sync.declared_names(read(project)) | {"Nat.add_comm"}
    states, problems = inspect_declarations(lean, replayer, project, wanted)
    assert problems == []
    assert states == {
        "Demo.double": "verified",
        "Demo.sum_comm": "verified",
        "Demo.sum_zero": "verified",
        "Demo.open_end": "sorry",
        "Demo.gone": "absent",
        "Nat.add_comm": "verified",
    }
    (project / "Cheat.lean").write_text(
        "axiom false' : False\ntheorem Demo.cheat : 1 = 2 := false'.elim\n"
    )
    (project / "Heavy.lean").write_text("import Mathlib\n")
    (project / "Broken.lean").write_text("theorem Demo.broken : 1 = 1 := by nonsense\n")
    states, problems = inspect_declarations(
        lean, replayer, project, {"Demo.cheat", "Demo.gone", "Demo.broken"}
    )
    assert states == {"Demo.cheat": "axiom", "Demo.gone": "unknown", "Demo.broken": "sorry"}
    assert len(problems) == 2


def test_what_only_the_judge_refuses_is_not_verified(
    lean: HostSession, replayer: Replayer, project: Path
) -> None:
    """Compiler trust shows in no list of axioms; the judge knows it."""
    (project / "Trust.lean").write_text(
        "theorem Demo.trust : Lean.reduceBool System.Platform.isEmscripten = true := rfl\n"
    )
    states, problems = inspect_declarations(
        lean, replayer, project, {"Demo.trust", "Demo.sum_zero"}
    )
    assert states == {"Demo.trust": "axiom", "Demo.sum_zero": "verified"}
    (problem,) = problems
    assert "Demo.trust is not proved: it rests on Lean.reduceBool" in problem


def test_drift_and_marks_that_become_true(
    lean: HostSession, replayer: Replayer, project: Path
) -> None:
    blueprint = read(project)
    states, _ = inspect_declarations(lean, replayer, project, sync.declared_names(blueprint))
    held = sync.assess(blueprint, states, {"Demo.open_end"}, project)
    (entry,) = [entry for entry in held.entries if entry.label == "lem:open"]
    assert entry.drift == ("proved_in_ledger:Demo.open_end",), "its mark stays"
    assessment = sync.assess(blueprint, states, (), project)
    assert len(held.edits) == len(assessment.edits) - 1
    drift = {entry.label or "corollary": entry.drift for entry in assessment.entries}
    assert drift == {
        "def:double": ("statement_not_marked",),
        "thm:sum": ("statement_not_marked", "proof_not_marked", "uses_undefined:thm:nowhere"),
        "lem:open": ("proof_marked_but_open",),
        "corollary": ("absent:Demo.gone", "statement_marked_but_absent"),
    }
    assert len(sync.write_edits(blueprint, assessment)) == 2
    source = project / "blueprint" / "src"
    expected = (
        CONTENT.replace("    Demo.sum_zero}\n", "    Demo.sum_zero}\n    \\leanok\n")
        .replace("\\begin{proof}\n  \\uses", "\\begin{proof}\n  \\leanok\n  \\uses")
        .replace("\\begin{proof}\\leanok", "\\begin{proof}")
        .replace("Demo.gone}\n  \\leanok\n", "Demo.gone}\n")
    )
    assert (source / "content.tex").read_bytes() == expected.encode()
    assert (source / "more.tex").read_bytes() == MORE.replace(
        "Demo.double}", "Demo.double}\r\n  \\leanok "
    ).encode("latin-1")
    again = sync.assess(read(project), states, (), project)
    assert again.edits == ()


@pytest.mark.parametrize(("script", "accepted"), [("rfl", True), ("omega +nonsense", False)])
def test_a_proof_of_the_ledger_marks_what_it_proves_if_it_replays(
    lean: HostSession, replayer: Replayer, project: Path, script: str, accepted: bool
) -> None:
    """The ledger is a file that anyone may have changed: its proof is replayed first."""
    path = project / ".treewright" / "ledger.db"
    with Ledger(path) as ledger:
        ledger.record(
            [
                attempt(
                    "k", "proved", goal_id="Demo.lean:Demo.open_end", goal_class=PROJECT_CLASS,
                    tactics=(script,),
                )
            ]
        )  # fmt: skip
    (project / "blueprint" / "src" / "content.tex").write_text(
        "\\begin{lemma}\\label{l}\\lean{Demo.open_end}\nNot done.\n\\end{lemma}\n"
        "\\begin{proof}\n  By ledger.\n\\end{proof}\n"
    )
    blueprint = read(project)
    wanted = sync.declared_names(blueprint)
    states, _ = inspect_declarations(lean, replayer, project, wanted)
    states = with_ledger_proofs(states, lean, replayer, project, path)
    assert states == {"Demo.open_end": "in_ledger" if accepted else "sorry"}
    assessment = sync.assess(blueprint, states, proved_in_ledger(path, wanted), project)
    (entry,) = assessment.entries
    marks = ("statement_not_marked", "proof_not_marked") if accepted else ()
    assert entry.drift == (*marks, "proved_in_ledger:Demo.open_end")
    sync.write_edits(blueprint, assessment)
    text = (project / "blueprint" / "src" / "content.tex").read_text()
    assert text.count("\\leanok") == (2 if accepted else 0)


def test_what_lean_could_not_see_is_left_alone(project: Path) -> None:
    blueprint = read(project)
    unknown: dict[str, sync.State] = dict.fromkeys(sync.declared_names(blueprint), "unknown")
    assessment = sync.assess(blueprint, unknown, (), project)
    assert assessment.edits == ()
    assert all(entry.drift for entry in assessment.entries)


@pytest.mark.parametrize(
    "text",
    ["\\begin{proof}x\\end{proof}", "\\begin{proof}\n\n  x", "  \\lean{A}\n", "a\\lean{A}b"],
)
def test_a_mark_that_is_added_and_removed_leaves_no_trace(text: str) -> None:
    at = text.index("}") + 1
    added = sync.apply_edits(text, [sync.Edit(Path(), at, at)])
    start = added.index("\\leanok")
    removed = sync.apply_edits(added, [sync.Edit(Path(), start, start + len("\\leanok"))])
    assert removed.replace("\n", "").replace(" ", "") == text.replace("\n", "").replace(" ", "")
    assert added.replace("\\leanok", "").split() == text[:at].split() + text[at:].split()


def test_the_ledger_knows_tickets(tmp_path: Path, lean: HostSession) -> None:
    class Accepting:
        """Stands for the replay check, which other tests try."""

        def text(self, *_: object, **__: object) -> Verdict:
            return Verdict("proved")

    path = tmp_path / "ledger.db"
    assert proved_in_ledger(path, {"wanted"}) == set()

    async def fill(marketplace: Marketplace) -> None:
        await marketplace.request_lemma("2 = 2", suggested_name="other")
        ticket = await marketplace.request_lemma("1 = 1", suggested_name="wanted")
        await marketplace.complete_ticket(ticket, "rfl", "me")

    with Marketplace(path, checker=Accepting(), parser=lean) as marketplace:
        asyncio.run(fill(marketplace))
    assert proved_in_ledger(path, {"wanted", "other"}) == {"wanted"}


def test_the_command(project: Path, treewright_here: Callable[..., CompletedProcess[str]]) -> None:
    done = treewright_here("blueprint", str(project), "--write", "--json")
    assert done.returncode == 1, "what writing cannot settle is still there"
    document = json.loads(done.stdout)
    assert len(document["written"]) == 2
    assert document["entries"][0]["lean"] == {"Demo.double": "verified"}
