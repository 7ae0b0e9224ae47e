"""The idea source `command`: a program of the user that writes `.md` files into a directory.

docs/ideas.md is the contract: arguments, environment, and the files that describe the node.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec

from treewright.kernel.procs import process
from treewright.kernel.procs.capped_log import with_log
from treewright.kernel.storage import atomic, untrusted
from treewright.llm.redaction import redact
from treewright.tree.agents import transcript
from treewright.tree.config import CommandIdeas
from treewright.tree.ideas.idea_source import (
    MAX_ATTEMPTS,
    GeneratorFailure,
    IdeaSourceError,
    NodeContext,
    Proposals,
    read_ideas,
    stop_if_cancelled,
)
from treewright.tree.ideas.node_description import build_json, render_markdown
from treewright.tree.repository.private_repository import private_repository

_NOT_STARTED = (126, 127)
"""Exit codes of the shell for a program that cannot be run, or does not exist."""


class CommandSource:
    """Runs the program, and gives its ideas in the order of their file names."""

    def __init__(self, config: CommandIdeas) -> None:
        self._config = config

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        """Run the program. After a failure run it again with the message of that failure."""
        failure = ""
        for _ in range(MAX_ATTEMPTS):
            done, output, log = self._run(context, failure)
            if done.ok:
                return Proposals(
                    read_ideas(
                        context.scratch / "ideas",
                        origin="command",
                        repair="let the idea generator write UTF-8",
                    )
                )
            stop_if_cancelled(context)
            failure = _explain(done, output, log)
            if done.error or done.returncode in _NOT_STARTED:
                raise IdeaSourceError(failure)
            if done.timed_out:
                break
        raise GeneratorFailure(failure)

    def _run(self, context: NodeContext, failure: str) -> tuple[process.ProcessResult, str, Path]:
        output = context.scratch / "ideas"
        untrusted.remove_tree(output)
        output.mkdir(parents=True)
        json_file = context.scratch / "node_context.json"
        described = msgspec.json.encode(build_json(context))
        atomic.write_bytes(json_file, msgspec.json.format(described, indent=1))
        markdown_file = context.scratch / "node_context.md"
        atomic.write_text(markdown_file, render_markdown(context))
        log = context.scratch / "generator.log"
        variables = os.environ | _environment(context, output, json_file, markdown_file)
        variables["TREEWRIGHT_PREVIOUS_FAILURE"] = failure
        around: list[str] = []
        # The program's commits, tags and git settings must not reach the repository.
        with private_repository(context.checkout):
            if self._config.isolated and context.isolation is not None:
                variables = context.isolation.environment(variables, self._config)
                around = context.isolation.around(
                    context.checkout,
                    self._config,
                    agent=True,
                    readable=(json_file, markdown_file, *context.context_ideas_dirs),
                    writable=(output,),
                    directory=context.checkout,
                )
            done = process.run(
                self._command(context, output, json_file),
                cwd=context.checkout,
                log_path=log,
                env=variables,
                timeout=self._config.timeout_seconds,
                around=around,
                cancel=context.cancel,
                owner=context.owner,
            )
        return done, redact(transcript.scrub(log)), log

    def _command(self, context: NodeContext, output: Path, json_file: Path) -> str:
        if not self._config.pass_arguments:
            return self._config.command
        arguments = ["--output-dir", str(output)]
        for directory in context.context_ideas_dirs:
            arguments += ["--context-ideas-dir", str(directory)]
        arguments += ["--count", str(context.wanted), "--node-context", str(json_file)]
        return f"{self._config.command} {shlex.join(arguments)}"


def _environment(
    context: NodeContext, output: Path, json_file: Path, markdown_file: Path
) -> dict[str, str]:
    return {
        "TREEWRIGHT_OUTPUT_DIR": str(output),
        "TREEWRIGHT_CONTEXT_IDEAS_DIRS": os.pathsep.join(map(str, context.context_ideas_dirs)),
        "TREEWRIGHT_COUNT": str(context.wanted),
        "TREEWRIGHT_NODE_CONTEXT": str(json_file),
        "TREEWRIGHT_NODE_CONTEXT_MD": str(markdown_file),
        "TREEWRIGHT_NODE_ID": context.node_id,
        "TREEWRIGHT_SEED": str(context.seed),
    }


def _explain(done: process.ProcessResult, output: str, log: Path) -> str:
    """Return how the program ended, its last lines, and the path of its log."""
    shown = output if not done.timed_out else ""
    return with_log(done.explain("the idea generator"), shown, log)
