"""Which files of the repository models may see, and which they may change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treewright.tree.config import Config, DirectoryIdeas
from treewright.tree.guard.protected_files import match_protected


@dataclass(frozen=True, slots=True)
class View:
    """Which files models may see: protected ones only if they are readable; with editable blocks
    only the files of these, and the readable ones."""

    protected: Sequence[str] = ()
    readable: Sequence[str] = ()
    editable_blocks: Sequence[str] = ()

    @classmethod
    def of(cls, config: Config, protected: Sequence[str] = ()) -> View:
        """The view of a configuration. Scripts named by the sweep's and the tests' command count
        as protected, and so do the baseline and directories of ideas; `protected` are paths beyond
        the configured."""
        commands = [config.sweep.command, config.tests.command if config.tests else ""]
        scripts = [word for command in commands for word in re.split(r"[\s;&|'\"]+", command)]
        ideas = [each.path for each in config.ideas if isinstance(each, DirectoryIdeas)]
        hidden = [*config.protected_paths, *protected, config.baseline_csv, *ideas]
        hidden += filter(None, scripts)
        return cls(hidden, config.readable_paths, config.editable_blocks)

    def visible(self, names: Sequence[str]) -> list[str]:
        readable = {*match_protected(names, self.readable), *self.editable_blocks}
        if self.editable_blocks:
            return [name for name in names if name in readable]
        hidden = {*match_protected(names, self.protected)} - readable
        return [name for name in names if name not in hidden]

    def editable(self, names: Sequence[str]) -> list[str]:
        """The files that a change may touch."""
        if self.editable_blocks:
            return [name for name in names if name in self.editable_blocks]
        hidden = {*match_protected(names, self.protected)}
        return [name for name in names if name not in hidden]
