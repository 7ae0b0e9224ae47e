"""From an idea to changed files: plan, then code and review, a bounded number of times.

The loop owns what holds for every backend: which prompt a role gets, that only the
coder's edits stay, that HEAD stays where it was, what is written about each round.
It commits nothing; the worktree is left with the change in its files.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.procs.cancellation import check
from treewright.llm.reasoning import without_reasoning
from treewright.llm.redaction import redact
from treewright.llm.usage import Usage, largest_usage, sane_usage
from treewright.tree.agents import prompt_templates, review_round, transcript
from treewright.tree.agents.backend import AgentFailure, Backend, Role, RoleReply, RoleRequest
from treewright.tree.agents.backend_factory import make_backend
from treewright.tree.agents.checkout import Checkout
from treewright.tree.agents.source_view import PromptTooLong, how_to_edit, repository_view
from treewright.tree.agents.view import View
from treewright.tree.config import BackendConfig, CommandBackend, Config, OpenaiBackend
from treewright.tree.deciding.caps import CAP_REACHED, Allowance
from treewright.tree.guard.isolation import Isolation
from treewright.tree.repository.blocks import block_rules
from treewright.tree.repository.staging import Staged

_NOTHING = "(none)"


@dataclass(frozen=True, slots=True)
class Implementation:
    """An idea that is now in the worktree's files. `approved` is None without a reviewer; then
    nobody was there after the coder, and the change is staged."""

    review_rounds: int
    approved: bool | None
    usage: Usage
    plan: str
    roles: dict[str, Usage] = field(default_factory=dict)
    staged: Staged | None = None


def implement(
    config: Config,
    idea_text: str,
    worktree: Path,
    log_dir: Path,
    parent_context: str = "",
    *,
    repo: Path,
    seed: int = 0,
    owner: str = "",
    cancel: threading.Event | None = None,
    allowance: Allowance | None = None,
    variables: Mapping[str, str] | None = None,
    isolation: Isolation | None = None,
    protected: Sequence[str] = (),
) -> Implementation:
    """Runs planner, coder and reviewer in `worktree`.

    `parent_context` is Markdown about the parent node, for the prompts. Relative paths
    of the configuration (prompts, scripts) are looked up in `repo`. An AgentFailure
    carries the usage up to it. A call that could break the `allowance` is not made. Commands
    get the `variables` in their environment, and run in `isolation` if there is one. `protected`
    are paths that are protected beside those of the configuration.
    """
    loop = _Loop(config, idea_text, worktree, log_dir, parent_context, repo, seed, owner, cancel)
    loop.allowance, loop.variables = allowance, dict(variables or {})
    loop.isolation, loop.view = isolation, View.of(config, protected)
    return loop.run()


class _Loop:
    def __init__(
        self,
        config: Config,
        idea: str,
        worktree: Path,
        log_dir: Path,
        parent_context: str,
        repo: Path,
        seed: int,
        owner: str,
        cancel: threading.Event | None,
    ) -> None:
        self._config = config
        self._idea = idea
        self._log_dir = log_dir
        self._repo = repo
        self._seed = seed
        self._owner = owner
        self._cancel = cancel
        self._checkout = Checkout.of(worktree)
        self._usage = Usage()
        self._staged: Staged | None = None
        self._answered = False
        self._roles: dict[str, Usage] = {}
        self._largest: dict[str, Usage] = {}
        self.allowance: Allowance | None = None
        self.variables: dict[str, str] = {}
        self.isolation: Isolation | None = None
        self.view = View.of(config)
        # Where blocks are editable, nothing else is: a list of what is protected adds nothing.
        protected = [] if config.editable_blocks else config.protected_paths
        self._values = {
            "task": config.task.strip() or prompt_templates.NO_TASK,
            "idea": idea.strip(),
            "parent_context": parent_context.strip() or _NOTHING,
            "protected_paths": "\n".join(
                f"- {entry}" for entry in (*protected, *block_rules(config.editable_blocks))
            )
            or _NOTHING,
            "max_rounds": str(config.max_review_rounds),
            "plan": _NOTHING,
            "review": _NOTHING,
        }

    def run(self) -> Implementation:
        agents = self._config.agents
        planner = make_backend("planner", agents.planner, self._repo)
        coder = make_backend("coder", agents.coder, self._repo)
        reviewer = make_backend("reviewer", agents.reviewer, self._repo)
        assert coder is not None
        try:
            plan = self._plan(planner)
            for number in range(1, self._config.max_review_rounds + 1):
                judged = self._round(number, coder, reviewer)
                if judged != "request_changes":
                    approved = True if judged == "approve" else None
                    return Implementation(
                        number, approved, self._usage, plan, self._roles, self._staged
                    )
        except AgentFailure as failure:
            failure.usage = sane_usage(failure.usage) + self._usage
            failure.roles = self._roles
            raise
        rounds_done = self._config.max_review_rounds
        if self._config.proceed_on_max_review_rounds:
            return Implementation(rounds_done, False, self._usage, plan, self._roles)
        raise AgentFailure(
            "review_not_approved",
            f"the reviewer still requested changes after {rounds_done} round(s)",
            log=review_round.path(self._log_dir, rounds_done),
            usage=self._usage,
        )

    def _plan(self, planner: Backend | None) -> str:
        plan = ""
        if planner is not None:
            reply = self._ask("planner", planner, self._config.agents.planner, 1)
            plan = reply.text.strip()
            self._values["plan"] = plan or _NOTHING
        said = plan or "No planner is configured: the idea itself is the plan."
        transcript.write(self._log_dir / "plan.md", f"# Plan\n\n{said}\n")
        return plan

    def _round(self, number: int, coder: Backend, reviewer: Backend | None) -> str:
        """One coder call and, if there is a reviewer, one review. Returns what it came to."""
        record = review_round.Round(number)
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
            record.verdict = review_round.parse_verdict(reply.text)
            self._values["review"] = reply.text.strip()
            return "approve" if record.verdict == "approve" else "request_changes"
        except AgentFailure as failure:
            record.failure = failure
            raise
        finally:
            check(self._cancel)
            record.write(self._log_dir)

    def _ask(self, role: Role, backend: Backend, config: BackendConfig, number: int) -> RoleReply:
        """Calls a role, and puts right what no role may do."""
        if self._cancel is not None and self._cancel.is_set():
            raise AgentFailure("cancelled", f"cancelled before the {role} ran", retryable=True)
        before = None if role == "coder" else self._checkout.tree()
        prompt = self._prompt(role, config, number)
        self._check_allowance(role, config, prompt)
        request = RoleRequest(
            role=role,
            round=number,
            prompt=prompt,
            idea=self._idea,
            worktree=self._checkout.worktree,
            log_dir=self._log_dir,
            seed=self._seed + number - 1,
            owner=self._owner,
            cancel=self._cancel,
            variables=self.variables,
            isolation=self.isolation,
            answered=self._answered,
            view=self.view,
        )
        moved = False
        try:
            if isinstance(config, CommandBackend):
                with self._checkout.in_private() as seen:
                    reply = backend.run(request)
                moved = seen.moved
            else:
                reply = backend.run(request)
        except AgentFailure as failure:
            self._count(role, sane_usage(failure.usage))
            check(self._cancel)
            failure.message = redact(failure.message)  # it is recorded, not used
            failure.args = (failure.message,)
            with contextlib.suppress(AgentFailure):  # the first failure is the one to report
                self._checkout.take_back_head()
            raise
        check(self._cancel)
        self._answered = self._answered or isinstance(config, OpenaiBackend)
        reply = RoleReply(without_reasoning(reply.text), sane_usage(reply.usage))
        self._usage += reply.usage
        self._count(role, reply.usage)
        notes = ""  # in front of the reply, because a review's last line is its verdict
        if self._checkout.take_back_head() or moved:
            notes += "[treewright: commits or branch switches were undone, the files kept]\n\n"
        if before is not None and self._checkout.restore(before):
            notes += f"[treewright: edits made by the {role} were undone]\n\n"
        return RoleReply(notes + reply.text, reply.usage) if notes else reply

    def _count(self, role: Role, usage: Usage) -> None:
        if usage != Usage():
            self._roles[role] = self._roles.get(role, Usage()) + usage
            self._largest[role] = _larger(self._largest.get(role, Usage()), usage)

    def _check_allowance(self, role: Role, config: BackendConfig, prompt: str) -> None:
        """Of a chat endpoint it is known how much a call may cost at most; of others what the
        configuration says, or the role's most expensive call for this candidate has cost."""
        if self.allowance is None:
            return
        if isinstance(config, OpenaiBackend):
            call = largest_usage(config.endpoint, prompt)
        else:
            call = self._largest.get(role, Usage())
            if isinstance(config, CommandBackend):
                call = _larger(call, config.most)
        refusal = self.allowance.refusal(self._roles, role, call)
        if refusal is not None:
            raise AgentFailure(CAP_REACHED, refusal)

    def _prompt(self, role: Role, config: BackendConfig, number: int) -> str:
        template = prompt_templates.load(role, _replacement(config), self._repo)
        values = {**self._values, "round": str(number), "how_to_edit": how_to_edit(config)}
        without = prompt_templates.substitute(template, {**values, "repository": ""})
        tokens = config.prompt_tokens if isinstance(config, OpenaiBackend) else 0
        room = tokens * prompt_templates.CHARS_A_TOKEN - len(without)
        try:
            if isinstance(config, OpenaiBackend) and room < 0:
                raise PromptTooLong(f"it has {len(without)} characters without any file")
            if prompt_templates.mentions(template, "repository"):
                about = "\n".join(values[name] for name in ("idea", "plan", "review"))
                values["repository"] = repository_view(
                    config, self._checkout.worktree, about, room, self.view
                )
        except PromptTooLong as problem:
            raise AgentFailure(
                "prompt_too_long",
                f"the prompt of the {role} is longer than {tokens} tokens: {problem}; "
                "raise `prompt_tokens`",
            ) from None
        return prompt_templates.substitute(template, values)


def _require_change(diff_stat: str) -> None:
    if not diff_stat:
        raise AgentFailure("no_changes", "the coder left every file as it was")


def _replacement(config: BackendConfig) -> str | None:
    return config.prompt if isinstance(config, CommandBackend | OpenaiBackend) else None


def _larger(one: Usage, other: Usage) -> Usage:
    """As expensive as the more expensive of the two, in tokens of any kind and in cost."""
    return Usage(max(one.tokens, other.tokens), 0, max(one.cost_usd, other.cost_usd))
