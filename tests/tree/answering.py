"""A repository with the sweep that `treewright init --sweep-template` writes, with its two
functions filled in.

The measured code is `guess.py`, which returns a guess at the double of a number; a nearer guess
scores better."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.toy import ToyRepository
from treewright.tree.starter import read_template

GUESS = "def double(x):\n    return 2 * x + 1\n"
CONFIG = """\
baseline_csv = "baseline.csv"
protected_paths = ["treewright_sweep.py"]

[sweep]
command = "{python} -I treewright_sweep.py"
timeout_seconds = 120
checkout = "root"
sealed = true

[[metrics]]
name = "score"
direction = "maximize"
primary = true

[[ideas]]
source = "directory"
path = "ideas"
"""


def filled_in() -> str:
    """Return the template with its two functions filled in."""
    text = read_template("sweep")
    for name, body in (
        ("answer", "    import guess\n\n    return guess.double(asked['config'])\n"),
        ("judge", "    return {'score': -abs(answered - 2 * asked['config'])}\n"),
    ):
        start = text.index("    raise SystemExit", text.index(f"def {name}"))
        text = text[:start] + body + text[text.index("\n", start) + 1 :]
    return text


def make(path: Path, extra: str = "") -> ToyRepository:
    """Create the repository; `extra` is prepended to the configuration."""
    path.mkdir()
    toy = ToyRepository(path)
    toy.git("init", "-q", "-b", "main")
    toy.write("guess.py", GUESS)
    toy.write("treewright_sweep.py", filled_in())
    toy.write("treewright.toml", extra + CONFIG.format(python=sys.executable))
    toy.write("baseline.csv", "\n".join(swept(toy, 3)) + "\n")
    toy.write("ideas/00.md", "# nothing\n")
    toy.commit("code to be improved")
    return toy


def swept(toy: ToyRepository, limit: int) -> list[str]:
    """Return the lines that the sweep writes when it is run by hand."""
    results = toy.path / "out.csv"
    subprocess.run(
        [sys.executable, "-I", "treewright_sweep.py"],
        cwd=toy.path,
        check=True,
        capture_output=True,
        timeout=120,
        env={
            "TREEWRIGHT_RESULTS_CSV": str(results),
            "TREEWRIGHT_SWEEP_CONFIG_LIMIT": str(limit),
        },
    )
    lines = results.read_text().splitlines()
    results.unlink()
    return lines
