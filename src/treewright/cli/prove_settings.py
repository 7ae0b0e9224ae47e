"""Turn the flags of `prove` into settings, and open the sources of tactics that a run recorded."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treewright.cli.options import FILE, combined, flag_name, option, read_user_file, record_options
from treewright.cli.output import announce
from treewright.kernel.errors import UsageError
from treewright.proving.cell_settings import CellSettings, parse_algotypes
from treewright.search.andor import policies
from treewright.search.policy_registry import parse_options

if TYPE_CHECKING:
    from treewright.proving.learning import Lesson
    from treewright.proving.settings import RunRecord, Settings
    from treewright.proving.tactics.basic_sources import TacticCache
    from treewright.proving.tactics.chat_model import Spend
    from treewright.proving.tactics.source import TacticSource

_CELL_HEADING = "Cell-view, with --mcts-mode distributed"
_CELL_FIELDS = tuple(
    name for name in CellSettings.__struct_fields__ if name not in ("algotypes", "schedule")
)
_CELL_FLAGS = (*_CELL_FIELDS, "algotypes", "interventions")
_POLICY_FIELDS = policies.Mcts.__struct_fields__
_PRICES = ("usd_per_million_prompt_tokens", "usd_per_million_completion_tokens")

policy_options = record_options(
    policies.Mcts, "Settings of the policy mcts (some are settings of other policies too)"
)
cell_options = combined(
    record_options(CellSettings, _CELL_HEADING),
    option(
        "--algotypes",
        heading=_CELL_HEADING,
        is_rare=True,
        default_text="puct",
        help="Mix of the cells' policies, such as ucb:2,depth_first:1.",
    ),
    option(
        "--interventions",
        type=FILE,
        heading=_CELL_HEADING,
        is_rare=True,
        help="TOML file with a schedule of interventions.",
    ),
)


def parse_settings(flags: dict[str, Any]) -> Settings:
    """Return the settings that the given flags say; all others have their defaults.

    Raises:
        UsageError: A flag has no effect in the chosen mode, or a flag that it needs is missing.
    """
    from treewright.llm.endpoint import require_no_password
    from treewright.llm.keys import not_set
    from treewright.proving.settings import EndpointSettings, Settings, SourceSettings

    mode = flags.get("mode", "centralized")
    for name in _CELL_FLAGS if mode == "centralized" else ():
        if name in flags:
            raise UsageError(f"{flag_name(name)} means something only with --mcts-mode distributed")
    if ("llm_url" in flags) != ("llm_model" in flags):
        raise UsageError("--llm-url and --llm-model go together")
    key_env = flags.get("llm_key_env")
    if key_env is not None and "llm_url" not in flags:
        raise UsageError("--llm-key-env is for --llm-url")
    prices = _given(flags, _PRICES)
    if prices and "llm_url" not in flags:
        raise UsageError(f"{flag_name(next(iter(prices)))} is for --llm-url")
    if key_env is not None and not os.environ.get(key_env, "").strip():
        raise UsageError(f"--llm-url needs a key: {not_set(key_env)}")
    endpoint = None
    if "llm_url" in flags:
        require_no_password(flags["llm_url"])
        endpoint = EndpointSettings(flags["llm_url"], flags["llm_model"], key_env, **prices)
    sources = SourceSettings(
        tactics=read_user_file(flags["tactics"]) if "tactics" in flags else None,
        premises=str(flags["premises"]) if "premises" in flags else None,
        cache=str(flags["ledger"]) if "ledger" in flags else None,
        endpoint=endpoint,
        advice=flags.get("advice", False),
        noise=flags.get("noise", SourceSettings().noise),
        known=True,
        strategies=flags.get("strategies", True) and mode == "centralized",
        learned=_read_lessons(flags["ledger"]) if "ledger" in flags else (),
    )
    search = ("simulations", "time_limit", "step_timeout", "seed", "batch", "refute")
    return Settings(
        mode=mode,
        policy=_parse_policy(flags, mode),
        sources=sources,
        cells=_parse_cells(flags) if mode == "distributed" else None,
        axioms=_parse_axioms(flags["axioms"]) if "axioms" in flags else Settings().axioms,
        **_given(flags, search),
    )


def _read_lessons(path: Path) -> tuple[Lesson, ...]:
    """Return the lessons of the searches in a ledger; they become part of the run's settings."""
    from treewright.orchestrator.ledger.ledger import Ledger
    from treewright.proving.tactics.factory import require_file

    with Ledger(require_file(str(path))) as ledger:
        return ledger.lessons()


def _parse_policy(flags: dict[str, Any], mode: str) -> policies.Policy:
    """Return the policy with the settings of `--policy-option` and of flags like `--discount`."""
    if mode == "distributed" and "policy" in flags:
        raise UsageError("--policy is for one searcher; cells choose by --algotypes")
    options = _given(flags, _POLICY_FIELDS)
    for name, value in parse_options(flags.get("policy_options", ())).items():
        if name in options:
            raise UsageError(f"{name!r} is given twice: by {flag_name(name)} and --policy-option")
        options[name] = value
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            where = flag_name(name) if name in flags else f"--policy-option {name}"
            raise UsageError(f"{where} must be a number")
    return policies.make(flags.get("policy", policies.Mcts.name), options)


def _parse_cells(flags: dict[str, Any]) -> CellSettings:
    from treewright.proving.cell_settings import load_schedule

    fields = _given(flags, _CELL_FIELDS)
    if "algotypes" in flags:
        fields["algotypes"] = parse_algotypes(flags["algotypes"])
        fields.setdefault("agents", len(fields["algotypes"]))
    if "agents" in fields:
        fields.setdefault("inflight", min(CellSettings().inflight, fields["agents"]))
    if "interventions" in flags:
        fields["schedule"] = load_schedule(flags["interventions"])
    return CellSettings(**fields)


def _parse_axioms(text: str) -> tuple[str, ...]:
    names = {name.strip() for name in text.split(",")} - {""}
    if "sorryAx" in names:
        raise UsageError("--axioms cannot allow sorryAx: a proof with sorry is none")
    return tuple(sorted(names))


def refuse_other_flags(flags: dict[str, Any], allowed: tuple[str, ...], why: str) -> None:
    """Raise `UsageError` for the first flag that is not allowed."""
    spelled = {
        "mode": "--mcts-mode",
        "policy_options": "--policy-option",
        "requested": "--lean",
        "as_json": "--json",
        "target": "TARGET",
    }
    for name in flags:
        if name not in allowed:
            raise UsageError(f"{why}; leave out {spelled.get(name, flag_name(name))}")


def _given(flags: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: flags[name] for name in names if name in flags}


@contextlib.contextmanager
def opened_source(record: RunRecord, spend: Spend = lambda usage: None) -> Iterator[TacticSource]:
    """Yield the tactic source of a run.

    Args:
        spend: Called with the usage of each answer of a model.
    """
    from treewright.proving.tactics import factory

    with contextlib.ExitStack() as stack:
        cache: TacticCache | None = None
        if record.settings.sources.cache is not None:
            from treewright.orchestrator.ledger.ledger import Ledger, LedgerTacticCache

            ledger = Ledger(factory.require_file(record.settings.sources.cache))
            stack.callback(ledger.close)
            cache = LedgerTacticCache(ledger)
        yield stack.enter_context(
            factory.open_source(
                record, spend, cache, lambda text: announce(f"no tactics from the model: {text}")
            )
        )
