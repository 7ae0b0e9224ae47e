"""Caps on model costs hold before each call, and count the calls under way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toy import CONFIG, ToyRepository, set_parameter
from tests.tree import making
from treewright.kernel.errors import UsageError
from treewright.llm.usage import Usage
from treewright.tree.deciding import caps
from treewright.tree.deciding.caps import Allowance
from treewright.tree.records.model import EvalOutcome, Manifest, Unset
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.faults import Paused
from treewright.tree.run.meter import CallCosts, Meter
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism
from treewright.tree.validation import validate

CENT = {"prompt_tokens": 80, "completion_tokens": 20, "cost_usd": 0.01}


def paid(toy: ToyRepository, ideas: int = 8, rounds: int = 1) -> None:
    """Make each evaluation cost one cent and a hundred tokens for the planner."""
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    for number in range(ideas):
        toy.write(f"ideas/{number:02d}.md", set_parameter("A", 1.1 + number / 10))
    toy.write("script.json", json.dumps([{"role": "planner", "text": "do it", "usage": CENT}]))
    planner = '[agents.planner]\nbackend = "scripted"\nscript = "script.json"\n'
    toy.write("treewright.toml", f"{CONFIG}\n{planner}")
    toy.commit("a planner that costs something")


def run(toy: ToyRepository, policy: str | None = None, workers: int = 1, **more: Any) -> Manifest:
    hours, extend = more.pop("max_hours", None), more.pop("extend", False)
    request = RunRequest(
        toy.path,
        "run",
        shape=Shape(**more),
        choosing=PolicyChoice(policy),
        preflight=False,
        parallelism=Parallelism(workers),
        max_hours=hours,
        extend=extend,
    )
    with open_run(request) as coordinator:
        coordinator.finish()
        found = coordinator.manifest
    assert validate(toy.run_dir("run"), toy.path) == []
    return found


SHAPE: dict[str, Any] = {"sweep_config_limit": 8, "ideas_per_node": 8, "max_depth": 1}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("kind", "limit"), [("cost_usd", 0.035), ("tokens", 350), ("cost_usd planner", 0.035)]
)
def test_a_cap_holds_and_can_be_raised(toy, kind: str, limit: float, workers: int) -> None:
    paid(toy)
    kind, _, role = kind.partition(" ")
    found = run(toy, None, workers, caps={kind: {role or "all": limit}}, **SHAPE)
    assert found.stop_reason == "cap_reached"
    done = [e for e in found.evaluations.values() if e.status == "completed"]
    assert len(done) == 3
    assert not isinstance(found.roles, Unset)
    assert found.roles["planner"].tokens == 300
    assert found.current_depth == 0, "nothing was decided on a part of the depth"
    again = run(toy, None, workers)
    assert again.spent.cost_usd == pytest.approx(0.03), "it stays stopped"
    final = run(toy, None, workers, extend=True, caps={kind: {role or "all": 10 * limit}})
    assert final.stop_reason == "max_depth_reached"
    assert len([e for e in final.evaluations.values() if e.status == "completed"]) == 8


def test_parallel_evaluations_do_not_start_without_enough_cap_left(toy: ToyRepository) -> None:
    """The remaining cap covers one evaluation, so the others do not start."""
    paid(toy)
    found = run(toy, None, 3, caps={"cost_usd": {"all": 0.045}}, **SHAPE)
    assert found.stop_reason == "cap_reached"
    assert found.spent.cost_usd == pytest.approx(0.04)


@pytest.mark.parametrize("policy", [None, "best-first"])
@pytest.mark.parametrize(
    ("kind", "limit"), [("cost_usd", 0.015), ("tokens", 150), ("tokens planner", 150)]
)
def test_the_first_evaluation_runs_alone_until_its_cost_is_known(
    toy: ToyRepository, kind: str, limit: float, policy: str | None
) -> None:
    """An agent reports its cost when it ends: several at once could break the cap together."""
    paid(toy)
    kind, _, role = kind.partition(" ")
    shape = {**SHAPE, "max_total_idea_evals": 8}
    found = run(toy, policy, 4, caps={kind: {role or "all": limit}}, **shape)
    assert found.stop_reason == "cap_reached"
    assert found.spent.cost_usd == pytest.approx(0.01)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_remaining_cap_covers_the_most_expensive_call_so_far(
    toy: ToyRepository, workers: int
) -> None:
    """Three calls cost a cent each, the fourth and fifth three cents: the remaining cap covers an
    average call but neither one like the most expensive nor two at once."""
    paid(toy)
    costs = [*[CENT] * 3, *[{**CENT, "cost_usd": 0.03}] * 5]
    replies = [
        {"role": "planner", "text": "do it", "usage": cost, "when": f"A {1.1 + place / 10:.1f}"}
        for place, cost in enumerate(costs)
    ]
    toy.write("script.json", json.dumps(replies))
    toy.commit("one that costs three times as much")
    found = run(toy, None, workers, caps={"cost_usd": {"all": 0.08}}, **SHAPE)
    assert found.stop_reason == "cap_reached"
    assert found.spent.cost_usd <= 0.08
    assert 0.08 - found.spent.cost_usd < 0.03


AGENT = """
if grep -q "A 1.1" ; then cost=0.001 tokens=10 ; else
cost=$TREEWRIGHT_MAX_COST_USD tokens=$TREEWRIGHT_MAX_TOKENS ; fi
[ "$1" = "$TREEWRIGHT_MAX_COST_USD" ] || exit 1
echo '{"type": "result", "result": "do it", "total_cost_usd": '$cost',
 "usage": {"input_tokens": '$tokens'}}'
"""


@pytest.mark.parametrize("policy", [None, "best-first"])
@pytest.mark.parametrize(
    ("kind", "limit"), [("cost_usd", 0.1), ("cost_usd planner", 0.1), ("tokens", 1000)]
)
def test_a_cap_is_exact_when_the_maximum_of_a_call_is_declared(
    toy: ToyRepository, kind: str, limit: float, policy: str | None
) -> None:
    """The first call costs almost nothing; four later ones, at once, cost thirty times as much
    each."""
    paid(toy)
    toy.write("agent.sh", AGENT)
    said = 'reads = "claude"\nmax_cost_usd = 0.03\nmax_tokens = 300\n'
    command = 'backend = "command"\ncommand = ["sh", "agent.sh", "{max_cost_usd}"]\n'
    toy.write("treewright.toml", f"{CONFIG}\n[agents.planner]\n{command}{said}")
    toy.commit("an agent that says what it costs at most")
    kind, _, role = kind.partition(" ")
    shape = {**SHAPE, "max_total_idea_evals": 8}
    found = run(toy, policy, 4, caps={kind: {role or "all": limit}}, **shape)
    assert found.stop_reason == "cap_reached"
    assert len([e for e in found.evaluations.values() if e.status == "completed"]) == 4
    assert found.spent.cost_usd == pytest.approx(0.091)


@given(
    capacity=st.integers(1, 8),
    cap=st.integers(1, 400),
    times=st.lists(st.floats(0.01, 4.0), min_size=60, max_size=60),
    ends=st.lists(st.integers(0, 7), min_size=200, max_size=200),
)
def test_parallel_calls_keep_a_cap_unless_one_costs_four_times_all_before(
    capacity: int, cap: int, times: list[float], ends: list[int]
) -> None:
    """The costs of these agents are unknown in advance: only a call that ran alone may exceed the
    cap."""
    manifest = making.manifest(caps={"cost_usd": {"all": float(cap)}})
    everybody = frozenset({("cost_usd", "planner"), ("cost_usd", "all")})
    meter = Meter(costs=CallCosts(unknown=everybody))
    costs, under_way = list(times), list[tuple[str, float]]()
    largest, alone = 0.0, False
    for choice in ends:
        word = meter.control_state(manifest)
        if word == "end" or not costs:
            break
        if word == "go" and len(under_way) < capacity:
            started = making.evaluation(len(manifest.evaluations))
            started.status, eval_id = "running", started.eval_id
            manifest.evaluations[eval_id] = started
            alone = not under_way
            meter.allow(manifest, eval_id, capacity)
            under_way.append((eval_id, costs.pop() * (largest or 1.0)))
            continue
        eval_id, cost = under_way.pop(choice % len(under_way))
        usage = Usage(cost_usd=cost)
        ended = manifest.evaluations[eval_id]
        ended.status, ended.finished_at, ended.usage = "completed", "now", usage
        manifest.spent.cost_usd += cost
        largest = max(largest, cost)
        assert alone or manifest.spent.cost_usd <= cap * (1 + 1e-9)


def test_agents_that_report_no_cost_do_not_run_alone(toy: ToyRepository) -> None:
    """An agent that was scored without reporting a cost is not expected to report one later."""
    paid(toy)
    toy.write("script.json", json.dumps([{"role": "planner", "text": "do it"}]))
    toy.commit("a planner that tells nothing")
    meter = Meter(costs=CallCosts(frozenset({("cost_usd", "planner"), ("cost_usd", "all")})))
    found = run(toy, None, 2, caps={"cost_usd": {"all": 0.01}}, **SHAPE)
    assert found.stop_reason == "max_depth_reached"
    for eval_id in ("e000001", "e000002"):
        assert meter.may_start(found)
        meter.allow(found, eval_id, 2)


def test_a_search_without_a_barrier_keeps_its_caps(toy: ToyRepository) -> None:
    paid(toy)
    shape = {**SHAPE, "max_total_idea_evals": 8}
    found = run(toy, "best-first", caps={"cost_usd": {"all": 0.035}}, **shape)
    assert found.stop_reason == "cap_reached"
    assert found.spent.cost_usd == pytest.approx(0.03)
    assert run(toy, extend=True, caps={"cost_usd": {"all": 1.0}}).spent.evals == 8


@pytest.mark.parametrize("policy", [None, "best-first"])
def test_a_held_failure_reserves_no_part_of_the_caps(
    toy: ToyRepository, policy: str | None
) -> None:
    """The held evaluation had reserved all that was left, and the next one, which shows whether
    there is an outage, must be able to start."""
    paid(toy, ideas=1)
    planner = '[agents.planner]\nbackend = "command"\ncommand = ["false"]\n'
    toy.write("treewright.toml", f"{CONFIG}\n{planner}")
    toy.commit("a planner that fails")
    with pytest.raises(Paused, match="agent_failed"):
        run(toy, policy, caps={"cost_usd": {"all": 0.05}}, max_total_idea_evals=8, **SHAPE)


def test_a_declared_maximum_of_one_role_does_not_cover_another() -> None:
    """The planner's cost is unknown, so evaluations run one at a time although the coder's maximum
    is known."""
    unknown = frozenset({("cost_usd", "planner"), ("cost_usd", "all")})
    most = {("cost_usd", "coder"): 0.1, ("cost_usd", "all"): 0.1}
    meter = Meter(costs=CallCosts(unknown, most))
    manifest = making.manifest(caps={"cost_usd": {"all": 20.0}})
    first = making.evaluation(1)
    first.status = "running"
    manifest.evaluations[first.eval_id] = first
    assert meter.control_state(manifest) == "go"
    meter.allow(manifest, first.eval_id, 8)
    assert meter.control_state(manifest) == "wait"


def test_a_cap_below_the_maximum_of_a_call_ends_the_run_with_a_reason() -> None:
    meter = Meter(
        costs=CallCosts(largest={("cost_usd", "planner"): 0.03, ("cost_usd", "all"): 0.03})
    )
    manifest = making.manifest(caps={"cost_usd": {"all": 0.02}})
    assert meter.control_state(manifest) == "end"
    assert meter.why == (
        "--max-cost-usd is reached: 0 spent, 0.02 left, and another one may need 0.03"
    )


def test_spending_is_reported_by_cap() -> None:
    outcome = EvalOutcome(usage=Usage(8, 2, 0.03), roles={"coder": Usage(8, 2, 0.02)})
    limits: caps.Caps = {
        "cost_usd": {"all": 1.0, "coder": 1.0, "planner": 1.0},
        "tokens": {"all": 9},
    }
    assert caps.used_of(outcome, limits) == {
        "cost_usd": {"all": 0.03, "coder": 0.02, "planner": 0.0},
        "tokens": {"all": 10},
    }


def test_max_hours_ends_the_invocation_but_not_the_run(toy: ToyRepository) -> None:
    found = run(toy, max_hours=1e-9, **SHAPE)
    assert found.stop_reason is None
    assert not any(e.status == "completed" for e in found.evaluations.values())
    assert run(toy).stop_reason is not None


def test_an_allowance_counts_the_usage_of_its_role() -> None:
    allowance = Allowance({"cost_usd": {"all": 0.05, "coder": 0.02}})
    call = Usage(10, 10, 0.015)
    assert allowance.refusal({}, "coder", call) is None
    refusal = allowance.refusal({"coder": Usage(1, 1, 0.01)}, "coder", call)
    assert refusal is not None
    assert "--max-cost-usd for the coder" in refusal
    assert allowance.refusal({"coder": Usage(1, 1, 0.01)}, "planner", call) is None
    assert allowance.refusal({"coder": Usage(1, 1, 0.04)}, "planner", call) is not None


def test_an_invalid_cap_is_refused() -> None:
    assert caps.parse({"tokens": ["1e6", "coder=5"], "cost_usd": []}) == {
        "tokens": {"all": 1e6, "coder": 5.0}
    }
    for text in ("0", "-1", "nan", "x", "chef=1", "coder="):
        with pytest.raises(UsageError, match="--max-tokens"):
            caps.parse({"tokens": [text]})
