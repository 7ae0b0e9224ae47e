"""Apply commands of the user and changed flags to a run.

Each command becomes one event, with its effect or the reason why it was refused. Earlier decisions
stay as they are: the event has the position of the change and the former values, so that everything
before it can still be validated. Pause, resume and stop apply at any time. In beam search settings
do as well, and changes of the tree wait until the depth is decided. In a search by policy all other
commands wait while ideas are generated, because the choice of their node was made before.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.storage.artifacts import sha256_text
from treewright.tree.deciding import caps, policy_state, rounds
from treewright.tree.ideas import idea_text
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records import events as ev
from treewright.tree.records import layout
from treewright.tree.records import steering as records
from treewright.tree.records.description import best_node
from treewright.tree.records.model import UNSET, IdeaRecord, Manifest, Node, PolicyRecord, Unset
from treewright.tree.records.steering import (
    Command,
    Settings,
    Steering,
    applied,
    banned_nodes,
    new_command,
)
from treewright.tree.records.store import RunStore
from treewright.tree.run.command_files import CommandFile
from treewright.tree.run.creation import Shape
from treewright.tree.run.outcomes import QUARANTINED

TREE_ACTIONS = ("inject", "ban", "boost", "reopen")
"""Commands that change the tree, not the settings."""
CONTROL_ACTIONS = ("pause", "resume", "stop")
"""Commands that apply at any time."""


_AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
_NotNegative = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
_Limit = Annotated[float, msgspec.Meta(ge=0, le=1e300)]


class _Settings(msgspec.Struct):
    """The values that a command may set. Any user of the machine can write a command file,
    so values that the manifest cannot hold are refused before they reach the journal."""

    ideas_per_node: _AtLeastOne | Unset = UNSET
    max_depth: _AtLeastOne | Unset = UNSET
    max_total_idea_evals: _AtLeastOne | Unset = UNSET
    beam_width: _AtLeastOne | Unset = UNSET
    stop_on_empty_frontier: bool | Unset = UNSET
    patience: _AtLeastOne | Unset = UNSET
    elites: _NotNegative | Unset = UNSET
    caps: dict[caps.Kind, dict[str, _Limit]] | Unset = UNSET


class Refused(Exception):
    """A command cannot be applied; the message says why."""


def apply(manifest: Manifest, file: CommandFile, expander: Expander) -> ev.Steered:
    """Return the event of a command, after writing the file of an idea that it adds."""
    command = file.command
    try:
        match command.action:
            case "pause" | "resume" | "stop":
                return _control(manifest, command)
            case "extend" | "budget":
                return _settings(manifest, command)
            case "inject":
                return _inject(manifest, file, expander)
            case "ban":
                return _ban(manifest, command, expander.run_dir)
            case "reopen" if command.eval_id is not None:
                return _bring_back_candidate(manifest, command, expander)
            case "boost" | "reopen":
                return _bring_back(manifest, command)
    except (Refused, UsageError) as why:
        record = _record_here(manifest, command)
        return ev.Steered(record=msgspec.structs.replace(record, refused=str(why)))


def _control(manifest: Manifest, command: Command) -> ev.Steered:
    record = _record_here(manifest, command)
    paused = records.is_paused(applied(manifest.steering))
    if command.action == "resume":
        if manifest.stop_reason == "stopped":
            return _go_on(manifest, record)
        if not paused:
            raise Refused("the run is neither paused nor stopped")
        return ev.Steered(record=record)
    if manifest.stop_reason is not None:
        raise Refused(f"the run is over: {manifest.stop_reason}")
    if command.action == "stop":
        return ev.Steered(record=record, stop_reason="stopped")
    if paused:
        raise Refused("the run is paused already")
    return ev.Steered(record=record)


def _settings(manifest: Manifest, command: Command) -> ev.Steered:
    unknown = [name for name in command.settings if name not in rounds.CHANGEABLE]
    if unknown or not command.settings:
        raise Refused(f"{unknown[0]} cannot be changed" if unknown else "nothing was to change")
    try:
        msgspec.convert(command.settings, type=_Settings)
    except msgspec.ValidationError as error:
        raise Refused(f"the settings are not what they must be: {error}") from None
    if "caps" in command.settings:  # those that were not named stay
        both = caps.merged(manifest.caps, command.settings["caps"])
        settings = command.settings | {"caps": both}
        command = msgspec.structs.replace(command, settings=settings)
    _check_settings(manifest, command.settings)
    return _change_settings(manifest, command)


def _inject(manifest: Manifest, file: CommandFile, expander: Expander) -> ev.Steered:
    command, text = file.command, file.text
    node = _node(manifest, command.node_id or best_node(manifest).node_id)
    _check_may_grow(manifest, node)
    if not text.strip():
        raise Refused("the idea is empty")
    before = expander.tried_before(manifest, node, idea_text.key(text))
    if before is not None:
        raise Refused(f"the idea was chosen before: {before}")
    return _add_idea(manifest, command, expander.run_dir, node, text)


def _bring_back_candidate(manifest: Manifest, command: Command, expander: Expander) -> ev.Steered:
    """Have the idea of a quarantined evaluation tried once more, on the same node."""
    name = command.eval_id or ""
    evaluation = manifest.evaluations.get(name)
    if evaluation is None:
        raise Refused(f"there is no evaluation {name}")
    if evaluation.error is None or evaluation.error.code != QUARANTINED:
        raise Refused(f"{name} is not quarantined")
    for path, other in records.brought_back(applied(manifest.steering)).items():
        if other == name:
            raise Refused(f"{name} was brought back before: {path}")
    node = _node(manifest, evaluation.parent_node_id)
    _check_may_grow(manifest, node)
    text = _idea(expander.run_dir, evaluation.idea_path)
    if sha256_text(text) != evaluation.idea_sha256:
        raise Refused(f"{evaluation.idea_path} is not the idea that was recorded for {name}")
    return _add_idea(manifest, command, expander.run_dir, node, text)


def _add_idea(
    manifest: Manifest, command: Command, run_dir: Path, node: Node, text: str
) -> ev.Steered:
    """Write the file of an idea that the user wants tried on a node; return its event."""
    policy_record = manifest.policy_record
    path = f"{node.node_ideas_dir}/{layout.idea_file(len(node.ideas))}"
    idea = IdeaRecord(
        path=path,
        sha256=sha256_text(text),
        key=idea_text.key(text),
        origin=f"steer:{command.by}",
        depth=node.depth + 1 if policy_record is not None else manifest.current_depth + 1,
        expansion=UNSET if policy_record is None else policy_record.expansions + 1,
    )
    atomic.make_directory(run_dir / node.node_ideas_dir)
    atomic.write_bytes(run_dir / path, text.encode("utf-8"))
    record = _record_here(manifest, command)
    record = msgspec.structs.replace(record, node_id=node.node_id, idea_path=path)
    return _changing_tree(manifest, record, idea)


def _bring_back(manifest: Manifest, command: Command) -> ev.Steered:
    node = _node(manifest, command.node_id or "")
    _check_may_grow(manifest, node)
    there = node.node_id in manifest.frontier
    if manifest.policy_record is not None:
        if command.action == "reopen" and there:
            raise Refused(f"{node.node_id} is open: further ideas may be tried on it")
    elif there and manifest.stop_reason != "no_new_ideas":
        raise Refused(f"{node.node_id} is expanded next in any case")
    record = _record_here(manifest, command)
    return _changing_tree(manifest, msgspec.structs.replace(record, node_id=node.node_id))


def _ban(manifest: Manifest, command: Command, run_dir: Path) -> ev.Steered:
    record = _record_here(manifest, command)
    if command.pattern is None:
        node = _node(manifest, command.node_id or "")
        if manifest.policy_record is None and node.expanded_for_depth == manifest.current_depth + 1:
            raise Refused(f"{node.node_id} has an idea for the next depth that was injected")
        return _changing_tree(manifest, msgspec.structs.replace(record, node_id=node.node_id))
    try:
        records.check_pattern(command.pattern)
    except ValueError as error:
        raise Refused(str(error)) from None
    banned = []
    if manifest.policy_record is not None:
        tried = {evaluation.idea_path for evaluation in manifest.evaluations.values()}
        chosen = (idea.path for node in manifest.nodes.values() for idea in node.ideas)
        banned = [
            path
            for path in chosen
            if path not in tried and records.matches(command.pattern, _idea(run_dir, path))
        ]
    return ev.Steered(record=msgspec.structs.replace(record, banned=banned))


def _idea(run_dir: Path, path: str) -> str:
    """Return the text of an idea file. Candidates without isolation can have changed it."""
    try:
        return untrusted.read(run_dir / path, untrusted.LARGEST_TEXT, run_dir).decode("utf-8")
    except (untrusted.NotPlain, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}") from None


def _node(manifest: Manifest, node_id: str) -> Node:
    if node_id not in manifest.nodes:
        raise Refused(f"there is no node {node_id}")
    if node_id in records.banned_nodes(applied(manifest.steering)):
        raise Refused(f"{node_id} is banned")
    return manifest.nodes[node_id]


def _check_may_grow(manifest: Manifest, node: Node) -> None:
    policy_record, limit = manifest.policy_record, manifest.max_total_idea_evals
    if limit is not None and manifest.spent.evals >= limit:
        raise Refused("the budget of evaluations is used up; give the run a larger one first")
    if policy_record is None:
        if manifest.current_depth >= manifest.max_depth:
            raise Refused("the run has come to its last depth; give it a larger one first")
        return
    if node.depth >= manifest.max_depth:
        raise Refused(f"{node.node_id} is at the last depth; give the run a larger one first")
    if (
        policy_record.branching is not None
        and policy_state.counter(node.tried) >= policy_record.branching
    ):
        raise Refused(f"{node.node_id} has had its {policy_record.branching} ideas")


def _changing_tree(
    manifest: Manifest, record: Steering, idea: IdeaRecord | Unset = UNSET
) -> ev.Steered:
    if manifest.policy_record is None:
        event = _go_on(manifest, record)
        event.idea = idea
        return event
    return _change_policy_tree(manifest, manifest.policy_record, record, idea)


def _change_policy_tree(
    manifest: Manifest, policy_record: PolicyRecord, record: Steering, idea: IdeaRecord | Unset
) -> ev.Steered:
    """Open a node that was found without ideas: it is asked again, or has an idea now."""
    exhausted = {found.node_id for found in policy_state.exhausted_nodes(manifest, policy_record)}
    node_id = record.node_id or ""
    frontier = list(manifest.frontier)
    if record.command.action == "ban":
        frontier = [each for each in frontier if each != node_id]
    elif node_id in exhausted:
        record = msgspec.structs.replace(record, reopened=[node_id])
        frontier.append(node_id)
    reason = _stop_reason_after(manifest, record)
    return ev.Steered(record=record, frontier=frontier, stop_reason=reason, idea=idea)


def extend(store: RunStore, shape: Shape) -> Shape:
    """Record the settings that the flags change; return the flags that are left to check."""
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
        _check_settings(manifest, changes)
        store.record(_change_settings(manifest, new_command("extend", settings=changes)))
        store.snapshot()
    rest = {field.name: getattr(shape, field.name) for field in fields(Shape)}
    return Shape(**(rest | dict.fromkeys(rounds.CHANGEABLE)))


def _check_settings(manifest: Manifest, changes: Settings) -> None:
    """Raise UsageError if a setting contradicts earlier decisions or has no effect."""
    for name, value in changes.items():
        flag = "--" + name.replace("_", "-")
        if manifest.policy_record is not None and name in rounds.OF_BEAM_SEARCH:
            raise UsageError(f"{flag} means nothing with --policy {manifest.policy_record.policy}")
        least = _smallest_values(manifest).get(name)
        if least is not None and value < least[0]:
            raise UsageError(f"{flag} {value} is too little: {least[1]}")


def _smallest_values(manifest: Manifest) -> dict[str, tuple[int, str]]:
    evaluations, deepest = manifest.spent.evals, len(manifest.depths)
    return {
        "max_total_idea_evals": (evaluations, f"the run has {evaluations} evaluations"),
        "max_depth": (deepest, f"the run has come to depth {deepest}"),
    }


def _record_here(manifest: Manifest, command: Command) -> Steering:
    """Return the record of a command at the present position of the run."""
    policy_record = manifest.policy_record
    return Steering(
        command=command,
        depth=manifest.current_depth,
        evaluations=len(manifest.evaluations),
        settled=policy_record.settled if policy_record is not None else 0,
        exhausted=len(policy_record.exhausted) if policy_record is not None else 0,
        in_round=in_round(manifest),
    )


def in_round(manifest: Manifest) -> bool:
    """Return whether a depth of beam search has begun; it keeps the frontier it began with."""
    begun = manifest.policy_record is None and len(manifest.depths) > manifest.current_depth
    return begun and manifest.stop_reason != "no_new_ideas"


def _change_settings(manifest: Manifest, command: Command) -> ev.Steered:
    """Return the event of changed settings, with the frontier and the stop reason after it."""
    before = {name: rounds.setting(manifest, name) for name in command.settings}
    return _go_on(manifest, msgspec.structs.replace(_record_here(manifest, command), before=before))


def _go_on(manifest: Manifest, record: Steering) -> ev.Steered:
    """Return the event of a change after which the run may go on.

    A run that stopped because it had no ideas asks for ideas again.
    """
    after = rounds.settings(manifest) | record.command.settings
    if manifest.policy_record is not None:
        return _go_on_by_policy(manifest, manifest.policy_record, record, after["max_depth"])
    return _go_on_by_depth(manifest, record, rounds.Rules(**after))


def _go_on_by_depth(manifest: Manifest, record: Steering, rules: rounds.Rules) -> ev.Steered:
    stays_stopped = manifest.stop_reason == "stopped" and not _resumes(record)
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


def _resumes(record: Steering) -> bool:
    """Return whether the command lets a stopped run go on."""
    return record.command.action in ("resume", "extend")


def _go_on_by_policy(
    manifest: Manifest, policy_record: PolicyRecord, record: Steering, max_depth: int
) -> ev.Steered:
    """Return the event in a search by policy, which finds out itself whether it has work."""
    over = manifest.stop_reason == "no_new_ideas"
    without_ideas = {
        found.node_id for found in policy_state.exhausted_nodes(manifest, policy_record)
    }
    closed = banned_nodes(applied(manifest.steering)) | (set() if over else without_ideas)
    grows = policy_state.nodes_with_room(manifest, policy_record, max_depth)
    return ev.Steered(
        record=msgspec.structs.replace(record, reopened=sorted(without_ideas) if over else []),
        frontier=[node_id for node_id in grows if node_id not in closed],
        stop_reason=_stop_reason_after(manifest, record),
    )


def _stop_reason_after(manifest: Manifest, record: Steering) -> Unset | None:
    """Return the stop reason of a search by policy after a change: none, unless it is stopped."""
    stays = manifest.stop_reason == "stopped" and not _resumes(record)
    return UNSET if stays else None
