"""`python -m treewright.orchestrator.main bank …`: the same as `treewright bank …`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Replace this process by the `treewright` program, which has the commands."""
    os.execv(sys.executable, [sys.executable, "-m", "treewright", *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
