"""Command-line agents: how they are started, ended, read and cleaned up after."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.waiting import HeldClock, gone, said
from treewright.kernel.procs import process
from treewright.llm.usage import Usage
from treewright.tree.agents import presets
from treewright.tree.agents.backend import AgentFailure, Role, RoleReply, RoleRequest
from treewright.tree.agents.command_agent import CommandAgent
from treewright.tree.agents.presets import PRESETS
from treewright.tree.config import CommandBackend


def ask(
    worktree: Path, config: CommandBackend, role: Role = "coder", prompt: str = "Do it.", **fields
) -> RoleReply:
    logs = worktree.parent / "the logs"
    return CommandAgent(config).run(RoleRequest(role, 1, prompt, "", worktree, logs, **fields))


def python(code: str, *arguments: str, **fields) -> CommandBackend:
    return CommandBackend(command=[sys.executable, "-c", code, *arguments], **fields)


def test_prompt_on_stdin_and_output_as_reply(worktree: Path):
    code = (
        "import sys, os\n"
        "print(sys.stdin.read().upper(), os.getcwd(), os.environ['TREEWRIGHT_ROLE'])"
    )
    reply = ask(worktree, python(code), prompt="größe")
    assert reply.text == f"GRÖSSE {worktree} coder"
    assert (worktree.parent / "the logs/coder_round_1.log").read_text().startswith("GRÖSSE")


def test_prompt_in_a_file(worktree: Path):
    code = "import sys; print(open(sys.argv[1]).read(), len(sys.stdin.read()))"
    assert ask(worktree, python(code, "{prompt_file}"), prompt="hello").text == "hello 0"


def test_the_prompt_file_is_whole_while_it_is_read_and_scrubbed_after(worktree: Path, monkeypatch):
    monkeypatch.setenv("PRIMARY_KEY", "config_id")
    code = "import sys; print(open(sys.argv[1]).read())"
    reply = ask(worktree, python(code, "{prompt_file}"), prompt="row['config_id']")
    assert reply.text == "row['config_id']"
    logs = worktree.parent / "the logs"
    for name in ("coder_round_1.prompt.md", "coder_round_1.log"):
        assert (logs / name).read_text().strip() == "row['[redacted]']"


def test_missing_executable(worktree: Path):
    with pytest.raises(AgentFailure, match="`no-such-agent` is not on PATH") as caught:
        ask(worktree, CommandBackend(command=["no-such-agent"]))
    assert caught.value.code == "agent_missing"


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_missing_preset_says_how_to_install_it(preset, worktree: Path, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentFailure, match=PRESETS[preset].install):
        ask(worktree, CommandBackend(preset=preset))


def test_failure_names_code_last_words_and_log(worktree: Path):
    with pytest.raises(AgentFailure, match=r"exited with code 3: .*no credit left") as caught:
        ask(worktree, python("print('working'); print('no credit left'); raise SystemExit(3)"))
    assert caught.value.code == "agent_failed"
    assert caught.value.log is not None
    assert "working" in caught.value.log.read_text()


def test_timeout_ends_the_agent_and_its_children(worktree: Path, monkeypatch):
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(child.pid)); time.sleep(60)"
    )
    monkeypatch.setattr(process, "time", HeldClock(lambda: said(worktree / "pid")))
    with pytest.raises(AgentFailure, match="time limit") as caught:
        ask(worktree, python(code, timeout_seconds=0.3))
    assert caught.value.code == "agent_timeout"
    assert caught.value.retryable
    pid = int((worktree / "pid").read_text())
    assert gone(pid)


def test_cancel(worktree: Path):
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(AgentFailure) as caught:
        ask(worktree, python("import time; time.sleep(600)"), cancel=cancel)
    assert caught.value.code == "cancelled"
    assert time.monotonic() - began < 200


def test_secrets_in_the_output_are_taken_out(worktree: Path, monkeypatch):
    monkeypatch.setenv("VENDOR_API_KEY", "sk-live-abcdef123456")
    reply = ask(worktree, python("import os; print('key', os.environ['VENDOR_API_KEY'])"))
    assert reply.text == "key [redacted]"
    for path in (worktree.parent / "the logs").rglob("*"):
        assert b"sk-live" not in path.read_bytes()


def fake_cli(directory: Path, name: str, code: str) -> None:
    path = directory / name
    path.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
    path.chmod(0o755)


def test_aider_leaves_no_private_files_in_the_change(worktree: Path, tmp_path: Path, monkeypatch):
    """The executable is a stand-in for Aider: the real one needs an account. It gets the
    preset's arguments and leaves behind what Aider leaves."""
    fake_cli(
        tmp_path,
        "aider",
        "import os\nopen('.aider.chat', 'w').write('x'); os.mkdir('.aider.tags.cache.v4')\n"
        "open('.aider.tags.cache.v4/db', 'w').write('x'); open('new.py', 'w').write('A = 1')\n"
        "prompt = open(sys.argv[sys.argv.index('--message-file') + 1]).read()\n"
        "print(prompt, '--chat-mode' in sys.argv)\n"
        "print('Tokens: 12k sent, 340 received. Cost: $0.02 message, $0.05 session.')",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    reply = ask(worktree, CommandBackend(preset="aider"), prompt="please")
    assert "please False" in reply.text
    assert reply.usage == Usage(12_000, 340, 0.05)
    assert sorted(path.name for path in worktree.iterdir()) == [
        ".git",
        "README.md",
        "model.py",
        "new.py",
    ]
    assert "please True" in ask(worktree, CommandBackend(preset="aider"), "planner", "please").text


CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Changed it.\n\nVERDICT: APPROVE",
    "total_cost_usd": 0.0123,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 40,
    },
}
CODEX = [
    {"type": "thread.started", "thread_id": "x"},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "first"}},
    {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "last"}},
    {"type": "turn.completed", "usage": {"input_tokens": 50, "output_tokens": 5}},
]
GEMINI = {
    "response": "done",
    "stats": {"models": {"g": {"tokens": {"prompt": 70, "candidates": 6, "thoughts": 4}}}},
}


@pytest.mark.parametrize(
    ("read", "output", "expected"),
    [
        (
            presets.read_claude,
            "warning: {update}\n" + json.dumps(CLAUDE),
            RoleReply(str(CLAUDE["result"]), Usage(3210, 40, 0.0123)),
        ),
        (
            presets.read_codex,
            "Reading prompt from stdin...\n" + "\n".join(map(json.dumps, CODEX)),
            RoleReply("last", Usage(50, 5)),
        ),
        (
            presets.read_gemini,
            "Loaded credentials.\n" + json.dumps(GEMINI, indent=2) + "\n",
            RoleReply("done", Usage(70, 10)),
        ),
        (presets.read_claude, "plain words", RoleReply("plain words")),
        (presets.read_codex, "plain words", RoleReply("plain words")),
        (presets.read_gemini, '{"other": 1}', RoleReply('{"other": 1}')),
        (
            presets.read_claude,
            json.dumps({"type": "result", "result": "x", "total_cost_usd": "?", "usage": [1]}),
            RoleReply("x"),
        ),
        (
            presets.read_aider,
            "Tokens: 1.5k sent, 2k cache hit, 20 received.\nTokens: 10 sent, 5 received.",
            RoleReply(
                "Tokens: 1.5k sent, 2k cache hit, 20 received.\nTokens: 10 sent, 5 received.",
                Usage(1510, 25),
            ),
        ),
    ],
)
def test_reading_what_agents_print(read, output: str, expected: RoleReply):
    assert read(output) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Tokens: 1.2.3k sent, 4 received.", Usage(0, 4)),
        ("Tokens: . sent, 4 received.", Usage(0, 4)),
        (f"Tokens: {'9' * 400}M sent, 4 received.", Usage(0, 4)),
        ("Tokens: 5 sent, 4 received.\nCost: $1 message, $1.2.3 session", Usage(5, 4)),
        (f"Tokens: 5 sent, 4 received.\nCost: $1 message, ${'9' * 400} session", Usage(5, 4)),
    ],
)
def test_numbers_that_are_none_lose_no_answer(line: str, expected: Usage):
    """What aider prints has the model's words in it."""
    assert presets.read_aider(line) == RoleReply(line, expected)


@pytest.mark.parametrize(
    ("read", "output", "message"),
    [
        (
            presets.read_claude,
            json.dumps(CLAUDE | {"is_error": True, "result": "Credit balance is too low"}),
            "Credit balance",
        ),
        (
            presets.read_codex,
            json.dumps({"type": "turn.failed", "error": {"message": "usage limit"}}),
            "usage limit",
        ),
        (presets.read_gemini, json.dumps({"error": {"message": "quota"}}), "quota"),
    ],
)
def test_an_agent_that_says_it_failed_has_failed(read, output: str, message: str):
    with pytest.raises(AgentFailure, match=message) as caught:
        read(output)
    assert caught.value.code == "agent_failed"


def test_roles_that_only_read_get_no_permission_to_edit():
    assert "acceptEdits" in PRESETS["claude"].editing
    assert "acceptEdits" not in PRESETS["claude"].reading
    assert "read-only" in PRESETS["codex"].reading
    assert "auto_edit" not in PRESETS["gemini"].reading
    for preset in PRESETS.values():
        assert preset.reading[0] == preset.executable
