"""Candidates with the same code count once; equal scores of different code are a tie."""

from __future__ import annotations

import shutil

import pytest

from tests.toy import ToyRepository, diff_of_line, idea
from tests.tree.runs import RUN_ID
from treewright.tree.ideas.search_history import Outcomes
from treewright.tree.records import store
from treewright.tree.records.model import Manifest
from treewright.tree.report import write_report
from treewright.tree.repository.formatting import code_digests, python_key
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate

POLICIES = pytest.mark.parametrize("policy", [None, "best-first"])


def run(toy: ToyRepository, policy: str | None, *, width: int = 2, **shape: int) -> Manifest:
    given = {"sweep_config_limit": 8, "max_depth": 1, "ideas_per_node": 2} | shape
    if policy is not None:
        given["max_total_idea_evals"] = 2
    beam = width if policy is None else None
    request = RunRequest(
        toy.path,
        RUN_ID,
        shape=Shape(**given, beam_width=beam),
        choosing=PolicyChoice(policy=policy),
    )
    with open_run(request) as coordinator:
        coordinator.finish()
    assert validate(toy.run_dir(RUN_ID), toy.path) == []
    return store.load(toy.run_dir(RUN_ID))


def fates(manifest: Manifest) -> list[str]:
    return [e.decision.fate for e in manifest.evaluations.values() if e.decision]


def only_ideas(toy: ToyRepository, *changes: str) -> None:
    shutil.rmtree(toy.path / "ideas")
    for number, change in enumerate(changes):
        toy.write(f"ideas/{number}.md", idea(f"Idea {number}", change))
    toy.commit("ideas")


@POLICIES
def test_equal_results_over_many_configs_count_once(toy: ToyRepository, policy: str | None) -> None:
    spellings = ("A 2.0", "A 2.00")
    only_ideas(toy, *(diff_of_line("params.txt", "A 1.0", after, 1) for after in spellings))
    manifest = run(toy, policy, confirm_configs=4)
    assert fates(manifest) == ["promoted", "duplicate_results"]
    assert len(manifest.nodes) == 2
    report = write_report(toy.run_dir(RUN_ID), manifest).read_text()
    assert "same results as another" in report


def one_number(toy: ToyRepository) -> None:
    """Create a repository with a Python program that is measured by one number."""
    toy.write("program.py", "left = 1.0\n# keep\nright = 1.0\n# keep\n")
    toy.write(
        "sweep.sh",
        'python3 -c \'exec(open("program.py").read())\n'
        'print("config_id,status,loss,cost")\nprint(f"0,ok,{10 - left - right},1")\''
        ' > "$TREEWRIGHT_RESULTS_CSV"\n',
    )
    toy.write("baseline.csv", "config_id,status,loss,cost\n0,ok,8.0,1\n")
    config = (toy.path / "treewright.toml").read_text()
    toy.write(
        "treewright.toml", config.replace("primary = true", "primary = true\ndeterministic = true")
    )


@POLICIES
def test_equal_scores_of_different_ideas_are_a_tie(toy: ToyRepository, policy: str | None) -> None:
    one_number(toy)
    only_ideas(
        toy,
        diff_of_line("program.py", "left = 1.0", "left = 1.25", 1),
        diff_of_line("program.py", "right = 1.0", "right = 1.25", 3),
    )
    assert fates(run(toy, policy, sweep_config_limit=1)) == ["promoted", "promoted"]


@POLICIES
def test_equal_scores_of_code_that_is_the_same_after_formatting_count_once(
    toy: ToyRepository, policy: str | None
) -> None:
    one_number(toy)
    only_ideas(
        toy,
        diff_of_line("program.py", "left = 1.0", "left = 1.25", 1),
        diff_of_line("program.py", "left = 1.0", "left = (1.250)  # larger", 1),
    )
    manifest = run(toy, policy, sweep_config_limit=1)
    assert fates(manifest) == ["promoted", "duplicate_results"]


def test_a_tie_beyond_the_beam_is_not_listed_as_an_idea_to_avoid(
    toy: ToyRepository,
) -> None:
    one_number(toy)
    only_ideas(
        toy,
        diff_of_line("program.py", "left = 1.0", "left = 1.25", 1),
        diff_of_line("program.py", "right = 1.0", "right = 1.25", 3),
    )
    manifest = run(toy, None, width=1, sweep_config_limit=1)
    assert fates(manifest) == ["promoted", "beyond_beam"]
    with open_run(RunRequest(toy.path, RUN_ID)) as coordinator:
        run_dir, config = coordinator.store.run_dir, coordinator.config
    outcomes = Outcomes(toy.path, run_dir, config, manifest, manifest.nodes["n0001"])
    assert outcomes.beyond_beam() == {manifest.nodes["n0000"].ideas[1].key}


def test_code_that_differs_only_in_form_is_the_same(toy: ToyRepository) -> None:
    root = toy.commit("root")
    versions = []
    for text in ("x = {'a': 1}\n", 'x = {\n    "a": 1,\n}  # one\n', "x = {'a': 2}\n", "x = {\n"):
        toy.write("code.py", text)
        versions.append(toy.commit("code"))
    toy.git("checkout", "-q", root)
    toy.write("params.txt", "A 1.0 \n")
    versions.append(toy.commit("a blank at the end of a line that is no Python"))
    first, formatted, other, broken, text = code_digests(toy.path, root, versions)
    assert first == formatted
    assert len({first, other, broken, text}) == 4
    assert code_digests(toy.path, root, [root])[0] not in (first, other, broken, text)


def test_a_file_that_python_cannot_parse_is_compared_byte_for_byte() -> None:
    deep = b"x = " + b"(" * 5000 + b")" * 5000
    assert python_key(deep) != python_key(deep + b"\n")
    assert python_key(b"x = 1") == python_key(b"x  =  1\n\n")
