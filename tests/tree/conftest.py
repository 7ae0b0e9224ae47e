"""The real small model, served once for the whole session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.tree.agents.endpoints import SERVE_MODEL


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE_MODEL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert address.startswith("http"), "the model server did not start"
        yield f"{address}/v1"
        server.kill()
