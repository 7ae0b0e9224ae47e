"""The verification tasks of VERINA (`sunblaze-ucb/verina`): does the given program satisfy its
specification?

`python -m benchmarks.external.verina CHECKOUT --out results.jsonl` takes each
`datasets/verina/*/task.lean` as it is, with `sorry` for a proof. The human proof and the lemmas
that were written for it (`proof_aux`) are left out. So is `import Mathlib`: the bundled Lean has
no Mathlib, and many tasks need it for their human proof only.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks.external import scoreboard
from benchmarks.external.scoreboard import Problem, sha256_half

_PART = "^ *-- !benchmark @start {0}\\b[^\n]*\n(.*?)-- !benchmark @end {0}\\b[^\n]*"
_AUX = re.compile(_PART.format("proof_aux"), re.DOTALL | re.MULTILINE)
_PROOF = re.compile(_PART.format("proof"), re.DOTALL | re.MULTILINE)
_MATHLIB = re.compile(r"^import Mathlib\b.*\n", re.MULTILINE)
_MARK = re.compile(r"^ *-- !benchmark .*\n?", re.MULTILINE)


def problem_text(task: str) -> str:
    """Return the Lean file for a task: its definitions, and its theorem with `sorry`.

    Raises:
        ValueError: The task has no proof to take away.
    """
    if not _PROOF.search(task):
        raise ValueError("the task has no part `proof`")
    text = _PROOF.sub("  sorry\n", _AUX.sub("", task))
    text = _MARK.sub("", _MATHLIB.sub("", text))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def write_problems(checkout: Path, files: Path) -> list[Problem]:
    """Write a Lean file for each task of a checkout."""
    files.mkdir(parents=True, exist_ok=True)
    problems = []
    for task in sorted((checkout / "datasets" / "verina").glob("*/task.lean")):
        name = task.parent.name
        try:
            text = problem_text(task.read_text("utf-8"))
        except ValueError as error:
            print(f"{name} is left out: {error}")
            continue
        file = files / f"{name}.lean"
        file.write_text(text, "utf-8")
        problems.append(Problem(name, file, sha256_half(name)))
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.external.verina", description=__doc__
    )
    parser.add_argument("checkout", type=Path, help="a checkout of sunblaze-ucb/verina")
    scoreboard.add_options(parser)
    options = parser.parse_args()
    files = options.out.with_suffix(".files").resolve()
    scoreboard.run(write_problems(options.checkout, files), options)


if __name__ == "__main__":
    main()
