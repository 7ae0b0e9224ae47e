"""Directory, generator command, chat endpoint: the contracts of docs/ideas.md."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.llm.endpoints import Step, completion, stand_in
from tests.parallel.harness import eventually
from tests.signals import as_from_a_terminal
from tests.toy import ToyRepository
from treewright.kernel.errors import MissingExtra
from treewright.llm import endpoint as endpoint_module
from treewright.llm.usage import Usage
from treewright.tree.config import (
    CommandIdeas,
    DirectoryIdeas,
    EndpointConfig,
    LlmIdeas,
    MutateIdeas,
)
from treewright.tree.ideas import llm_source
from treewright.tree.ideas.idea_source import IdeaSourceError
from treewright.tree.ideas.idea_text import key
from treewright.tree.ideas.source_factory import make_source, probe_source

SUMMARY = {
    "parent_relative": {
        "recommendation": {"grade": "mixed", "reasons": ["insufficient_signal"]},
        "metrics": [
            {
                "name": "loss",
                "direction": "minimize",
                "baseline_mean": 1.0,
                "candidate_mean": None,
                "verdict": "unknown",
            }
        ],
    },
}


def test_directory_in_name_order_without_other_and_empty_files(make_context):
    context = make_context()
    ideas = context.repo / "my ideas"
    (ideas / "sub.md").mkdir(parents=True)
    for name, content in {"b.md": b"B\r\n", "a.md": b"A", "c.txt": b"C", "d.md": b" \n"}.items():
        (ideas / name).write_bytes(content)
    proposals = make_source(DirectoryIdeas(path="my ideas")).propose(context, ())
    assert [(idea.text, idea.origin) for idea in proposals.ideas] == [
        ("A", "my ideas/a.md"),
        ("B\r\n", "my ideas/b.md"),
    ]


def test_directory_problems_are_one_line(make_context):
    context = make_context()
    with pytest.raises(IdeaSourceError, match=r"cannot read the idea directory .*absent"):
        make_source(DirectoryIdeas(path="absent")).propose(context, ())
    (context.repo / "x.md").write_bytes(b"\xff")
    with pytest.raises(IdeaSourceError, match=r"x\.md is not UTF-8 text .*save it as UTF-8 or"):
        make_source(DirectoryIdeas(path=".")).propose(context, ())
    command = r"printf '\377' > $TREEWRIGHT_OUTPUT_DIR/y.md"
    with pytest.raises(IdeaSourceError, match=r"y\.md is not UTF-8 .*let the idea generator"):
        make_source(CommandIdeas(command=command, pass_arguments=False)).propose(context, ())


GENERATOR = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--output-dir", type=pathlib.Path)
parser.add_argument("--context-ideas-dir", action="append", default=[])
parser.add_argument("--count", type=int)
parser.add_argument("--node-context", type=pathlib.Path)
parser.add_argument("--mine")
args = parser.parse_args()
node = json.loads(args.node_context.read_text())
for number in range(args.count - 1, -1, -1):
    (args.output_dir / f"idea_{number}.md").write_text(f"# {number}")
(args.output_dir / "z.md").write_text(json.dumps({
    "dirs": args.context_ideas_dir, "node": node, "cwd": os.getcwd(), "mine": args.mine,
    "env": {k: v for k, v in os.environ.items() if k.startswith("TREEWRIGHT_")},
    "md": pathlib.Path(os.environ["TREEWRIGHT_NODE_CONTEXT_MD"]).read_text(),
}))
"""


def test_generator_contract(make_context, tmp_path: Path):
    script = tmp_path / "gen it.py"
    script.write_text(GENERATOR)
    dirs = [tmp_path / "node 1", tmp_path / "root"]
    context = make_context(
        wanted=2,
        seed=9,
        context_ideas_dirs=dirs,
        diff_stat=" model.py | 2 +-\n",
        last_summary=SUMMARY,
        protected_paths=["sweep.py"],
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} --mine yes"
    proposals = make_source(CommandIdeas(command=command)).propose(context, ())
    assert [idea.text for idea in proposals.ideas[:2]] == ["# 0", "# 1"]
    told = json.loads(proposals.ideas[2].text)
    assert told["dirs"] == [str(path) for path in dirs]
    assert told["cwd"] == str(context.checkout)
    assert told["mine"] == "yes"
    assert told["env"]["TREEWRIGHT_COUNT"] == "2"
    assert told["env"]["TREEWRIGHT_SEED"] == "9"
    assert told["env"]["TREEWRIGHT_CONTEXT_IDEAS_DIRS"] == os.pathsep.join(map(str, dirs))
    assert told["node"]["diff_stat"] == " model.py | 2 +-\n"
    assert told["node"]["scoring_summary"] == SUMMARY
    assert told["node"]["reasons"]["parent_relative"] == ["insufficient_signal"]
    assert told["node"]["protected_paths"] == ["sweep.py"]
    assert told["node"]["constraints"]
    for part in ("model.py | 2 +-", "insufficient_signal", "loss (minimize): 1 -> ?", "`sweep.py`"):
        assert part in told["md"]


def test_generator_by_environment_only(make_context):
    command = 'echo "# from the shell" > "$TREEWRIGHT_OUTPUT_DIR/a.md"'
    source = make_source(CommandIdeas(command=command, pass_arguments=False))
    assert [idea.text for idea in source.propose(make_context(), ()).ideas] == [
        "# from the shell\n"
    ]


@pytest.mark.parametrize(
    ("command", "seconds", "message"),
    [
        ("echo starting; echo out of ideas >&2; exit 7", 60.0, "code 7: .*out of ideas"),
        ("sleep 60", 0.5, "time limit"),
        ("no-such-generator", 60.0, "code 127"),
    ],
)
def test_generator_failures_name_the_log(command, seconds, message, make_context):
    source = make_source(
        CommandIdeas(command=command, timeout_seconds=seconds, pass_arguments=False)
    )
    with pytest.raises(IdeaSourceError, match=message) as caught:
        source.propose(make_context(), ())
    said = str(caught.value)
    assert "\n" not in said
    assert Path(said.rpartition("log: ")[2].rstrip(")")).exists()


REPLY = """Sure!

## IDEA: Raise the rate
Set `RATE` to 0.5.

```python
## IDEA: not one, it is in code
```

## IDEA: No text

## IDEA: Lower the depth
Set `DEPTH` to 2."""


def ask(context, url: str, taken=(), **fields):
    endpoint = EndpointConfig(base_url=url, model="m", max_tokens=fields.pop("max_tokens", 20))
    return make_source(LlmIdeas(endpoint=endpoint, **fields)).propose(context, taken)


@pytest.fixture
def llm_context(make_context, tmp_path: Path):
    """A node with a repository as its checkout, and an earlier, rejected idea."""
    context = make_context(context_ideas_dirs=[tmp_path / "earlier"], wanted=2)
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier/idea_000.md").write_text("# Tried before\n\nIt did not help.\n")
    (context.checkout / "model.py").write_text("RATE = 0.1\n")
    subprocess.run(["git", "init", "-q"], cwd=context.checkout, check=True)
    return context


def test_llm_ideas_are_read_counted_and_told_what_was_tried(llm_context):
    with stand_in(Step(body=completion(REPLY))) as it:
        proposals = ask(llm_context, it.url)
    assert [idea.text.splitlines()[0] for idea in proposals.ideas] == [
        "# Raise the rate",
        "# Lower the depth",
    ]
    assert "not one, it is in code" in proposals.ideas[0].text
    assert proposals.usage == Usage(100, 10, unpriced_tokens=110)
    prompt = it.requests[0]["messages"][0]["content"]
    for part in ("exactly 2 ideas", "It did not help.", "RATE = 0.1", "Node n0"):
        assert part in prompt


def test_llm_prompt_keeps_to_its_budget(llm_context):
    """The task comes first; files and earlier ideas are cut to the room that is left."""
    for number in range(40):
        path = llm_context.context_ideas_dirs[0] / f"idea_{number:03}.md"
        path.write_text(f"# Idea {number}\n\n{'Words. ' * 200}\n")
    (llm_context.checkout / "long.py").write_text("x = 1\n" * 3000)
    context = dataclasses.replace(llm_context, task="Fit the curve.")
    with stand_in(Step(body=completion(REPLY))) as it:
        ask(context, it.url, prompt_tokens=1500)
        with pytest.raises(IdeaSourceError, match="raise `prompt_tokens`"):
            ask(context, it.url, prompt_tokens=200)
    prompt = it.requests[0]["messages"][0]["content"]
    assert prompt.index("Fit the curve.") < 200
    assert len(prompt) <= 1500 * 4
    assert "# Idea 7\n" in prompt
    assert "RATE = 0.1" in prompt


def test_llm_seed_differs_between_nodes(llm_context, make_context):
    with stand_in(Step(body=completion(REPLY))) as it:
        for node in ("a", "a", "b"):
            ask(make_context(node_id=node), it.url)
    first, second, third = (request["seed"] for request in it.requests)
    assert first == second != third


def test_llm_models_are_drawn_by_weight(make_context):
    subprocess.run(["git", "init", "-q"], cwd=make_context().checkout, check=True)
    weights = {"small": 3.0, "large": 1.0}
    with stand_in(Step(body=completion(REPLY))) as it:
        origins = [
            ask(make_context(node_id=f"n{number}"), it.url, model_weights=weights).ideas[0].origin
            for number in range(12)
        ]
        again = ask(make_context(node_id="n0"), it.url, model_weights=weights).ideas[0].origin
    models = [request["model"] for request in it.requests]
    assert origins == [f"llm:{model}" for model in models[:12]]
    assert models.count("small") > models.count("large") > 0
    assert again == origins[0]


def test_llm_taken_ideas_are_left_out(llm_context):
    with stand_in(Step(body=completion(REPLY))) as it:
        first = ask(llm_context, it.url).ideas[0]
        rest = ask(llm_context, it.url, taken=[key(first.text)]).ideas
    assert [idea.text.splitlines()[0] for idea in rest] == ["# Lower the depth"]


def test_llm_is_asked_again_where_it_only_repeats_ideas(llm_context):
    """A model that goes on repeating them has no more ideas, which is no failure."""
    other = Step(body=completion("## IDEA: Another\nText."))
    with stand_in(Step(body=completion(REPLY)), other) as it:
        known = [key(text) for text in llm_source.parse_ideas(REPLY)]
        assert [i.text for i in ask(llm_context, it.url, known).ideas] == ["# Another\n\nText.\n"]
        assert "tried before" in it.requests[1]["messages"][-1]["content"]
    with stand_in(Step(body=completion(REPLY))) as it:
        assert ask(llm_context, it.url, known).ideas == []
        assert len(it.requests) == 3


def test_llm_is_told_why_a_reply_is_none_and_asked_again(llm_context):
    refusal, wrong = Step(body=completion("I would rather not.")), Step(body=completion("1. Raise"))
    with stand_in(refusal, wrong, Step(body=completion(REPLY))) as it:
        proposals = ask(llm_context, it.url)
        said = [request["messages"][-1]["content"] for request in it.requests]
    assert len(proposals.ideas) == 2
    assert proposals.usage == Usage(300, 30, unpriced_tokens=330)
    assert "no line `## IDEA: <title>`" in said[1]
    with stand_in(refusal) as it:
        with pytest.raises(IdeaSourceError, match="no line `## IDEA: <title>`") as caught:
            ask(llm_context, it.url)
        assert len(it.requests) == 3
    assert not caught.value.is_outage
    assert caught.value.usage == Usage(300, 30, unpriced_tokens=330)
    assert "I would rather not." in str(caught.value)
    assert "I would rather not." in (llm_context.scratch / "llm.log").read_text()


@pytest.mark.parametrize(
    "reply",
    [
        "## IDEA: Raise it\nTo 0.5.\n\n## IDEA: Lower it\nTo 2.",
        "# Idea 1: Raise it\nTo 0.5.\n\n# Idea 2: Lower it\nTo 2.",
        "### IDEA 1 - Raise it\n\nTo 0.5.\n\n### IDEA 2 - Lower it\nTo 2.",
        "**Idea 1: Raise it**\nTo 0.5.\n\n**Idea 2: Lower it**\nTo 2.",
        "**IDEA: Raise it**\nTo 0.5.\n\n**IDEA:** Lower it\nTo 2.",
        "Here they are.\n\nIDEA: Raise it\nTo 0.5.\n\nIdea: Lower it\nTo 2.",
        "## 1. Raise it\nTo 0.5.\n\n## 2. Lower it\nTo 2.",
        "### **1. Raise it**\nTo 0.5.\n\n### **2. Lower it**\nTo 2.",
        "1. **Raise it**\n   To 0.5.\n\n2. **Lower it**\n   To 2.",
        "1. **Raise it**: To 0.5.\n2. **Lower it**: To 2.",
        "**1. Raise it**\nTo 0.5.\n\n**2. Lower it**\nTo 2.",
        "```markdown\n## IDEA: Raise it\nTo 0.5.\n\n## IDEA: Lower it\nTo 2.\n```",
        "Sure:\n````\n## IDEA: Raise it\nTo 0.5.\n## IDEA: Lower it\nTo 2.\n````\nGood luck.",
        "```markdown\n## IDEA: Raise it\nTo 0.5.\n```\n```md\n## IDEA: Lower it\nTo 2.\n```",
    ],
)
def test_headings_as_models_write_them(reply: str):
    found = llm_source.parse_ideas(reply)
    assert [text.split("\n")[0] for text in found] == ["# Raise it", "# Lower it"]
    assert "To 0.5." in found[0]
    assert "To 2." in found[1]


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot help with that.",
        "# Sorry\n\nThere are no more ideas.",
        "No more ideas.",
        "1. Raise it\n2. Lower it",
        "- first\n- second",
    ],
)
def test_what_is_no_list_of_ideas_is_none(reply: str):
    assert llm_source.parse_ideas(reply) == []


def test_llm_idea_that_was_cut_off_is_dropped(llm_context):
    with stand_in(Step(body=completion(REPLY, finish="length"))) as it:
        assert len(ask(llm_context, it.url).ideas) == 1
    assert llm_source.parse_ideas("## IDEA: x\nhalf an", cut_off=True) == []


def test_llm_endpoint_errors_are_source_errors(llm_context):
    said = r"no ideas: m at .* 404: no such model"
    with (
        stand_in(Step(404, {"error": "no such model"})) as it,
        pytest.raises(IdeaSourceError, match=said),
    ):
        ask(llm_context, it.url)


@pytest.mark.xdist_group("llm")
def test_llm_ideas_from_a_real_model(llm_context, model_url: str):
    """SmolLM2 does not keep to the format. The test covers prompt file, reminder and log."""
    (llm_context.repo / "p.md").write_text("Say the word blue. {{count}}")
    with pytest.raises(IdeaSourceError, match=r"## IDEA|max_tokens"):
        ask(llm_context, model_url, prompt="p.md")
    log = (llm_context.scratch / "llm.log").read_text()
    assert "## user\n\nSay the word blue. 2" in log
    assert log.count("## assistant") == 3


def test_llm_without_its_library(monkeypatch):
    monkeypatch.setattr(endpoint_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"treewright\[llm\]"):
        make_source(LlmIdeas(endpoint=EndpointConfig(base_url="http://x", model="m")))


@pytest.mark.parametrize(
    ("config", "ok", "message"),
    [
        (DirectoryIdeas(path="ideas"), True, "1 idea files"),
        (DirectoryIdeas(path="absent"), False, "cannot read"),
        (CommandIdeas(command="sh gen.sh --x 'a b'"), True, "runs "),
        (CommandIdeas(command="no-such-generator"), False, "not on PATH"),
        (MutateIdeas(files=["*.py"]), True, "2 places to edit in 1 tunable files"),
        (MutateIdeas(files=["absent.py"]), False, "0 places"),
        (
            LlmIdeas(
                endpoint=EndpointConfig(base_url="http://h/v1", model="m", api_key_env="NOPE_K")
            ),
            False,
            "NOPE_K is not set",
        ),
        (
            LlmIdeas(endpoint=EndpointConfig(base_url="http://h/v1", model="m")),
            True,
            "m at http://h",
        ),
    ],
)
def test_probe(config, ok: bool, message: str, tmp_path: Path):
    (tmp_path / "ideas").mkdir()
    (tmp_path / "ideas/a.md").write_text("# A")
    (tmp_path / "m.py").write_text("A = 2\nB = 3.0\n")
    found = probe_source(config, tmp_path)
    assert found[0] is ok
    assert message in found[1]


@pytest.fixture
def cancelled(make_context):
    """The context of a node in a run that is interrupted a moment later."""
    cancel = threading.Event()
    timer = threading.Timer(0.3, cancel.set)
    timer.start()
    yield make_context(cancel=cancel)
    timer.join()


def test_generator(cancelled) -> None:
    source = make_source(CommandIdeas(command="sleep 60", pass_arguments=False))
    with pytest.raises(KeyboardInterrupt):
        source.propose(cancelled, ())


def test_llm(cancelled) -> None:
    subprocess.run(["git", "init", "-q", str(cancelled.checkout)], check=True)
    with stand_in(Step(body=completion("late"), delay=60.0)) as it:
        source = make_source(LlmIdeas(endpoint=EndpointConfig(base_url=it.url, model="m")))
        with pytest.raises(KeyboardInterrupt):
            source.propose(cancelled, ())


def test_the_program_exits_with_130(toy: ToyRepository, tmp_path: Path) -> None:
    started = tmp_path / "started"
    text = (toy.path / "treewright.toml").read_text().partition("[[ideas]]")[0]
    generator = f"touch {started}; sleep 60"
    text += f'[[ideas]]\nsource = "command"\ncommand = "{generator}"\npass_arguments = false\n'
    toy.write("treewright.toml", text)
    toy.commit()
    command = [sys.executable, "-m", "treewright", "tree", "--repo", str(toy.path)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=as_from_a_terminal,
    ) as child:
        try:
            eventually(started.exists, "the generator runs")
            os.kill(child.pid, signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert said.splitlines()[-1].startswith("treewright: interrupted; run the same command again")
