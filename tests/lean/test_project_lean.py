"""A Lake project with the bundled Lean: compiled, imported, proved, and lied about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.here import project_replayer
from tests.lean import lying_module
from tests.lean.hijacking import HONEST
from tests.lean.projects import BASIC, EVEN, SAMPLE, opened, small_project
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.project.project import Project
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.errors import MissingModule
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import Verdict

pytestmark = pytest.mark.xdist_group("lean-projects")


@pytest.fixture(scope="module")
def sample(compiled: Path) -> Project:
    return opened(SAMPLE, compiled)


@pytest.fixture(scope="module")
def session(home: LeanHome, sample: Project) -> Iterator[HostSession]:
    with HostSession(home, project=sample) as shared:
        yield shared


@pytest.fixture(scope="module")
def checker(replayer: Replayer, sample: Project) -> Iterator[Replayer]:
    with project_replayer(replayer, sample) as shared:
        yield shared


def source(name: str) -> str:
    return (SAMPLE / f"{name}.lean").read_text()


def proved(checker: Replayer, name: str, target: str, proof: str) -> Verdict:
    """Return the verdict on a proof in the place of the target's `sorry`."""
    text = source(name)
    start = text.index("sorry", text.index(target))
    candidate = text[:start] + proof + text[start + len("sorry") :]
    return checker.text(text, candidate, [f"Sample.{target}"])


def test_every_module_that_can_be_compiled_is_and_the_others_say_why(sample: Project) -> None:
    with sample.compiling():
        problems = {
            name: sample.problem_of(name)
            for name in (
                *("Sample", "Main", "Sample.Lists", "Sample.Modular", "Helper"),
                *(
                    "Sample.Broken",
                    "Sample.OnBroken",
                    "Sample.Absent",
                    "Sample.RingA",
                    "Sample.Meta",
                ),
            )
        }
    assert [name for name, why in problems.items() if not why] == [
        *("Sample", "Main", "Sample.Lists", "Sample.Modular", "Helper"),
        "Sample.Meta",
    ]
    assert problems["Sample.Broken"] == "Sample.Broken does not compile: line 3: Type mismatch"
    assert problems["Sample.OnBroken"].endswith("Type mismatch (imported by Sample.OnBroken)")
    assert "the package mathlib is not in" in problems["Sample.Absent"]
    assert problems["Sample.RingA"].startswith("a cycle of imports")


@pytest.mark.parametrize(
    ("name", "target", "proof"),
    [
        ("Sample/Left", "Even.double", "exact Even.add h h"),
        ("Sample/Right", "seed_is", "even_step; even_step; exact .zero"),
        ("Sample/Shapes", "Point.add_x_comm", "simp [Nat.add_comm]"),
        ("Sample/Top", "top", "exact Even.add left right"),
        ("Sample/Late", "swapped", "exact Helper.swap_swap p"),
        ("Sample/Lists", "append_nil_length", "simp"),
    ],
)
def test_proofs_on_top_of_project_modules_are_certified(
    checker: Replayer, sample: Project, name: str, target: str, proof: str
) -> None:
    verdict = proved(checker, name, target, proof)
    assert verdict.proved, verdict
    assert verdict.certificate is not None
    modules = sample.modules_for(sample.imports_of(source(name)))
    assert [(m.name, m.text, m.compiled) for m in verdict.certificate.modules] == [
        (m.name, m.source, m.digest) for m in modules
    ]


def test_a_proof_that_uses_an_imported_sorry_is_refused(checker: Replayer) -> None:
    verdict = proved(checker, "Sample/Top", "top_double", "exact Even.double right")
    assert verdict.reason == "sorry"
    assert (
        verdict.detail == "it rests on the sorry of Sample.Even.double, which is not in this text"
    )


def test_a_check_lists_declarations_that_rest_on_an_imported_sorry(session: HostSession) -> None:
    text = "import Sample.Left\ntheorem a : Sample.Even 4 := Sample.Even.double Sample.left\n"
    result = session.check(f"{text}theorem b : Sample.Even 2 := Sample.left\n")
    assert isinstance(result, CheckResult)
    assert not result.errors
    assert result.unproved == ("a",)


def test_private_names_stay_private_and_options_are_the_projects(session: HostSession) -> None:
    result = session.check("import Sample.Top\n#check Sample.seed\n")
    assert isinstance(result, CheckResult)
    assert "Sample.seed" in result.errors[0].text
    result = session.check("import Sample.Top\ntheorem t (x : Fin k) : x = x := rfl\n")
    assert isinstance(result, CheckResult)
    assert "autoImplicit" in result.errors[0].text


def test_an_import_that_fails_is_one_line(session: HostSession) -> None:
    for module in ("Sample.OnBroken", "Mathlib.Data.Nat.Basic", "Sample.RingB"):
        with pytest.raises(MissingModule) as error:
            session.check(f"import {module}\n")
        assert "\n" not in str(error.value)
    assert isinstance(session.check("import Sample.Basic\n"), CheckResult)


# -- lies -----------------------------------------------------------------------------------

Small = Callable[..., tuple[Path, Replayer]]


@pytest.fixture
def small(tmp_path: Path, replayer: Replayer, compiled: Path) -> Iterator[Small]:
    """A project of some modules, and a replay check for it."""
    started: list[Replayer] = []

    def make(**modules: str) -> tuple[Path, Replayer]:
        root = small_project(tmp_path / "foo", **modules)
        started.append(project_replayer(replayer, opened(root, compiled)))
        return root, started[-1]

    yield make
    for checker in started:
        checker.close()


def test_modules_that_change_what_a_statement_means_are_noticed(small: Small) -> None:
    _, checker = small(Evil=lying_module.EVIL + lying_module.WRONG, Basic=BASIC)
    lying_module.assert_nothing_is_believed(checker)


def test_a_module_edited_between_search_and_check_is_noticed(small: Small) -> None:
    root, checker = small(Basic=BASIC)
    candidate = EVEN.replace("sorry", "exact Foo.Even.add h h")
    assert checker.text(EVEN, candidate).proved
    (root / "Foo" / "Basic.lean").write_text(BASIC.replace("Even 0", "Even 1"))
    verdict = checker.text(EVEN, candidate)
    assert verdict.is_fault
    assert checker.stale
    assert (verdict.reason, verdict.detail) == (
        "stale",
        "Foo.Basic was edited since it was read: begin again",
    )


def test_code_of_one_module_changes_no_other_that_does_not_import_it(
    tmp_path: Path, home: LeanHome, hostile: tuple[Path, Path]
) -> None:
    """It runs in the process that compiles it, and could tell that where to find the library."""
    _, cache = hostile
    said: list[str] = []
    innocent = opened(small_project(tmp_path / "foo", Honest=HONEST), cache, said)
    with HostSession(home, project=innocent) as session:
        result = session.check("import Foo.Honest\nexample : P := trivial\n")
    assert isinstance(result, CheckResult)
    assert said == []  # it was compiled for the other project
    assert "Type mismatch" in result.errors[0].text
