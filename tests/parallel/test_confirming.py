"""Candidates of a depth are confirmed at the same time."""

from __future__ import annotations

from pathlib import Path

from tests.toy import SWEEP, ToyRepository, set_parameter
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism

MEETING = """
if [ "${TREEWRIGHT_SWEEP_CONFIG_START:-0}" != 0 ] && [ -e "$MEET/armed" ]; then
  touch "$MEET/here-$$"
  i=0
  while [ "$(ls "$MEET" | grep -c '^here')" -lt 2 ]; do
    i=$((i + 1)); [ $i -lt 6000 ] || exit 3
    sleep 0.02
  done
fi
"""


def test_two_confirmations_of_a_depth_run_at_once(
    toy: ToyRepository, tmp_path: Path, monkeypatch
) -> None:
    meet = tmp_path / "meet"
    meet.mkdir()
    monkeypatch.setenv("MEET", str(meet))
    for path in (toy.path / "ideas").iterdir():
        path.unlink()
    toy.write("ideas/0.md", set_parameter("A", 2.0))
    toy.write("ideas/1.md", set_parameter("B", 3.0))
    toy.write("sweep.sh", SWEEP.replace("#!/bin/sh\n", f"#!/bin/sh\n{MEETING}"))
    toy.commit("held-out sweeps that wait for each other")
    request = RunRequest(
        toy.path,
        "run",
        shape=Shape(
            ideas_per_node=2, beam_width=2, max_depth=1, sweep_config_limit=8, confirm_configs=4
        ),
        preflight=False,
        parallelism=Parallelism(2),
    )
    with open_run(request) as coordinator:
        (meet / "armed").touch()
        coordinator.advance()
        found = coordinator.manifest
    assert found.spent.confirmations == 2
    assert len(found.nodes) == 3
