"""Public names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, names: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """Return a module-level `__getattr__` that imports the public names of a package.

    Args:
        package: The `__name__` of the package.
        names: The module and the attribute of every public name.

    Returns:
        The function. It raises AttributeError for every other name.

    Example:
        >>> __getattr__ = lazy_exports("shapes", {"root": ("math", "sqrt")})
        >>> __getattr__("root")(9.0)
        3.0
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = names[name]
        return getattr(import_module(module), attribute)

    return get
