"""A page's modules as one script: asked for at once, and whole in a file that has no server.

No build tool: our modules only import by name from each other, and only export
declarations, which makes this a matter of lines. Anything else is an error here, and the
tests open the result in a browser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z-]+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function|class|const)", re.M)
_EXPORTED = re.compile(r"^export (?:async function|function|class|const) (\w+)", re.M)


def script(entry: str, modules: Mapping[str, str]) -> str:
    """One script with everything that `entry` needs, each module in a scope of its own."""
    parts: dict[str, str] = {}
    _add(entry, modules, parts, ())
    return '"use strict";\n' + "\n".join(parts.values())


def _add(
    name: str, modules: Mapping[str, str], parts: dict[str, str], way: tuple[str, ...]
) -> None:
    if name in parts:
        return
    if name in way:
        raise ValueError(f"{name} needs itself, through {way[-1]}: neither can be the first")
    source = modules[name]
    for _, module in _IMPORT.findall(source):
        _add(module, modules, parts, (*way, name))
    exported = ", ".join(_EXPORTED.findall(source))
    body = _IMPORT.sub(lambda m: f"const {{{m[1]}}} = {_variable(m[2])};\n", source)
    body = _EXPORT.sub("", body)
    if re.search(r"^(import|export)\b", body, re.M):
        raise ValueError(f"{name} imports or exports in a way that cannot be bundled")
    parts[name] = f"const {_variable(name)} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js").replace("-", "_")
