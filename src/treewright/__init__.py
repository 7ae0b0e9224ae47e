"""Treewright grows search trees over work that is slow, costly and easy to lose."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from treewright.search.opening import open_search
    from treewright.search.running import EvaluationFailed, Result
    from treewright.search.study import Node, Search, Task
    from treewright.search.validation import validate as validate_search

_PUBLIC = {
    "EvaluationFailed": ("treewright.search.running", "EvaluationFailed"),
    "Result": ("treewright.search.running", "Result"),
    "Node": ("treewright.search.tree", "Node"),
    "Search": ("treewright.search.study", "Search"),
    "Task": ("treewright.search.study", "Task"),
    "open_search": ("treewright.search.opening", "open_search"),
    "validate_search": ("treewright.search.validation", "validate"),
}

__all__ = [
    "EvaluationFailed",
    "Node",
    "Result",
    "Search",
    "Task",
    "__version__",
    "open_search",
    "validate_search",
]


def __getattr__(name: str) -> Any:
    """Imported when first used: the command line starts without them."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)
