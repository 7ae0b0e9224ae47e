"""Noise is not promoted: evaluators and programs with numbers that depend on hidden random
streams."""

from __future__ import annotations

import ast
import difflib
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import ToyRepository, idea
from treewright.tree.deciding import paired
from treewright.tree.evaluating import perturbation
from treewright.tree.evaluating.contexts import repeat_seed
from treewright.tree.evaluating.perturbation import perturb
from treewright.tree.records import store
from treewright.tree.records.model import Manifest, NoiseCheck
from treewright.tree.validation import validate

NO_OPS = 20
PROGRAM = """\
import random

# EVOLVE-BLOCK-START
def search():
    return max(random.random() for _ in range(3))
# EVOLVE-BLOCK-END
"""
SEEDED_PROGRAM = PROGRAM.replace("    return", "    random.seed(42)\n    return")
NUMPY_PROGRAM = """\
import numpy as np

# EVOLVE-BLOCK-START
def search():
    draw = np.random.default_rng(42)
    return max(draw.random() for _ in range(3))
# EVOLVE-BLOCK-END
"""
EVALUATOR = """\
import importlib.util
import random


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {"combined_score": 1 + sum(program.search() for _ in range(4)) / 4}
"""
SEEDED_EVALUATOR = EVALUATOR.replace("    return", "    random.seed(7)\n    return")
BROKEN_EVALUATOR = """\
def evaluate(program_path):
    return {"combined_score": 0.0, "error": "the compiler is missing"}
"""


def task(path: Path, program: str, evaluator: str) -> ToyRepository:
    path.mkdir()
    toy = ToyRepository(path)
    toy.git("init", "-q", "-b", "main")
    toy.write("initial_program.py", program)
    toy.write("evaluator.py", evaluator)
    toy.commit("a task")
    return toy


def add_no_ops(toy: ToyRepository, program: str, count: int = NO_OPS) -> None:
    """Add ideas that draw more random numbers before the function returns, and use none of them."""
    drawing = "draw.random()" if "draw =" in program else "random.random()"
    for number in range(1, count + 1):
        line = f"    [{drawing} for _ in range({number})]\n    return"
        changed = program.replace("    return", line)
        toy.write(f"ideas/{number:02d}.md", idea(f"Draw {number}", diff(program, changed)))


def diff(before: str, after: str, name: str = "initial_program.py") -> str:
    first, second = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(first, second, f"a/{name}", f"b/{name}"))


def take_ideas(toy: ToyRepository, **settings: str) -> None:
    """Use the directory's ideas, and replace lines of the configuration."""
    text = (toy.path / "treewright.toml").read_text()
    start, end = text.index("[[ideas]]"), text.index("# Who implements")
    text = text[:start] + '[[ideas]]\nsource = "directory"\npath = "ideas"\n\n' + text[end:]
    for name, value in settings.items():
        text = re.sub(rf"^{name} = .*$", value, text, flags=re.MULTILINE)
    toy.write("treewright.toml", text)
    toy.commit("ideas")


def search(toy: ToyRepository, treewright, *flags: str):
    shape = ("--tree-run-id", "run", "--max-depth", "1", "--ideas-per-node", str(NO_OPS))
    # Hundreds of short processes start: on a busy machine this can take over two minutes.
    return treewright(
        "tree", "--make-baseline", *shape, *flags, "--repo", str(toy.path), timeout=900
    )


def manifest(toy: ToyRepository) -> Manifest:
    return store.load(toy.run_dir("run"))


def noise_check(toy: ToyRepository) -> NoiseCheck:
    found = manifest(toy).noise_check
    assert isinstance(found, NoiseCheck)
    return found


def test_perturbed_sources_never_share_bytecode(tmp_path: Path) -> None:
    """Python reuses the bytecode of a file with the same size and time."""
    path = tmp_path / "program.py"
    found = set()
    for draws in (7, 11):
        perturbation.write(path, perturb(SEEDED_PROGRAM, draws, block=True) or "")
        said = subprocess.run(
            [sys.executable, "-c", "import program; print(program.search())"],
            cwd=tmp_path, env={}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add(said.stdout)
    assert len(found) == 2


def test_a_perturbed_source_has_the_size_of_the_control() -> None:
    """A score that counts the characters of the program is not noise."""
    sizes = {len(perturb(PROGRAM, draws, block=True) or "") for draws in (0, 7, 11, 13)}
    assert len(sizes) == 1


@pytest.mark.parametrize(
    ("program", "evaluator", "why"),
    [
        (PROGRAM, EVALUATOR, "with seed 0 and"),
        (
            PROGRAM,
            SEEDED_EVALUATOR,
            "after a change that only draws random numbers: a fixed seed hides its noise",
        ),
        (
            SEEDED_PROGRAM,
            EVALUATOR,
            "after a change that only draws random numbers: a fixed seed hides its noise",
        ),
        (
            NUMPY_PROGRAM,
            EVALUATOR,
            "after a change that only draws random numbers: a fixed seed hides its noise",
        ),
    ],
    ids=["unseeded", "seeded-evaluator", "seeded-program", "own-generator"],
)
def test_no_op_ideas_on_a_noisy_evaluator_are_not_promoted(
    tmp_path: Path, treewright, program: str, evaluator: str, why: str
) -> None:
    toy = task(tmp_path / "r", program, evaluator)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert done.returncode == 0, done.stderr
    assert why in done.stdout
    assert "It depends on random numbers, so every config is another seed" in done.stdout
    add_no_ops(toy, program)
    take_ideas(toy, seeds="seeds = 8", heldout_seeds="heldout_seeds = 8")
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    found = manifest(toy)
    assert (found.sweep_config_limit, found.confirm_configs) == (8, 8)
    fates = [e.decision.fate for e in found.evaluations.values() if e.decision]
    assert len(fates) == NO_OPS
    assert set(fates) <= {"gate_failed", "not_confirmed"}
    assert noise_check(toy).perturbed == "differs"
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_gain_from_the_order_of_sets_is_noise(tmp_path: Path, treewright) -> None:
    order = "sum(int(name[1:]) * 40**place for place, name in enumerate(NAMES))"
    program = PROGRAM.replace("max(random.random() for _ in range(3))", order)
    names = "NAMES = {f'a{number}' for number in range(20)}"
    program = program.replace("def search", f"{names}\n\n\ndef search")
    toy = task(tmp_path / "r", program, EVALUATOR)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert "with the same seed" in done.stdout, "Python orders sets anew in each process"
    assert "measured 8 times in turns" in done.stdout


def test_a_real_gain_is_promoted_over_seeds(tmp_path: Path, treewright) -> None:
    toy = task(tmp_path / "r", SEEDED_PROGRAM, EVALUATOR)
    assert treewright("init", "--from", "openevolve", str(toy.path)).returncode == 0
    better = SEEDED_PROGRAM.replace("range(3)", "range(40)")
    toy.write("ideas/01.md", idea("Try more often", diff(SEEDED_PROGRAM, better)))
    take_ideas(toy, seeds="seeds = 8", heldout_seeds="heldout_seeds = 8")
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    (evaluation,) = manifest(toy).evaluations.values()
    assert evaluation.decision is not None
    assert evaluation.decision.fate == "promoted"
    assert "over 8 seeds" in (toy.run_dir("run") / "TREE_SUMMARY.md").read_text()
    assert validate(toy.run_dir("run"), toy.path) == []


def test_noise_without_a_seed_is_measured_in_turns(tmp_path: Path, treewright) -> None:
    program = PROGRAM.replace("random.random()", "random.SystemRandom().random()")
    toy = task(tmp_path / "r", program, EVALUATOR)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert done.returncode == 0, done.stderr
    assert "with the same seed" in done.stdout
    assert "measured 8 times in turns (repeats = 8)" in done.stdout
    settings = (toy.path / "treewright.toml").read_text()
    assert "repeats = 8" in settings
    assert "tolerance = " in settings


@pytest.mark.parametrize(
    ("program", "evaluator", "said"),
    [
        (PROGRAM, EVALUATOR, "with TREEWRIGHT_SEED = 0 and "),
        (PROGRAM, SEEDED_EVALUATOR, "before and after a change that only draws random numbers"),
        (SEEDED_PROGRAM, EVALUATOR, "before and after a change that only draws random numbers"),
        (NUMPY_PROGRAM, EVALUATOR, "before and after a change that only draws random numbers"),
    ],
    ids=["unseeded", "seeded-evaluator", "seeded-program", "own-generator"],
)
def test_a_noisy_metric_declared_as_deterministic_is_refused(
    tmp_path: Path, treewright, program: str, evaluator: str, said: str
) -> None:
    toy = task(tmp_path / "r", program, evaluator)
    assert treewright("init", "--from", "openevolve", str(toy.path)).returncode == 0
    add_no_ops(toy, program, 1)
    take_ideas(toy, heldout_seeds="", seeds="deterministic = true")
    script = toy.path / "treewright_sweep.py"
    exact = script.read_text().replace("EVERY_CONFIG_IS_A_SEED = True", "")
    exact = exact.replace("ALL_CONFIGS = 1000", "ALL_CONFIGS = 1\nEVERY_CONFIG_IS_A_SEED = False")
    toy.write("treewright_sweep.py", exact)
    toy.commit("said to be exact")
    checked = treewright("doctor", "--repo", str(toy.path))
    assert "the metric combined_score is not deterministic" in checked.stdout
    done = search(toy, treewright)
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert "the metric combined_score is not deterministic" in line
    assert said in line
    assert "set seeds = 16 in place of deterministic" in line
    assert not toy.run_dir("run").exists()


SWEEP = """\
import csv, os, random
import program

seed = int(os.environ.get("TREEWRIGHT_SEED") or 0)
limit = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_LIMIT") or 12)
start = int(os.environ.get("TREEWRIGHT_SWEEP_CONFIG_START") or 0)
with open(os.environ["TREEWRIGHT_RESULTS_CSV"], "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["config_id", "status", "score"])
    for config_id in range(start, limit):
        random.seed(SEED)
        rows.writerow([config_id, "ok", SCORE])
"""
SETTINGS = """\
baseline_csv = "baseline.csv"
protected_paths = ["sweep.py", "ideas"]

[sweep]
command = "{python} -B sweep.py"

[[metrics]]
name = "score"
direction = "maximize"
primary = true
{setting}

[[ideas]]
source = "directory"
path = "ideas"
"""
DRAWN = "10 * config_id + program.search()"
ONE_SEED, SEED_OF_RUN, SEED_OF_CONFIG = "42", "seed", "f'{seed}:{config_id}'"


def hand_written(path: Path, setting: str, seed: str, score: str = DRAWN) -> ToyRepository:
    path.mkdir()
    toy = ToyRepository(path)
    toy.git("init", "-q", "-b", "main")
    toy.write("program.py", PROGRAM)
    toy.write("sweep.py", SWEEP.replace("SEED)\n", f"{seed})\n").replace("SCORE", score))
    toy.write("treewright.toml", SETTINGS.format(python=sys.executable, setting=setting))
    changed = PROGRAM.replace("    return", "    random.random()\n    return")
    toy.write("ideas/01.md", idea("Draw", diff(PROGRAM, changed, "program.py")))
    toy.commit("a sweep by hand")
    return toy


@pytest.mark.parametrize(
    ("setting", "seed", "said"),
    [
        ("", ONE_SEED, "its noise is the same in every config"),
        ("", SEED_OF_RUN, "its noise is the same in every config"),
        ("seeds = 12", ONE_SEED, "its noise is the same in every config"),
        ("repeats = 3", ONE_SEED, "the repeats do not show the noise"),
        ("deterministic = true", SEED_OF_RUN, "is not deterministic"),
        ("deterministic = true", ONE_SEED, "a change that only draws random numbers"),
        ("deterministic = true", "config_id", "a change that only draws random numbers"),
        ("", SEED_OF_CONFIG, ""),
        ("seeds = 12", SEED_OF_CONFIG, ""),
        ("repeats = 3", SEED_OF_RUN, ""),
    ],
)
def test_a_configuration_that_hides_the_noise_is_refused(
    tmp_path: Path, treewright, setting: str, seed: str, said: str
) -> None:
    toy = hand_written(tmp_path / "r", setting, seed)
    done = search(toy, treewright)
    assert done.returncode == (2 if said else 0), done.stderr
    assert said in done.stderr
    assert toy.run_dir("run").exists() == (not said)
    if not said:
        assert noise_check(toy).perturbed == "differs"
        assert noise_check(toy).compared == (setting.split(" ")[0] or "configs")
        (evaluation,) = manifest(toy).evaluations.values()
        assert evaluation.decision is not None
        assert not evaluation.decision.gate.passed


def test_repeats_use_different_seeds_and_the_parent_the_same_ones(
    tmp_path: Path, treewright
) -> None:
    toy = hand_written(tmp_path / "r", "repeats = 3", SEED_OF_RUN, "seed")
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    (evaluation,) = manifest(toy).evaluations.values()
    assert evaluation.results_csv is not None
    rows = (toy.run_dir("run") / evaluation.results_csv.path).read_text().splitlines()[1:]
    found = {tuple(row.split(",")[:2]): int(row.split(",")[4]) for row in rows}
    seeds = [repeat_seed(0, number) for number in (1, 2, 3)]
    assert len(set(seeds)) == 3
    assert seeds[0] == 0
    for side in ("candidate", "parent"):
        assert [found[side, str(number)] for number in (1, 2, 3)] == seeds


def test_a_candidate_that_adds_randomness_is_not_compared_exactly(
    tmp_path: Path, treewright
) -> None:
    fixed = PROGRAM.replace("max(random.random() for _ in range(3))", "0.1")
    first = random.Random(42).random()
    fixed = fixed.replace("import random\n", f"import os\nimport random\n\nFIRST = {first!r}\n")
    toy = task(tmp_path / "r", fixed, EVALUATOR)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert "(deterministic = true)" in done.stdout
    for name, line in (
        ("lots", "return 0.2 + random.random()"),
        ("hidden", "random.seed(42)\n    return 0.2 + random.random()"),
        ("fails", "random.seed(42)\n    return 0.2 / (random.random() == FIRST)"),
        ("unseeded", "return 0.2 + ('TREEWRIGHT_SEED' not in os.environ)"),
        ("real", "return 0.2"),
    ):
        toy.write(f"ideas/{name}.md", idea(name, diff(fixed, fixed.replace("return 0.1", line))))
    take_ideas(toy)
    done = search(toy, treewright)
    assert done.returncode == 0, done.stderr
    found = manifest(toy)
    assert noise_check(toy) == NoiseCheck("exact", "same", "same", "same")
    report = (toy.run_dir("run") / "TREE_SUMMARY.md").read_text()
    assert "The root gave the same number with another TREEWRIGHT_SEED" in report
    errors = [e.error.code for e in found.evaluations.values() if e.error]
    assert errors == ["not_deterministic"] * 4
    assert len(found.nodes) == 2
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_score_that_counts_characters_is_exact(tmp_path: Path, treewright) -> None:
    fixed = PROGRAM.replace("max(random.random() for _ in range(3))", "0.1")
    evaluator = EVALUATOR.replace("1 + sum", "len(open(program_path).read()) + sum")
    toy = task(tmp_path / "r", fixed, evaluator)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert "(deterministic = true)" in done.stdout
    add_no_ops(toy, fixed, 1)
    take_ideas(toy)
    done = search(toy, treewright)
    assert "not deterministic" not in done.stderr
    assert "depends on the text of the program" in noise_check(toy).note


def test_a_coarse_number_is_perturbed_more_than_once(tmp_path: Path, treewright) -> None:
    """A number of few values is often the same after one perturbation."""
    coarse = SEEDED_PROGRAM.replace("max(random.random() for _ in range(3))", "COARSE")
    coarse = coarse.replace("COARSE", "random.random() < 0.5")

    def moves(program: str) -> list[bool]:
        found = [run_search(perturb(program, draws, block=True) or "") for draws in (0, 7, 11)]
        return [found[0] != each for each in found[1:]]

    programs = (coarse.replace("42", str(seed)) for seed in range(100))
    program = next(each for each in programs if moves(each) == [False, True])
    toy = task(tmp_path / "r", program, EVALUATOR)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert "a fixed seed hides its noise" in done.stdout


def test_a_broken_evaluator_stops_the_run_with_its_message(tmp_path: Path, treewright) -> None:
    toy = task(tmp_path / "r", PROGRAM, BROKEN_EVALUATOR)
    done = treewright("init", "--from", "openevolve", str(toy.path))
    assert done.returncode == 0
    assert "could not be measured: the evaluator says: the compiler is missing" in done.stdout
    toy.commit("configured")
    done = search(toy, treewright)
    assert done.returncode == 2
    assert "config_id 0 has status 'failed'" in done.stderr
    assert "the evaluator says: the compiler is missing" in done.stderr
    assert not (toy.path / "baseline.csv").exists()


def run_search(source: str) -> float:
    module: dict = {"__name__": "program"}
    exec(source, module)
    return module["search"]()


@pytest.mark.parametrize("block", [False, True])
def test_a_perturbed_program_draws_after_each_seed(block: bool) -> None:
    as_it_is = run_search(SEEDED_PROGRAM)
    assert run_search(SEEDED_PROGRAM) == as_it_is
    for draws, is_same in ((7, False), (perturbation.CONTROL, True)):
        text = perturb(SEEDED_PROGRAM, draws, block=block)
        assert text is not None
        assert (run_search(text) == as_it_is) == is_same


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""\nfrom __future__ import annotations\n\nx = 1\n',
        "def one(): return 1\n\n\n@decorated\ndef two(a, *, b=(\n    1)):\n    '''Text.'''\n"
        "    if a: random.seed(1)\n    return b\n",
        "class A:\n\tdef f(self, rng):\n\t\tself.rng = Random(1); self.x = 2\n\t\treturn 3",
        "rng = default_rng(\n    1,\n)\nfor i in x:\n    np.random.seed(i)\nelse:\n    x = 1\n",
    ],
)
def test_any_program_can_be_perturbed(source: str) -> None:
    text = perturb(source, 3)
    assert text is not None
    ast.parse(text)
    assert "_treewright_draw(1" in text


HIDDEN_DRAWS = {
    "a function in one line": "def search(): return random.random()",
    "a lambda": "search = lambda: random.random()",
    "many calls before": "def near(a):\n    return a\nfor i in range(5000): near(i)\n"
    "def search():\n    return random.random()",
    "two targets": "def search():\n    rng, n = random.Random(4), 3\n    return rng.random() * n",
    "no target": "def search():\n    return random.Random(4).random()",
    "a method": "draw = random.Random(4).random\ndef search():\n    return draw()",
    "a list": "def search():\n    r = [random.Random(4)]\n    return r[0].random()",
    "an entry": "d = {}\ndef search():\n    d[0] = random.Random(4)\n    return d[0].random()",
    "a condition": "def search():\n    if r := random.Random(4):\n        return r.random()",
    "an alias": "from random import Random as R\ndef search():\n    return R(4).random()",
    "a state": "s = random.getstate()\ndef search():\n    random.setstate(s)\n"
    "    return random.random()",
    "another module seeds": "def search():\n    prepare()\n    return random.random()",
    "a subclass": "def search():\n    return OWN.random()",
    "an attribute": "def search():\n    return HOLDER.rng.random()",
    "an object": "def search(holder=HOLDER()):\n    return holder.own.random()",
}
AROUND = """\
import random
class Own(random.Random): pass
class Holder:
    rng = random.Random(3)
    def __init__(self): self.own = random.Random(3)
def prepare(): random.seed(42)
OWN, HOLDER = Own(3), Holder
# EVOLVE-BLOCK-START
BODY
# EVOLVE-BLOCK-END
"""


@pytest.mark.parametrize("name", HIDDEN_DRAWS)
def test_hidden_random_numbers_are_moved(name: str) -> None:
    source = AROUND.replace("BODY", HIDDEN_DRAWS[name])
    found = []
    for draws in (perturbation.CONTROL, 7):
        random.seed(5)
        text = perturb(source, draws, block=True)
        assert text is not None
        module: dict = {"__name__": "program"}
        exec(text, module)
        random.seed(7)
        found.append(module["search"]())
    assert found[0] != found[1]


def test_a_block_inside_a_function_is_perturbed() -> None:
    source = "import random\ndef search():\n    x = 1\n    # EVOLVE-BLOCK-START\n"
    text = perturb(f"{source}    return x\n    # EVOLVE-BLOCK-END\n", 7, block=True)
    assert text is not None
    inside = text.partition("START")[2]
    assert "_treewright_draw(1, None)\n    return x" in inside


def test_a_file_that_is_not_python_is_not_perturbed() -> None:
    assert perturb("echo $HOME {", 3) is None
    assert perturb("", 3) is None
    assert perturb("x = 1\n", 3, block=True) is None


def test_at_most_2_5_percent_of_changes_without_effect_pass() -> None:
    """The differences are symmetric around zero; the bound also holds when most of them are
    zero."""
    draw = random.Random(3)
    kinds = (
        lambda: draw.gauss(0, 1),
        lambda: draw.choice([-1, 0, 0, 0, 0, 1]),
        lambda: draw.choice([-1, 1]) * draw.paretovariate(1.1),
    )
    for kind in kinds:
        passed = 0
        for _ in range(1000):
            deltas = [float(kind()) for _ in range(16)]
            passed += sum(deltas) > 0 and paired.is_beyond_chance(deltas, 0)
        assert passed <= 45, "2.5 % of 1000, and four standard deviations"
    assert paired.is_beyond_chance([0.1] * 6, 0)
    assert not paired.is_beyond_chance([0.1] * 5, 0)
    assert not paired.is_beyond_chance([0.0] * 16, 0)
