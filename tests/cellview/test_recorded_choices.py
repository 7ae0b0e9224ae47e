"""Cells make the recorded choices, so that recorded runs replay after an optimisation."""

from __future__ import annotations

import hashlib
from random import Random

import msgspec

from tests.cellview.running import lines
from tests.proving.synthetic import world_expander
from treewright.cellview.runner import CellViewRunner
from treewright.proving.cell_settings import ALGOTYPES, CellSettings
from treewright.search.andor.policies.mcts import Mcts


def drawn(rng: Random) -> CellSettings:
    agents = rng.randint(1, 8)
    return CellSettings(
        agents=agents,
        inflight=rng.randint(1, agents),
        algotypes=tuple(rng.choice(("puct", *ALGOTYPES)) for _ in range(agents)),
        view=rng.choice(["subtree", "radius"]),
        radius=rng.randint(1, 3),
        stride=rng.randint(0, 3),
        stay=rng.randint(1, 5),
        refresh=rng.randint(1, 9),
        depth_limit=rng.randint(1, 6),
        block_fraction=rng.choice([0.0, 0.0, 0.3, 1.0]),
        block_target=rng.choice(["agents", "nodes"]),
        block_at=rng.randint(0, 12),
        block_duration=rng.randint(1, 9),
        block_permanent=rng.random() < 0.2,
        unfreeze_prob=rng.choice([0.3, 1.0]),
        delay_prob=rng.choice([0.0, 0.0, 0.4]),
        reroute_max=rng.randint(0, 3),
        give_up=2,
    )


def test_cells_make_the_recorded_choices() -> None:
    rng = Random(5)
    digest = hashlib.sha256()
    iterations = 0
    for number in range(80):
        expander = world_expander(
            number,
            priors=rng.random() < 0.7,
            batch=rng.randint(1, 3),
            size=rng.choice([20, 80, 300, 5000]),
            closing=rng.choice([0.0, 0.02, 0.1]),
        )
        policy = Mcts(backup=rng.choice(["product", "min"]))
        runner = CellViewRunner(expander, drawn(rng), number, policy)
        for line in lines(runner, 150):
            digest.update(msgspec.json.encode(line))
            iterations += 1
        runner.drain()
        runner.tree.check()
    assert iterations == 6079
    assert digest.hexdigest() == (
        "e35bc568a5951cb64863f003e4255db25641723f16ae0449dbe43c7393c9c0a9"
    )
