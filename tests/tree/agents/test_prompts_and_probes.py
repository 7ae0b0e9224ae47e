"""Prompt files, secrets in logs, and what `doctor` is told about backends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.tree.agents import prompts, transcript
from treewright.tree.agents.backend import Role
from treewright.tree.agents.backend_factory import probe_backend
from treewright.tree.config import (
    BackendConfig,
    CommandBackend,
    EndpointConfig,
    NoBackend,
    OpenaiBackend,
    PatchBackend,
    ScriptedBackend,
)

names = st.sampled_from(["idea", "plan", "diff", "other"])
pieces = st.one_of(
    names.map(lambda name: "{{" + name + "}}"),
    st.sampled_from(["{", "}", "{{", "}}", "{{ idea }}", "{x}", "{{Idea}}", "\\", "\n", "$1"]),
    st.text(max_size=5),
)


@given(st.lists(pieces, max_size=10), st.text(), st.text())
def test_substitution_replaces_known_names_once_and_nothing_else(parts, idea: str, plan: str):
    """Built twice: as a template, and by hand from its parts."""
    values = {"idea": idea + "{{plan}}", "plan": plan}
    separator = "\x00"  # keeps braces of neighbouring parts from meeting
    template = separator.join(parts)
    expected = separator.join(
        values.get(part[2:-2], part) if part.startswith("{{") and part.endswith("}}") else part
        for part in parts
    )
    assert prompts.substitute(template, values) == expected


def test_builtin_prompts_use_what_they_need():
    for purpose, needed in prompts.REQUIRED.items():
        for name in needed:
            assert prompts.mentions(prompts.load_builtin(purpose), name)
    assert "VERDICT: APPROVE" in prompts.load_builtin("reviewer")


@pytest.mark.parametrize("value", ["short", "1", ""])
def test_short_values_are_not_taken_for_secrets(value: str, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", value)
    assert transcript.redact(f"a {value} b") == f"a {value} b"


def test_secrets_are_found_by_the_name_of_their_variable(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("GH_TOKEN", "ghp-12345678")
    monkeypatch.setenv("GH_TOKEN_LONGER_SECRET", "ghp-12345678-and-more")
    monkeypatch.setenv("ODD_NAME", "tiny")
    transcript.write(tmp_path / "log", "ghp-12345678-and-more ghp-12345678 tiny", "ODD_NAME")
    assert (tmp_path / "log").read_text() == "[redacted] [redacted] [redacted]"


ENDPOINT = EndpointConfig(base_url="http://127.0.0.1:9/v1", model="m", api_key_env="NOT_SET_KEY")


@pytest.mark.parametrize(
    ("role", "config", "ok", "message"),
    [
        ("planner", NoBackend(), True, "left out"),
        ("coder", NoBackend(), False, "cannot be `none`"),
        ("coder", PatchBackend(), True, "applies the patch"),
        ("reviewer", PatchBackend(), False, "only the coder"),
        ("coder", CommandBackend(command=[sys.executable]), True, sys.executable),
        ("coder", CommandBackend(command=["no-such-agent"]), False, "not on PATH"),
        ("coder", CommandBackend(command=["sh"], prompt="no.md"), False, "no.md"),
        ("coder", OpenaiBackend(endpoint=ENDPOINT), False, "NOT_SET_KEY is not set"),
        ("coder", ScriptedBackend(script="good.json"), True, "1 scripted entries"),
        ("coder", ScriptedBackend(script="bad.json"), False, "bad.json"),
        ("coder", ScriptedBackend(script="absent.json"), False, "cannot read"),
    ],
)
def test_probe(role: Role, config: BackendConfig, ok: bool, message: str, tmp_path: Path):
    (tmp_path / "good.json").write_text('[{"role": "coder"}]')
    (tmp_path / "bad.json").write_text('[{"role": "cook"}]')
    found = probe_backend(role, config, tmp_path)
    assert found[0] is ok
    assert message in found[1]
    assert "\n" not in found[1]


def test_probe_with_a_key_does_not_show_it(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("NOT_SET_KEY", "sk-secret-value")
    ok, message = probe_backend("coder", OpenaiBackend(endpoint=ENDPOINT), tmp_path)
    assert ok
    assert "sk-secret" not in message
    assert "NOT_SET_KEY" in message
