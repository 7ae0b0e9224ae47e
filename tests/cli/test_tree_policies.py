"""`treewright tree --policy`: the flags of each policy, and refused combinations."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tests.toy import ToyRepository
from treewright.cli.main import cli
from treewright.search import policies

SMALL = ("--dry-run", "--max-depth", "2", "--sweep-config-limit", "6", "--ideas-per-node", "2")
STEADY = (*SMALL, "--max-total-idea-evals", "4")


def tree(toy: ToyRepository, run_id: str, *flags: str) -> Result:
    arguments = ["tree", "--repo", str(toy.path), "--tree-run-id", run_id, *flags]
    return CliRunner().invoke(cli, arguments)


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> ToyRepository:
    return ToyRepository.create(tmp_path_factory.mktemp("policies") / "target repo")


def test_help_names_every_policy_and_its_settings() -> None:
    said = " ".join(CliRunner().invoke(cli, ["tree", "--help-all"]).stdout.split())
    for name, kind in policies.known().items():
        assert f"{name}: " in said
        if name != "beam":
            assert all(setting in said for setting in kind.__struct_fields__)


def test_an_unknown_policy_is_reported_before_its_requirements(toy: ToyRepository) -> None:
    done = tree(toy, "foo", "--dry-run", "--policy", "foo")
    assert str(done.exception).startswith("there is no policy 'foo'; there are beam, ")


def test_one_invocation_runs_to_the_end_and_names_its_policy(toy: ToyRepository) -> None:
    done = tree(toy, "a", *STEADY, "--policy", "mcts", "--policy-option", "selection=puct",
                "--policy-option", "exploration=0.25", "--lookahead", "3")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["policy"] == "mcts"
    assert found["stop_reason"] == "max_total_idea_evals"
    recorded = json.loads((toy.run_dir("a") / "manifest.json").read_text())["search"]
    assert recorded["options"]["selection"] == "puct"
    assert recorded["options"]["exploration"] == 0.25
    assert (recorded["order"], recorded["lookahead"]) == ("fixed", 3)
    again = tree(toy, "a")
    assert again.exit_code == 0
    assert json.loads(again.stdout) == found
    for flag, value in (("--policy", "random"), ("--order", "live"), ("--lookahead", "9"),
                        ("--policy-option", "exploration=1"), ("--branching", "3")):  # fmt: skip
        refused = tree(toy, "a", flag, value)
        assert refused.exit_code != 0
        assert f"{flag} is" in str(refused.exception), refused.exception


def test_beam_runs_keep_their_file_format(toy: ToyRepository) -> None:
    done = tree(toy, "beam", *SMALL, "--policy", "beam", "--until-done")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["policy"] == "beam"
    text = (toy.run_dir("beam") / "manifest.json").read_text()
    text += (toy.run_dir("beam") / "events.jsonl").read_text()
    for word in ('"search"', '"seen"', '"place"', '"tried"', '"expansion"', '"exhausted"'):
        assert word not in text
    refused = tree(toy, "beam", "--policy", "mcts")
    assert "--policy is mcts here but beam in run beam" in str(refused.exception)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--lookahead", "4"), "--lookahead means nothing with --policy beam"),
        (("--order", "live"), "--order means nothing with --policy beam"),
        (("--branching", "4"), "--branching means nothing with --policy beam"),
        (("--policy-option", "width=3"), "--policy-option means nothing with --policy beam"),
        (("--policy", "mcts"), "--policy mcts needs --max-total-idea-evals"),
        (("--policy", "psychic", *STEADY), "no policy 'psychic'; there are beam, best-first"),
        (("--policy", "mcts", *STEADY, "--beam-width", "2"), "--beam-width means nothing"),
        (
            ("--policy", "mcts", *STEADY, "--no-stop-on-empty-frontier"),
            "--stop-on-empty-frontier means nothing",
        ),
        (
            ("--policy", "mcts", *STEADY, "--order", "live", "--lookahead", "4"),
            "--lookahead means nothing with --order live",
        ),
        (
            ("--policy", "mcts", *STEADY, "--max-parallel-evals", "4", "--lookahead", "2"),
            "--lookahead 2 keeps only so many of 4 workers busy",
        ),
        (("--policy", "mcts", *STEADY, "--policy-option", "exploration"), "write KEY=VALUE"),
        (("--policy", "mcts", *STEADY, "--policy-option", "x=1"), "has no setting 'x'"),
        (("--policy", "mcts", *STEADY, "--policy-option", "exploration=-1"), "exploration"),
    ],
)
def test_flags_without_effect_on_the_policy_are_errors(
    toy: ToyRepository, flags: tuple[str, ...], said: str
) -> None:
    done = tree(toy, "refused", *flags)
    assert done.exit_code != 0
    assert said in str(done.exception)
    assert not (toy.run_dir("refused") / "events.jsonl").exists()
