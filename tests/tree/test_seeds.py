"""Seeds of random numbers are never mutated, and a candidate that only changes a seed is
rejected."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable

import pytest

from tests.toy import ToyRepository, idea
from tests.tree.runs import RUN_ID
from treewright.tree.ideas.tunable_literals import find_sites
from treewright.tree.records import store
from treewright.tree.repository.formatting import only_seeds_differ
from treewright.tree.repository.seeds import is_seed_name
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.validation import validate

SEEDS = [
    "import numpy as np\nnp.random.seed({})\n",
    "import random\nrandom.seed(a={})\n",
    "from random import Random\nr = Random({})\n",
    "import numpy as np\nrng = np.random.default_rng({})\n",
    "import numpy as np\nrng = np.random.default_rng([{}, 2])\n",
    "import numpy as np\nrng = np.random.Generator(np.random.PCG64({}))\n",
    "import numpy as np\nrng = np.random.RandomState(seed={})\n",
    "def f(x):\n    return {{}}\ng = f(random_state={})\n",
    "import torch\ntorch.manual_seed({})\n",
    "import torch\ng = torch.Generator().manual_seed({})\n",
    "import torch\ntorch.cuda.manual_seed_all({})\n",
    "import jax\nkey = jax.random.PRNGKey({})\n",
    "import jax\nkey = jax.random.key({})\n",
    "import lightning\nlightning.seed_everything({}, workers=True)\n",
    "SEED = {}\n",
    "RANDOM_SEED: int = {}\n",
    "class A:\n    def __init__(self):\n        self.seed = {}\n",
    "def f(seed={}):\n    pass\n",
    "def f(*, rng_seed: int = {}):\n    pass\n",
    "f = lambda seed={}: 0\n",
    "config = {{'seed': {}}}\n",
    "config = {{}}\nconfig['seed'] = {}\n",
    "config = dict(randomSeed={})\n",
    "width, seed = 0, {}\n",
    "first = seed = {}\n",
    "seed = 0\nseed += {}\n",
    "if (seed := {}):\n    pass\n",
    "import os\nos.environ.setdefault('PYTHONHASHSEED', '{}')\n",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', default={})\n",
    "from dataclasses import field\nclass A:\n    seed: int = field(default={})\n",
    "import random\nnumber = {}\nrandom.seed(number)\n",
    "import random\nfor i in range(2):\n    random.seed(i + {})\n",
    "import random\nseed = None\nrandom.seed(seed if seed is not None else {})\n",
    "seeds = [{}, 2, 3]\n",
    "import jax\nkey = jax.random.fold_in(key, {})\n",
    "from flax import nnx\nrngs = nnx.Rngs(params={})\n",
    "import random\ndef set_seed(n):\n    random.seed(n)\nset_seed({})\n",
]


@pytest.mark.parametrize("source", SEEDS)
def test_mutations_do_not_edit_seeds(source: str) -> None:
    text = source.format(42)
    ast.parse(text)
    sites = find_sites(text.encode(), [0.5, 2.0], {"seed": [1, 2], "random_state": [1, 2]})
    assert [site.token for site in sites if site.token.strip("'") == "42"] == []


@pytest.mark.parametrize(
    "source",
    [
        "n_seeds = 42\n",
        "num_seeds = 42\n",
        "seed_fraction = 42\n",
        "proceed = 42\n",
        "import random\nsteps = 42\nrandom.seed(steps)\nfor _ in range(steps):\n    pass\n",
        "seed = build(width=42)\n"[7:],
        "random.choices(x, k=42)\n",
        "rng.integers(42)\n",
        "key = jax.random.split(key, 42)\n",
        "cache.key(42)\n",
    ],
)
def test_mutations_edit_other_numbers(source: str) -> None:
    sites = find_sites(source.encode(), [2.0], {})
    assert [site.token for site in sites] == ["42"]


def test_names_of_seeds_are_recognised() -> None:
    seeds = "seed SEED _seed seed_ seed1 rng_seed randomSeed RANDOM_STATE seeds seed_value rng"
    others = "n_seeds seed_count seeded exceed version seedling_rate random state linseed_oil"
    assert [name for name in seeds.split() if not is_seed_name(name)] == []
    assert [name for name in others.split() if is_seed_name(name)] == []


@pytest.fixture
def only_seeds(toy: ToyRepository) -> Callable[..., bool]:
    def go(before: str, after: str, path: str = "program.py") -> bool:
        toy.write(path, before)
        toy.commit("before")
        parent = toy.git("rev-parse", "HEAD").strip()
        toy.write(path, after)
        toy.commit("after")
        commit = toy.git("rev-parse", "HEAD").strip()
        return only_seeds_differ(toy.path, parent, parent, commit)

    return go


def test_commits_that_differ_only_in_a_seed_are_recognised(only_seeds) -> None:
    kept = [source for source in SEEDS if not only_seeds(source.format(42), source.format(84))]
    assert kept == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "import random\nrandom.seed(7)\nx = 1\n"),
        ("x = 1\n", "import numpy as np\nSEED = 7\nnp.random.seed(SEED)\nx = 1\n"),
        ("f(3)\n", "f(3, random_state=7)\n"),
        ("rng = default_rng()\n", "rng = default_rng(7)  # lucky\n"),
        ("random_state = None\n", "random_state = 7\n"),
        ("random.seed(42)\n", "random.seed(len('seven'))\n"),
        ("random.seed(42)\n", "random.seed({'a': 7}['a'])\n"),
        ("random.seed(42)\n", "random.seed(pow(2, 5))\n"),
        ('"""Uses seed 3."""\nseed(3)\n', '"""Uses seed 4."""\n\nseed(4)\n'),
    ],
)
def test_a_seed_that_is_added_is_a_change_of_the_seed(only_seeds, before: str, after: str) -> None:
    assert only_seeds(before, after)
    assert only_seeds(after, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("seed(3)\nrate = 1\n", "seed(4)\nrate = 2\n"),
        ("seed = greedy(0.3)\n", "seed = greedy(0.4)\n"),
        ("seed = greedy(grid)\n", "seed = anneal(grid)\n"),
        ("seed = 3\n", "seed = True\n"),
        ("x = newton(seed=0.5)\n", "x = newton(seed=1.5)\n"),
        ("seeds = [(0, 0), (1, 1)]\n", "seeds = [(0, 2), (1, 3)]\n"),
        ("SEEDS = [1, 2, 3]\n", "SEEDS = [1, 2, 3, 4]\n"),
        ("cells.seed(points, 4)\n", "cells.seed(points, 8)\n"),
        ("cells.seed(density=3)\n", "cells.seed(density=7)\n"),
        ("draw = Philox(rounds=7)\n", "draw = Philox(rounds=10)\n"),
        (
            "def seed(n):\n    return [0] * n\nfound = seed(40)\n",
            "def seed(n):\n    return [0] * n\nfound = seed(80)\n",
        ),
        ("n_seeds = 3\n", "n_seeds = 4\n"),
        ("x = 1\n", "x  =  1  # one\n"),
        ('"""One."""\nx = 1\n', '"""Two."""\nx = 1\n'),
        ("import math\nseed(3)\n", "import math, os\nseed(4)\n"),
        ("seed(3\n", "seed(4\n"),
        ("random.seed(3)\n", "random.shuffle(rows)\nrandom.seed(3)\n"),
    ],
)
def test_commits_that_differ_in_more_than_a_seed_are_not_seed_changes(
    only_seeds, before: str, after: str
) -> None:
    assert not only_seeds(before, after)


def test_a_file_in_another_language_cannot_be_judged(only_seeds) -> None:
    assert not only_seeds("set.seed(3)\n", "set.seed(4)\n", "program.R")
    assert not only_seeds("seed: 3\n", "seed: 4\n", "config.yaml")


def lucky(toy: ToyRepository, *changes: tuple[str, str]) -> None:
    """A program with its seed as its score, and an idea for each change."""
    program = "import random\nrandom.seed(42)\nrate = 1.0\n"
    toy.write("program.py", program)
    toy.write(
        "sweep.sh",
        "python3 -c 'import re\n"
        'text = open("program.py").read()\n'
        'seed = int(re.search(r"seed.(.+).\\n", text)[1])\n'
        'print("config_id,status,loss,cost")\nprint(f"0,ok,{100 - seed},1")\''
        ' > "$TREEWRIGHT_RESULTS_CSV"\n',
    )
    toy.write("baseline.csv", "config_id,status,loss,cost\n0,ok,58,1\n")
    config = (toy.path / "treewright.toml").read_text()
    toy.write(
        "treewright.toml", config.replace("primary = true", "primary = true\ndeterministic = true")
    )
    toy.commit("program")
    shutil.rmtree(toy.path / "ideas")
    for number, (old, new) in enumerate(changes):
        toy.write("program.py", program.replace(old, new))
        toy.write(f"ideas/{number}.md", idea(f"Idea {number}", toy.git("diff", "program.py")))
    toy.write("program.py", program)
    toy.commit("ideas")


def test_a_candidate_that_only_changes_a_seed_is_rejected(toy: ToyRepository) -> None:
    lucky(toy, ("42", "84"), ("seed(42)\nrate = 1.0", "seed(84)\nrate = 2.0"))
    shape = Shape(sweep_config_limit=1, max_depth=1, ideas_per_node=2, beam_width=2)
    with open_run(RunRequest(toy.path, RUN_ID, shape=shape)) as coordinator:
        coordinator.finish()
    manifest = store.load(toy.run_dir(RUN_ID))
    first, second = manifest.evaluations.values()
    assert first.error is not None
    assert first.error.code == "only_seeds_changed"
    assert "only the seed of random numbers in program.py" in first.error.message
    assert first.results_csv is None
    assert second.error is None
    assert validate(toy.run_dir(RUN_ID), toy.path) == []


def test_an_agent_that_only_changes_the_seed_is_rejected(toy: ToyRepository) -> None:
    lucky(toy, ("42", "43"))
    config = (toy.path / "treewright.toml").read_text()
    command = ["sed", "-i", "s/42/84/", "program.py"]
    toy.write(
        "treewright.toml", f'{config}\n[agents.coder]\nbackend = "command"\ncommand = {command}\n'
    )
    toy.commit("An agent")
    shape = Shape(sweep_config_limit=1, max_depth=1, ideas_per_node=1, beam_width=1)
    with open_run(RunRequest(toy.path, RUN_ID, shape=shape)) as coordinator:
        coordinator.finish()
    (found,) = store.load(toy.run_dir(RUN_ID)).evaluations.values()
    assert found.error is not None
    assert found.error.code == "only_seeds_changed"
