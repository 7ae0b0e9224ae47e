"""A search over programs, with the library alone: no git, no Lean, no model.

A program is a formula in x, grown by a random change; its score is how well it gives the numbers
of a hidden one. Kill it whenever you like and start it again: python examples/programs.py
"""

import math
import random
import re

import treewright

POINTS = [i / 4 for i in range(-8, 9)]
WANTED = [x * x - 3 * x + 1 for x in POINTS]
PARTS = ["x", "1", "2", "(x + 1)", "(x * x)", "(x * 2)", "(x - 3)", "(1 - x)"]


def change(program: str, rng: random.Random) -> str:
    """One of its atoms becomes something else, or the whole becomes part of something larger."""
    if rng.random() < 0.4:
        return f"({program} {rng.choice('+-*')} {rng.choice(PARTS)})"
    atoms = list(re.finditer(r"x|\d", program))
    atom = rng.choice(atoms)
    return program[: atom.start()] + rng.choice(PARTS) + program[atom.end() :]


def evaluate(task: treewright.Task) -> treewright.Result:
    program = change(task.parent.data, random.Random(task.seed))
    if len(program) > 60:
        raise treewright.EvaluationFailed("too long")
    given = [eval(program, {"x": x}) for x in POINTS]  # of the parts above only
    return treewright.Result(-math.log1p(math.dist(given, WANTED)), data=program)


if __name__ == "__main__":
    with treewright.open_search(
        "programs.search", policy="best-first", seed=1, budget=600, root="x"
    ) as search:
        best = search.run(evaluate, workers=2).best
        print(f"{search.evaluations} programs, the best: {best.data}  ({best.score:.3f})")
