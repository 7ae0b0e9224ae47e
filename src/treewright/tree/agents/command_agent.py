"""Any command-line agent, run in the worktree.

Its prompt is on stdin or in a file, its output is the transcript, and neither its
processes nor its private files outlive the call.
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
from treewright.tree.agents import cli_output, transcript
from treewright.tree.agents.backend import AGENT_TIMEOUT, AgentFailure, Role, RoleReply, RoleRequest
from treewright.tree.agents.presets import PRESETS, Preset, agent_keys
from treewright.tree.config import CommandBackend
from treewright.tree.records import usage_log
from treewright.tree.repository.git import try_git


class CommandAgent:
    def __init__(self, config: CommandBackend) -> None:
        self._config = config
        self._preset: Preset | None = PRESETS[config.preset] if config.preset else None

    def run(self, request: RoleRequest) -> RoleReply:
        request.log_dir.mkdir(parents=True, exist_ok=True)
        stem = f"{request.role}_round_{request.round}"
        prompt_file = request.log_dir / f"{stem}.prompt.md"
        log = request.log_dir / f"{stem}.log"
        template = arguments(self._config, request.role)
        private = str(request.log_dir.resolve()) if request.isolation is None else SCRATCH
        values = {"{prompt_file}": str(prompt_file.resolve()), "{log_dir}": private}
        values |= {f"{{{name}}}": text for name, text in limits(self._config).items()}
        replaced = [_filled(argument, values) for argument in template]
        if find_executable(replaced[0], request.worktree) is None:
            raise AgentFailure("agent_missing", missing(replaced[0], self._preset))
        on_stdin = not any("{prompt_file}" in argument for argument in template)
        transcript.write_for_use(prompt_file, request.prompt)
        try:
            done = process.run(
                replaced,
                cwd=request.worktree,
                log_path=log,
                env=self._environment(request),
                stdin=request.prompt.encode("utf-8", "surrogateescape") if on_stdin else b"",
                timeout=self._config.timeout_seconds,
                cancel=request.cancel,
                owner=request.owner,
                around=self._around(request, prompt_file.resolve()),
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
        told = {f"TREEWRIGHT_{n.upper()}": text for n, text in limits(self._config).items()}
        whole = environment(request) | told
        if request.isolation is None:
            return whole
        return request.isolation.environment(whole, self._config, agent_keys())

    def _around(self, request: RoleRequest, prompt_file: Path) -> list[str]:
        if request.isolation is None:
            return []
        return request.isolation.around(
            request.worktree, self._config, agent=True, readable=(prompt_file,)
        )

    def _reply(self, done: process.ProcessResult, output: str, log: Path, role: Role) -> RoleReply:
        name = Path(arguments(self._config, role)[0]).name
        reads = self._config.preset or self._config.reads
        read = PRESETS[reads].read if reads else cli_output.plain
        try:
            said = read(output)
            reply = RoleReply(said.text, mark_unpriced(sane_usage(said.usage)))
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
        said = "" if done.timed_out or done.cancelled else last_lines(output)
        raise AgentFailure(
            code,
            done.explain(f"{role} `{name}`") + (f": {said}" if said else ""),
            retryable=done.timed_out or done.cancelled,
            log=log,
            usage=reply.usage,
        )

    def _clear_debris(self, worktree: Path) -> None:
        """Removes what the agent keeps for itself, so that it does not become the change."""
        for pattern in self._preset.debris if self._preset else ():
            for path in worktree.glob(pattern):
                if (
                    try_git(worktree, "ls-files", "--error-unmatch", "--", path.name).returncode
                    == 0
                ):
                    continue
                untrusted.remove_tree(path)


def arguments(config: CommandBackend, role: Role) -> list[str]:
    """The command line before its placeholders are filled."""
    if config.preset is None:
        return list(config.command or ())
    preset = PRESETS[config.preset]
    limit = () if config.max_cost_usd is None else preset.cost_limit
    return [*(preset.editing if role == "coder" else preset.reading), *limit]


def limits(config: CommandBackend) -> dict[str, str]:
    """What a call may use at most, as far as the configuration says it."""
    given = {"max_cost_usd": config.max_cost_usd, "max_tokens": config.max_tokens}
    return {name: f"{most:.15g}" for name, most in given.items() if most is not None}


def _filled(argument: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace(name, value)
    return argument


def environment(request: RoleRequest) -> dict[str, str]:
    """The user's environment without a surrounding git, and who is asked for what."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        **request.variables,
        "TREEWRIGHT_ROLE": request.role,
        "TREEWRIGHT_ROUND": str(request.round),
        "TREEWRIGHT_SEED": str(request.seed),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
    }


def find_executable(name: str, cwd: Path) -> str | None:
    """As the operating system will look for it: names with a slash are relative to `cwd`."""
    return shutil.which(str(cwd / name) if "/" in name else name)


def missing(name: str, preset: Preset | None) -> str:
    hint = f"install {preset.title}: {preset.install}" if preset else "check `command`"
    return f"the agent `{name}` is not on PATH; {hint}"
