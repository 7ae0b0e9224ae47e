"""The part of the sweep that is different for a task of evo: one config, which is the benchmark.
Its text takes the place of what `sweep.py` leaves to be filled in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

HERE = CODE = Path()
COMMAND = TARGET = ""

# -- the task -----------------------------------------------------------------------------


def question(config_id: int, seed: int) -> object:
    """One config; the benchmark chooses its own inputs."""
    return {"command": COMMAND}


def answer(asked: object) -> object:
    """Run the benchmark in the directory of the code; return its output."""
    import shlex
    import tempfile

    command = asked["command"]  # type: ignore[index]
    for name, value in (("{worktree}", CODE), ("{target}", CODE / TARGET)):
        command = command.replace(name, shlex.quote(str(value)))
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory, "result.json")
        traces = Path(directory, "traces")
        traces.mkdir()
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=CODE,
            env={**os.environ, "EVO_RESULT_PATH": str(result), "EVO_TRACES_DIR": str(traces)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        printed = done.stdout.decode("utf-8", "replace")
        # Models read this: the end of the sweep's log is part of their prompts.
        for trace in sorted(traces.iterdir())[:20]:
            print(f"artifact {trace.name}: {trace.read_text('utf-8', 'replace')}"[:1000])
        written = result.read_text("utf-8", "replace") if result.exists() else printed
    print(written[-4000:])
    return {"code": done.returncode, "written": written}


def judge(asked: object, answered: object) -> dict[str, float]:
    """Return the `score` of the one JSON object."""
    if not isinstance(answered, dict):
        raise TypeError("the benchmark was not run")
    if answered["code"] != 0:
        raise ValueError(f"the benchmark ended with code {answered['code']}")
    try:
        found = json.loads(answered["written"])
    except ValueError:
        raise ValueError("the benchmark did not print or write one JSON object") from None
    if not isinstance(found, dict) or "score" not in found:
        raise ValueError("the benchmark's JSON has no `score`")
    return {"score": found["score"]}
