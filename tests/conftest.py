"""Fixtures shared by all tests: small real repositories, and the program as users run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.toy import ToyRepository

# A busy machine is not a failing property.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")


@pytest.fixture(autouse=True)
def _isolated_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the user's git configuration or an outer treewright's variables."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in list(os.environ):
        if name.startswith("TREEWRIGHT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def toy(tmp_path: Path) -> ToyRepository:
    """A git repository whose sweep is a shell script that takes milliseconds."""
    return ToyRepository.create(tmp_path / "target repo")


@pytest.fixture
def treewright(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed program in a process of its own."""

    def run(*args: str, cwd: Path | None = None, **kwargs) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "treewright", *args],
            cwd=cwd or tmp_path,
            capture_output=True,
            text=True,
            timeout=kwargs.pop("timeout", 120),
            check=False,
            **kwargs,
        )

    return run


@pytest.fixture(scope="session")
def git_binary() -> str:
    found = shutil.which("git")
    assert found is not None
    return found
