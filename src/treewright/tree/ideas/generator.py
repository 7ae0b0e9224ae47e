"""Ideas from the user's own program, which writes `.md` files into a directory.

docs/ideas.md is the contract: arguments, environment, the node's context as a file.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec

from treewright.kernel import process
from treewright.llm.redaction import redact
from treewright.tree.agents import transcript
from treewright.tree.config import CommandIdeas
from treewright.tree.ideas import node_context
from treewright.tree.ideas.base import IdeaSourceError, NodeContext, Proposals, stop_if_cancelled
from treewright.tree.ideas.directory import read_ideas
from treewright.tree.repository.private_git import private_repository


class GeneratorSource:
    def __init__(self, config: CommandIdeas) -> None:
        self._config = config

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        output = context.scratch / "ideas"
        output.mkdir(parents=True, exist_ok=True)
        json_file = context.scratch / "node_context.json"
        described = msgspec.json.encode(node_context.as_json(context))
        json_file.write_bytes(msgspec.json.format(described, indent=1))
        markdown_file = context.scratch / "node_context.md"
        markdown_file.write_text(node_context.as_markdown(context), encoding="utf-8")
        log = context.scratch / "generator.log"
        variables = os.environ | _environment(context, output, json_file, markdown_file)
        around: list[str] = []
        # What it commits, tags or configures is nobody else's, as for agents.
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
        said = redact(transcript.scrub(log))
        if not done.ok:
            stop_if_cancelled(context)
            raise IdeaSourceError(_explain(done, said, log))
        return Proposals(
            read_ideas(output, origin="command", repair="let the idea generator write UTF-8")
        )

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


def _explain(done: process.ProcessResult, said: str, log: Path) -> str:
    """One line: how it ended, its last words, and where the rest is."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    words = f": {lines[-1][:200]}" if lines and not done.timed_out else ""
    return f"{done.explain('the idea generator')}{words} (log: {log})"
