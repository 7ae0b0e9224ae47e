"""The files of the pages, held in memory. A request can only name one of these files.

The JavaScript modules of a page become one script, so that a page needs one request and an exported
file needs no server. There is no build tool: our modules only import by name from each other and
only export declarations, so a few regular expressions do. Any other import is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


_SHELL = "page.html"
_TITLES = {
    "home": "Treewright",
    "tree": "Tree run · Treewright",
    "proof": "Proof run · Treewright",
    "experiment": "Experiment · Treewright",
    "bank": "Orchestrator · Treewright",
    "compare": "Comparison · Treewright",
}
"""The pages. Each is the shell with a title and the script of the same name."""


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    type: str
    etag: str


@cache
def all_assets() -> dict[str, Asset]:
    """Return every asset by its file name."""
    found = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in _TYPES}
    modules = {name: body.decode() for name, body in found.items() if name.endswith(".js")}
    files = {name: body for name, body in found.items() if name not in modules}
    shell = files.pop(_SHELL).decode()
    for page, title in _TITLES.items():
        text = shell.replace("{title}", title).replace("{script}", page)
        files[f"{page}.html"] = text.encode()
        files[f"{page}.js"] = bundle_script(f"{page}.js", modules).encode()
    return {name: _asset(name, body) for name, body in sorted(files.items())}


def _asset(name: str, body: bytes) -> Asset:
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Asset(body, _TYPES[Path(name).suffix], etag)


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z-]+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function|class|const)", re.M)
_EXPORTED = re.compile(r"^export (?:async function|function|class|const) (\w+)", re.M)


def bundle_script(entry: str, modules: Mapping[str, str]) -> str:
    """Return one script with `entry` and all modules that it imports, each in a separate scope."""
    parts: dict[str, str] = {}
    _add(entry, modules, parts, ())
    return '"use strict";\n' + "\n".join(parts.values())


def _add(
    name: str, modules: Mapping[str, str], parts: dict[str, str], importers: tuple[str, ...]
) -> None:
    if name in parts:
        return
    if name in importers:
        raise ValueError(f"{name} imports itself through {importers[-1]}")
    source = modules[name]
    for _, module in _IMPORT.findall(source):
        _add(module, modules, parts, (*importers, name))
    exported = ", ".join(_EXPORTED.findall(source))
    body = _IMPORT.sub(lambda m: f"const {{{m[1]}}} = {_variable(m[2])};\n", source)
    body = _EXPORT.sub("", body)
    if re.search(r"^(import|export)\b", body, re.M):
        raise ValueError(f"{name} imports or exports in a way that cannot be bundled")
    parts[name] = f"const {_variable(name)} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js").replace("-", "_")
