"""A role played by a command-line agent that runs in the worktree.

The agent reads its prompt from stdin or from a file. Its output is the log of the call. Its
processes end with the call, and its private files are removed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from treewright.kernel.procs import process
from treewright.kernel.procs.capped_log import last_lines
from treewright.kernel.procs.sandbox import SCRATCH
from treewright.kernel.storage import untrusted
from treewright.llm.redaction import without_api_keys
from treewright.llm.usage import mark_unpriced, sane_usage
from treewright.tree.agents import presets, transcript
from treewright.tree.agents.backend import AGENT_TIMEOUT, AgentFailure, Role, RoleReply, RoleRequest
from treewright.tree.agents.presets import PRESETS, Preset, agent_keys
from treewright.tree.config import CommandBackend
from treewright.tree.records import usage_log
from treewright.tree.repository.git import try_git


class CommandAgent:
    """The backend `command`."""

    def __init__(self, config: CommandBackend) -> None:
        self._config = config
        self._preset: Preset | None = PRESETS[config.preset] if config.preset else None

    def run(self, request: RoleRequest) -> RoleReply:
        request.log_dir.mkdir(parents=True, exist_ok=True)
        stem = f"{request.role}_round_{request.round}"
        prompt_file = request.log_dir / f"{stem}.prompt.md"
        log = request.log_dir / f"{stem}.log"
        template = argument_template(self._config, request.role)
        private = str(request.log_dir.resolve()) if request.isolation is None else SCRATCH
        values = {"{prompt_file}": str(prompt_file.resolve()), "{log_dir}": private}
        values |= {f"{{{name}}}": text for name, text in self._call_limits().items()}
        command = list(template)
        for name, value in values.items():
            command = [argument.replace(name, value) for argument in command]
        if find_executable(command[0], request.worktree) is None:
            raise AgentFailure("agent_missing", explain_missing(command[0], self._preset))
        on_stdin = not any("{prompt_file}" in argument for argument in template)
        transcript.write_for_use(prompt_file, request.prompt)
        around: list[str] = []
        if request.isolation is not None:
            around = request.isolation.around(
                request.worktree, self._config, agent=True, readable=(prompt_file.resolve(),)
            )
        try:
            done = process.run(
                command,
                cwd=request.worktree,
                log_path=log,
                env=self._environment(request),
                stdin=request.prompt.encode("utf-8", "surrogateescape") if on_stdin else b"",
                timeout=self._config.timeout_seconds,
                cancel=request.cancel,
                owner=request.owner,
                around=around,
            )
        finally:
            transcript.scrub(prompt_file)
            output = without_api_keys(transcript.scrub(log))
        if request.isolation is not None:
            request.isolation.leave(request.worktree)
        self._clear_debris(request.worktree)
        try:
            reply = self._reply(done, output, log, request.role)
        except AgentFailure as failure:
            usage_log.add(request.log_dir, failure.usage, role=request.role)
            raise
        usage_log.add(request.log_dir, reply.usage, role=request.role)
        return reply

    def _environment(self, request: RoleRequest) -> dict[str, str]:
        """Return the user's environment without git's variables, with those of the request."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        limits = {f"TREEWRIGHT_{n.upper()}": text for n, text in self._call_limits().items()}
        variables = {
            **own,
            **request.variables,
            "TREEWRIGHT_ROLE": request.role,
            "TREEWRIGHT_ROUND": str(request.round),
            "TREEWRIGHT_SEED": str(request.seed),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
            **limits,
        }
        if request.isolation is None:
            return variables
        return request.isolation.environment(variables, self._config, agent_keys())

    def _call_limits(self) -> dict[str, str]:
        """Return the configured limits of one call, by name."""
        given = {"max_cost_usd": self._config.max_cost_usd, "max_tokens": self._config.max_tokens}
        return {name: f"{most:.15g}" for name, most in given.items() if most is not None}

    def _reply(self, done: process.ProcessResult, output: str, log: Path, role: Role) -> RoleReply:
        name = Path(argument_template(self._config, role)[0]).name
        reads = self._config.preset or self._config.reads
        read = PRESETS[reads].read if reads else presets.read_plain
        try:
            reply = read(output)
            reply = RoleReply(reply.text, mark_unpriced(sane_usage(reply.usage)))
        except AgentFailure as failure:
            failure.log = log
            failure.usage = mark_unpriced(sane_usage(failure.usage))
            raise
        if done.ok:
            return reply
        code = "agent_failed"
        if done.timed_out:
            code = AGENT_TIMEOUT
        elif done.cancelled:
            code = "cancelled"
        ending = "" if done.timed_out or done.cancelled else last_lines(output)
        raise AgentFailure(
            code,
            done.explain(f"{role} `{name}`") + (f": {ending}" if ending else ""),
            retryable=done.timed_out or done.cancelled,
            log=log,
            usage=reply.usage,
        )

    def _clear_debris(self, worktree: Path) -> None:
        """Remove the agent's untracked private files, so that they are not part of the change."""
        for pattern in self._preset.debris if self._preset else ():
            for path in worktree.glob(pattern):
                tracked = try_git(worktree, "ls-files", "--error-unmatch", "--", path.name)
                if tracked.returncode != 0:
                    untrusted.remove_tree(path)


def argument_template(config: CommandBackend, role: Role) -> list[str]:
    """Return the command line with its placeholders."""
    if config.preset is None:
        return list(config.command or ())
    preset = PRESETS[config.preset]
    limit = () if config.max_cost_usd is None else preset.cost_limit
    return [*(preset.editing if role == "coder" else preset.reading), *limit]


def find_executable(name: str, cwd: Path) -> str | None:
    """Return the path of a program; a name with a slash is relative to `cwd`."""
    return shutil.which(str(cwd / name) if "/" in name else name)


def explain_missing(name: str, preset: Preset | None) -> str:
    hint = f"install {preset.title}: {preset.install}" if preset else "check `command`"
    return f"the agent `{name}` is not on PATH; {hint}"
