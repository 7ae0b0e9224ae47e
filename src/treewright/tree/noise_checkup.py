"""What `treewright doctor` says about noise: the check of a new run, on the last commit."""

from __future__ import annotations

import shlex
import tempfile
import threading
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.health_checks import Check, Status
from treewright.kernel.procs.cancellation import Deadline
from treewright.tree import config as configuration
from treewright.tree.config import Config
from treewright.tree.deciding import objectives
from treewright.tree.guard.commands import ConfigRange
from treewright.tree.records.model import NoiseCheck
from treewright.tree.repository import git
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run.noise import NoiseTest
from treewright.tree.run.root_commands import RootCommands

_SECONDS = 60.0
_MOST_CONFIGS = 8
_NAME = "noise"
_ANSWERS = {"same": "the same", "differs": "another number", "not_tried": "not tried"}


def check_noise(repo: Path, config: Config) -> Check:
    """Sweep the last commit with other random numbers; at most a minute, on a few configs."""
    if config.isolation != "none" or configuration.unfilled(config):
        return _check("absent", "not tried: the start of a run checks it")
    if missing := _uncommitted(repo, config):
        return _check(
            "absent", f"not tried: {missing} is not committed", "commit it, and try again"
        )
    deadline = Deadline(threading.Event(), _SECONDS)
    try:
        with tempfile.TemporaryDirectory(prefix="treewright-doctor-") as name:
            found = _find(repo, config, Path(name).resolve(), deadline)
    except KeyboardInterrupt:
        if not deadline.passed:
            raise
        said = f"not tried: it takes longer than {_SECONDS:g} s; the start of a run checks it"
        return _check("absent", said)
    except UsageError as problem:
        return _check("failed", str(problem).partition(": ")[2] or str(problem))
    except TreewrightError as problem:
        return _check("absent", f"not tried: {problem}", "commit the sweep, and try again")
    return _check(*describe(found))


def describe(found: NoiseCheck) -> tuple[Status, str, str]:
    """Return status, text and hint for what a check of the root found."""
    answers = {
        "another TREEWRIGHT_SEED": found.other_seed,
        "no TREEWRIGHT_SEED": found.unseeded,
        "a change that only draws random numbers": found.perturbed,
    }
    said = ", ".join(
        f"{_ANSWERS[answer]} with {what}"
        for what, answer in answers.items()
        if answer != "not_tried"
    )
    text = f"compared as {found.compared}; {said or 'nothing could be tried'}"
    if found.note:
        text += f" ({found.note})"
    if found.compared == "configs" and found.perturbed == "differs":
        hint = (
            "it depends on random numbers: a change without effect passes in 1 of 40 cases; search "
            "with --sweep-config-limit and --confirm-configs, or set seeds"
        )
        return "warning", text, hint
    return "ok", text, ""


def _uncommitted(repo: Path, config: Config) -> str:
    """Return a file of the sweep's command that the last commit lacks; "" if there is none."""
    try:
        words = shlex.split(config.sweep.command)
    except ValueError:
        return ""
    for word in words:
        is_file = not Path(word).is_absolute() and (repo / word).is_file()
        if is_file and git.try_git(repo, "cat-file", "-e", f"HEAD:{word}").returncode != 0:
            return word
    return ""


def _find(repo: Path, config: Config, directory: Path, deadline: Deadline) -> NoiseCheck:
    copy = directory / "repository"
    git.git(directory, "clone", "-q", "--no-hardlinks", str(repo), str(copy))
    trees = Worktrees(copy, directory / "trial", "trial")
    trees.run_dir.mkdir()
    root = RootCommands(config, trees, git.head_commit(copy), cancel=deadline)
    configs = ConfigRange(0, min(config.primary.seeds or _MOST_CONFIGS, _MOST_CONFIGS))
    path = repo / configuration.DEFAULT_NAME
    test = NoiseTest(root, config, path, configs, config.protected_paths)
    first = root.sweep(configs)
    read = objectives.read(first, config.metrics, configs.__contains__)
    if not read.sound_ids or read.problems.examples:
        problem = (read.problems.examples or ["it has no usable row"])[0]
        raise UsageError(f"{path}: the sweep of the last commit: {problem}{root.last_log_lines()}")
    if any(metric.deterministic for metric in config.metrics):
        found = test.check_exact(first)
        if config.primary.deterministic:
            return found
    if config.primary.repeats is not None:
        return test.check_repeats(first, min(read.sound_ids))
    if config.primary.seeds is not None:
        return test.check_configs(first)
    return test.check_one_config(first, min(read.sound_ids))


def _check(status: Status, text: str, hint: str = "") -> Check:
    return Check("repository", _NAME, status, text, hint)
