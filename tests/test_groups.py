"""Tests that share a Lean, a server or a browser run on one worker."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("groups")
def test_the_scheduler_receives_the_group_of_a_test(request: pytest.FixtureRequest) -> None:
    """Without groups every worker starts every process: no failure, but minutes and 10 GB."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("workers have groups with `-n 2 --dist loadgroup` only")
    assert request.node.nodeid.endswith("@groups")
