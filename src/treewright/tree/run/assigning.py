"""What a dispatcher wants of whoever has the work: by depth, or one choice after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.records.model import EvalOutcome, Evaluation

Word = Literal["go", "wait", "end"]


class Assigner(Protocol):
    """Who has the work: makes requests, hands out more, and is told what came of it."""

    has_barrier: bool
    """Whether all that was handed out is waited for: whose failure it was can be judged then."""

    works_here: bool
    """Whether evaluations are made on this machine, where a look at the root tells of them."""

    def request(self, evaluation: Evaluation, attempt: int) -> EvalRequest: ...

    def heldout_request(self, evaluation: Evaluation, attempt: int) -> HeldoutRequest: ...

    def more(self, room: int) -> Sequence[str]:
        """Further evaluations, queued; `room` workers have nothing to do."""
        ...

    def is_preparing(self) -> bool:
        """Whether there will be more, without anything being finished first."""
        ...

    def finished(self, eval_id: str) -> Sequence[str]:
        """An evaluation has its outcome; returns what is to be swept on held-out configs."""
        ...

    def measured(self, eval_id: str, outcome: HeldoutOutcome) -> None: ...

    def peers(self) -> Iterable[Evaluation]:
        """Those with which a failure is compared: did others get through?"""
        ...

    def sweep_works(self, slot: int | None = None, *, anew: bool = False) -> bool:
        """Asked before a failed sweep is put down to a candidate. In the given place for
        evaluations, if any. `anew`: an answer of a while ago will not do."""
        ...

    def tests_work(self, slot: int | None = None, *, anew: bool = False) -> bool:
        """Likewise, of failed tests."""
        ...

    def word(self) -> Word:
        """What somebody who steers the run has said by now: hand out work, none for now, none."""
        ...

    def may_start(self) -> bool:
        """Whether a further evaluation may start beside those that are under way."""
        ...

    def fell_short(self, eval_id: str) -> None:
        """An evaluation was given too little under the run's caps; it goes back to the queue."""
        ...

    def held(self, eval_id: str, outcome: EvalOutcome) -> None:
        """An evaluation is over, and whose failure it was is judged once others are through."""
        ...

    def over(self, eval_id: str) -> None:
        """An evaluation has ended and what came of it is recorded, if anything."""
        ...

    def where(self) -> str:
        """The place of the search, for the line that says why it paused."""
        ...
