"""When a goal was not proved: perhaps it is false. A short search for its negation.

It takes no longer than the search itself was allowed to.

Only a replayed proof of the negation counts; without one nothing is claimed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from treewright.lean.replay import Replayer
from treewright.lean.session import LeanError, LeanSession
from treewright.mcts import extraction
from treewright.mcts.centralized import CentralizedEngine
from treewright.mcts.environment import LeanEnvironment
from treewright.mcts.expansion import Expander
from treewright.mcts.settings import Settings
from treewright.mcts.sources.base import AskingStopped, TacticSource, stop_when
from treewright.mcts.values import estimate
from treewright.mcts.verification import verify_refutation

MOST_SIMULATIONS = 40
MOST_SECONDS = 60.0


def refute(
    statement: str,
    sessions: Callable[[], LeanSession],
    source: TacticSource,
    settings: Settings,
    replayer: Replayer,
    stop_asked: Callable[[], bool],
) -> str | None:
    """A script that proves `¬ statement` and passed the replay check, if one is found."""
    limit = settings.time_limit if settings.time_limit is not None else MOST_SECONDS
    deadline = time.monotonic() + min(limit, MOST_SECONDS)

    def is_over() -> bool:
        return stop_asked() or time.monotonic() > deadline

    stop_when(source, is_over)
    environment = LeanEnvironment(
        sessions,
        lambda session: session.start(f"¬ ({statement})"),
        step_seconds=settings.step_timeout,
    )
    try:
        engine = CentralizedEngine(
            Expander(environment, source, estimate, batch=settings.batch), settings.policy
        )
        for _ in range(min(MOST_SIMULATIONS, settings.simulations)):
            if engine.finished or is_over():
                break
            engine.step()
        if engine.tree.root.proof is None:
            return None
        script = extraction.render(extraction.extract(engine.tree.root))
        return script if verify_refutation(replayer, statement, script).proved else None
    except (LeanError, AskingStopped):
        return None
    finally:
        environment.close()
