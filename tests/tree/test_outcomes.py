"""Decisions about ended evaluations: record, retry, hold, pause or check the root first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from treewright.tree.deciding.caps import CAP_REACHED
from treewright.tree.guard.baselines import DECIDING_FILE_CHANGED
from treewright.tree.records.model import EvalError
from treewright.tree.run.outcomes import (
    MAX_PAUSES,
    CheckRoot,
    Circumstances,
    FailureRules,
    Hold,
    Pause,
    Record,
    Retry,
    decide_held,
    decide_measurement,
    decide_outcome,
)

RULES = FailureRules(first_backoff_seconds=1.0)
WORKS, BROKEN = True, False


def error(code: str, *, retryable: bool = False) -> EvalError:
    return EvalError(code, code, retryable)


def around(failures: int = 9, root: Mapping[str, bool] | None = None, **facts) -> Circumstances:
    """Circumstances in which all retries are used up."""
    return Circumstances(failures=failures, root_works=root or {}, **facts)


def test_a_score_is_recorded_even_after_an_interruption() -> None:
    assert decide_outcome(None, RULES, around(is_cancelled=True)) == Record()


def test_a_failure_during_an_interruption_is_left_for_the_next_invocation() -> None:
    found = decide_outcome(error("tests_failed"), RULES, around(is_cancelled=True))
    assert found == Retry("interrupted", delay_seconds=None)


def test_an_allowance_that_was_too_small_is_not_a_failure() -> None:
    assert decide_outcome(error(CAP_REACHED), RULES, around(1)) == Retry(CAP_REACHED)


@pytest.mark.parametrize(
    ("code", "failures", "rules", "delay"),
    [
        ("worker_lost", 1, RULES, 1.0),
        ("worker_lost", 3, RULES, 4.0),
        ("agent_failed", 2, FailureRules(retries=2, first_backoff_seconds=3.0), 6.0),
        ("patch_failed", 1, FailureRules(retries=1, retried="all"), 1.0),
    ],
)
def test_failures_are_retried_with_growing_delays(code, failures, rules, delay) -> None:
    found = decide_outcome(error(code), rules, around(failures))
    assert found == Retry(code, delay)


@pytest.mark.parametrize(
    ("code", "failures", "rules"),
    [
        ("patch_failed", 1, FailureRules(retries=1)),
        ("tests_failed", 1, FailureRules(retries=1, retried="faults")),
        ("patch_failed", 2, FailureRules(retries=1, retried="all")),
    ],
)
def test_failures_that_the_rules_do_not_cover_are_not_retried(code, failures, rules) -> None:
    assert not isinstance(decide_outcome(error(code), rules, around(failures)), Retry)


def test_a_changed_deciding_file_is_retried_only_among_several_candidates() -> None:
    changed = error(DECIDING_FILE_CHANGED)
    assert isinstance(decide_outcome(changed, RULES, around(1, has_several_workers=True)), Retry)
    assert decide_outcome(changed, RULES, around(1)) == Record()


@pytest.mark.parametrize(
    ("code", "root", "action"),
    [
        ("sweep_failed", {}, CheckRoot("sweep")),
        ("sweep_failed", {"sweep": WORKS}, Record()),
        ("sweep_failed", {"sweep": BROKEN}, Hold(is_outage=True)),
        ("tests_timeout", {}, CheckRoot("tests")),
        ("tests_timeout", {"tests": BROKEN}, Hold(is_outage=True)),
        ("eval_timeout", {"sweep": WORKS}, CheckRoot("tests")),
        ("eval_timeout", {"sweep": BROKEN}, Hold(is_outage=True)),
        ("eval_timeout", {"sweep": WORKS, "tests": WORKS}, Record()),
    ],
)
def test_a_failed_command_is_the_candidates_failure_if_it_works_on_the_root(
    code, root, action
) -> None:
    assert decide_outcome(error(code), RULES, around(root=root)) == action


def test_on_other_machines_a_passing_peer_replaces_the_root_check() -> None:
    facts = around(is_local=False, has_passing_peer=True)
    assert decide_outcome(error("sweep_failed"), RULES, facts) == Record()


@pytest.mark.parametrize(
    ("code", "facts", "action"),
    [
        ("llm_denied", {}, Hold(is_outage=True)),
        ("llm_denied", {"has_passing_peer": True}, Hold(is_outage=True)),
        ("agent_failed", {}, Hold(is_outage=False)),
        ("agent_failed", {"has_passing_peer": True}, Record()),
        ("agent_failed", {"has_passing_peer": True, "has_barrier": True}, Hold(is_outage=False)),
        ("patch_failed", {}, Record()),
    ],
)
def test_a_possible_outage_is_held(code, facts, action) -> None:
    assert decide_outcome(error(code), RULES, around(**facts)) == action


@pytest.mark.parametrize(
    ("code", "pauses", "facts", "action"),
    [
        ("agent_failed", 0, {"has_passing_peer": True}, Record()),
        ("agent_failed", 0, {}, Pause("agent_failed")),
        ("agent_failed", 0, {"is_cancelled": True}, Retry("agent_failed", None)),
        ("llm_denied", 0, {"has_passing_peer": True}, Pause("llm_denied")),
        ("llm_denied", MAX_PAUSES - 1, {"has_passing_peer": True}, Record()),
        ("llm_denied", MAX_PAUSES - 1, {}, Pause("llm_denied")),
        ("sweep_failed", 0, {}, CheckRoot("sweep")),
        ("sweep_failed", 0, {"root": {"sweep": BROKEN}}, Pause("sweep_failed")),
        (
            "sweep_failed",
            0,
            {"root": {"sweep": WORKS}},
            Retry("sweep_failed", is_after_outage=True),
        ),
        ("sweep_failed", MAX_PAUSES - 1, {"root": {"sweep": WORKS}}, Record()),
        ("sweep_failed", 0, {"is_local": False, "has_passing_peer": True}, Record()),
    ],
)
def test_a_held_failure_is_decided_by_the_other_evaluations(code, pauses, facts, action) -> None:
    assert decide_held(code, pauses, around(**facts), goes_on=True) == action


def test_the_root_is_not_checked_for_a_run_that_ends() -> None:
    assert decide_held("sweep_failed", 0, around(), goes_on=False) == Pause("sweep_failed")


@pytest.mark.parametrize(
    ("code", "is_measured", "facts", "action"),
    [
        ("worker_lost", False, {"failures": 1}, Retry("worker_lost", 1.0)),
        ("worker_lost", False, {}, Pause("worker_lost")),
        ("machine_busy", True, {}, Pause("machine_busy")),
        ("sweep_failed", True, {}, CheckRoot("sweep")),
        ("sweep_failed", True, {"root": {"sweep": WORKS}}, Record()),
        ("sweep_failed", True, {"root": {"sweep": BROKEN}}, Pause("sweep_failed")),
        ("sweep_failed", True, {"is_cancelled": True}, Retry("interrupted", None)),
        ("incomplete_rows", True, {}, Record()),
    ],
)
def test_the_outcome_of_a_held_out_sweep_is_decided(code, is_measured, facts, action) -> None:
    found = decide_measurement(error(code), RULES, around(**facts), is_measured=is_measured)
    assert found == action
