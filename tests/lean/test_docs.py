"""The snippets of docs/lean.md run, in order, as one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from treewright.lean.hosts.wasm.home import LeanHome

GUIDE = Path(__file__).parents[2] / "docs" / "lean.md"


@pytest.mark.xdist_group("lean-sandbox")
def test_the_guide_runs(home: LeanHome, tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(snippets) >= 6
    program = tmp_path / "guide.py"
    program.write_text("\n".join(snippets))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "((0, 1), (2,))" in done.stdout
    assert "exact h.symm -- not here: sorry" in done.stdout
