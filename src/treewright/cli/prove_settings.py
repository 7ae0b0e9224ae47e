"""The flags of `prove` as the settings of a run; what means nothing together is an error."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treewright.cli.prove_cells import CELL_FLAGS, cells_of
from treewright.kernel.errors import UsageError
from treewright.search.andor import policies
from treewright.search.registry import given_options

if TYPE_CHECKING:
    from treewright.proving.learning import Lesson
    from treewright.proving.settings import Settings

_POLICY = (
    "exploration", "first_play", "backup", "discount", "widen_base", "widen_scale", "widen_power",
)  # fmt: skip

_PRICES = ("usd_per_million_prompt_tokens", "usd_per_million_completion_tokens")


def settings_of(flags: dict[str, Any]) -> Settings:
    """Flags of one mode in the other are an error, so that none is silently without effect."""
    from treewright.llm.endpoint import require_no_password
    from treewright.llm.keys import not_set
    from treewright.proving.settings import EndpointSettings, Settings, SourceSettings

    mode = flags.get("mode", "centralized")
    for name in CELL_FLAGS if mode == "centralized" else ():
        if name in flags:
            raise UsageError(f"{_flag(name)} means something only with --mcts-mode distributed")
    if ("llm_url" in flags) != ("llm_model" in flags):
        raise UsageError("--llm-url and --llm-model go together")
    key_env = flags.get("llm_key_env")
    if key_env is not None and "llm_url" not in flags:
        raise UsageError("--llm-key-env is for --llm-url")
    prices = _some(flags, *_PRICES)
    if prices and "llm_url" not in flags:
        raise UsageError(f"{_flag(next(iter(prices)))} is for --llm-url")
    if key_env is not None and not os.environ.get(key_env, "").strip():
        raise UsageError(f"--llm-url needs a key: {not_set(key_env)}")
    endpoint = None
    if "llm_url" in flags:
        require_no_password(flags["llm_url"])
        endpoint = EndpointSettings(flags["llm_url"], flags["llm_model"], key_env, **prices)
    tactics = flags.get("tactics")
    premises = flags.get("premises")
    sources = SourceSettings(
        tactics=_read(tactics) if tactics else None,
        premises=str(premises) if premises else None,
        cache=str(flags["ledger"]) if "ledger" in flags else None,
        endpoint=endpoint,
        advice=flags.get("advice", False),
        noise=flags.get("noise", SourceSettings().noise),
        known=True,
        learned=_lessons(flags.get("ledger")),
    )
    return Settings(
        mode=mode,
        policy=_policy(flags, mode),
        sources=sources,
        cells=cells_of(flags) if mode == "distributed" else None,
        axioms=_axioms(flags["axioms"]) if "axioms" in flags else Settings().axioms,
        **_some(flags, "simulations", "time_limit", "step_timeout", "seed", "batch", "refute"),
    )


def _lessons(path: Path | None) -> tuple[Lesson, ...]:
    """What the searches in a ledger teach: part of the run's settings from now on."""
    if path is None:
        return ()
    from treewright.orchestrator.ledger.store import Ledger
    from treewright.proving.tactics.factory import existing

    with Ledger(existing(str(path))) as ledger:
        return ledger.lessons()


def _policy(flags: dict[str, Any], mode: str) -> policies.Policy:
    """Flags that are shorthand for a setting, and settings by name; none of them twice."""
    if mode == "distributed" and "policy" in flags:
        raise UsageError("--policy is for one searcher; cells choose by --algotypes")
    options = _some(flags, *_POLICY)
    for name, value in given_options(flags.get("policy_options", ())).items():
        if name in options:
            raise UsageError(f"{name!r} is given twice: by {_flag(name)} and --policy-option")
        options[name] = value
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            where = _flag(name) if name in flags else f"--policy-option {name}"
            raise UsageError(f"{where} must be a number")
    return policies.make(flags.get("policy", policies.Mcts.name), options)


def _axioms(text: str) -> tuple[str, ...]:
    """The names in `--axioms`, in order."""
    names = {name.strip() for name in text.split(",")} - {""}
    if "sorryAx" in names:
        raise UsageError("--axioms cannot allow sorryAx: a proof with sorry is none")
    return tuple(sorted(names))


def only(flags: dict[str, Any], allowed: tuple[str, ...], why: str) -> None:
    for name in flags:
        if name not in allowed:
            raise UsageError(f"{why}; leave out {_flag(name)}")


def _flag(name: str) -> str:
    names = {
        "mode": "--mcts-mode",
        "policy_options": "--policy-option",
        "as_json": "--json",
        "target": "TARGET",
    }
    return names.get(name, f"--{name.replace('_', '-')}")


def _some(flags: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: flags[name] for name in names if name in flags}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from None
