"""Concurrent evaluations have different slots, and the user's variables of their slot."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.toy import CONFIG, SWEEP, ToyRepository
from treewright.kernel.errors import UsageError
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.parallelism import Parallelism

MEETING = """
mkdir "$MEET/$DEVICE" || exit 3
echo "$TREEWRIGHT_SLOT $DEVICE" >> "$MEET/seen"
i=0
while [ "$(ls "$MEET" | grep -c '^gpu')" -lt 2 ] && [ ! -e "$MEET/met" ] && [ $i -lt 3000 ]; do
  sleep 0.02; i=$((i + 1))
done
touch "$MEET/met"
rmdir "$MEET/$DEVICE"
"""


@pytest.mark.parametrize("backend", ["threadpool", "dask"])
def test_concurrent_evaluations_have_different_devices(
    toy: ToyRepository, tmp_path, monkeypatch, backend: str
) -> None:
    if backend == "dask":
        pytest.importorskip("distributed")
    meet = tmp_path / "meet"
    meet.mkdir()
    monkeypatch.setenv("MEET", str(meet))
    toy.write("treewright.toml", CONFIG + '\n[slots]\nDEVICE = ["gpu0", "gpu1"]\n')
    toy.write("sweep.sh", SWEEP.replace("#!/bin/sh\n", f"#!/bin/sh\n{MEETING}"))
    toy.commit("sweeps that take a device")
    request = RunRequest(
        toy.path,
        "run",
        shape=Shape(ideas_per_node=4, max_depth=1, sweep_config_limit=8),
        preflight=False,
        parallelism=Parallelism(2, backend),
    )
    with open_run(request) as coordinator:
        coordinator.advance()
        found = coordinator.manifest.evaluations.values()
    assert {e.status for e in found} == {"completed"}, [e.error for e in found]
    seen = Counter((meet / "seen").read_text().splitlines())
    assert set(seen) == {"0 gpu0", "1 gpu1"}
    assert sum(seen.values()) == 4


def test_a_slot_list_that_is_too_short_is_refused(toy: ToyRepository) -> None:
    toy.write("treewright.toml", CONFIG + '\n[slots]\nDEVICE = ["gpu0"]\n')
    toy.commit("one device")
    shape = Shape(ideas_per_node=1, max_depth=1, sweep_config_limit=8, dry_run=True)
    request = RunRequest(toy.path, "run", shape=shape, parallelism=Parallelism(2))
    why = r"\[slots\] DEVICE has 1 values for 2 evaluations at once"
    with pytest.raises(UsageError, match=why), open_run(request):
        pass
