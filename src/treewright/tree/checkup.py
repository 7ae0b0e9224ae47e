"""Checks of git, the command-line agents and the repository, for `treewright doctor`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.health_checks import Check, Status
from treewright.kernel.operating_system import IS_POSIX
from treewright.kernel.procs import sandbox
from treewright.kernel.text.printable import format_paths
from treewright.tree import config as configuration
from treewright.tree.agents import prompts
from treewright.tree.agents.backend import Role
from treewright.tree.agents.backend_factory import probe_backend
from treewright.tree.agents.presets import PRESETS
from treewright.tree.agents.prompts import View
from treewright.tree.config import Config, LlmIdeas, OpenaiBackend
from treewright.tree.evaluating import contexts
from treewright.tree.evaluating.sweep_imports import try_imports
from treewright.tree.guard import isolation, protected_files
from treewright.tree.ideas.source_factory import probe_source
from treewright.tree.noise_checkup import check_noise
from treewright.tree.repository import git
from treewright.tree.run import baseline

LOWEST_GIT = (2, 20)
_ROLES: tuple[Role, ...] = ("planner", "coder", "reviewer")


def _report(name: str, status: Status, said: str, hint: str = "") -> Check:
    return Check("repository", name, status, said, hint)


def checks(repo: Path | None) -> Iterator[Check]:
    """Yield the checks of git, the agents and, if there is one, the repository."""
    yield _git()
    yield from _agents()
    if repo is None:
        yield _report(
            "git repository",
            "absent",
            "not inside one",
            "run this in the repository to improve, or give --repo",
        )
    else:
        yield from _repository(repo)


def _git() -> Check:
    found = shutil.which("git")
    if found is None:
        return Check("system", "git", "failed", "not found", "install git 2.20 or newer")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < LOWEST_GIT:
        return Check(
            "system",
            "git",
            "failed",
            f"{said.strip()} is too old: Treewright needs its worktree commands",
            "install git 2.20 or newer",
        )
    return Check("system", "git", "ok", f"{said.strip().removeprefix('git version ')} at {found}")


def _agents() -> Iterator[Check]:
    for name, preset in PRESETS.items():
        found = shutil.which(preset.executable)
        if found:
            yield Check("agents", name, "ok", f"{preset.title} at {found}")
        else:
            yield Check(
                "agents",
                name,
                "absent",
                f"{preset.title} is not on PATH",
                f'`{preset.install}` enables backend = "command", preset = "{name}"',
            )


def _repository(repo: Path) -> Iterator[Check]:
    yield _root(repo)
    path = repo / configuration.DEFAULT_NAME
    if not path.exists():
        yield _report(
            "configuration",
            "absent",
            f"no {configuration.DEFAULT_NAME} in {repo}",
            "`treewright init` writes one",
        )
        return
    try:
        config = configuration.load(path)
    except UsageError as error:
        yield _report("configuration", "failed", str(error), "see docs/configuration.md")
        return
    unfilled = configuration.unfilled(config)
    if unfilled:
        yield _report(
            "configuration",
            "failed",
            f"`{'`, `'.join(unfilled)}` still say {configuration.FILL_IN}",
            f"edit {path}",
        )
    else:
        yield _report("configuration", "ok", f"{configuration.DEFAULT_NAME} loads")
    yield from _commands(repo, config)
    yield from _imports(repo, config)
    yield _isolation(repo, config)
    yield _evaluator(config)
    yield _baseline(repo, config)
    yield check_noise(repo, config)
    yield from _sources(repo, config)
    yield from _roles(repo, config)
    yield from _prompts(repo, config)
    yield from _keys(config)


def _root(repo: Path) -> Check:
    try:
        git.head_commit(repo)
        git.require_clean(repo)
    except UsageError as error:
        return _report("root commit", "warning", str(error))
    return _report("root commit", "ok", f"{repo} is clean")


def _commands(repo: Path, config: Config) -> Iterator[Check]:
    commands = {"sweep.command": config.sweep.command}
    if config.tests is not None:
        commands["tests.command"] = config.tests.command
    for key, command in commands.items():
        if command != configuration.FILL_IN:
            yield _command(repo, config, key, command)
    if config.tests is None:
        yield _report(
            "tests.command",
            "absent",
            "no tests are configured",
            "would reject broken candidates before they are swept",
        )


def _command(repo: Path, config: Config, key: str, command: str) -> Check:
    words = _words(command)
    if not words:
        return _report(key, "ok", "a shell command; not checked further")
    if not _runnable(words[0], repo):
        return _report(key, "failed", f"`{words[0]}` is not found", f"check {key}, or PATH")
    for word in words:
        if not (repo / word).is_file() or Path(word).is_absolute():
            continue
        if git.try_git(repo, "ls-files", "--error-unmatch", "--", word).returncode != 0:
            return _report(
                key,
                "failed",
                f"{word} is not tracked by git, so a candidate's checkout does not have it",
                f"git add {word} and commit",
            )
        if not protected_files.match_protected([word], config.protected_paths):
            return _report(
                key,
                "warning",
                f"`{command}`: {word} is not protected",
                "a candidate could change what measures it; add it to protected_paths",
            )
    return _report(key, "ok", f"`{command}`")


def _imports(repo: Path, config: Config) -> Iterator[Check]:
    """Check that the sweep's Python has the packages that the sweep imports."""
    name = "sweep.imports"
    try:
        found = try_imports(repo, config.sweep.command)
    except (OSError, subprocess.TimeoutExpired) as problem:
        yield _report(name, "warning", f"could not be tried: {problem}")
        return
    if found is None or not found.packages:
        return
    if found.failed:
        said = "; ".join(
            f"{found.packages.get(package, '?')} imports {package}: {error}"
            for package, error in found.failed.items()
        )
        hint = f"install it for {found.python}, or let sweep.command name another Python"
        yield _report(name, "failed", said, hint)
    else:
        packages = ", ".join(found.packages)
        yield _report(name, "ok", f"{found.python} imports {packages}")


def _isolation(repo: Path, config: Config) -> Check:
    """Report the isolation of the commands that agents and candidates run."""
    name = "isolation"
    if config.isolation == "none":
        problem = sandbox.find_problem()
        first = (
            "" if problem is None else f"install bubblewrap ({problem.removeprefix('which ')}); "
        )
        return _report(
            name,
            "absent",
            "agents, tests and sweeps run with your rights: your files, the network and the run "
            "directory are open to them",
            f'{first}isolation = "bubblewrap" closes that',
        )
    try:
        isolation.check(config, repo)
    except UsageError as error:
        return _report(name, "failed", str(error))
    commands: dict[str, object] = {"sweep": config.sweep, "tests": config.tests}
    commands |= {f"agents.{role}": getattr(config.agents, role) for role in _ROLES}
    online = [key for key, given in commands.items() if getattr(given, "network", False)]
    told = f"network for {', '.join(online)}" if online else "no network"
    said = f"agents, tests and sweeps in bubblewrap, {told}"
    own = {f"ideas[{n}]": each for n, each in enumerate(config.ideas)}
    own |= {f"on_event[{n}]": each for n, each in enumerate(config.on_event)}
    free = [key for key, each in own.items() if getattr(each, "isolated", True) is False]
    if free:
        hint = f"{', '.join(free)} run with your rights; isolated = true closes that"
        return _report(name, "ok", said, hint)
    return _report(name, "ok", said)


def _evaluator(config: Config) -> Check:
    """Report whether the files of a candidate can replace files of the sweep."""
    name = "sweep.checkout"
    if config.sweep.checkout == "root":
        sealed = "sealed" if config.sweep.sealed else "not sealed"
        return _report(name, "ok", f"the sweep runs from the root's files, {sealed}")
    return _report(
        name,
        "absent",
        "the sweep runs among the candidate's files: what it imports there can be replaced",
        'checkout = "root" closes that; `treewright doctor --cheats` tries what gets through',
    )


def _words(command: str) -> list[str]:
    """Return the words of a simple command, without leading assignments; [] for any other."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
        words = words[1:]
    return words


def _runnable(name: str, repo: Path) -> bool:
    """Ask the shell, which also knows its built-in commands."""
    if not IS_POSIX:
        places = os.pathsep.join([str(repo), os.environ.get("PATH", "")])
        return shutil.which(name, path=places) is not None
    done = subprocess.run(
        ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name],
        cwd=repo,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def _baseline(repo: Path, config: Config) -> Check:
    path = repo / config.baseline_csv
    if not path.is_file():
        return _report(
            "baseline_csv",
            "absent",
            f"no {config.baseline_csv} yet",
            "`treewright tree --make-baseline` sweeps the root commit to make it",
        )
    try:
        baseline.check_baseline(path.read_bytes(), config, None, path)
    except TreewrightError as error:
        return _report("baseline_csv", "failed", str(error))
    return _report("baseline_csv", "ok", f"{config.baseline_csv} is complete")


def _sources(repo: Path, config: Config) -> Iterator[Check]:
    for number, source in enumerate(config.ideas):
        able, said = probe_source(source, repo, config.editable_blocks)
        hint = "" if able else "see docs/ideas.md"
        yield _report(f"ideas[{number}]", "ok" if able else "failed", said, hint)


def _roles(repo: Path, config: Config) -> Iterator[Check]:
    for role in _ROLES:
        able, said = probe_backend(role, getattr(config.agents, role), repo)
        hint = "" if able else "see docs/agents.md"
        yield _report(f"agents.{role}", "ok" if able else "failed", said, hint)


def _prompts(repo: Path, config: Config) -> Iterator[Check]:
    """Report the length of the prompts of chat models at the root, and the files in them."""
    asked = {f"ideas[{n}]": ("ideas", each) for n, each in enumerate(config.ideas)}
    asked |= {f"agents.{role}": (role, getattr(config.agents, role)) for role in _ROLES}
    view = View.of(config, [configuration.DEFAULT_NAME])
    for key, (purpose, each) in asked.items():
        if not isinstance(each, LlmIdeas | OpenaiBackend):
            continue
        name = f"prompt of {key}"
        try:
            template = prompts.load_template(purpose, each.prompt, repo)
            text = prompts.substitute(template, {"task": config.task})
            room = each.prompt_tokens * prompts.CHARS_A_TOKEN - len(text)
            if room < 0:
                raise prompts.PromptTooLong(f"{len(text)} characters without any file")
            shown: list[str] = []
            if prompts.mentions(template, "repository"):
                text += prompts.show_files(repo, "", room, view)
                shown = view.visible(prompts.list_files(repo))
        except (UsageError, prompts.PromptTooLong) as problem:
            hint = "raise `prompt_tokens`"
            yield _report(name, "failed", str(problem), hint)
            continue
        size = len(text) // prompts.CHARS_A_TOKEN
        yield _report(
            name,
            "ok",
            f"about {size:,} of {each.prompt_tokens:,} tokens before ideas and earlier tries; "
            f"files: {format_paths(shown) if shown else 'none'}",
            "" if config.task else "`task` would tell the model what is to be improved",
        )


def _keys(config: Config) -> Iterator[Check]:
    """Report which key variables are set, without their values."""
    for name, required in sorted(contexts.key_variables(config).items()):
        if os.environ.get(name):
            yield _report(name, "ok", "set (a secret of an endpoint)")
        elif required:
            yield _report(name, "failed", "not set", f"export {name}=... before running")
