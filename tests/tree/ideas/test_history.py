"""The earlier steps that idea sources and agents are told about."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
from benchmarks.feedback import Modules, evaluations_needed

from tests.toy import ToyRepository
from tests.tree.runs import RUN_ID, make_target, search
from treewright.tree.ideas.node_description import render_history
from treewright.tree.ideas.search_history import EarlierEvaluation, Outcomes
from treewright.tree.records import store
from treewright.tree.run.open import recorded_config


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> ToyRepository:
    """Ideas that helped, hurt, cheated and broke."""
    found = make_target(tmp_path_factory.mktemp("history") / "a target")
    search(found.path, ideas_per_node=8, beam_width=1, max_depth=1, sweep_config_limit=8)
    return found


def outcomes(toy: ToyRepository, node: str = "n0001", seen: int | None = None) -> Outcomes:
    run_dir = toy.run_dir(RUN_ID)
    manifest = store.load(run_dir)
    return Outcomes(
        toy.path, run_dir, recorded_config(manifest), manifest, manifest.nodes[node], seen
    )


def by_idea(tries: list[EarlierEvaluation]) -> dict[str, EarlierEvaluation]:
    return {found.idea: found for found in tries}


def test_tries_say_what_was_done_and_what_came_of_it(toy: ToyRepository) -> None:
    history = outcomes(toy).collect(100_000)
    assert history.left_out == 0
    assert [(m.name, m.direction, m.primary) for m in history.metrics] == [
        ("loss", "minimize", True),
        ("cost", "minimize", False),
    ]
    assert history.metrics[0].root is not None
    assert history.metrics[0].node is not None
    assert history.metrics[0].node == pytest.approx(history.metrics[0].root - 2)
    assert [step.idea for step in history.path] == ["the root", "Set B to 3.0"]
    tries = by_idea(history.tries)
    best = tries["Set B to 3.0"]
    assert (best.fate, best.grade, best.relation) == ("promoted", "strong", "path")
    assert best.gain_low is not None
    assert best.gain_high is not None
    assert best.gain_low <= 2.0 <= best.gain_high
    assert "-B 1.0\n+B 3.0" in best.diff
    assert best.metrics[0].before is not None
    assert best.metrics[0].after == pytest.approx(best.metrics[0].before - 2)
    worse = tries["Set B to 0.5"]
    assert (worse.fate, worse.reasons) == ("gate_failed", ["primary_metric_regressed"])
    assert worse.why.startswith("The primary metric got worse")
    assert worse.score is not None
    assert worse.score < 0
    broken = tries["Break it"]
    assert (broken.fate, broken.score, broken.diff) == ("evaluation_failed", None, "")
    assert "does not apply" in broken.why


def test_the_best_come_first_and_every_failure_is_said_once_before_its_likes(
    toy: ToyRepository,
) -> None:
    tries = outcomes(toy).collect(100_000).tries
    assert [found.idea for found in tries[:2]] == ["Set B to 3.0", "Set A to 2.0"]
    errors = [found.fate == "evaluation_failed" for found in tries]
    assert errors == sorted(errors)


def test_a_budget_is_kept_to(toy: ToyRepository) -> None:
    for budget in (0, 700, 2500):
        history = outcomes(toy).collect(budget)
        assert sum(len(msgspec.json.encode(found)) for found in history.tries) <= budget
        assert len(history.tries) + history.left_out == 8
    assert outcomes(toy).collect(2500).tries[0].idea == "Set B to 3.0"
    assert len("\n".join(render_history(outcomes(toy), 2500))) < 4500


def test_what_was_not_known_is_not_told(toy: ToyRepository) -> None:
    found = outcomes(toy, seen=2)
    for place, evaluation in enumerate(found.manifest.evaluations.values(), start=1):
        evaluation.place = place
    assert {t.eval_id for t in found.collect(100_000).tries} == {"e000001", "e000002"}


def test_the_words_have_the_numbers(toy: ToyRepository) -> None:
    told = "\n".join(render_history(outcomes(toy), 100_000))
    assert "- lower `loss`; this one decides: " in told
    assert "- n0001: Set B to 3.0" in told
    assert "- Set B to 0.5 (e000002, on the way here): gate_failed" in told
    assert "why not: The primary metric got worse" in told
    assert "why not: promoted" not in told
    assert "+B 3.0" in told


GENERATOR = """\
import argparse, json, pathlib, sys
parser = argparse.ArgumentParser()
for name in ("--output-dir", "--context-ideas-dir", "--count", "--node-context"):
    parser.add_argument(name, action="append")
args = parser.parse_args()
node = json.loads(pathlib.Path(args.node_context[0]).read_text())
with open(sys.argv[0] + ".told", "a") as file:
    file.write(json.dumps(node) + "\\n")
name, value = ("A", 2.0) if node["depth"] == 0 else ("C", 3.0)
line = 1 + 5 * "ABCD".index(name)
patch = "--- a/params.txt\\n+++ b/params.txt\\n"
patch += f"@@ -{line},2 +{line},2 @@\\n-{name} 1.0\\n+{name} {value}\\n # keep\\n"
pathlib.Path(args.output_dir[0], "a.md").write_text(f"# Set {name}\\n\\n```diff\\n{patch}```\\n")
"""


@pytest.mark.parametrize("policy", [(), ("--policy", "best-first")])
def test_commands_and_agents_are_told_by_a_real_run(
    tmp_path: Path, treewright, policy: tuple[str, ...]
) -> None:
    toy = ToyRepository.create(tmp_path / "r")
    script = tmp_path / "generator.py"
    script.write_text(GENERATOR)
    config = (toy.path / "treewright.toml").read_text()
    source = f'[[ideas]]\nsource = "command"\ncommand = "{sys.executable} {script}"\n'
    planner = '[agents.planner]\nbackend = "command"\ncommand = ["cat", "{prompt_file}"]\n'
    toy.write("treewright.toml", config[: config.index("[[ideas]]")] + source + planner)
    toy.commit("a generator that listens")
    done = treewright(
        "tree", "--tree-run-id", "run", "--ideas-per-node", "1", "--max-depth", "2", *policy,
        "--sweep-config-limit", "8", "--max-total-idea-evals", "2", "--until-done",
        "--repo", str(toy.path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, Path(f"{script}.told").read_text().splitlines())
    assert (first["tries"], first["tries_left_out"]) == ([], 0)
    assert first["metrics"][0]["name"] == "loss"
    (known,) = second["tries"]
    assert (known["idea"], known["fate"], known["relation"]) == ("Set A", "promoted", "path")
    assert [step["idea"] for step in second["path"]] == ["the root", "Set A"]
    plan = toy.run_dir("run") / "eval/e000002/experiment/plan.md"
    assert "- Set A (e000001, on the way here): promoted" in plan.read_text()


def test_who_is_told_needs_fewer_evaluations(tmp_path: Path) -> None:
    told = evaluations_needed(tmp_path, Modules(0), told=True)
    assert told < evaluations_needed(tmp_path, Modules(0), told=False)
