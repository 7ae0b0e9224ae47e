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


def test_threads_that_overlap_put_back_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first leaves while the second is inside; then the second leaves."""
    threads = [4]
    monkeypatch.setattr(
        blas, "_library", lambda: (lambda: threads[-1], lambda number: threads.append(number))
    )
    first, second = blas.one_thread(), blas.one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads[-1] == 1, "the second is still inside"
    second.__exit__(None, None, None)
    assert threads[-1] == 4


def test_without_openblas_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_library", lambda: None)
    with blas.one_thread():
        pass
