"""A run that goes on under other settings: deeper, wider, longer, with more patience.

What was decided stays decided. The change is an event: who made it, after what, and what held
before, so that everything before it can still be checked.
"""

from __future__ import annotations

from dataclasses import fields

import msgspec

from treewright.kernel.errors import UsageError
from treewright.tree.deciding import caps, rounds, steady
from treewright.tree.records import events as ev
from treewright.tree.records.model import UNSET, Manifest, SteadySearch, Unset
from treewright.tree.records.steering import (
    Command,
    Settings,
    Steering,
    applied,
    banned_nodes,
    new_command,
)
from treewright.tree.records.store import RunStore
from treewright.tree.run.creation import Shape


def extend(store: RunStore, shape: Shape) -> Shape:
    """Records what the flags change, if anything; returns the flags that are left to check."""
    manifest = store.manifest
    given = {name: getattr(shape, name) for name in rounds.CHANGEABLE}
    if shape.caps is not None:
        given["caps"] = caps.merged(manifest.caps, shape.caps)
    changes = {
        name: value
        for name, value in given.items()
        if value is not None and value != rounds.setting(manifest, name)
    }
    if changes or manifest.stop_reason in ("no_new_ideas", "stopped"):
        check(manifest, changes)
        store.record(changed(manifest, new_command("extend", settings=changes)))
        store.snapshot()
    rest = {field.name: getattr(shape, field.name) for field in fields(Shape)}
    return Shape(**(rest | dict.fromkeys(rounds.CHANGEABLE)))


def check(manifest: Manifest, changes: Settings) -> None:
    """Refuses what would contradict what was decided, or means nothing."""
    for name, value in changes.items():
        flag = "--" + name.replace("_", "-")
        if manifest.steady is not None and name in rounds.OF_BEAM_SEARCH:
            raise UsageError(f"{flag} means nothing with --policy {manifest.steady.policy}")
        least = _least(manifest).get(name)
        if least is not None and value < least[0]:
            raise UsageError(f"{flag} {value} is too little: {least[1]}")


def _least(manifest: Manifest) -> dict[str, tuple[int, str]]:
    evaluations, deepest = manifest.spent.evals, len(manifest.depths)
    return {
        "max_total_idea_evals": (evaluations, f"the run has {evaluations} evaluations"),
        "max_depth": (deepest, f"the run has come to depth {deepest}"),
    }


def here(manifest: Manifest, command: Command) -> Steering:
    """The record of a command at the place where the run is now."""
    search = manifest.steady
    return Steering(
        command=command,
        depth=manifest.current_depth,
        evaluations=len(manifest.evaluations),
        settled=search.settled if search is not None else 0,
        exhausted=len(search.exhausted) if search is not None else 0,
        in_round=in_round(manifest),
    )


def in_round(manifest: Manifest) -> bool:
    """Whether a depth has begun and is to be decided as it began."""
    begun = manifest.steady is None and len(manifest.depths) > manifest.current_depth
    return begun and manifest.stop_reason != "no_new_ideas"


def changed(manifest: Manifest, command: Command) -> ev.Steered:
    """The event of a change of settings: what it does to the frontier and the stop reason."""
    before = {name: rounds.setting(manifest, name) for name in command.settings}
    return going_on(manifest, msgspec.structs.replace(here(manifest, command), before=before))


def going_on(manifest: Manifest, record: Steering) -> ev.Steered:
    """How a run goes on after a change: where it stopped for want of ideas, they are looked for
    again."""
    after = rounds.settings(manifest) | record.command.settings
    if manifest.steady is not None:
        return _without_barrier(manifest, manifest.steady, record, after["max_depth"])
    return _by_depth(manifest, record, rounds.Rules(**after))


def _by_depth(manifest: Manifest, record: Steering, rules: rounds.Rules) -> ev.Steered:
    stays_stopped = manifest.stop_reason == "stopped" and not _lets_go(record)
    if record.in_round:
        ends = manifest.stop_reason in ("stopped", "cap_reached") and not stays_stopped
        return ev.Steered(record=record, stop_reason=None if ends else UNSET)
    if manifest.stop_reason == "no_new_ideas":
        record = msgspec.structs.replace(record, reopened=sorted(manifest.frontier))
    changes = [*rounds.changes_after(manifest, manifest.current_depth), record]
    done = rounds.last_round(manifest)
    frontier, reason = rounds.after_changes(manifest, done, rules, changes)
    return ev.Steered(
        record=record, frontier=frontier, stop_reason=UNSET if stays_stopped else reason
    )


def _lets_go(record: Steering) -> bool:
    """Whether a run that was told to stop goes on with this."""
    return record.command.action in ("resume", "extend")


def _without_barrier(
    manifest: Manifest, search: SteadySearch, record: Steering, max_depth: int
) -> ev.Steered:
    """The search finds out for itself whether there is anything to do."""
    over = manifest.stop_reason == "no_new_ideas"
    without_ideas = {found.node_id for found in steady.exhausted_now(manifest, search)}
    closed = banned_nodes(applied(manifest.steering)) | (set() if over else without_ideas)
    grows = steady.growing(manifest, search, max_depth)
    return ev.Steered(
        record=msgspec.structs.replace(record, reopened=sorted(without_ideas) if over else []),
        frontier=[node_id for node_id in grows if node_id not in closed],
        stop_reason=after_change(manifest, record),
    )


def after_change(manifest: Manifest, record: Steering) -> Unset | None:
    """Without a barrier: the search goes on, unless it was told to stop and not to go on."""
    stays = manifest.stop_reason == "stopped" and not _lets_go(record)
    return UNSET if stays else None
