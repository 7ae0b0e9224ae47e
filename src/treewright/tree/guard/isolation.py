"""Commands in a worktree inside bubblewrap, for a configuration with `isolation = "bubblewrap"`.

Agents, tests and sweeps can then write to their worktree, to its private repository and to a /tmp
of their own. The rest of the file system can be read but for what decides about them (all that is
below `.treewright`: runs, baselines, commands for running searches), where people keep credentials,
sockets of the system, and what the configuration hides. Agents do not see held-out data.
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
from treewright.tree.repository.private_repository import places

_SETTING = 'isolation = "bubblewrap"'
_WHOLE = ("/",)
_SOCKETS = Path("/run")
"""A socket can be talked to wherever it can be seen, also where nothing can be written."""
_NO_SOCKETS = (Path("/run/current-system"), Path("/run/opengl-driver"))
"""Programs and drivers of systems that keep them there."""
_PYTHON = Path(sys.prefix)
"""Also where it is in /tmp, of which commands have one of their own."""
_NAME_SERVERS = Path("/etc/resolv.conf")
_CREDENTIALS = (
    ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/google-chrome", ".config/hub",
    ".docker", ".git-credentials", ".gnupg", ".kube", ".local/share/keyrings", ".mozilla", ".netrc",
    ".npmrc", ".password-store", ".pypirc", ".ssh", ".cache/huggingface/token",
)  # fmt: skip
"""Below the home directory: hidden from all."""
_AGENTS_LOGINS = (".aider", ".aider.conf.yml", ".claude", ".claude.json", ".codex", ".gemini")
"""Hidden from tests and sweeps."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What commands in the worktrees of one run are kept from."""

    repo: Path
    run_dir: Path
    hidden: tuple[Path, ...]
    heldout: tuple[Path, ...]

    @classmethod
    def of(cls, config: Config, repo: Path, run_dir: Path) -> Isolation | None:
        """None if the configuration asks for none. Never the wish without the thing: where
        bubblewrap does not work this is an error."""
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
        """What to put before a command in the worktree, which has its private repository. With
        `directory` it runs there instead, and can only read what is there; without a worktree
        it runs in the repository."""
        place = () if worktree is None else (worktree.resolve(),)
        private = [path.resolve() for path in places(worktree)] if worktree else []
        seen = (*_NO_SOCKETS, _NAME_SERVERS.resolve()) if given.network else _NO_SOCKETS
        home = Path.home().resolve()
        credentials = _CREDENTIALS if agent else (*_CREDENTIALS, *_AGENTS_LOGINS)
        hidden = (*self.hidden, *self.heldout) if agent else self.hidden
        own = () if directory is None else (directory.resolve(),)
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
        """To be called when the command has ended. Repositories inside the worktree are removed,
        their files stay: our own git, outside, would look into a submodule and run the filters
        that its configuration names."""
        if not untrusted.remove_named(".git", worktree):
            raise GitError(f"{worktree} has directories that cannot be looked into")

    def environment(
        self, variables: Mapping[str, str], given: Confined, own: frozenset[str] = frozenset()
    ) -> dict[str, str]:
        """The variables without those that look like secrets, but for the command's own."""
        kept = own | set(given.keep_variables)
        left = {
            name: value for name, value in variables.items() if name in kept or not is_secret(name)
        }
        return {**left, "TMPDIR": sandbox.SCRATCH}


def check(config: Config, repo: Path) -> None:
    """A UsageError if a run with this configuration would not be as isolated as it says."""
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
    """The configuration for work in a copy of `repo`, elsewhere or on the same machine: what is
    hidden is hidden where it really is, too, should that place be there."""
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
