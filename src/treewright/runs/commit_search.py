"""`treewright.search_commits`: search over git commits, as `treewright tree` does."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.procs import process
from treewright.runs.tree_run import TreeRun
from treewright.tree.deciding.caps import ALL, Caps
from treewright.tree.records import events as ev
from treewright.tree.run.creation import PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run, search
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism

_OTHER_NAMES = {
    "tree_run_id": "run_id",
    "policy_option": "options",
    "max_total_idea_evals": "budget",
    "max_parallel_evals": "workers",
    "parallel_backend": "executor",
}
"""Arguments of `search_commits` for flags of the command line with another name."""
_LEAST = {
    "workers": 1,
    "budget": 1,
    "lookahead": 1,
    "branching": 1,
    "ideas_per_node": 1,
    "beam_width": 1,
    "max_depth": 1,
    "patience": 1,
    "sweep_config_limit": 1,
    "confirm_configs": 0,
    "elites": 0,
    "eval_retries": 0,
}
"""The least value of each argument that is a whole number."""


def search_commits(
    repo: str | os.PathLike[str] = ".",
    *,
    run_id: str | None = None,
    config: str | os.PathLike[str] | None = None,
    policy: str | None = None,
    options: Mapping[str, Any] | None = None,
    order: Literal["fixed", "live"] | None = None,
    lookahead: int | None = None,
    branching: int | None = None,
    ideas_per_node: int | None = None,
    beam_width: int | None = None,
    max_depth: int | None = None,
    patience: int | None = None,
    elites: int | None = None,
    sweep_config_limit: int | None = None,
    confirm_configs: int | None = None,
    budget: int | None = None,
    max_cost_usd: float | None = None,
    max_tokens: int | None = None,
    max_hours: float | None = None,
    eval_timeout_seconds: float | None = None,
    eval_retries: int = 0,
    workers: int = 1,
    executor: str = "threadpool",
    dry_run: bool = False,
    make_baseline: bool = False,
    preflight: bool = True,
    extend: bool = False,
    force: bool = False,
    until_done: bool = True,
    cancel: threading.Event | None = None,
    on_event: Callable[[dict[str, Any]], None] | None = None,
) -> TreeRun:
    """Search over the commits of a repository: start a run, or continue the run with this id.

    The run is the one that `treewright tree` makes with the same settings, so that the command
    line can continue it, steer it and validate it. A setting that is None has the default of the
    command line in a new run, and the recorded value in an existing run.

    Ctrl-C in the main thread ends the running evaluations, puts them back into the queue and
    raises KeyboardInterrupt; a second Ctrl-C ends at once. Other threads use `cancel`. In every
    case, also after `kill -9`, the same call continues the run.

    Args:
        repo: A directory of the git repository.
        run_id: The run to start or continue. Default: a new run with a new id.
        config: The configuration of a new run. Default: `treewright.toml` of the repository.
        policy: How the node for the next idea is chosen. Default: `beam`.
        options: Settings of the policy, by name.
        order: The outcomes that a choice uses, with a policy other than beam. `fixed` (the
            default) grows the same tree whatever the timing; `live` uses all that have arrived.
        lookahead: Evaluations chosen before the outcome of the first of them is used. Default:
            `workers`.
        branching: Most ideas tried on one node. Default: the policy's own limit.
        ideas_per_node: Ideas tried on each node; with a policy other than beam, ideas requested
            at a time. Default: 5.
        beam_width: Nodes kept for each depth. Default: 1.
        max_depth: Most rounds of promotion; with a policy other than beam, the greatest distance
            of a node from the root. Default: 3.
        patience: Stop after this many depths in a row without a promotion. Default: 1.
        elites: Best nodes of the run that stay in the frontier. Default: 0.
        sweep_config_limit: Sweep only the configs below this id. Default: all of the baseline.
        confirm_configs: Held-out configs that a candidate must pass before it is promoted.
            Default: 0.
        budget: Most evaluations over the whole run. Default: no limit.
        max_cost_usd: Most US dollars that models may cost over the run. Default: no limit.
        max_tokens: Most tokens of models over the run. Default: no limit.
        max_hours: Start no evaluation that would end later than this many hours after the call.
        eval_timeout_seconds: Most seconds for one evaluation. Default: no limit.
        eval_retries: Retries of an evaluation whose command failed or ran out of time.
        workers: Evaluations that run at the same time.
        executor: Where evaluations run: `threadpool`, `dask`, or the executor of a plug-in.
        dry_run: Simulate the evaluations: no agent, no sweep, no commits.
        make_baseline: Sweep the root commit first, if its results are missing or not usable.
        preflight: Before a new run, try the tests and the sweep of one config on the root commit.
        extend: Continue the run with other settings instead of refusing them.
        force: Take the run over from a process that is alive.
        until_done: Search until there is a stop reason. Otherwise beam search ends after one
            depth.
        cancel: Ends the search when it is set, like Ctrl-C. For callers in other threads. An
            error that ends the search sets it too, so give every call another event.
        on_event: Called with every event once it is recorded, as `events.jsonl` has it: `type`
            and the fields of docs/manifest.md. It runs in the thread of the call; an exception of
            it ends the search, and the run can be continued.

    Returns:
        The run, as `treewright.load_run` gives it.

    Raises:
        UsageError: An argument, the configuration or the state of the repository is wrong, or an
            argument differs from the recorded value of the run.
        LockActive: Another process owns the run.
        TreewrightError: The run is paused, because evaluations cannot be made now.
        KeyboardInterrupt: The user or `cancel` ended the search.

    Example:
        >>> run = search_commits(repo, run_id="first", dry_run=True, beam_width=2, max_depth=1)
        >>> run.stop_reason, run.nodes["depth"]
        ('max_depth_reached', [0, 1, 1])
    """
    given = locals()
    with _arguments_instead_of_flags():
        _check_numbers(given)
        limits = {"cost_usd": max_cost_usd, "tokens": max_tokens}
        caps: Caps = {k: {ALL: float(v)} for k, v in limits.items() if v is not None}
        request = RunRequest(
            repo=Path(repo),
            run_id=run_id,
            config_path=Path(config) if config is not None else None,
            shape=Shape(
                ideas_per_node=ideas_per_node,
                beam_width=beam_width,
                max_depth=max_depth,
                sweep_config_limit=sweep_config_limit,
                max_total_idea_evals=budget,
                confirm_configs=confirm_configs,
                dry_run=dry_run or None,
                patience=patience,
                elites=elites,
                caps=caps or None,
            ),
            choosing=PolicyChoice(
                policy=policy,
                options=dict(options) if options else None,
                order=order,
                lookahead=lookahead,
                branching=branching,
            ),
            make_baseline=make_baseline,
            preflight=preflight,
            failure_rules=FailureRules(retries=eval_retries, timeout_seconds=eval_timeout_seconds),
            parallelism=Parallelism(max_evals=workers, backend=executor),
            force=force,
            extend=extend,
            max_hours=max_hours,
        )

        def observe(event: ev.Event) -> None:
            if on_event is not None:
                on_event(msgspec.to_builtins(event))

        with (
            _cancel_on_interrupt(cancel or threading.Event()) as cancelled,
            open_run(request, observe, cancelled) as coordinator,
        ):
            search(coordinator, until_done=until_done)
            run_dir = coordinator.store.run_dir
        return TreeRun.read(run_dir)


def _check_numbers(given: Mapping[str, Any]) -> None:
    """Raise UsageError for a number that the command line would refuse."""
    for name, least in _LEAST.items():
        value = given[name]
        if value is not None and not (type(value) is int and value >= least):
            raise UsageError(f"{name} is {value!r}; give a whole number of at least {least}")
    for name in ("max_cost_usd", "max_tokens", "max_hours", "eval_timeout_seconds"):
        value = given[name]
        if value is not None and not (
            isinstance(value, int | float) and math.isfinite(value) and value > 0
        ):
            raise UsageError(f"{name} is {value!r}; give a number above 0")
    if given["order"] not in (None, "fixed", "live"):
        raise UsageError(f"order is {given['order']!r}; give 'fixed' or 'live'")


@contextlib.contextmanager
def _cancel_on_interrupt(cancel: threading.Event) -> Iterator[threading.Event]:
    """Set the event on the first Ctrl-C; the second one raises KeyboardInterrupt.

    Nothing changes in threads other than the main one, which receive no signals, and where the
    program handles Ctrl-C itself.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield cancel
        return

    def handle(_number: int, _frame: object) -> None:
        if cancel.is_set():
            process.no_grace.set()
            raise KeyboardInterrupt
        cancel.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        process.no_grace.clear()


@contextlib.contextmanager
def _arguments_instead_of_flags() -> Iterator[None]:
    """Name arguments of the function in error messages that name flags of the command line."""

    parameters = inspect.signature(search_commits).parameters

    def argument(flag: re.Match[str]) -> str:
        name = flag[2].replace("-", "_")
        name = _OTHER_NAMES.get(name, name)
        if name not in parameters:
            return flag[0]  # a flag of git or of another command
        if isinstance(parameters[name].default, bool):
            return f"{name}={not flag[1]}"
        return name

    try:
        yield
    except TreewrightError as error:
        error.args = tuple(
            re.sub(r"(?<![\w-])--(no-)?([a-z][a-z-]*[a-z])", argument, each).replace(
                "leave the flag out", "leave the argument out"
            )
            if isinstance(each, str)
            else each
            for each in error.args
        )
        raise
