"""Writes golden_trees.json: `python -m tests.search.make_golden`. Only for new policies."""

from __future__ import annotations

import json
import random

from tests.search.test_policies import GOLDEN, NAMES, grown


def main() -> None:
    rng = random.Random(11)
    values = [None if rng.random() < 0.15 else round(rng.gauss(0, 1), 3) for _ in range(60)]
    parents = {name: grown(name, values)[1] for name in NAMES}
    if GOLDEN.exists():
        old = json.loads(GOLDEN.read_text())["parents"]
        parents = {name: old.get(name, found) for name, found in parents.items()}
    document = {"values": values, "parents": parents}
    GOLDEN.write_text(json.dumps(document, indent=None, separators=(", ", ": ")) + "\n")


if __name__ == "__main__":
    main()
