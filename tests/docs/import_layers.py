"""The picture of the packages in ARCHITECTURE.md, drawn from the contracts in pyproject.toml.

`python -m tests.docs.import_layers` writes the picture into the page.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
WIDTH = 50
_BLOCK = re.compile(r"(?<=^```text imports\n).*?(?=^```$)", re.M | re.S)


def layers(contract: dict[str, Any]) -> list[str]:
    """Return the layers of a contract, the highest first, without the prefix of the package.

    Packages with `|` between them do not import each other; those with `:` may.
    """
    texts = [re.sub(r"[()]|treewright\.", "", layer) for layer in contract["layers"]]
    return [re.sub(r"\s*([|:])\s*", r"  \1  ", text) for text in texts]


def picture() -> str:
    """Return the picture: the packages, and the layers within the packages that have them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    found = [contract for contract in contracts if contract["type"] == "layers"]
    (whole,) = [contract for contract in found if "containers" not in contract]
    lines = [layer.center(WIDTH).rstrip() for layer in layers(whole)]
    for contract in found:
        for container in contract.get("containers", ()):
            start = f"within {container.removeprefix('treewright.')}: "
            text = start + " → ".join(layer.replace(" ", "") for layer in layers(contract))
            lines += ["", *textwrap.wrap(text, 2 * WIDTH, subsequent_indent="    ")]
    return "\n".join(lines) + "\n"


def shown() -> str:
    """Return the picture that the page has."""
    (found,) = _BLOCK.findall(PAGE.read_text("utf-8"))
    return found


def main() -> None:
    """Write the picture into the page."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(_BLOCK.sub(lambda _: picture(), page), "utf-8")


if __name__ == "__main__":
    main()
