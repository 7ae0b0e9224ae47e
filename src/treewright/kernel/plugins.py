"""Plug-ins by name: those in the box, and those that other packages register as entry points.

Executors, policies and strategies are plug-ins. One kind of plug-in is one `Plugins` object, which
every command, report and check asks for names and objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from treewright.kernel.errors import UsageError

P = TypeVar("P")


class Plugins(Generic[P]):
    """All plug-ins of one kind. They are loaded when they are used.

    Args:
        kind: The word for a plug-in in messages, such as `executor`.
        group: The entry-point group under which other packages register theirs.
        built_in: The plug-ins in the box: `module:attribute` by name.
        problem_with: Returns why an object loaded under a name is no plug-in of this kind, or an
            empty text.
        reserved: Names that no plug-in may have besides those in the box.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Mapping[str, str],
        problem_with: Callable[[str, object], str],
        reserved: Collection[str] = (),
    ) -> None:
        self.kind = kind
        self.group = group
        self._problem_with = problem_with
        self._built_in = {name: EntryPoint(name, value, group) for name, value in built_in.items()}
        self._reserved = reserved
        self._entries: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, P] = {}
        self._unusable: dict[str, str] = {}

    def names(self) -> list[str]:
        """Return the names of all plug-ins, those in the box first.

        Raises:
            UsageError: Another package registers a name that is in use.
        """
        if self._entries is None:
            entries = dict(self._built_in)
            for entry in entry_points(group=self.group):
                if entry.name in entries or entry.name in self._reserved:
                    raise UsageError(
                        f"the plug-in {entry.value} calls its {self.kind} {entry.name!r}, which is "
                        "the name of another one; rename it, or uninstall its package"
                    )
                entries[entry.name] = entry
            self._entries = entries
        return list(self._entries)

    def get(self, name: str) -> P:
        """Return the plug-in of that name.

        Raises:
            UsageError: There is no plug-in of that name, or it cannot be used.
        """
        if name not in self.names():
            names = ", ".join(self.names())
            raise UsageError(f"there is no {self.kind} {name!r}; there are {names}")
        self._load(name)
        if name in self._unusable:
            raise UsageError(f"the {self.kind} {name!r} cannot be used: {self._unusable[name]}")
        return self._loaded[name]

    def usable(self) -> dict[str, P]:
        """Return every plug-in that can be loaded, by name."""
        for name in self.names():
            self._load(name)
        return {name: self._loaded[name] for name in self.names() if name in self._loaded}

    def unusable(self) -> dict[str, str]:
        """Return why each of the other plug-ins cannot be loaded, by name."""
        self.usable()
        return dict(self._unusable)

    def refresh(self) -> None:
        """Read the entry points again at the next use, for packages installed meanwhile."""
        self._entries = None
        self._loaded.clear()
        self._unusable.clear()

    def _load(self, name: str) -> None:
        if name in self._loaded or name in self._unusable:
            return
        assert self._entries is not None
        entry = self._entries[name]
        loaded: Any = None
        try:
            loaded = entry.load()
            problem = self._problem_with(name, loaded)
        except Exception as error:  # a module of another package may raise any exception
            problem = f"{type(error).__name__}: {error}"
        if problem:
            self._unusable[name] = f"{entry.value}: {problem}"
        else:
            self._loaded[name] = loaded
