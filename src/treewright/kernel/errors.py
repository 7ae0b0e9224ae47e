"""Errors for people: one line with the problem, its place, and the next step."""

from __future__ import annotations

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_LOCKED = 3
EXIT_FINDINGS = 4
EXIT_INTERRUPTED = 130


class TreewrightError(Exception):
    """Base of every error that is shown as one line, without a traceback."""

    exit_code = EXIT_FAILURE


class UsageError(TreewrightError):
    """The call, the configuration or the state of the repository is wrong."""

    exit_code = EXIT_USAGE


class LockActive(TreewrightError):
    """Another process owns the run."""

    exit_code = EXIT_LOCKED


class LeaseLost(TreewrightError):
    """This process owned the run and has been replaced; it must not write any more."""

    exit_code = EXIT_LOCKED


class StorageError(TreewrightError):
    """The run directory cannot be read or written (full disk, permissions, damaged files)."""


class MissingExtra(UsageError):
    """An optional part is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency: pip install 'treewright[{extra}]'"
        )


def require_several(**given: object) -> None:
    """Raise UsageError for a text where several are expected: it would be read as its letters."""
    for name, value in given.items():
        if isinstance(value, str):
            raise UsageError(f"{name} takes several texts, not one: write [...] around it")
