"""Commands in a worktree inside bubblewrap, for a configuration with `isolation = "bubblewrap"`.

Agents, tests and sweeps can write to their worktree, to its private repository and to a private
/tmp. They can read the rest of the file system, except `.treewright` (runs, baselines, commands for
running searches), the usual places of credentials, sockets of the system, and the paths that the
configuration hides. Agents do not see held-out data.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.procs import sandbox
from treewright.kernel.procs.sandbox import Mount
from treewright.kernel.storage import untrusted
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.kernel.storage.user_directories import state_directory
from treewright.llm.redaction import is_secret
from treewright.tree.config import Config, Confined
from treewright.tree.repository.git import GitError, try_git
from treewright.tree.repository.private_repository import repositories

_SETTING = 'isolation = "bubblewrap"'
_WHOLE = ("/",)
_SOCKETS = Path("/run")
"""Hidden, because a visible socket accepts connections even where nothing can be written."""
_NO_SOCKETS = (Path("/run/current-system"), Path("/run/opengl-driver"))
"""Programs and drivers that some systems keep below /run: readable."""
_PYTHON = Path(sys.prefix)
"""Readable even if it is below /tmp, where commands see a private directory."""
_NAME_SERVERS = Path("/etc/resolv.conf")
_CREDENTIALS = (
    ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/google-chrome", ".config/hub",
    ".docker", ".git-credentials", ".gnupg", ".kube", ".local/share/keyrings", ".mozilla", ".netrc",
    ".npmrc", ".password-store", ".pypirc", ".ssh", ".cache/huggingface/token",
)  # fmt: skip
"""Paths below the home directory that are hidden from all commands."""
_AGENTS_LOGINS = (".aider", ".aider.conf.yml", ".claude", ".claude.json", ".codex", ".gemini")
"""Paths below the home directory that are hidden from tests and sweeps."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The paths that commands in the worktrees of one run cannot reach."""

    repo: Path
    run_dir: Path
    hidden: tuple[Path, ...]
    heldout: tuple[Path, ...]

    @classmethod
    def of(cls, config: Config, repo: Path, run_dir: Path) -> Isolation | None:
        """Return the isolation that the configuration asks for, or None.

        Raises:
            UsageError: The configuration asks for bubblewrap, and it does not work here.
        """
        if config.isolation == "none":
            return None
        sandbox.require(_SETTING)
        return cls(
            repo.resolve(),
            run_dir.resolve(),
            _resolved(config.hidden_paths, repo),
            _resolved(config.heldout_paths, repo),
        )

    def around(
        self,
        worktree: Path | None,
        given: Confined,
        *,
        agent: bool = False,
        readable: Collection[Path] = (),
        writable: Collection[Path] = (),
        directory: Path | None = None,
    ) -> list[str]:
        """Return the command line to put before a command.

        Args:
            worktree: Where the command runs, with its private repository; None for the repository.
            given: The settings of the command.
            agent: Whether the command is an agent: it sees its own logins, and no held-out data.
            readable: More paths that the command may read.
            writable: More paths that the command may write.
            directory: Where the command runs instead of the worktree; it can only read there.
        """
        place = () if worktree is None else (worktree.resolve(),)
        # The private repository, then the one whose objects it borrows; the latter stays read-only.
        private = [path.resolve() for path in repositories(worktree)] if worktree else []
        seen = (*_NO_SOCKETS, _NAME_SERVERS.resolve()) if given.network else _NO_SOCKETS
        home = Path.home().resolve()
        credentials = _CREDENTIALS if agent else (*_CREDENTIALS, *_AGENTS_LOGINS)
        hidden = (*self.hidden, *self.heldout) if agent else self.hidden
        own = () if directory is None else (directory.resolve(),)
        # A later mount covers an earlier one: a hidden directory can have a visible one inside.
        mounts = [
            Mount("hide", _SOCKETS),
            *(Mount("read", path) for path in (*seen, _PYTHON, self.repo, *private[1:])),
            *(Mount("hide", (home / name).resolve()) for name in credentials),
            Mount("hide", state_directory().resolve()),
            *(Mount("write", path) for path in _resolved(given.writable_paths, self.repo)),
            *(Mount("hide", path) for path in (*hidden, self.repo / STATE_DIR, self.run_dir)),
            *(Mount("read", path.resolve()) for path in readable),
            *(Mount("write", path.resolve()) for path in (*place, *private[:1], *writable)),
            *(Mount("read", path) for path in own),
        ]
        where = (*own, *place, self.repo)[0]
        return sandbox.command_line(
            _WHOLE, mounts, where, network=given.network, devices=True, what=_SETTING
        )

    def leave(self, worktree: Path) -> None:
        """Remove repositories inside the worktree after the command has ended; their files stay.

        Git outside of the isolation would open a submodule and run the filters of its
        configuration.
        """
        if not untrusted.remove_named(".git", worktree):
            raise GitError(f"{worktree} has directories that cannot be looked into")

    def environment(
        self, variables: Mapping[str, str], given: Confined, own: frozenset[str] = frozenset()
    ) -> dict[str, str]:
        """Return the variables without secrets, except those that the command may have."""
        kept = own | set(given.keep_variables)
        left = {
            name: value for name, value in variables.items() if name in kept or not is_secret(name)
        }
        return {**left, "TMPDIR": sandbox.SCRATCH}


def check(config: Config, repo: Path) -> None:
    """Raise a UsageError if a run would be less isolated than its configuration says."""
    if config.isolation == "none":
        return
    sandbox.require(_SETTING)
    for path in config.heldout_paths:
        if try_git(repo, "log", "--all", "-1", "--format=%h", "--", path).stdout.strip():
            raise UsageError(
                f"heldout_paths: {path} is in the history of the repository, which agents can "
                "read; keep held-out data elsewhere, or ignored by git from the start"
            )


def in_a_copy(config: Config, repo: Path, run_dir: Path) -> Config:
    """Return the configuration for work in a copy of `repo`, on this or another machine.

    Hidden paths are hidden in the copy, and at their original place if the machine has it.
    """
    if config.isolation == "none":
        return config
    real = (*_resolved(config.hidden_paths, repo), repo / STATE_DIR, run_dir)
    return msgspec.structs.replace(
        config,
        hidden_paths=[*config.hidden_paths, *map(str, real)],
        heldout_paths=[*config.heldout_paths, *map(str, _resolved(config.heldout_paths, repo))],
    )


def _resolved(paths: list[str], repo: Path) -> tuple[Path, ...]:
    return tuple((repo / Path(path).expanduser()).resolve() for path in paths)
