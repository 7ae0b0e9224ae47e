"""What users have set, for git or by the names they gave, is no reason to reject a candidate."""

from __future__ import annotations

import pytest

from tests.toy import ToyRepository
from tests.tree.test_users_repository import live, worktrees_of


def test_settings_in_the_environment_hold_for_every_command(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container, the repository often is somebody else's, and this is how it is said that it
    may be used all the same."""
    head = toy.git("rev-parse", "HEAD").strip()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    live(worktrees_of(toy.path), "e1", head)
