"""Settings and schedules: accepted values, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from treewright.kernel.errors import UsageError
from treewright.proving.cell_settings import (
    CellSettings,
    load_schedule,
    parse_algotypes,
)
from treewright.proving.cell_settings import (
    PlannedIntervention as Planned,
)


def test_algotypes_are_a_pattern_of_cells() -> None:
    assert parse_algotypes("ucb:2,depth_first:1") == ("ucb", "ucb", "depth_first")
    assert parse_algotypes(" puct , random:2 ") == ("puct", "random", "random")
    mixed = CellSettings(agents=6, algotypes=parse_algotypes("ucb:2,depth_first"))
    assert [mixed.algotype(agent) for agent in range(6)] == ["ucb", "ucb", "depth_first"] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bfs:2", "unknown algotype 'bfs': choose from ucb, puct, depth_first, best_first, random"),
        ("", "unknown algotype ''"),
        ("ucb,,puct", "unknown algotype ''"),
        ("ucb:", "'ucb:': give the number of cells after the colon, 1 or more"),
        ("ucb:0", "'ucb:0': give the number of cells"),
        ("ucb:-1", "'ucb:-1': give the number of cells"),
        ("ucb:two", "'ucb:two': give the number of cells"),
    ],
)
def test_wrong_algotypes_are_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_algotypes(text)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"agents": 0}, "agents must be at least 1, not 0"),
        ({"agents": 2, "inflight": 3}, "inflight is 3, but there are only 2 agents"),
        ({"stride": -1}, "stride must not be negative, but is -1"),
        ({"block_fraction": 1.5}, "block_fraction must be between 0 and 1, not 1.5"),
        ({"delay_prob": float("nan")}, "delay_prob must be between 0 and 1, not nan"),
        ({"unfreeze_prob": 0.0}, "unfreeze_prob of 0 would block for ever"),
        (
            {"agents": 4, "algotypes": ("ucb", "ucb", "puct")},
            "algotypes names 3 cells and agents is 4: make agents 3 or a multiple of it",
        ),
        ({"algotypes": ()}, "algotypes names 0 cells"),
        ({"algotypes": ("x",)}, "unknown algotype 'x'"),
        (
            {"schedule": (Planned(1, "block", agent=9, duration=1),)},
            "intervention 1: there is no agent 9: they are 0 to 3",
        ),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        CellSettings(**wrong)
    assert str(raised.value).startswith(message)


def test_settings_survive_run_json() -> None:
    settings = CellSettings(agents=2, schedule=(Planned(1, "block", node=3, duration=4),))
    assert msgspec.json.decode(msgspec.json.encode(settings), type=CellSettings) == settings


def test_flags_and_schedule_are_one_list_by_time() -> None:
    late = Planned(9, "reroute", agent=0)
    early = Planned(1, "delay", agent=0, duration=2)
    settings = CellSettings(block_fraction=0.5, block_at=4, schedule=(late, early))
    assert [(order.at, source) for order, source in settings.orders()] == [
        (1, "schedule"),
        (4, "settings"),
        (9, "schedule"),
    ]


def test_a_schedule_is_read(tmp_path: Path) -> None:
    path = tmp_path / "damage.toml"
    path.write_text(
        '[[intervention]]\nat = 3\nkind = "block"\nagent = 1\nduration = 5\n'
        '[[intervention]]\nat = 9\nkind = "block"\nfraction = 0.2\ntarget = "nodes"\n'
        "permanent = true\n"
    )
    assert load_schedule(path) == (
        Planned(3, "block", agent=1, duration=5),
        Planned(9, "block", fraction=0.2, target="nodes", permanent=True),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no [[intervention]] in it"),
        ("[[intervention]\n", "Expected"),
        ('[[intervention]]\nkind = "block"\n', "missing required field `at`"),
        ('[[intervention]]\nat = 1\nkind = "melt"\nagent = 0\n', "Invalid enum value 'melt'"),
        ('[[intervention]]\nat = 1\nkind = "block"\nwhom = 0\n', "unknown field `whom`"),
        ('[[intervention]]\nat = "x"\nkind = "block"\n', "Expected `int`, got `str`"),
    ],
)
def test_wrong_schedules_say_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "damage.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        load_schedule(path)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_schedule_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml: No such file"):
        load_schedule(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (Planned(-1, "block", agent=0, duration=1), "at must not be negative"),
        (
            Planned(1, "block", duration=1),
            "say whom, by one of agent, node or fraction (given: none",
        ),
        (
            Planned(1, "block", agent=0, node=1, duration=1),
            "say whom, by one of agent, node or",
        ),
        (Planned(1, "block", node=-2, duration=1), "there is no node -2"),
        (
            Planned(1, "block", fraction=2.0, duration=1),
            "fraction must be between 0 and 1",
        ),
        (
            Planned(1, "block", agent=0),
            "block needs either a duration or permanent = true",
        ),
        (
            Planned(1, "block", agent=0, duration=1, permanent=True),
            "block needs either a duration",
        ),
        (
            Planned(1, "block", agent=0, duration=0),
            "duration must be at least 1, not 0",
        ),
        (
            Planned(1, "block", agent=0, duration=1, unfreeze_prob=0.0),
            "unfreeze_prob must be above",
        ),
        (Planned(1, "delay", agent=0), "delay needs a duration"),
        (Planned(1, "delay", node=0, duration=1), "delay is for agents, not for nodes"),
        (Planned(1, "reroute", fraction=0.1, target="nodes"), "reroute is for agents"),
        (Planned(1, "unblock", agent=0, duration=2), "unblock has no duration"),
    ],
)
def test_wrong_orders_are_named(order: Planned, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        CellSettings(schedule=(Planned(0, "reroute", agent=0), order))
    assert str(raised.value).startswith(f"intervention 2: {message}")


def test_the_schedule_of_the_manual_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cellview.md").read_text(encoding="utf-8")
    shown = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    begin = shown.index("[[intervention]]")
    path = tmp_path / "schedule.toml"
    path.write_text("\n".join(shown[begin:]))
    schedule = CellSettings(schedule=load_schedule(path)).schedule
    assert [order.kind for order in schedule] == ["block", "delay", "reroute"]


def test_the_manual_tells_the_defaults() -> None:
    defaults = CellSettings()
    assert (defaults.stride, defaults.stay, defaults.refresh) == (2, 4, 8)
    assert (defaults.depth_limit, defaults.give_up) == (12, 8)
