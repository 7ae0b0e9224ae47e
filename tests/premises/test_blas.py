"""The number of BLAS' threads is set and put back, also where threads overlap."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import threadpoolctl

from treewright.kernel.errors import MissingExtra
from treewright.premises import blas


def numbers() -> set[int]:
    """How many threads numpy's BLAS uses; other libraries may bring one of their own."""
    found = threadpoolctl.threadpool_info()
    return {library["num_threads"] for library in found if "numpy" in library["filepath"]}


def use(threads: int) -> None:
    """Set the number in a new thread; a thread that has set one keeps the right to change it."""
    set_it = threading.Thread(target=threadpoolctl.threadpool_limits, args=(threads, "blas"))
    set_it.start()
    set_it.join()


@pytest.fixture(autouse=True)
def three() -> Iterator[None]:
    """BLAS uses three threads before each test, on any machine."""
    (before,) = numbers()
    use(3)
    assert numbers() == {3}, "the numpy that is pinned brings its own OpenBLAS"
    yield
    use(before)


def test_one_thread_inside_and_as_before_outside() -> None:
    with blas.one_thread():
        assert numbers() == {1}
    assert numbers() == {3}
    with pytest.raises(ZeroDivisionError), blas.one_thread():
        raise ZeroDivisionError
    assert numbers() == {3}


def test_overlapping_threads_restore_the_number() -> None:
    """The first leaves while the second is inside; then the second leaves."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first() -> None:
        with blas.one_thread():
            first_in.set()
            assert second_in.wait(60)
        first_out.set()

    def second() -> None:
        assert first_in.wait(60)
        with blas.one_thread():
            second_in.set()
            assert first_out.wait(60)
            assert numbers() == {1}, "the second is still inside"

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(60)
    assert numbers() == {3}


def test_many_threads_in_any_order() -> None:
    def enter_and_leave(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(200):
            with blas.one_thread():
                if draw.random() < 0.5:
                    with blas.one_thread():
                        pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter_and_leave, range(8)))
    assert numbers() == {3}


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    blas._libraries.cache_clear()
    with pytest.raises(MissingExtra, match=r"treewright\[premises\]"), blas.one_thread():
        pass
    monkeypatch.undo()
    with blas.one_thread():
        assert numbers() == {1}


def test_without_a_blas_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    none = threadpoolctl.ThreadpoolController().select(user_api="none such")
    monkeypatch.setattr(blas, "_libraries", lambda: none)
    with blas.one_thread():
        assert numbers() == {3}
