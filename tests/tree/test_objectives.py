"""Declared properties of metrics: deterministic, repeated, bounded, a constraint."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.toy import ToyRepository, idea
from tests.tree.making import results
from treewright import __version__
from treewright.kernel.errors import UsageError
from treewright.tree import config as configuration
from treewright.tree.config import MetricConfig
from treewright.tree.deciding import objectives, promotion, scoring
from treewright.tree.deciding.results import NotOneTable, Part, merge_sweeps, parse_results
from treewright.tree.evaluating.measuring import in_turns
from treewright.tree.records import store
from treewright.tree.records.model import UNSET
from treewright.tree.validation import validate

EXACT = MetricConfig(name="score", direction="maximize", primary=True, deterministic=True)
REPEATED = MetricConfig(name="score", direction="maximize", primary=True, repeats=4)
SWEEP = """\
#!/bin/sh
echo "config_id,status,score,memory" > "$TREEWRIGHT_RESULTS_CSV"
for i in $(seq 0 $((${CONFIGS:-1} - 1))); do
  echo "$i,ok,$(cat score.txt),$(cat memory.txt)" >> "$TREEWRIGHT_RESULTS_CSV"
done
"""
REUSING = "[sweep]\nreuse_results = true"
CONFIG = """\
baseline_csv = "baseline.csv"
protected_paths = ["sweep.sh"]
[sweep]
command = "sh sweep.sh"
[[metrics]]
name = "score"
direction = "maximize"
primary = true
{score}
{more}
[[ideas]]
source = "directory"
path = "ideas"
"""


def one_number(
    path: Path, score: str, more: str = "", sweep: str = SWEEP, **ideas: tuple[str, str, str]
) -> ToyRepository:
    """Create a repository with a sweep that gives one number, as most users' tasks do."""
    path.mkdir()
    toy = ToyRepository(path)
    toy.git("init", "-q", "-b", "main")
    toy.write("score.txt", "2.5\n")
    toy.write("memory.txt", "10\n")
    toy.write("sweep.sh", sweep)
    toy.write("treewright.toml", CONFIG.format(score=score, more=more))
    toy.write("baseline.csv", "config_id,status,score,memory\n0,ok,2.5,10\n")
    for name, (file, before, after) in ideas.items():
        patch = f"--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-{before}\n+{after}\n"
        toy.write(f"ideas/{name}.md", idea(name, patch))
    toy.commit("a task with one number")
    return toy


def search(toy: ToyRepository, treewright, *flags: str, **variables: str):
    shape = ("--tree-run-id", "run", "--max-depth", "1", *flags, "--repo", str(toy.path))
    return treewright("tree", *shape, env={**os.environ, **variables})


def fates(toy: ToyRepository) -> dict[str, tuple[str, list[str]]]:
    manifest = store.load(toy.run_dir("run"))
    found = {}
    for evaluation in manifest.evaluations.values():
        assert evaluation.decision is not None
        title = (toy.run_dir("run") / evaluation.idea_path).read_text().split("\n")[0][2:]
        found[title] = (evaluation.decision.fate, evaluation.decision.gate.reasons)
    return found


def test_one_deterministic_number_is_promoted_when_it_is_larger(tmp_path: Path, treewright) -> None:
    toy = one_number(
        tmp_path / "r", "deterministic = true",
        better=("score.txt", "2.5", "2.6"), same=("memory.txt", "10", "11"),
        worse=("score.txt", "2.5", "2.4"),
    )  # fmt: skip
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    assert fates(toy) == {
        "better": ("promoted", ["primary_metric_improved"]),
        "same": ("gate_failed", ["not_recommended", "primary_metric_unchanged"]),
        "worse": ("gate_failed", ["primary_metric_regressed"]),
    }
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_nondeterministic_metric_is_found_before_the_run_exists(
    tmp_path: Path, treewright
) -> None:
    counting = SWEEP.replace("$(cat score.txt)", '$(wc -l < "$COUNT")')
    toy = one_number(
        tmp_path / "r",
        "deterministic = true",
        sweep='echo >> "$COUNT"\n' + counting,
        better=("score.txt", "2.5", "2.6"),
    )
    done = search(toy, treewright, COUNT=str(tmp_path / "count"))
    assert done.returncode == 2
    (line,) = [
        line for line in done.stderr.splitlines() if "deterministic" in line and "not" in line
    ]
    assert "the metric score is not deterministic: the root commit gave 1.0 and 2.0" in line
    assert "with TREEWRIGHT_SEED = 0 and " in line
    assert "set seeds = 16 in place of deterministic" in line
    assert line.endswith("or repeats = 5")
    assert not toy.run_dir("run").exists()


def test_a_baseline_of_other_code_is_refused_or_remade(tmp_path: Path, treewright) -> None:
    toy = one_number(tmp_path / "r", "deterministic = true", better=("score.txt", "2.5", "2.6"))
    toy.write("baseline.csv", "config_id,status,score,memory\n0,ok,2.7,10\n")
    toy.commit("numbers of another machine")
    done = search(toy, treewright)
    assert done.returncode == 2
    assert "baseline.csv: not the root's results: score is 2.7 and 2.5" in done.stderr
    done = search(toy, treewright, "--make-baseline")
    assert done.returncode == 0, done.stderr
    assert fates(toy)["better"][0] == "promoted"


@pytest.mark.parametrize("flags", [(), ("--sweep-config-limit", "1"), ("--dry-run",)])
def test_a_single_noisy_number_is_refused_in_one_line(
    tmp_path: Path, treewright, flags: tuple[str, ...]
) -> None:
    toy = one_number(tmp_path / "r", "", better=("score.txt", "2.5", "2.6"))
    done = search(toy, treewright, *flags)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "for the metric score set deterministic = true or repeats = 5" in done.stderr
    assert not toy.run_dir("run").exists()


def test_repeats_alternate_with_the_parents(tmp_path: Path, treewright) -> None:
    noisy = SWEEP.replace(
        "$(cat score.txt)",
        "$(awk -v n=$(wc -l < $COUNT) '{ printf \"%.3f\", $1 + ((n * 7) % 5) / 1000 }' score.txt)",
    )
    toy = one_number(
        tmp_path / "r", "repeats = 4",
        sweep='cat score.txt >> "$COUNT"\n' + noisy,
        better=("score.txt", "2.5", "2.6"), same=("memory.txt", "10", "11"),
    )  # fmt: skip
    count = tmp_path / "count"
    done = search(toy, treewright, "--no-preflight", COUNT=str(count))
    assert done.returncode == 0, done.stderr
    assert {title: fate for title, (fate, _) in fates(toy).items()} == {
        "better": "promoted",
        "same": "gate_failed",
    }
    assert count.read_text().split()[:8] == ["2.5", "2.6", "2.6", "2.5", "2.5", "2.6", "2.6", "2.5"]
    assert validate(toy.run_dir("run"), toy.path) == []
    assert list((toy.run_dir("run") / "cand").glob("*")) == []
    promoted = store.load(toy.run_dir("run")).nodes["n0001"].parent_relative
    assert promoted is not None
    assert promoted.primary_gain_low is not None
    assert 0.09 < promoted.primary_gain_low < 0.1 < (promoted.primary_gain_high or 0) < 0.11


def test_a_failing_sweep_of_the_parent_is_not_the_candidates_failure(
    tmp_path: Path, treewright
) -> None:
    broken = 'grep -q 2.6 score.txt || test "$BREAK" != yes || exit 3\n' + SWEEP
    toy = one_number(
        tmp_path / "r", "repeats = 2", sweep=broken, better=("score.txt", "2.5", "2.6")
    )
    done = search(toy, treewright, "--no-preflight", BREAK="yes")
    assert "paused" in done.stderr
    assert "parent_sweep_failed" in done.stderr
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    assert fates(toy)["better"][0] == "promoted"


def test_values_out_of_range_are_broken_and_constraints_must_hold(
    tmp_path: Path, treewright
) -> None:
    memory = '[[metrics]]\nname = "memory"\ndirection = "minimize"\nmax = 12\nconstraint = true\n'
    toy = one_number(
        tmp_path / "r", "deterministic = true\nmin = 0\nmax = 3", memory,
        a_better=("score.txt", "2.5", "2.6"), b_too_good=("score.txt", "2.5", "300"),
        c_greedy=("memory.txt", "10", "13"),
    )  # fmt: skip
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    assert fates(toy) == {
        "a_better": ("promoted", ["primary_metric_improved"]),
        "b_too_good": ("gate_failed", ["incomplete_rows", "out_of_range"]),
        "c_greedy": ("gate_failed", ["not_recommended", "constraint_violated"]),
    }
    assert validate(toy.run_dir("run"), toy.path) == []
    summary = (toy.run_dir("run") / "TREE_SUMMARY.md").read_text()
    assert "A constraint does not hold" in summary


@pytest.mark.parametrize(
    ("score", "more", "said"),
    [
        ("deterministic = true\nmax = 2.5", "", "the root is at max = 2.5 of the metric score"),
        ("deterministic = true\nmax = 2", "", "out_of_range: score of config_id 0 is 2.5"),
        (
            "deterministic = true",
            '[[metrics]]\nname = "memory"\ndirection = "minimize"\nmax = 9\nconstraint = true\n',
            "the root itself breaks a constraint: memory of config_id 0 is 10.0",
        ),
    ],
)
def test_a_root_that_cannot_be_searched_from_is_refused(
    tmp_path: Path, treewright, score: str, more: str, said: str
) -> None:
    toy = one_number(tmp_path / "r", score, more, better=("score.txt", "2.5", "2.6"))
    done = search(toy, treewright)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("deterministic = true\nrepeats = 3", "either deterministic or repeats"),
        ("repeats = 1", "metrics[0].repeats"),
        ("min = 2\nmax = 1", "min must be below max"),
        ("constraint = true", "a constraint needs min or max"),
        ("constraint = true\nmax = 1", "cannot be primary"),
    ],
)
def test_contradictory_settings_are_refused(tmp_path: Path, settings: str, said: str) -> None:
    path = tmp_path / "treewright.toml"
    path.write_text(CONFIG.format(score=settings, more=""))
    with pytest.raises(UsageError, match=said.replace("[", r"\[")):
        configuration.load(path)


def compare(metric: MetricConfig, *rounds: tuple[list[float], list[float]]):
    sides = [(results(score=before), results(score=after)) for before, after in rounds]
    ids = range(len(rounds[0][0]))
    return scoring.compare(*sides[0], ids, [metric], 0, again=sides[1:])


def test_the_interval_of_a_deterministic_metric_is_its_gain() -> None:
    found = compare(EXACT, ([2.0], [2.0 + 1e-6]))
    assert found.metrics[0].gain_low == found.metrics[0].gain == found.metrics[0].gain_high
    assert promotion.decide_gate(found.recommendation, None).passed
    rounding = compare(EXACT, ([2.0], [2.0 + 1e-15])).recommendation
    assert rounding.reasons == ["primary_metric_unchanged"]


@pytest.mark.parametrize(
    "after", [[0.7, 0.1, 0.2], [0.2, 0.7, 0.1]], ids=["9e-18 better", "9e-18 worse"]
)
@pytest.mark.parametrize("metric", [EXACT, REPEATED])
def test_the_rounding_error_of_a_sum_is_no_gain(metric: MetricConfig, after: list[float]) -> None:
    """The candidate has the same values in other configs: the gain of one config is the loss of
    another."""
    repeats = [([0.1, 0.2, 0.7], after)] * (metric.repeats or 1)
    found = compare(metric, *repeats)
    assert found.metrics[0].verdict == "unchanged"
    assert (found.recommendation.grade, found.recommendation.primary_gain) == ("weak", 0.0)
    assert "primary_mean_worse" not in found.recommendation.reasons


@pytest.mark.parametrize("others", [7, 19, 999])
def test_a_gain_in_one_small_config_counts(others: int) -> None:
    """The value is doubled there. Regression: the tolerance was relative to the mean size of all
    configs, and the large ones hid the gain."""
    large, small = [1e8] * others, 5e-4
    better = compare(EXACT, ([*large, small], [*large, 2 * small]))
    worse = compare(EXACT, ([*large, 2 * small], [*large, small]))
    assert (better.metrics[0].verdict, worse.metrics[0].verdict) == ("improved", "regressed")


def test_repeats_that_scatter_more_than_they_gain_are_noise() -> None:
    clear = compare(REPEATED, *[([2.0], [2.1]), ([2.05], [2.15]), ([2.1], [2.21]), ([2.0], [2.1])])
    assert clear.recommendation.grade == "strong"
    noise = compare(REPEATED, *[([2.0], [2.3]), ([2.2], [2.1]), ([2.1], [2.3]), ([2.2], [2.1])])
    assert noise.recommendation.reasons == ["insufficient_signal"]


def test_drift_of_both_sides_does_not_count() -> None:
    drifting = [([float(n)], [n + 0.1]) for n in range(4)]
    assert compare(REPEATED, *drifting).recommendation.grade == "strong"


def test_a_deterministic_metric_that_differs_between_repeats_blocks() -> None:
    found = compare(EXACT, ([2.0], [2.1]), ([2.0], [2.2]))
    assert found.recommendation.reasons == ["not_deterministic"]


def test_several_sweeps_in_one_file_are_read_separately() -> None:
    def table(value: float) -> bytes:
        return f"config_id,status,score\n0,ok,{value}\n".encode()

    data = in_turns(lambda n: table(n), lambda n: table(-n), 2)
    assert data is not None
    assert data.decode().splitlines()[1:] == [
        "parent,1,0,ok,-1", "candidate,1,0,ok,1", "candidate,2,0,ok,2", "parent,2,0,ok,-2",
    ]  # fmt: skip
    assert parse_results(data, ["score"]).values == {"score": {0: 1.0}}
    assert parse_results(data, ["score"], part=Part("parent", 2)).values == {"score": {0: -2.0}}
    with pytest.raises(NotOneTable, match="other columns"):
        merge_sweeps([(Part(), table(1)), (Part(repeat=2), b"config_id,status\n")])
    with pytest.raises(NotOneTable, match="only treewright writes"):
        merge_sweeps([(Part(), data)])


def test_reading_skips_rows_outside_the_bounds() -> None:
    bounded = MetricConfig(name="score", direction="maximize", primary=True, max=1)
    found = objectives.read(b"config_id,status,score\n0,ok,1\n1,ok,1.5\n", [bounded])
    assert (found.sound_ids, json.dumps(found.problems.examples)) == (
        {0}, '["out_of_range: score of config_id 1 is 1.5"]',
    )  # fmt: skip


def test_results_of_an_earlier_run_are_reused_on_request(tmp_path: Path, treewright) -> None:
    toy = one_number(
        tmp_path / "r", "deterministic = true",
        sweep=f'if grep -q 2.6 score.txt; then echo >> "$COUNT"; fi\n{SWEEP}',
        a_better=("score.txt", "2.5", "2.6"),
    )  # fmt: skip
    count = tmp_path / "count"
    count.touch()

    config = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", config.replace("[sweep]", REUSING))
    toy.commit("results of earlier runs count")

    def go(name: str, swept: int, *flags: str) -> str | None:
        done = search(toy, treewright, "--tree-run-id", name, *flags, COUNT=str(count))
        assert done.returncode == 0, done.stderr
        assert len(count.read_text()) == swept
        assert validate(toy.run_dir(name), toy.path) == []
        source = store.load(toy.run_dir(name)).evaluations["e000001"].results_from
        return source if isinstance(source, str) else None

    # Every candidate that passes the gate is swept twice more, with other seeds.
    assert go("first", 3) is None
    assert go("second", 5) == "first/e000001"
    assert go("third", 8, "--sweep-config-limit", "1") is None, "not the same configs"
    events, version = toy.run_dir("first") / "events.jsonl", f'"treewright":"{__version__}"'
    as_it_was = events.read_text()
    assert version in as_it_was
    events.write_text(as_it_was.replace(version, '"treewright":"0.0.1"'))
    (toy.run_dir("first") / "manifest.json").unlink()
    assert go("other_version", 11) is None, "another version may have guarded less"
    events.write_text(as_it_was)
    shutil.rmtree(toy.run_dir("other_version"))
    recorded = store.load(toy.run_dir("first")).evaluations["e000001"].results_csv
    assert recorded is not None
    (toy.run_dir("first") / recorded.path).write_text("config_id,status,score,memory\n0,ok,9,1\n")
    assert validate(toy.run_dir("second"), toy.path) == [], "it has a copy"
    assert go("fourth", 14) is None, "what is not as it was recorded is not used"
    events.write_text("nobody can read this\n")
    (toy.run_dir("first") / "manifest.json").unlink(missing_ok=True)
    assert validate(toy.run_dir("second"), toy.path) == [], "that is no fault of this one"
    events.write_text(as_it_was)
    events = toy.run_dir("second") / "events.jsonl"
    recorded_lines = events.read_text()
    (toy.run_dir("second") / "manifest.json").unlink()
    for forged, message in (
        (("first/e000001", "first/e000009"), "results_from names e000009, which is not there"),
        (('"reuse_results":true', '"reuse_results":false'), "and reuse_results is not set"),
    ):
        events.write_text(recorded_lines.replace(*forged))
        found = [finding.message for finding in validate(toy.run_dir("second"), toy.path)]
        assert any(each.endswith(message) for each in found)


CHEATING_SWEEP = """\
#!/bin/sh
sh candidate.sh
echo "config_id,status,score,memory" > "$TREEWRIGHT_RESULTS_CSV"
echo "0,ok,$(cat judge.txt),1" >> "$TREEWRIGHT_RESULTS_CSV"
"""


def test_results_from_before_a_path_was_protected_are_not_reused(
    tmp_path: Path, treewright
) -> None:
    """The user protected a path that a candidate's code had written to; its earlier results are not
    reused."""
    toy = one_number(
        tmp_path / "r", "deterministic = true", sweep=CHEATING_SWEEP,
        a_cheat=("candidate.sh", "true", "echo 9 > judge.txt"),
    )  # fmt: skip
    toy.write("candidate.sh", "true\n")
    toy.write("judge.txt", "2.5\n")
    toy.commit("a judge that nobody guards")
    before = (toy.path / "treewright.toml").read_text().replace("[sweep]", REUSING)
    after = before.replace('["sweep.sh"]', '["sweep.sh", "judge.txt"]')
    for name, text, fate in (("first", before, "promoted"), ("second", after, "evaluation_failed")):
        config = tmp_path / f"{name}.toml"
        config.write_text(text)
        done = search(toy, treewright, "--tree-run-id", name, "--config", str(config))
        assert done.returncode == 0, done.stderr
        found = store.load(toy.run_dir(name)).evaluations["e000001"]
        assert found.decision is not None
        assert (found.decision.fate, found.results_from) == (fate, UNSET)


def test_results_of_another_roots_sweep_are_not_reused(tmp_path: Path, treewright) -> None:
    """With `checkout = "root"` the root's files measure: another root measures the same candidate
    with other files."""
    toy = one_number(
        tmp_path / "r", "deterministic = true",
        sweep=SWEEP.replace("$(cat score.txt)", '$(sh judge.sh "$TREEWRIGHT_CANDIDATE/score.txt")'),
        a_better=("score.txt", "2.5", "2.6"),
    )  # fmt: skip
    generous, strict = 'sed s/2.6/9/ "$1"\n', 'sed s/2.6/1/ "$1"\n'
    patch = (
        f"--- a/judge.sh\n+++ b/judge.sh\n@@ -1 +1 @@\n-{generous}+{strict}"
        "--- a/score.txt\n+++ b/score.txt\n@@ -1 +1 @@\n-2.5\n+2.6\n"
    )
    toy.write("ideas/b_both.md", idea("b_both", patch))
    text = (toy.path / "treewright.toml").read_text()
    toy.write("treewright.toml", text.replace("[sweep]", f'{REUSING}\ncheckout = "root"'))
    toy.write("judge.sh", generous)
    toy.commit("a generous judge")
    done = search(toy, treewright, "--tree-run-id", "first")
    assert done.returncode == 0, done.stderr
    toy.write("judge.sh", strict)
    toy.commit("a strict judge")
    done = search(toy, treewright, "--tree-run-id", "second")
    assert done.returncode == 0, done.stderr
    first, second = (store.load(toy.run_dir(name)).evaluations for name in ("first", "second"))
    assert first["e000002"].candidate_tree == second["e000001"].candidate_tree
    assert first["e000002"].decision is not None
    assert first["e000002"].decision.gate.passed
    assert second["e000001"].results_from is UNSET
    assert second["e000001"].decision is not None
    assert not second["e000001"].decision.gate.passed


MEETING = """
import os, pathlib, sys, time
here = pathlib.Path(os.environ["MEETING"])
(here / str(os.getpid())).touch()
deadline = time.monotonic() + 600
while len(list(here.iterdir())) < 2 and time.monotonic() < deadline:
    time.sleep(0.02)
"""


@pytest.mark.parametrize("is_bad", [False, True])
def test_concurrent_candidates_with_the_same_code_are_swept_once(
    tmp_path: Path, treewright, is_bad: bool
) -> None:
    """Two planners meet before either ends, so both candidates exist at the same moment. If the
    first sweep fails, there are no results to reuse, and each candidate is swept."""
    mine = 'echo >> "$COUNT"' + ("; exit 1" if is_bad else "")
    sweep = f"if grep -q 2.6 score.txt; then {mine}; fi\n{SWEEP}"
    toy = one_number(
        tmp_path / "r", "deterministic = true", sweep=sweep,
        a_better=("score.txt", "2.5", "2.6"), b_better=("score.txt", "2.5", "2.6"),
    )  # fmt: skip
    toy.write("meet.py", MEETING)
    config = (toy.path / "treewright.toml").read_text()
    command = json.dumps([sys.executable, str(toy.path / "meet.py")])
    planner = f'\n[agents.planner]\nbackend = "command"\ncommand = {command}\n'
    toy.write("treewright.toml", config + planner)
    toy.commit("planners that meet")
    count, meeting = tmp_path / "count", tmp_path / "meeting"
    meeting.mkdir()
    done = search(
        toy, treewright, "--max-parallel-evals", "2", COUNT=str(count), MEETING=str(meeting)
    )
    assert done.returncode == 0, done.stderr
    recorded = (toy.run_dir("run") / "events.jsonl").read_text()
    swept = len(count.read_text())
    if is_bad:
        assert swept == 2
        assert '"results_from"' not in recorded
        assert {fates(toy)[name][0] for name in ("a_better", "b_better")} == {"evaluation_failed"}
    else:
        assert swept == 5, "measured once, and each checked twice"
        assert recorded.count('"results_from":"e0000') == 1
        assert fates(toy)["a_better"][0] == "promoted"
        assert fates(toy)["b_better"][0] == "duplicate_code"
    assert validate(toy.run_dir("run"), toy.path) == []


def test_the_same_code_is_not_swept_twice(tmp_path: Path, treewright) -> None:
    toy = one_number(
        tmp_path / "r", "deterministic = true", sweep='echo >> "$COUNT"\n' + SWEEP,
        a_better=("score.txt", "2.5", "2.6"), b_better=("score.txt", "2.5", "2.6"),
    )  # fmt: skip
    count = tmp_path / "count"
    done = search(toy, treewright, COUNT=str(count))
    assert done.returncode == 0, done.stderr
    assert fates(toy)["a_better"][0] == "promoted"
    assert fates(toy)["b_better"][0] == "duplicate_code"
    assert len(count.read_text()) == 8, "the root 3 times, the candidate once, 2 checks of 2 sweeps"
    recorded = (toy.run_dir("run") / "events.jsonl").read_text()
    assert recorded.count('"results_from":"e000001"') == 1
    assert validate(toy.run_dir("run"), toy.path) == []
    forged = (toy.run_dir("run") / "events.jsonl").read_text()
    (toy.run_dir("run") / "events.jsonl").write_text(
        forged.replace('"results_from":"e000001"', '"results_from":"n0000"')
    )
    (toy.run_dir("run") / "manifest.json").unlink()
    messages = [finding.message for finding in validate(toy.run_dir("run"), toy.path)]
    assert "results_from is n0000, which has other code" in messages
