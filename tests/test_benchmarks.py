"""The modules of benchmarks/ can be imported: no target of `make test` runs them."""

from __future__ import annotations

import importlib
import pkgutil

import benchmarks
import pytest

MODULES = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name: str) -> None:
    importlib.import_module(f"benchmarks.{name}")


def test_there_are_modules() -> None:
    assert "__main__" in MODULES
