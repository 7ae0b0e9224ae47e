"""Writes golden_graphs.json: `python -m tests.search.andor.make_golden`. Only for new policies."""

from __future__ import annotations

import json

from tests.search.andor.test_policies import GOLDEN, MOST_TURNS, NAMES
from tests.search.andor.worlds import Growth, World
from treewright.search.andor import policies


def main() -> None:
    golden = json.loads(GOLDEN.read_text())
    for example in golden:
        for name in NAMES:
            growth = Growth(World.of(example), policies.make(name))
            example["choices"].setdefault(name, " ".join(growth.choices(MOST_TURNS)))
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
