"""`isolation = "bubblewrap"`: the access of agents, tests and sweeps, observed from inside."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toy import CONFIG, ToyRepository
from tests.tree.runs import RUN_ID, search
from treewright.kernel.errors import UsageError
from treewright.kernel.health_checks import Check
from treewright.tree import checkup, config
from treewright.tree.guard import commands
from treewright.tree.guard.commands import CommandContext, ConfigRange
from treewright.tree.guard.isolation import Isolation, in_a_copy
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import store

PROBE = """\
can() {
  name=$1; shift
  if "$@" > /dev/null 2>&1; then echo "$name: yes"; else echo "$name: no"; fi
}
can worktree touch written
can scratch touch /tmp/written
can git git -c user.name=T -c user.email=t@localhost commit --allow-empty -qm x
can tag git tag planted
can repository touch "$PROBE_REPO/planted"
can source cat "$PROBE_REPO/params.txt"
can events test -e "$PROBE_RUN/events.jsonl"
can artifacts test -e "$PROBE_RUN/artifacts"
can steering mkdir -p "$PROBE_RUN/steering"
can logs test -e "$PROBE_RUN/eval/e000001/experiment/plan.md"
can login cat "$HOME/.ssh/id"
can agent_login cat "$HOME/.claude/login"
can hidden cat "$PROBE_REPO/data/hidden.csv"
can heldout cat "$PROBE_REPO/data/heldout/rows.csv"
can process kill -0 "$PROBE_OUTSIDE"
can network bash -c "exec 3<> /dev/tcp/127.0.0.1/$PROBE_PORT"
can secret test -n "$PROBE_TOKEN"
can key test -n "$ANTHROPIC_API_KEY"
rm -f written
"""

ISOLATED = """\
isolation = "bubblewrap"
hidden_paths = ["data/hidden.csv"]
heldout_paths = ["data/heldout"]
"""

AGENT = """
[agents.coder]
backend = "command"
command = ["sh", "agent.sh", "{prompt_file}"]
"""


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def probed(toy: ToyRepository, port: int, monkeypatch) -> ToyRepository:
    """A repository with an agent, tests and a sweep that report their access."""
    sweep_script = (toy.path / "sweep.sh").read_text()
    toy.write("probe.sh", PROBE)
    toy.write("agent.sh", 'sh probe.sh; test -s "$1" && sed -i "s/^A 1.0/A 2.0/" params.txt')
    toy.write("sweep.sh", f"sh probe.sh\n{sweep_script}")
    toy.write("tests.sh", "sh probe.sh\n")
    toy.write(".gitignore", "home/\ndata/\n")
    toy.write("home/.ssh/id", "a key")
    toy.write("home/.claude/login", "a token")
    toy.write("data/hidden.csv", "1")
    toy.write("data/heldout/rows.csv", "1")
    toy.write("treewright.toml", ISOLATED + CONFIG + AGENT)
    toy.commit("probes")
    for name, value in {
        "HOME": str(toy.path / "home"),
        "PROBE_REPO": str(toy.path),
        "PROBE_RUN": str(toy.run_dir(RUN_ID)),
        "PROBE_OUTSIDE": str(os.getpid()),
        "PROBE_PORT": str(port),
        "PROBE_TOKEN": "a-secret-value",
        "ANTHROPIC_API_KEY": "a-secret-value",
    }.items():
        monkeypatch.setenv(name, value)
    return toy


def without_bubblewrap(directory: Path, monkeypatch) -> None:
    """Return a PATH with everything that a search needs to start, except bwrap."""
    directory.mkdir()
    for name in ("git", "sh", "rm"):
        found = shutil.which(name)
        assert found is not None
        (directory / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(directory))


def answers(log: Path) -> dict[str, str]:
    pairs = (line.partition(": ") for line in log.read_text().splitlines())
    return {name: said for name, _, said in pairs if said in ("yes", "no")}


def test_an_isolated_search_cannot_reach_hidden_paths(
    bubblewrap: None, probed: ToyRepository, monkeypatch, tmp_path: Path
) -> None:
    run_dir = search(probed.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    evaluation = store.load(run_dir).evaluations["e000001"]
    assert evaluation.decision is not None
    assert evaluation.decision.fate == "promoted", evaluation.error
    experiment = run_dir / "eval" / "e000001" / "experiment"
    for name in ("events.jsonl", "artifacts", "eval/e000001/experiment/plan.md"):
        assert (run_dir / name).exists(), "what the probe looks for"
    expected = dict.fromkeys(answers(experiment / "sweep.log"), "no")
    assert len(expected) == PROBE.count("\ncan ")
    expected |= dict.fromkeys(("worktree", "scratch", "git", "tag", "source"), "yes")
    seen_by_code = expected | {"heldout": "yes"}
    assert answers(experiment / "sweep.log") == seen_by_code
    assert answers(experiment / "tests.log") == seen_by_code
    agent = answers(experiment / "coder_round_1.log")
    assert agent == expected | {"key": "yes", "agent_login": "yes"}
    assert not (probed.path / "planted").exists()
    assert probed.git("tag") == ""
    assert not list(experiment.glob("*_outbox"))

    without_bubblewrap(tmp_path / "bin", monkeypatch)
    with pytest.raises(UsageError, match="needs bubblewrap"):
        search(probed.path)


def test_a_run_without_bubblewrap_is_refused_before_it_exists(
    toy: ToyRepository, monkeypatch, tmp_path: Path
) -> None:
    toy.write("treewright.toml", 'isolation = "bubblewrap"\n' + CONFIG)
    toy.commit("isolated")
    without_bubblewrap(tmp_path / "bin", monkeypatch)
    with pytest.raises(UsageError) as refused:
        search(toy.path)
    assert str(refused.value) == (
        'isolation = "bubblewrap" needs bubblewrap (the program bwrap), which is not installed'
    )
    assert not toy.run_dir(RUN_ID).exists()


def isolated(tmp_path: Path, settings: str = "") -> CommandContext:
    """A context for commands in a plain directory next to the repository and inside the run."""
    path = tmp_path / "treewright.toml"
    path.write_text(f'isolation = "bubblewrap"\n{settings}{CONFIG}')
    repo, run = tmp_path / "repo", tmp_path / "run"
    for directory in (repo, run / "cand", run / "logs"):
        directory.mkdir(parents=True)
    isolation = Isolation.of(config.load(path), repo, run)
    return CommandContext(run / "cand", run / "logs", seed=0, isolation=isolation)


def test_isolated_commands_can_use_the_paths_that_they_are_given(
    bubblewrap: None, tmp_path: Path, port: int, monkeypatch
) -> None:
    context = isolated(tmp_path)
    (tmp_path / "repo" / "cache").mkdir()
    monkeypatch.setenv("PROBE_TOKEN", "given")
    command = (
        f'bash -c "exec 3<> /dev/tcp/127.0.0.1/{port}" && touch {tmp_path}/repo/cache/x '
        '&& test "$PROBE_TOKEN" = given'
    )
    given = config.TestsConfig(
        command=command,
        network=True,
        writable_paths=["cache"],
        keep_variables=["PROBE_TOKEN"],
    )
    assert commands.run_tests(given, context).ok, (context.log_dir / "tests.log").read_text()
    assert (tmp_path / "repo" / "cache" / "x").exists()
    assert not commands.run_tests(config.TestsConfig(command=command), context).ok


@pytest.mark.parametrize("command", ["mkfifo", "ln -s /etc/passwd", "mkdir"])
def test_files_left_by_an_isolated_sweep_are_not_trusted(
    bubblewrap: None, tmp_path: Path, command: str
) -> None:
    context = isolated(tmp_path)
    settings = config.SweepConfig(
        command=f'set -e; R="$TREEWRIGHT_RESULTS_CSV"; {command} "$R"; touch "$R.b"'
    )
    with pytest.raises(Distrusted, match="no results to read"):
        commands.run_sweep(settings, context, ConfigRange())
    assert sorted(path.name for path in context.log_dir.iterdir()) == [
        "sweep.log",
        "sweep_results.csv",
    ]


def said_by_doctor(repo: Path) -> Check:
    (found,) = [check for check in checkup.checks(repo) if check.name == "isolation"]
    return found


def test_doctor_reports_missing_isolation(toy: ToyRepository, monkeypatch, tmp_path: Path) -> None:
    found = said_by_doctor(toy.path)
    assert found.status == "absent"
    assert "the network and the run directory are open" in found.detail
    without_bubblewrap(tmp_path / "bin", monkeypatch)
    assert "install bubblewrap (is not installed)" in said_by_doctor(toy.path).hint
    toy.write("treewright.toml", 'isolation = "bubblewrap"\n' + CONFIG)
    assert said_by_doctor(toy.path).status == "failed"


def test_doctor_names_the_commands_with_network_access(
    bubblewrap: None, toy: ToyRepository
) -> None:
    settings = CONFIG.replace("[sweep]\n", "[sweep]\nnetwork = true\n")
    toy.write("treewright.toml", 'isolation = "bubblewrap"\n' + settings)
    found = said_by_doctor(toy.path)
    assert (found.status, found.detail.endswith("network for sweep")) == ("ok", True)


def test_held_out_data_in_the_git_history_of_agents_is_refused(
    bubblewrap: None, toy: ToyRepository
) -> None:
    toy.write("data/rows.csv", "1")
    settings = 'isolation = "bubblewrap"\nheldout_paths = ["data"]\n'
    toy.write("treewright.toml", settings + CONFIG)
    toy.commit("data")
    with pytest.raises(UsageError, match="data is in the history of the repository"):
        search(toy.path)
    assert said_by_doctor(toy.path).status == "failed"


@pytest.fixture
def visible() -> Iterator[Path]:
    """A directory that is readable inside the sandbox: outside /tmp and memory, which are new
    there."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        yield Path(directory)


def test_a_worker_with_a_copy_cannot_reach_the_real_run(bubblewrap: None, visible: Path) -> None:
    """In a cluster on this machine the coordinator's directories exist on the worker too."""
    toml = visible / "treewright.toml"
    toml.write_text(ISOLATED + CONFIG)
    real, copy = visible / "real", visible / "copy"
    run = visible / "elsewhere" / "run"
    kept = [real / ".treewright" / "x", run / "x", real / "data" / "hidden.csv"]
    for path in (*kept, real / "params.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("found")
    (copy / "run" / "cand").mkdir(parents=True)
    (copy / "run" / "logs").mkdir()
    sent = in_a_copy(config.load(toml), real, run)
    isolation = Isolation.of(sent, copy, copy / "run")
    context = CommandContext(copy / "run" / "cand", copy / "run" / "logs", 0, isolation=isolation)

    def can(path: Path) -> bool:
        return commands.run_tests(config.TestsConfig(command=f"grep found {path}"), context).ok

    assert can(real / "params.txt")
    assert not any(can(path) for path in kept)
    assert str(real / "data" / "heldout") in sent.heldout_paths


def test_hidden_paths_without_isolation_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "treewright.toml"
    path.write_text('heldout_paths = ["data"]\n' + CONFIG)
    with pytest.raises(UsageError, match='heldout_paths hides nothing without isolation = "bubble'):
        config.load(path)


NESTED = """\
git clone -q "$PROBE_REPO" sub
git -C sub checkout -q "$(git rev-parse HEAD:sub)"
git -C sub config filter.out.clean "touch '$PROBE_REPO/planted'; cat"
echo '* filter=out' > sub/.gitattributes
echo y >> sub/params.txt
mkdir -p deep/er && cp -r sub/.git deep/er/.git && touch deep/er/g
sed -i 's/^A 1.0/A 2.0/' params.txt
"""


def test_commands_of_a_nested_repository_do_not_run_outside_the_sandbox(
    bubblewrap: None, probed: ToyRepository
) -> None:
    """git asks a submodule whether it has changed, which runs the filters of its configuration."""
    commit = probed.git("rev-parse", "HEAD").strip()
    probed.git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    probed.git("commit", "-q", "-m", "a submodule")
    (probed.path / "sub").mkdir()
    probed.write("agent.sh", NESTED)
    probed.git("commit", "-q", "-m", "an agent", "agent.sh")
    run_dir = search(probed.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    evaluation = store.load(run_dir).evaluations["e000001"]
    assert not (probed.path / "planted").exists()
    assert evaluation.decision is not None
    assert evaluation.decision.fate == "promoted", evaluation.error
    changed = ("diff", "--name-only", commit, evaluation.candidate_commit or "")
    assert "deep/er/g" in probed.git(*changed).split(), "the files of a nested repository stay"


GENERATOR = """\
#!/bin/sh
git tag planted-by-a-generator && git config treewright.planted yes
test -s "$TREEWRIGHT_NODE_CONTEXT" || exit 1
idea="$TREEWRIGHT_OUTPUT_DIR/idea.md"
cp "$PROBE_REPO/ideas/00_help.md" "$idea"
for place in "$PROBE_REPO/planted" written; do
  if touch "$place" 2> /dev/null; then echo "$place: yes"; else echo "$place: no"; fi
done >> "$idea"
if cat "$PROBE_REPO/data/heldout/rows.csv"; then echo "heldout: yes" >> "$idea"; fi
"""
COMMAND_IDEAS = """
[[ideas]]
source = "command"
command = "sh generate.sh"
"""


def with_generator(toy: ToyRepository, top: str, keys: str, monkeypatch) -> Path:
    """Run a search with a generator program and return the idea that the program made."""
    toy.write("generate.sh", GENERATOR)
    toy.write(".gitignore", "data/\n")
    toy.write("data/heldout/rows.csv", "1\n")
    ideas = '[[ideas]]\nsource = "directory"\npath = "ideas"\n'
    toy.write("treewright.toml", top + CONFIG.replace(ideas, "") + COMMAND_IDEAS + keys)
    toy.commit("ideas from a program")
    monkeypatch.setenv("PROBE_REPO", str(toy.path))
    run_dir = search(toy.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    evaluation = store.load(run_dir).evaluations["e000001"]
    assert evaluation.decision is not None
    assert evaluation.decision.fate == "promoted"
    return run_dir / evaluation.idea_path


def test_a_generator_has_a_private_repository(toy: ToyRepository, monkeypatch) -> None:
    with_generator(toy, "", "", monkeypatch)
    assert toy.git("tag") == ""
    assert "treewright.planted" not in toy.git("config", "--list")


def test_a_generator_runs_in_isolation(bubblewrap: None, toy: ToyRepository, monkeypatch) -> None:
    top = 'isolation = "bubblewrap"\nheldout_paths = ["data/heldout"]\n'
    made = with_generator(toy, top, "isolated = true\n", monkeypatch)
    assert answers(made) == {f"{toy.path}/planted": "no", "written": "no"}
    assert not (toy.path / "planted").exists()
    assert toy.git("tag") == ""


def test_a_notice_command_runs_in_isolation(
    bubblewrap: None, toy: ToyRepository, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    said.mkdir()
    seen = f"cat > {said}/event; find .treewright -type f > {said}/runs"
    command = f"{seen}; touch planted; test -s params.txt"
    toy.write(
        "treewright.toml",
        'isolation = "bubblewrap"\n'
        + CONFIG
        + f'[[on_event]]\ncommand = "{command}"\nevents = ["finished"]\nisolated = true\n'
        + f'writable_paths = ["{said}"]\n',
    )
    toy.commit("a notice")
    search(toy.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    assert '"finished"' in (said / "event").read_text()
    assert (said / "runs").read_text() == ""
    assert not (toy.path / "planted").exists()


def test_isolated_has_no_effect_without_isolation(toy: ToyRepository) -> None:
    toy.write("treewright.toml", CONFIG + COMMAND_IDEAS + "isolated = true\n")
    with pytest.raises(UsageError, match="isolated needs isolation"):
        config.load(toy.path / "treewright.toml")
