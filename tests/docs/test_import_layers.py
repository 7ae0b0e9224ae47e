"""ARCHITECTURE.md shows the import contracts as they are."""

from __future__ import annotations

import re
from pathlib import Path

import treewright
from tests.docs.import_layers import picture, shown


def test_the_picture_is_drawn_from_the_contracts() -> None:
    assert shown() == picture(), "draw it again: python -m tests.docs.import_layers"


def test_the_picture_has_every_package() -> None:
    (source,) = treewright.__path__
    packages = {path.parent.name for path in Path(source).glob("*/__init__.py")}
    stack = picture().split("\n\n")[0]
    assert set(re.findall(r"\w+", stack)) == packages
