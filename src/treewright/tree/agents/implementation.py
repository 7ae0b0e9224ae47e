"""From an idea to changed files: a plan, then rounds of code and review.

`implement` enforces the rules that hold for every backend: each role gets its prompt, only edits of
the coder stay, HEAD does not move, and each round has a log. Nothing is committed; the change stays
in the files of the worktree.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.procs.cancellation import check
from treewright.llm.chat import without_reasoning
from treewright.llm.redaction import redact
from treewright.llm.usage import Usage, largest_usage, sane_usage
from treewright.tree.agents import prompts, transcript
from treewright.tree.agents.backend import AgentFailure, Backend, Role, RoleReply, RoleRequest
from treewright.tree.agents.backend_factory import make_backend
from treewright.tree.agents.checkout import Checkout
from treewright.tree.agents.prompts import (
    PromptTooLong,
    View,
)
from treewright.tree.config import BackendConfig, CommandBackend, Config, OpenaiBackend
from treewright.tree.deciding.caps import CAP_REACHED, Allowance
from treewright.tree.guard.isolation import Isolation
from treewright.tree.repository.blocks import block_rules
from treewright.tree.repository.staging import Staged

_NOTHING = "(none)"


@dataclass(frozen=True, slots=True)
class Assignment:
    """An idea to implement in a worktree."""

    config: Config
    idea: str
    worktree: Path
    log_dir: Path
    repo: Path
    """Relative paths of the configuration (prompts, scripts) are resolved here."""
    parent_context: str = ""
    """Markdown about the parent node, for the prompts."""
    seed: int = 0
    owner: str = ""
    cancel: threading.Event | None = None
    allowance: Allowance | None = None
    """A call that could break these caps is not made."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables for commands."""
    isolation: Isolation | None = None
    protected: Sequence[str] = ()
    """Protected paths in addition to those of the configuration."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """An idea that is now in the files of the worktree."""

    review_rounds: int
    approved: bool | None
    """None without a reviewer."""
    usage: Usage
    plan: str
    roles: dict[str, Usage] = field(default_factory=dict)
    """The usage of each role."""
    staged: Staged | None = None
    """The staged change, without a reviewer: then no agent runs after the coder."""


def implement(assignment: Assignment) -> Implementation:
    """Run planner, coder and reviewer.

    Raises:
        AgentFailure: a role failed, or the reviewer did not approve the change. It carries the
            usage up to the failure.
    """
    return _Conversation(assignment).run()


class _Conversation:
    """The calls of the roles for one assignment."""

    def __init__(self, assignment: Assignment) -> None:
        config = assignment.config
        self._assignment = assignment
        self._config = config
        self._checkout = Checkout.of(assignment.worktree)
        self._view = View.of(config, assignment.protected)
        self._totals: dict[str, Usage] = {}
        self._largest: dict[str, Usage] = {}
        """The usage of the most expensive call of each role."""
        self._staged: Staged | None = None
        self._answered = False
        # With editable blocks, every path outside them is protected anyway.
        protected = [] if config.editable_blocks else config.protected_paths
        rules = [f"- {rule}" for rule in (*protected, *block_rules(config.editable_blocks))]
        self._values = {
            "task": config.task.strip() or prompts.NO_TASK,
            "idea": assignment.idea.strip(),
            "parent_context": assignment.parent_context.strip() or _NOTHING,
            "protected_paths": "\n".join(rules) or _NOTHING,
            "max_rounds": str(config.max_review_rounds),
            "plan": _NOTHING,
            "review": _NOTHING,
        }

    def run(self) -> Implementation:
        config, repo = self._config, self._assignment.repo
        planner = make_backend("planner", config.agents.planner, repo)
        coder = make_backend("coder", config.agents.coder, repo)
        reviewer = make_backend("reviewer", config.agents.reviewer, repo)
        assert coder is not None
        rounds = config.max_review_rounds
        try:
            plan = self._plan(planner)
            for number in range(1, rounds + 1):
                verdict = self._round(number, coder, reviewer)
                if verdict in ("approve", "no_reviewer"):
                    approved = True if verdict == "approve" else None
                    return self._implementation(number, approved, plan)
        except AgentFailure as failure:
            failure.usage = sum(self._totals.values(), Usage())
            failure.roles = self._totals
            raise
        if config.proceed_on_max_review_rounds:
            return self._implementation(rounds, False, plan)
        raise AgentFailure(
            "review_not_approved",
            f"the reviewer still requested changes after {rounds} round(s)",
            log=transcript.review_path(self._assignment.log_dir, rounds),
            usage=sum(self._totals.values(), Usage()),
        )

    def _implementation(self, rounds: int, approved: bool | None, plan: str) -> Implementation:
        usage = sum(self._totals.values(), Usage())
        return Implementation(rounds, approved, usage, plan, self._totals, self._staged)

    def _spend(self, role: Role, usage: Usage) -> None:
        if usage != Usage():
            self._totals[role] = self._totals.get(role, Usage()) + usage
            self._largest[role] = _larger(self._largest.get(role, Usage()), usage)

    def _plan(self, planner: Backend | None) -> str:
        plan = ""
        if planner is not None:
            reply = self._ask("planner", planner, self._config.agents.planner, 1)
            plan = reply.text.strip()
            self._values["plan"] = plan or _NOTHING
        text = plan or "No planner is configured: the idea itself is the plan."
        transcript.write(self._assignment.log_dir / "plan.md", f"# Plan\n\n{text}\n")
        return plan

    def _round(self, number: int, coder: Backend, reviewer: Backend | None) -> str:
        """Call the coder and, if there is one, the reviewer. Return the verdict of the round."""
        record = transcript.ReviewRound(number)
        try:
            reply = self._ask("coder", coder, self._config.agents.coder, number)
            record.report, record.coder_usage = reply.text, reply.usage
            if reviewer is None:
                self._staged = self._checkout.stage()
                record.diff_stat = self._staged.stat
                _require_change(record.diff_stat)
                record.verdict = "no_reviewer"
                return record.verdict
            with self._checkout.changes() as changes:
                record.diff_stat = changes.stat()
                _require_change(record.diff_stat)
                diff = changes.diff()
            self._values |= {"report": reply.text.strip(), "diff": diff}
            reply = self._ask("reviewer", reviewer, self._config.agents.reviewer, number)
            record.review, record.reviewer_usage = reply.text, reply.usage
            record.verdict = transcript.parse_verdict(reply.text)
            self._values["review"] = reply.text.strip()
            return record.verdict
        except AgentFailure as failure:
            record.failure = failure
            raise
        finally:
            check(self._assignment.cancel)
            record.write(self._assignment.log_dir)

    def _ask(self, role: Role, backend: Backend, config: BackendConfig, number: int) -> RoleReply:
        """Call a role. Afterwards undo moves of HEAD, and edits of any role but the coder."""
        cancel = self._assignment.cancel
        if cancel is not None and cancel.is_set():
            raise AgentFailure("cancelled", f"cancelled before the {role} ran", retryable=True)
        before = None if role == "coder" else self._checkout.tree()
        prompt = self._prompt(role, config, number)
        self._check_allowance(role, config, prompt)
        assignment, moved = self._assignment, False
        request = RoleRequest(
            role=role,
            round=number,
            prompt=prompt,
            idea=assignment.idea,
            worktree=assignment.worktree,
            log_dir=assignment.log_dir,
            seed=assignment.seed + number - 1,
            owner=assignment.owner,
            cancel=cancel,
            variables=assignment.variables,
            isolation=assignment.isolation,
            answered=self._answered,
            view=self._view,
        )
        try:
            if isinstance(config, CommandBackend):
                with self._checkout.in_private() as private:
                    reply = backend.run(request)
                moved = private.moved
            else:
                reply = backend.run(request)
        except AgentFailure as failure:
            self._spend(role, sane_usage(failure.usage))
            check(cancel)
            failure.message = redact(failure.message)  # the message goes into a record
            failure.args = (failure.message,)
            with contextlib.suppress(AgentFailure):  # report the first failure, not this one
                self._checkout.take_back_head()
            raise
        check(cancel)
        self._answered = self._answered or isinstance(config, OpenaiBackend)
        reply = RoleReply(without_reasoning(reply.text), sane_usage(reply.usage))
        self._spend(role, reply.usage)
        notes = ""  # notes precede the reply, because the last line of a review is its verdict
        if self._checkout.take_back_head() or moved:
            notes += "[treewright: commits or branch switches were undone, the files kept]\n\n"
        if before is not None and self._checkout.restore(before):
            notes += f"[treewright: edits made by the {role} were undone]\n\n"
        return RoleReply(notes + reply.text, reply.usage) if notes else reply

    def _check_allowance(self, role: Role, config: BackendConfig, prompt: str) -> None:
        """Refuse a call that could break a cap.

        The cost of a call to a chat endpoint has a known bound. For a command the bound is the
        configured one, or the role's most expensive call for this candidate if that is larger.
        """
        allowance = self._assignment.allowance
        if allowance is None:
            return
        if isinstance(config, OpenaiBackend):
            call = largest_usage(config.endpoint, prompt)
        else:
            call = self._largest.get(role, Usage())
            if isinstance(config, CommandBackend):
                call = _larger(call, config.most)
        refusal = allowance.refusal(self._totals, role, call)
        if refusal is not None:
            raise AgentFailure(CAP_REACHED, refusal)

    def _prompt(self, role: Role, config: BackendConfig, number: int) -> str:
        custom = config.prompt if isinstance(config, CommandBackend | OpenaiBackend) else None
        template = prompts.load_template(role, custom, self._assignment.repo)
        values = {
            **self._values,
            "round": str(number),
            "how_to_edit": prompts.load_builtin(
                "edit_in_reply" if isinstance(config, OpenaiBackend) else "edit_in_place"
            ).strip(),
            "repository": "The repository is the current directory. Read whatever you need in it.",
        }
        if not isinstance(config, OpenaiBackend):
            return prompts.substitute(template, values)
        without = prompts.substitute(template, {**values, "repository": ""})
        room = config.prompt_tokens * prompts.CHARS_A_TOKEN - len(without)
        try:
            if room < 0:
                raise PromptTooLong(f"it has {len(without)} characters without any file")
            if prompts.mentions(template, "repository"):
                about = "\n".join(values[name] for name in ("idea", "plan", "review"))
                values["repository"] = prompts.show_files(
                    self._assignment.worktree, about, room, self._view
                )
        except PromptTooLong as problem:
            raise AgentFailure(
                "prompt_too_long",
                f"the prompt of the {role} is longer than {config.prompt_tokens} tokens: "
                f"{problem}; raise `prompt_tokens`",
            ) from None
        return prompts.substitute(template, values)


def _require_change(diff_stat: str) -> None:
    if not diff_stat:
        raise AgentFailure("no_changes", "the coder changed no file")


def _larger(one: Usage, other: Usage) -> Usage:
    """Return a bound of two usages: the more tokens of any kind, and the higher cost."""
    return Usage(max(one.tokens, other.tokens), 0, max(one.cost_usd, other.cost_usd))
