"""Experiment files: their meaning, and the errors about wrong ones."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from treewright.cellview.experiment.plan import Plan, Table, load, runs_of, search_settings
from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import validate_run_id
from treewright.kernel.text.config_errors import all_keys
from treewright.proving.cell_settings import CellSettings, PlannedIntervention

ROOT = Path(__file__).parents[2]
GOAL = '[[goals]]\nname = "g"\nstatement = "True"\n'
BANK = """\
{"id": "a1", "text": "True", "class": "prop", "steps": 2}
{"id": "a2", "text": "1 = 1", "class": "nat"}

{"id": "a3", "text": "2 = 2", "class": "nat"}
"""


def made(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(text, "utf-8")
    (tmp_path / "bank.jsonl").write_text(BANK, "utf-8")
    return load(path)


def test_the_grid(tmp_path: Path) -> None:
    plan = made(
        tmp_path,
        'modes = ["centralized", "distributed"]\nagents = [1, 4]\nseeds = [0, 7]\n'
        '[[interventions]]\nname = "block"\nblock_fraction = [0.1, 0.5]\n' + GOAL,
    )
    assert [arm.name for arm in plan.arms] == ["none", "block 0.1", "block 0.5"]
    assert not any(arm.placebo for arm in plan.arms)
    cells = runs_of(plan)
    assert len(cells) == 2 * (1 + 2 * 3)
    assert len({cell.cell_id for cell in cells}) == len(cells)
    assert cells[0].cell_id == "0001-centralized-s0-g"
    assert cells[2].cell_id == "0003-distributed1-block-0-1-s0-g"
    assert sum(cell.mode == "centralized" for cell in cells) == 2
    assert all(cell.agents is None for cell in cells if cell.mode == "centralized")


def test_names_become_usable_ids(tmp_path: Path) -> None:
    plan = made(tmp_path, f'[[goals]]\nname = "∀ /../ {"x" * 200}"\nstatement = "True"\n')
    for cell in runs_of(plan):
        validate_run_id(cell.cell_id)


def test_the_settings_of_the_runner(tmp_path: Path) -> None:
    plan = made(
        tmp_path,
        'modes = ["centralized", "distributed"]\n[cells]\ninflight = 2\n'
        '[[interventions]]\nname = "late"\ndelay_prob = 0.5\ndelay_duration = 3\n' + GOAL,
    )
    central, undamaged, late = (search_settings(plan, cell) for cell in runs_of(plan))
    assert (central.mode, central.cells) == ("centralized", None)
    assert undamaged.cells == CellSettings(agents=4, inflight=2)
    assert late.cells == CellSettings(agents=4, inflight=2, delay_prob=0.5, delay_duration=3)
    assert (late.mode, late.seed, late.simulations, late.refute) == ("distributed", 0, 200, False)


def test_a_schedule_and_a_mix_of_algotypes(tmp_path: Path) -> None:
    plan = made(
        tmp_path,
        'agents = [3]\n[cells]\nalgotypes = "ucb:2,random"\n[[interventions]]\nname = "late"\n'
        '[[interventions.schedule]]\nat = 5\nkind = "block"\nagent = 1\nduration = 4\n' + GOAL,
    )
    found = search_settings(plan, runs_of(plan)[1]).cells
    assert found is not None
    assert found.algotypes == ("ucb", "ucb", "random")
    assert found.schedule == (PlannedIntervention(at=5, kind="block", agent=1, duration=4),)


def test_one_agent_needs_no_word_about_inflight(tmp_path: Path) -> None:
    plan = made(tmp_path, "agents = [1]\n" + GOAL)
    assert search_settings(plan, runs_of(plan)[0]).cells == CellSettings(agents=1, inflight=1)


def test_goals_from_a_bank(tmp_path: Path) -> None:
    def names(table: str) -> list[str]:
        return [g.name for g in made(tmp_path, f'[bank]\nfile = "bank.jsonl"\n{table}').goals]

    assert names("") == ["a1", "a2", "a3"]
    assert names('ids = ["a3", "a1"]') == ["a1", "a3"]
    assert names('classes = ["nat"]') == ["a2", "a3"]
    assert names('classes = ["nat"]\nlimit = 1') == ["a2"]
    both = made(tmp_path, GOAL + '[bank]\nfile = "bank.jsonl"\nlimit = 1\n')
    assert [goal.statement for goal in both.goals] == ["True", "True"]


def test_the_text_of_a_tactics_file_is_part_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("omega\n")
    assert made(tmp_path, 'tactics = "mine.txt"\n' + GOAL).tactics == "omega\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed = [1]\n" + GOAL, "unknown key `seed`; did you mean `seeds`?"),
        ("seeds = []\n" + GOAL, "`seeds`: Expected `array` of length >= 1"),
        ("seeds = [1, 1]\n" + GOAL, "`seeds`: 1 is there twice"),
        ("agents = [0]\n" + GOAL, "`agents[0]`: Expected `int` >= 1"),
        (
            'modes = ["central"]\n' + GOAL,
            "'central' is not one of `centralized`, `distributed`; did you mean `centralized`?",
        ),
        ("simulations = 0\n" + GOAL, "`simulations`: Expected `int` >= 1"),
        ("x = [\n", "not valid TOML"),
        ("", "no goals: give [[goals]]"),
        (GOAL + GOAL, "`goals`: 'g' is there twice"),
        ('[[goals]]\nname = "g"\n', "missing key `goals[0].statement`"),
        ('[[interventions]]\nname = "none"\n' + GOAL, "'none' is there twice; 'none' is always"),
        (
            '[[interventions]]\nname = "b"\nblock_fraction = 1.5\n' + GOAL,
            "`interventions[0].block_fraction`",
        ),
        (
            '[[interventions]]\nname = "b"\nblock_fraction = []\n' + GOAL,
            "'b' has an empty list of block fractions",
        ),
        (
            '[[interventions]]\nname = "b"\nblock_fractoin = 0.5\n' + GOAL,
            "did you mean `block_fraction`?",
        ),
        (
            'modes = ["centralized"]\n[[interventions]]\nname = "b"\n' + GOAL,
            "`interventions` are for the distributed mode",
        ),
        (
            'modes = ["centralized"]\n[cells]\nradius = 2\n' + GOAL,
            "`cells` are for the distributed",
        ),
        ('[bank]\nfile = "no.jsonl"\n', "`bank.file`: cannot read"),
        ('[bank]\nfile = "bank.jsonl"\nids = ["zz"]\n', "`bank.ids`: 'zz' is not in"),
        ('[bank]\nfile = "bank.jsonl"\nclasses = ["set"]\n', "there are nat, prop"),
        ('[bank]\nfile = "plan.toml"\n', "line 1: "),
        ('[cells]\nalgotypes = "ucb:3"\n' + GOAL, "'none' with 4 agents: algotypes names 3 cells"),
        (
            '[[interventions]]\nname = "s"\nschedule = [{at = 1, kind = "smash"}]\n' + GOAL,
            "'s' with 4 agents: Invalid enum value 'smash'",
        ),
        ('tactics = "no.txt"\n' + GOAL, "`tactics`: cannot read"),
    ],
)
def test_errors_are_one_line_that_names_the_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(tmp_path, text)
    message = str(caught.value)
    assert words in message
    assert "plan.toml" in message
    assert "\n" not in message


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no experiment file"):
        load(tmp_path / "none.toml")


def test_the_example_loads() -> None:
    plan = load(ROOT / "examples" / "experiments" / "damage.toml")
    assert len(runs_of(plan)) == 45
    assert [arm.name for arm in plan.arms if arm.placebo] == ["placebo"]


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    for key in all_keys(Table):
        assert f"`{key}`" in text, key


def test_the_shown_file_loads(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    (shown,) = re.findall(r"(?:^    name = .*\n)(?:(?:    .*)?\n)+", text, flags=re.M)
    assert len(made(tmp_path, textwrap.dedent(shown)).goals) == 3
