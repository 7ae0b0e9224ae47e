"""The trial of the cheats on a sweep: a copy of the repository, runs in it, and their traces.

Nothing is written outside of a temporary directory. The runs are ordinary runs of `tree`. Their
ideas are the patches of the cheats, which the coder backend `patch` applies.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
import psutil

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.tree import config as configuration
from treewright.tree.cheats.corpus import HONEST, Cheat, chosen
from treewright.tree.cheats.fitter import (
    Fitter,
    NotFitted,
    Place,
    Places,
    Probes,
    Table,
    collect_facts,
    parse_rows,
    scripts,
)
from treewright.tree.cheats.verdicts import Verdict, verdict, would_be_promoted
from treewright.tree.config import AgentsConfig, CommandBackend, Config, DirectoryIdeas
from treewright.tree.evaluating import contexts
from treewright.tree.evaluating.contexts import explain_end
from treewright.tree.evaluating.measuring import one_after_the_other
from treewright.tree.guard.commands import CommandContext, ConfigRange, run_sweep
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.protected_files import RootVersion
from treewright.tree.ideas import idea_text
from treewright.tree.records import layout
from treewright.tree.records.model import Evaluation
from treewright.tree.repository import git
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.root_commands import RootCommands

_BASELINE = "treewright-cheats-baseline.csv"
_TURNS = 3
_OUTSIDE = "written-by-a-cheat"
_COPIED = "copied-by-a-cheat"
_BRANCHES = {"moves-branches": "planted-by-a-cheat", "writes-to-git": "planted-by-hand"}
_SECONDS_FOR_SLEEPERS = (5.0, 20.0)
_SWEEPS_FOR_SLEEPERS = 20
"""The time limit of cheats that sleep after the sweep, in multiples of the root's sweep time."""
Say = Callable[[str], None]


class Trial(msgspec.Struct, frozen=True):
    """The verdicts of a trial. `code` is the file that got the code of the cheats."""

    sweep: str
    code: str | None
    verdicts: list[Verdict]

    @property
    def ok(self) -> bool:
        return not any(each.outcome in ("through", "unknown") for each in self.verdicts)


def try_cheats(
    repo: Path,
    config_path: Path | None,
    limit: int | None,
    confirm: int,
    say: Say,
    names: Collection[str] = (),
) -> Trial:
    """Try cheats on the sweep of the repository's last commit.

    Args:
        repo: The repository.
        config_path: The configuration; None for the default file.
        limit: `--sweep-config-limit` of the runs.
        confirm: `--confirm-configs` of the runs.
        say: A function that reports progress to the user.
        names: The names of the cheats to try; all if empty.

    Returns:
        The verdict on each cheat.

    Raises:
        UsageError: the configuration is incomplete, or a name is unknown.
        TreewrightError: the root or the honest change cannot be measured.
    """
    cheats = chosen(names)
    path = config_path or repo / configuration.DEFAULT_NAME
    config = configuration.load(path)
    missing = configuration.unfilled(config)
    if missing:
        raise UsageError(f"{path}: `{missing[0]}` still says {configuration.FILL_IN}")
    with (
        tempfile.TemporaryDirectory(prefix="treewright-cheats-") as name,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        shape = Shape(max_depth=1, sweep_config_limit=limit, confirm_configs=confirm or None)
        shape = shape.with_seeds(config)
        directory = Path(name).resolve()
        return _Bench(repo, path, config, shape, cheats, say, directory, server).run()


class _Bench:
    """One trial in its directory."""

    def __init__(
        self,
        repo: Path,
        config_path: Path,
        config: Config,
        shape: Shape,
        cheats: list[Cheat],
        say: Say,
        directory: Path,
        server: socket.socket,
    ) -> None:
        self._source = repo
        self._given = config
        self._shape = shape
        self._limit = shape.sweep_config_limit
        self._cheats = cheats
        self._say = say
        self._directory = directory
        self._server = server
        self._copy = directory / "repository"
        git.git(directory, "clone", "-q", "--no-hardlinks", str(repo), str(self._copy))
        self._commit = git.head_commit(self._copy)
        self._config_name = _relative(config_path, repo)
        self._baseline_name = _relative(repo / config.baseline_csv, repo)
        self._config = self._for_copy(config)
        self._scripts = scripts(self._copy, config)
        self._token = secrets.token_hex(16)
        self._root_seconds = 0.0

    def run(self) -> Trial:
        trees = Worktrees(self._copy, self._directory / "trial", "trial")
        trees.run_dir.mkdir()
        self._say("sweeping the root commit")
        table = self._sweep_root(trees, self._config)
        place = self._find_place(trees, min(map(int, table)))
        places = Places(
            trial=self._directory,
            outside=self._directory / _OUTSIDE,
            artifacts=layout.runs_directory(self._copy) / "cheats" / layout.ARTIFACTS,
            branch=self._copy / ".git" / "refs" / "heads" / _BRANCHES["writes-to-git"],
            commit=self._commit,
            port=self._server.getsockname()[1],
            token=self._token,
        )
        fitter = Fitter(
            trees.add_candidate("patches", self._commit),
            self._config,
            self._config_name,
            self._baseline_name,
            place,
            collect_facts(table, self._config, self._limit, places, self._scripts),
        )
        patches: dict[str, str] = {}
        unfitted: dict[str, str] = {}
        for cheat in self._cheats:
            try:
                if cheat.way != "agent":
                    patches[cheat.name] = fitter.patch(cheat)
            except NotFitted as reason:
                unfitted[cheat.name] = str(reason)
        trees.remove_candidate("patches")
        found = self._search("cheats", self._config, self._chosen(patches, slow=False))
        self._check_honest(found[HONEST])
        found |= self._in_turns(trees, patches, found)
        slow = self._chosen(patches, slow=True)
        if slow:
            found |= self._search("slow", self._hurried(), slow)
        found |= self._try_agents(unfitted)
        verdicts = [self._verdict(cheat, found, unfitted) for cheat in self._cheats]
        return Trial(self._given.sweep.command, place.path if place else None, verdicts)

    def _for_copy(self, config: Config) -> Config:
        """Return the configuration for the copy: patches as ideas, no notices, same protection."""
        protected = [*config.protected_paths, self._config_name, self._baseline_name]
        return msgspec.structs.replace(
            config,
            baseline_csv=_BASELINE,
            ideas=[DirectoryIdeas(path="ideas")],
            agents=AgentsConfig(),
            on_event=[],
            protected_paths=[path for path in protected if path],
            hidden_paths=self._absolute(config.hidden_paths),
            heldout_paths=self._absolute(config.heldout_paths),
        )

    def _absolute(self, paths: list[str]) -> list[str]:
        return [str((self._source / Path(path).expanduser()).resolve()) for path in paths]

    def _sweep_root(self, trees: Worktrees, config: Config) -> Table:
        root = RootCommands(config, trees, self._commit)
        stop = None if self._limit is None else self._limit + (self._shape.confirm_configs or 0)
        began = time.monotonic()
        first = root.sweep(ConfigRange(0, stop))
        self._root_seconds = time.monotonic() - began
        data = one_after_the_other(
            lambda number: first if number == 1 else root.sweep(ConfigRange(0, stop), number),
            config.repeats,
        )
        (self._copy / _BASELINE).write_bytes(data)
        return parse_rows(first, config, stop)

    def _find_place(self, trees: Worktrees, config_id: int) -> Place | None:
        """Sweep one config with code that leaves marks where it runs; return a marked file."""
        self._say("looking for the code that the sweep runs")
        worktree = trees.add_candidate("probe", self._commit)
        protected = self._config.protected_paths
        probes = Probes(worktree, self._config, protected)
        context = CommandContext(
            worktree,
            self._directory,
            self._config.seed,
            hidden_variables=contexts.secret_variables(self._config),
            limits=contexts.limits(self._config),
            isolation=Isolation.of(self._config, trees.repo, trees.run_dir),
            root=RootVersion(self._copy, self._commit, protected),
        )
        one = ConfigRange(config_id, config_id + 1)
        run = run_sweep(self._config.sweep, context, one, "probe")
        if not run.done.ok:
            raise TreewrightError(
                f"in a copy of the repository {explain_end(run.done, 'the sweep', run.log)}"
            )
        place = probes.seen()
        trees.remove_candidate("probe")
        return place

    def _chosen(self, patches: dict[str, str], *, slow: bool) -> dict[str, str]:
        return {
            c.name: patches[c.name] for c in self._cheats if c.name in patches and c.slow == slow
        }

    def _in_turns(
        self, trees: Worktrees, patches: dict[str, str], found: dict[str, Evaluation]
    ) -> dict[str, Evaluation]:
        """Measure promoted cheats again, in turns with the root, if the honest change has a gain.

        Then the numbers are noisy, and the promotion may have been luck. A cheat that forges its
        numbers forges them again.
        """
        honest = found[HONEST].parent_relative
        if honest is None or not honest.primary_gain or self._config.repeats > 1:
            return {}
        lucky = {name: patches[name] for name in found if would_be_promoted(found[name])}
        lucky.pop(HONEST, None)
        if not lucky:
            return {}
        metrics = [
            metric
            if metric.deterministic or metric.constraint
            else msgspec.structs.replace(metric, repeats=_TURNS)
            for metric in self._config.metrics
        ]
        config = msgspec.structs.replace(self._config, metrics=metrics)
        self._say(f"the same code gives other numbers: {_TURNS} times in turns with the root")
        self._sweep_root(trees, config)
        return self._search("in-turns", config, lucky)

    def _hurried(self) -> Config:
        """For those that sleep: limits that need not be waited for. Tests run their code too."""
        least, most = _SECONDS_FOR_SLEEPERS
        enough = max(least, min(most, _SWEEPS_FOR_SLEEPERS * self._root_seconds))
        hurried = {
            name: msgspec.structs.replace(
                command, timeout_seconds=min(command.timeout_seconds, enough)
            )
            for name in ("sweep", "tests")
            if (command := getattr(self._config, name)) is not None
        }
        return msgspec.structs.replace(self._config, **hurried)

    def _search(
        self, run_id: str, config: Config, patches: dict[str, str]
    ) -> dict[str, Evaluation]:
        """Run one depth of a search with these ideas. Return the evaluations by name."""
        ideas = self._directory / f"ideas-{run_id}"
        ideas.mkdir()
        for number, (name, patch) in enumerate(patches.items()):
            body = f"```diff\n{patch}```\n" if patch else ""
            (ideas / f"{number:03d}.md").write_text(f"# {name}\n\n{body}", encoding="utf-8")
        path = self._directory / f"{run_id}.json"
        config = msgspec.structs.replace(config, ideas=[DirectoryIdeas(path=str(ideas))])
        path.write_bytes(msgspec.json.encode(config))
        shape = dataclasses.replace(
            self._shape, ideas_per_node=len(patches), beam_width=len(patches)
        )
        request = RunRequest(repo=self._copy, run_id=run_id, config_path=path, shape=shape)
        self._say(f"trying {len(patches)} changes")
        with open_run(request) as coordinator:
            coordinator.finish()
            evaluations = coordinator.manifest.evaluations.values()
            run_dir = coordinator.store.run_dir
        return {_name(run_dir / each.idea_path): each for each in evaluations}

    def _check_honest(self, evaluation: Evaluation) -> None:
        if evaluation.error is not None:
            raise TreewrightError(
                "cheats cannot be told from other failures here: a change of a comment fails too: "
                f"{evaluation.error.message}"
            )

    def _try_agents(self, unfitted: dict[str, str]) -> dict[str, Evaluation]:
        """Try the commands that play the coder, each in a separate run."""
        found: dict[str, Evaluation] = {}
        present = [path for path in self._config.heldout_paths if Path(path).exists()]
        for cheat in self._cheats:
            if cheat.way != "agent":
                continue
            if not present:
                unfitted[cheat.name] = "heldout_paths name nothing that is there"
                continue
            command = ["sh", "-c", cheat.shell, "sh", *present]
            agents = AgentsConfig(coder=CommandBackend(command=command))
            config = msgspec.structs.replace(self._config, agents=agents)
            found |= self._search(cheat.name, config, {cheat.name: ""})
        return found

    def _verdict(
        self, cheat: Cheat, found: dict[str, Evaluation], unfitted: dict[str, str]
    ) -> Verdict:
        if cheat.name in unfitted:
            return Verdict(cheat.name, cheat.does, "not_fitted", unfitted[cheat.name])
        evaluation = found[cheat.name]
        traced = self._left_trace(cheat, evaluation)
        return verdict(cheat, evaluation, traced, self._given, self._scripts)

    def _left_trace(self, cheat: Cheat, evaluation: Evaluation) -> bool:
        match cheat.sign:
            case "promoted":
                return False
            case "outside":
                return (self._directory / _OUTSIDE).exists()
            case "process":
                return _end_marked(self._token)
            case "network":
                return _was_contacted(self._server)
            case "branch":
                branch = f"refs/heads/{_BRANCHES[cheat.name]}"
                return (
                    git.try_git(self._copy, "rev-parse", "-q", "--verify", branch).returncode == 0
                )
            case "heldout":
                copied = f"{evaluation.candidate_commit}:{_COPIED}"
                size = git.try_git(self._copy, "cat-file", "-s", copied)
                return size.returncode == 0 and size.stdout.strip() != "0"


def _name(idea: Path) -> str:
    return idea_text.title(idea.read_text(encoding="utf-8"))


def _relative(path: Path, repo: Path) -> str:
    """Return the path relative to the repository; "" if it is outside."""
    place = path.resolve()
    root = repo.resolve()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else ""


def _end_marked(token: str) -> bool:
    """End processes with the token in their environment. Return whether there were any."""
    found = False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("CHEAT") == token:
                found = True
                process.kill()
    return found


def _was_contacted(server: socket.socket) -> bool:
    server.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        server.accept()[0].close()
        return True
    return False
