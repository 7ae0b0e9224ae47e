"""The number of OpenBLAS' threads is set and put back."""

from __future__ import annotations

import pytest

from treewright.premises import blas


def test_one_thread_inside_and_as_before_outside() -> None:
    found = blas._library()
    assert found is not None, "the numpy that is pinned brings its own OpenBLAS"
    getter, _ = found
    before = getter()
    with blas.one_thread():
        assert getter() == 1
    assert getter() == before


def test_without_openblas_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_library", lambda: None)
    with blas.one_thread():
        pass
