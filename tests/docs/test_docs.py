"""The documentation matches the program: links, flags, keys, codes and examples are checked."""

from __future__ import annotations

import csv
import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
import typing
from pathlib import Path
from xml.etree import ElementTree

import click
import msgspec
import pytest

from treewright.cli.main import cli
from treewright.kernel.text.config_errors import all_keys
from treewright.tree import config as configuration
from treewright.tree import starter
from treewright.tree.deciding import promotion, results, scoring
from treewright.tree.ideas.idea_text import blocks, language
from treewright.tree.records import model
from treewright.tree.report import reasons

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")]
)
SOURCES = [path.read_text(encoding="utf-8") for path in ROOT.glob("src/treewright/**/*.py")]
REQUIRED = {
    "baseline_csv": "b.csv",
    "sweep": {"command": "true"},
    "metrics": [{"name": "loss", "direction": "minimize", "primary": True}],
    "ideas": [{"source": "directory", "path": "ideas"}],
}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^(```+|~~~+).*?^\1\s*$", "", path.read_text("utf-8"), flags=re.M | re.S)


def anchors(path: Path) -> set[str]:
    """Return the fragments that a renderer makes of a page's headings."""
    headings = re.findall(r"^#{1,6}\s+(.+?)\s*$", prose(path), flags=re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings]
    return {re.sub(r"\s", "-", heading) for heading in plain}


def commands(group: click.Command, prefix: str = "") -> dict[str, click.Command]:
    """Return every command by the words that call it."""
    if not isinstance(group, click.Group):
        return {prefix: group}
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None, word
        found |= commands(command, f"{prefix} {word}".strip())
    return found


def flags(command: click.Command) -> set[str]:
    options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    return {option for option in options if option.startswith("--")}


COMMANDS = commands(cli)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_relative_links_resolve(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, fragment = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.exists(), f"{name(path)}: {target}"
        if fragment:
            assert fragment in anchors(linked), f"{name(path)}: {target}"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_flags_in_shown_commands_exist(path: Path) -> None:
    text = path.read_text("utf-8").replace("\\\n", " ")
    for call in re.findall(r"\btreewright ((?:[a-z]+ )+[^\n`|]*)", text):
        words = call.partition(" #")[0].split()
        found = max((n for n in COMMANDS if call.startswith(f"{n} ")), key=len, default=None)
        if found is None:
            continue
        allowed = flags(COMMANDS[found]) | {"--help"}
        for word in words:
            if word.startswith("--"):
                flag = re.sub(r"[^a-z-].*", "", word)
                assert flag in allowed, f"{name(path)}: treewright {found} {flag}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_documented(command: str) -> None:
    own = ROOT / "docs" / f"{command.split()[0]}.md"
    text = page("docs/cli.md") + (own.read_text("utf-8") if own.exists() else "")
    for flag in flags(COMMANDS[command]):
        assert re.search(rf"`{flag}[`\s]", text), f"treewright {command} {flag}"


def test_every_command_is_in_the_list_of_commands() -> None:
    listed = page("docs/cli.md").partition("\n## ")[0]
    for command in cli.list_commands(click.Context(cli)):
        assert f"`treewright {command}`" in listed


def test_every_configuration_key_is_documented() -> None:
    text = page("docs/configuration.md")
    for key in all_keys(configuration.Table):
        assert f"`{key}`" in text, key
    for kind in ("IdeaSourceConfig", "BackendConfig"):
        for struct in typing.get_args(getattr(configuration, kind)):
            assert f"| `{struct.__struct_config__.tag}` |" in text, struct


def codes() -> set[str]:
    """Return the reason and error codes that the sources define or raise."""
    found = set(reasons._REASONS) | set(typing.get_args(results.ProblemCode))
    found |= set(typing.get_args(model.Fate))
    for module in (scoring, promotion):
        found |= {value for key, value in vars(module).items() if key.isupper() and is_code(value)}
    raised = r'\b(?:AgentFailure|ChatError|EvalError|Rejected|_error)\(\s*"([a-z_]+)"'
    assigned = r'\bcode = "([a-z_]+)"|\bEVAL_TIMEOUT = "([a-z_]+)"'
    for source in SOURCES:
        found |= set(re.findall(raised, source))
        found |= {code for pair in re.findall(assigned, source) for code in pair if code}
    return found


def is_code(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z]+(_[a-z]+)+", value) is not None


def test_every_reason_code_is_documented() -> None:
    text = page("docs/scoring.md")
    assert len(codes()) > 40
    assert sorted(code for code in codes() if f"`{code}`" not in text) == []


def test_every_exit_code_and_stop_reason_is_documented() -> None:
    text = page("docs/cli.md")
    from treewright.kernel import errors

    for key, value in vars(errors).items():
        if key.startswith("EXIT_"):
            assert f"| {value} |" in text, key
    for reason in typing.get_args(model.StopReason):
        assert f"`{reason}`" in text


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_toml_examples_load(path: Path) -> None:
    for block in blocks(path.read_text("utf-8")):
        if language(block) == "toml":
            msgspec.convert(REQUIRED | tomllib.loads(block.body), type=configuration.Config)


def test_the_isolated_template_matches_the_page(tmp_path: Path) -> None:
    first, *_ = [
        block.body
        for block in blocks(page("docs/sweep-contract.md"))
        if language(block) == "python" and "COLUMNS" in block.body
    ]
    template = starter.read_template("sweep")
    begin, end = template.index("ALL_CONFIGS ="), template.index("# -- the rest need not")
    limits = "SECONDS_A_CONFIG = 60.0\nLONGEST_ANSWER = 16 << 20\n"
    head = template[:begin].replace("import os\n", "import os\nimport random\n", 1)
    (tmp_path / "treewright_sweep.py").write_text(head + limits + first + template[end:])
    (tmp_path / "model.py").write_text("def fit(xs, ys):\n    return 2.5, 4.0\n")
    subprocess.run(
        [sys.executable, "-I", "treewright_sweep.py"],
        cwd=tmp_path,
        env={"TREEWRIGHT_RESULTS_CSV": "out.csv", "TREEWRIGHT_SWEEP_CONFIG_LIMIT": "2"},
        check=True,
    )
    found = results.read_results(tmp_path / "out.csv", ["rmse", "slope_error"])
    assert found.sound_ids == {0, 1}


def test_the_sweep_template_keeps_the_contract(tmp_path: Path) -> None:
    (template,) = [
        block.body
        for block in blocks(page("docs/sweep-contract.md"))
        if language(block) == "python" and "def main()" in block.body
    ]
    (tmp_path / "sweep.py").write_text(template)
    (tmp_path / "model.py").write_text("def fit(xs, ys):\n    return 2.5, 4.0\n")

    def sweep(start: int, limit: int) -> list[dict[str, str]]:
        variables = f"TREEWRIGHT_SWEEP_CONFIG_START={start} TREEWRIGHT_SWEEP_CONFIG_LIMIT={limit}"
        command = (
            f"{variables} TREEWRIGHT_RESULTS_CSV=out.csv {shlex.quote(sys.executable)} sweep.py"
        )
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        with (tmp_path / "out.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    read = sweep(0, 5)
    assert [row["config_id"] for row in read] == ["0", "1", "2", "3", "4"]
    found = results.read_results(tmp_path / "out.csv", ["rmse", "slope_error"])
    assert found.sound_ids == set(range(5))
    assert found.problems.counts == {}
    assert sweep(3, 5) == read[3:], "the same config gives the same numbers"


def test_every_page_is_in_the_index() -> None:
    index = page("docs/index.md")
    for path in ROOT.glob("docs/*.md"):
        assert path.name == "index.md" or f"({path.name})" in index, path.name
    for path in ROOT.glob("docs/decisions/*.md"):
        assert f"(decisions/{path.name})" in index, path.name


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_pages_contain_no_machine_paths(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"/(work|root|home/\w+|opt/\w+)/", text)


def test_pictures_are_well_formed() -> None:
    pictures = list(ROOT.glob("docs/img/*.svg"))
    assert pictures
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")


HOPS = re.findall(r"`([a-z_/0-9]+\.py):([A-Za-z_.]+)`", page("ARCHITECTURE.md"))


@pytest.mark.parametrize(("place", "what"), HOPS, ids=[f"{place}:{what}" for place, what in HOPS])
def test_every_hop_of_the_walks_exists(place: str, what: str) -> None:
    module = importlib.import_module("treewright." + place.removesuffix(".py").replace("/", "."))
    found: object = module
    for name_of_part in what.split("."):
        found = getattr(found, name_of_part)
    assert callable(found)


def test_the_walks_are_short() -> None:
    assert 30 <= len(HOPS) <= 42


def test_make_without_a_target_lists_the_targets() -> None:
    outside = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    told = subprocess.run(
        ["make"], cwd=ROOT, env=outside, capture_output=True, text=True, check=True
    ).stdout
    targets = re.findall(r"^make (\w+) {2,}\w", told, re.M)
    assert len(targets) == len(told.splitlines())
    assert {"demo", "test", "site"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", page("Makefile"), re.M), target
