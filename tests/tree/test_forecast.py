"""The forecast of the rest of a run, from the evaluations that have ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tree.making import evaluation, manifest
from treewright.kernel.storage import run_directory
from treewright.kernel.storage.lease import Lease
from treewright.llm.usage import Usage
from treewright.tree.records import description, layout, store
from treewright.tree.records import events as ev
from treewright.tree.records.model import Manifest


def measured(seconds: list[int], *, tokens: int = 100, cost: float = 0.01, **more) -> Manifest:
    """Return a run of eight ideas in which one evaluation has ended for each of the given times."""
    settings = {"ideas_per_node": 8, "max_depth": 1, "tree_run_id": "run", "dry_run": False}
    found = manifest(**(settings | more))
    for number, took in enumerate(seconds, start=1):
        one = evaluation(number)
        one.started_at = "2026-01-01T00:00:00.000Z"
        one.finished_at = f"2026-01-01T00:{took // 60:02d}:{took % 60:02d}.000Z"
        one.usage = Usage(tokens, 0, cost)
        found.evaluations[one.eval_id] = one
    return found


def test_constant_times_have_a_range_without_width() -> None:
    found = description.make_forecast(measured([60, 60, 60]), 1)
    assert found is not None
    assert found.evaluations == (0, 5), "none is queued, five may come"
    assert found.tokens == (0, 500)
    assert found.cost_usd == pytest.approx((0, 0.05))
    assert found.hours == pytest.approx((0, 5 / 60))
    assert (found.based_on, found.run) == (3, "run")


def test_the_range_is_a_prediction_interval() -> None:
    """Mean 120 s, standard deviation 60 s, n = 4: t(0.9, 3) = 1.638 on either side of the sum of
    four more, with the standard error 60 * sqrt(4 + 16 / 4)."""
    found = description.make_forecast(measured([60, 120, 180, 120]), 1)
    assert found is not None
    deviation = (2 * 60**2 / 3) ** 0.5
    most = 4 * 120 + 1.6377 * deviation * 8**0.5
    assert found.hours[1] * 3600 == pytest.approx(most, rel=1e-3)
    two = description.make_forecast(measured([60, 120, 180, 120]), 2)
    assert two is not None
    assert two.hours[1] == pytest.approx(found.hours[1] / 2), "two at once"


def test_queued_evaluations_are_certain() -> None:
    run = measured([60, 120, 60])
    waiting = evaluation(4)
    waiting.status = "pending"
    run.evaluations[waiting.eval_id] = waiting
    found = description.make_forecast(run, 1)
    assert found is not None
    assert found.evaluations == (1, 5)
    assert 0 <= found.hours[0] < found.hours[1]


def test_a_decided_depth_gets_no_further_evaluations() -> None:
    """Depth 1 found three ideas of eight; the last depth has two nodes at most, with eight each."""
    run = measured([60, 60, 60], max_depth=2, beam_width=1, elites=1, current_depth=1)
    found = description.make_forecast(run, 1)
    assert found is not None
    assert found.evaluations == (0, 16)


def test_the_forecast_uses_an_earlier_run_until_two_evaluations_have_ended(tmp_path: Path) -> None:
    """The newest real run with enough evaluations is used."""
    earlier = {
        "old": measured([600, 600], created_at="2026-01-01T00:00:00Z"),
        "newest": measured([60, 60, 60], tree_run_id="newest", created_at="2026-01-03T00:00:00Z"),
        "rehearsal": measured([1, 1], dry_run=True, created_at="2026-01-04T00:00:00Z"),
        "short": measured([1], created_at="2026-01-05T00:00:00Z"),
        "run": measured([60]),
    }
    for name, recorded in earlier.items():
        run_directory.prepare(tmp_path / name)
        lease = Lease.acquire(tmp_path / name / layout.LEASE)
        owned = store.RunStore(tmp_path / name, lease, lambda _: None)
        owned.record(ev.RunCreated(manifest=recorded))
        owned.close()
        lease.release()
    (tmp_path / "no run").mkdir()
    run = measured([60])
    assert description.make_forecast(run, 1) is None, "nothing is known to tell from"
    found = description.make_forecast(run, 1, tmp_path)
    assert found is not None
    assert (found.based_on, found.run) == (3, "newest")
    assert found.evaluations == (0, 7)
    assert "from 3 of run newest" in description.describe_forecast(found)


def test_a_finished_run_has_no_forecast_and_an_unknown_price_no_cost() -> None:
    assert description.make_forecast(measured([60, 60], stop_reason="stopped"), 1) is None
    run = measured([60, 60])
    for one in run.evaluations.values():
        one.usage = Usage(80, 20, 0.0, 100)
    unknown = description.make_forecast(run, 2)
    assert unknown is not None
    assert unknown.cost_usd is None
    assert unknown.tokens == (0, 600)
    assert "cost unknown" in description.describe_forecast(unknown)


def test_the_line_leaves_out_unknown_parts() -> None:
    paid = description.make_forecast(measured([60, 60, 60]), 1)
    assert paid is not None
    assert description.describe_forecast(paid) == (
        "forecast: 0 to 5 more evaluations, 0 to 5 min 00 s, 0 to 500 tokens, "
        "cost 0.00 to 0.05 USD (from 3 of run run)"
    )
    run = measured([60, 60, 60])
    for one in run.evaluations.values():
        one.usage = Usage()
    free = description.make_forecast(run, 1)
    assert free is not None
    assert description.describe_forecast(free) == (
        "forecast: 0 to 5 more evaluations, 0 to 5 min 00 s (from 3 of run run)"
    ), "nobody was asked who costs something"
