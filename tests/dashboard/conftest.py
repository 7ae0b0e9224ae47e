"""The run that most tests of the dashboard look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard import samples
from tests.toy import ToyRepository


@pytest.fixture
def run_dir(searched: ToyRepository) -> Path:
    return searched.run_dir(samples.RUN_ID)
