"""Errors of a configuration: the path of the key, the problem, and the likely intention."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.toy import CONFIG
from treewright.kernel.errors import UsageError
from treewright.tree import config

SOUND: dict = {
    "baseline_csv": "b.csv",
    "sweep": {"command": "sh sweep.sh"},
    "tests": {"command": "true"},
    "limits": {},
    "metrics": [{"name": "loss", "direction": "minimize", "primary": True}],
    "ideas": [{"source": "directory", "path": "ideas"}],
    "agents": {"coder": {"backend": "patch"}},
}
ENDPOINT = {"base_url": "http://localhost", "model": "m"}


def said(tmp_path: Path, **changes) -> str:
    path = tmp_path / "treewright.json"
    path.write_text(json.dumps(SOUND | changes))
    with pytest.raises(UsageError) as caught:
        config.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"baselin_csv": 1}, "unknown key `baselin_csv`; did you mean `baseline_csv`?"),
        (
            {"sweep": {"command": "x", "timeout_second": 1}},
            "unknown key `sweep.timeout_second`; did you mean `timeout_seconds`?",
        ),
        ({"sweep": {"comand": "x"}}, "unknown key `sweep.comand`; did you mean `command`?"),
        ({"sweep": {}}, "missing key `sweep.command`"),
        ({"sweep": {"command": ""}}, "`sweep.command`: "),
        ({"sweep": {"command": "x", "timeout_seconds": 0}}, "`sweep.timeout_seconds`: "),
        ({"sweep": {"command": "x", "timeout_seconds": "1"}}, "`sweep.timeout_seconds`: "),
        (
            {"tests": {"command": "x", "timeout": 3}},
            "unknown key `tests.timeout`; did you mean `timeout_seconds`?",
        ),
        (
            {"limits": {"memory": 3}},
            "unknown key `limits.memory`; did you mean `memory_mb`?",
        ),
        ({"limits": {"memory_mb": 0}}, "`limits.memory_mb`: "),
        ({"metrics": []}, "`metrics`: "),
        (
            {"metrics": [{"name": "a", "direction": "min", "primary": True}]},
            "`metrics[0].direction`: 'min' is not one of `minimize`, `maximize`; "
            "did you mean `minimize`?",
        ),
        (
            {"metrics": {"name": "a"}},
            "`metrics`: must be a list: write `[[metrics]]`, with two brackets",
        ),
        (
            {"metrics": [{"name": "a", "direction": "minimize", "wieght": 1}]},
            "unknown key `metrics[0].wieght`; did you mean `weight`?",
        ),
        ({"metrics": [{"name": "a", "direction": "minimize"}]}, "exactly one metric must have"),
        ({"metrics": SOUND["metrics"] * 2}, "metrics have the same name twice"),
        (
            {"metrics": [{"name": "a", "direction": "minimize", "weight": -1}]},
            "`metrics[0].weight`: ",
        ),
        ({"ideas": []}, "`ideas`: "),
        ({"ideas": [{"path": "x"}]}, "missing key `ideas[0].source`"),
        (
            {"ideas": [{"source": "magic"}]},
            "`ideas[0].source`: 'magic' is not one of `directory`, `command`, `llm`, `mutate`",
        ),
        ({"ideas": [{"source": ""}]}, "`ideas[0].source`: '' is not one of `directory`"),
        (
            {"ideas": [{"source": "directory", "pth": "x"}]},
            "unknown key `ideas[0].pth`; did you mean `path`?",
        ),
        (
            {"ideas": [{"source": "mutate", "files": []}]},
            "`ideas[0].files`: ",
        ),
        (
            {"ideas": [{"source": "llm", "endpoint": {**ENDPOINT, "api_key": "k"}}]},
            "unknown key `ideas[0].endpoint.api_key`; did you mean `api_key_env`?",
        ),
        (
            {"agents": {"coder": {"backend": "command"}}},
            "`agents.coder`: give either preset or command",
        ),
        (
            {"agents": {"coder": {"backend": "command", "preset": "cluade"}}},
            "`agents.coder.preset`: 'cluade' is not one of `claude`, `codex`, `gemini`, `aider`; "
            "did you mean `claude`?",
        ),
        (
            {"agents": {"coder": {"backend": "patched"}}},
            "`agents.coder.backend`: 'patched' is not one of `none`, `patch`, `command`, "
            "`openai`, `scripted`; did you mean `patch`?",
        ),
        (
            {"agents": {"coder": {"backend": "command", "command": "claude -p"}}},
            "`agents.coder.command`: must be a list, not a string: write `command = [",
        ),
        (
            {"protected_paths": "sweep.py"},
            "`protected_paths`: must be a list, not a string: write `protected_paths = [",
        ),
        (
            {"agents": {"reviwer": {"backend": "none"}}},
            "unknown key `agents.reviwer`; did you mean `reviewer`?",
        ),
        (
            {"agents": {"coder": {"backend": "openai", "endpoint": {"model": "m"}}}},
            "missing key `agents.coder.endpoint.base_url`",
        ),
        ({"protected_paths": ["a", 1]}, "`protected_paths[1]`: "),
        ({"protected_paths": [""]}, "`protected_paths[0]`: "),
        ({"max_review_rounds": 0}, "`max_review_rounds`: "),
        ({"seed": 1.5}, "`seed`: "),
    ],
)
def test_the_error_names_the_key_and_the_problem(tmp_path: Path, changes, words: str) -> None:
    assert said(tmp_path, **changes).startswith(words)


def toml(tmp_path: Path, text: str) -> config.Config:
    path = tmp_path / "treewright.toml"
    path.write_text(text)
    return config.load(path)


def test_toml_and_json_give_the_same_error(tmp_path: Path) -> None:
    found = toml(tmp_path, CONFIG)
    assert found.primary.name == "loss"
    assert found.protected_paths == ["sweep.sh", "tests.sh"]
    path = tmp_path / "treewright.json"
    path.write_text(json.dumps(SOUND))
    assert config.load(path).sweep.command == "sh sweep.sh"


def test_the_error_for_an_unknown_toml_key_has_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown key `sweep\.comand`; did you mean `command`"):
        toml(tmp_path, CONFIG.replace("command = ", "comand = ", 1))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("key", ["tolerance", "weight"])
def test_nan_and_infinity_are_refused(tmp_path: Path, key: str, value: str) -> None:
    text = CONFIG.replace("primary = true", f"primary = true\n{key} = {value}")
    with pytest.raises(UsageError, match=rf"metrics\[0\]\.{key}"):
        toml(tmp_path, text)


@pytest.mark.parametrize("value", [math.inf, math.nan, -math.inf])
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"sweep": {"command": "x", "timeout_seconds": 0}}, "sweep.timeout_seconds"),
        ({"tests": {"command": "x", "timeout_seconds": 0}}, "tests.timeout_seconds"),
        (
            {"ideas": [{"source": "mutate", "files": ["x"], "factors": [0]}]},
            "ideas[0].factors[0]",
        ),
        (
            {"ideas": [{"source": "mutate", "files": ["x"], "options": {"a": [0]}}]},
            "ideas[0].options",
        ),
        (
            {"ideas": [{"source": "llm", "endpoint": {**ENDPOINT, "timeout_seconds": 0}}]},
            "ideas[0].endpoint.timeout_seconds",
        ),
        ({"on_event": [{"command": "x", "timeout_seconds": 0}]}, "on_event[0].timeout_seconds"),
    ],
)
def test_a_number_that_a_record_cannot_hold_is_refused(
    tmp_path: Path, changes, key: str, value: float
) -> None:
    """JSON has no infinity: the record of such a run could not be read again."""
    path = tmp_path / "treewright.toml"
    path.write_text(as_toml(with_number(SOUND | changes, value)))
    with pytest.raises(UsageError) as caught:
        config.load(path)
    assert f"`{key}" in str(caught.value)


def with_number(value: object, number: float) -> object:
    """Return a copy with this number in place of every 0."""
    if isinstance(value, dict):
        return {name: with_number(each, number) for name, each in value.items()}
    if isinstance(value, list):
        return [with_number(each, number) for each in value]
    return number if type(value) is int else value


def as_toml(value: object) -> str:
    """Return a value as TOML: tables inline, whole documents by key."""
    if isinstance(value, dict):
        return "\n".join(f"{name} = {_inline(each)}" for name, each in value.items())
    raise TypeError


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_inline(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


@pytest.mark.parametrize("text", ["a = ", "\0", "[[metrics]]\n[metrics]\n"])
def test_invalid_toml_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="not valid toml"):
        toml(tmp_path, text)


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no configuration at .*treewright init"):
        config.load(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot read"):
        config.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'baseline_csv = "\xe4"\n')
    with pytest.raises(UsageError, match="not valid toml"):
        config.load(tmp_path / "latin.toml")
