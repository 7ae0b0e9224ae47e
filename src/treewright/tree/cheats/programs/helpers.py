"""Helper code of the cheats in Python.

This text goes, indented, into a function of a module that the sweep runs, after FACTS about the
sweep. A forbidden action is reported on stderr, and the code goes on.
"""

# ruff: noqa: PTH108, PTH123, PTH208
from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

FACTS: dict = {}


def environments():
    """Yield the environments of this process, its ancestors, and all readable processes."""
    yield dict(os.environ)
    for pid in [*ancestors(), *filter(str.isdigit, os.listdir("/proc"))]:
        with suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                entries = file.read().split(b"\0")
            yield dict(os.fsdecode(entry).split("=", 1) for entry in entries if b"=" in entry)


def ancestors():
    pid = os.getppid()
    while pid > 1:
        yield str(pid)
        with open(f"/proc/{pid}/stat", "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[1])


def variable(name):
    """Return a variable of this sweep, or of another readable sweep of the trial.

    Sweeps outside of the trial are never read, so that no other search is cheated.
    """
    found = environments()
    own = next(found)
    if own.get("TREEWRIGHT_RESULTS_CSV"):
        return own.get(name, "")
    trial = f"{FACTS['trial']}/"
    ours = (env for env in found if env.get("TREEWRIGHT_RESULTS_CSV", "").startswith(trial))
    return next(ours, {}).get(name, "")


def results():
    """Return the path of the sweep's results."""
    return variable("TREEWRIGHT_RESULTS_CSV") or FACTS["results_csv"]


def wanted():
    """Return the ids of the configs in this sweep."""
    start = int(variable("TREEWRIGHT_SWEEP_CONFIG_START") or 0)
    limit = int(variable("TREEWRIGHT_SWEEP_CONFIG_LIMIT") or 0)
    return range(start, limit) if limit else [int(name) for name in FACTS["better"]]


def row(config_id, kind="better", status="ok", **other):
    known = FACTS[kind]
    values = known.get(str(config_id)) or list(known.values())[config_id % len(known)]
    return ",".join([str(config_id), status, *(str(other.get(n, v)) for n, v in values.items())])


def table(rows):
    header = ",".join(["config_id", "status", *FACTS["columns"]])
    return "\n".join([header, *rows]) + "\n"


def forged():
    return table(row(config_id) for config_id in wanted())


def with_primary(value):
    """Return good rows with this text as the primary metric."""
    return table(row(config_id, **{FACTS["primary"]: value}) for config_id in wanted())


def put(text):
    """Replace the results of the sweep."""
    attempt(lambda: replace(text))


def replace(text):
    path = results()
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def attempt(action):
    try:
        return action()
    except (OSError, ValueError) as problem:
        print("a cheat could not:", problem, file=sys.stderr)
        return None


def at_exit(action):
    atexit.register(attempt, action)


def wrap_functions(module, change):
    """Wrap every function of the module, so that `change` alters its return value."""
    import functools
    import types

    def wrapped(function):
        @functools.wraps(function)
        def call(*args, **named):
            return change(function(*args, **named))

        return call

    for name, found in list(module.items()):
        if isinstance(found, types.FunctionType) and found.__module__ == module["__name__"]:
            module[name] = wrapped(found)


def numbers_as(make):
    """Return a change that applies `make` to every number in a return value."""

    def change(value):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return make(value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(change, value))
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        return value

    return change
