"""From a solved graph to a Lean script, structured and then shortened.

A goal that stands alone is closed under a bullet. Goals that share metavariables cannot be
bulleted: the single goals are closed first, and the script goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from treewright.proving.records import GoalView
from treewright.search.andor.graph import Edge, Node, Status

MOST_CHECKS = 40
LONGEST_MINIMISED = 300
"""The most lines of a script that is shortened or formatted."""
_BULLET = "· "

Place = tuple[int, ...]
"""The way to a step: the index of the part to follow at each step above it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A tactic, and the steps that close each group of goals it leaves.

    `parts` has a pair for each group: the positions of its goals, and its step. At most one group
    has several goals: those that share metavariables. `goals` are those that the tactic works on.
    """

    tactic: str
    parts: tuple[tuple[tuple[int, ...], Step], ...] = ()
    goals: tuple[GoalView, ...] = ()


Choice = Callable[[Node], Edge | None]
Goals = Callable[[Node], tuple[GoalView, ...]]


def choose_first_found(node: Node) -> Edge | None:
    """Choose the edge that solved the node first."""
    return node.solution


def extract(
    root: Node,
    choice: Choice = choose_first_found,
    goals: Goals = lambda node: (),
    open_nodes: list[Node] | None = None,
) -> Step:
    """Return the script of a node.

    Args:
        root: The node.
        choice: Returns the edge to take at a node, or None.
        goals: Returns the goals of a node, to be kept in its step.
        open_nodes: Receives the nodes without an edge; the script has a `sorry` for each.

    Raises:
        ValueError: A node has no edge, and `open_nodes` is None.
    """
    done: dict[int, Step] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        edge = choice(node)
        if edge is None:
            if open_nodes is None:
                raise ValueError(f"node {node.id} is not solved")
            open_nodes.append(node)
            done[node.id] = Step("sorry", (), goals(node))
            waiting.pop()
            continue
        missing = [child for child in edge.children if child.id not in done]
        if missing:
            waiting += missing[::-1]
            continue
        layout = edge.layout or tuple((i,) for i in range(len(edge.children)))
        parts = zip(layout, (done[child.id] for child in edge.children), strict=True)
        done[node.id] = Step(edge.action, tuple(parts), goals(node))
        waiting.pop()
    return done[root.id]


def choose_shortest(root: Node) -> Choice:
    """Return a choice of edges that gives the fewest steps; the first edge among equal ones."""
    reached, waiting = {root.id: root}, [root]
    while waiting:
        for edge in waiting.pop().edges:
            if edge.status is Status.SOLVED:
                new = [child for child in edge.children if child.id not in reached]
                reached |= {child.id: child for child in new}
                waiting += new
    best: dict[int, tuple[int, Edge]] = {}
    for node in sorted(reached.values(), key=lambda node: -node.rank):
        ways = [edge for edge in node.edges if edge.status is Status.SOLVED]
        sizes = [(1 + sum(best[child.id][0] for child in way.children), way) for way in ways]
        if sizes:
            best[node.id] = min(sizes, key=lambda sized: sized[0])

    def choose(node: Node) -> Edge | None:
        return best[node.id][1] if node.id in best else None

    return choose


def render(step: Step) -> str:
    """Return the text of a script."""
    return "\n".join(_lines(step))


def _lines(step: Step) -> Iterator[str]:
    while True:
        yield from step.tactic.splitlines()
        if not step.parts:
            return
        if len(step.parts) > 1:
            yield from _bullets(step)
        linked = [part for layout, part in step.parts if len(layout) > 1 or len(step.parts) == 1]
        if not linked:
            return
        step = linked[0]


def _bullets(step: Step) -> Iterator[str]:
    """Close the goals that stand alone, each brought to the front; leave the others."""
    waiting = sorted(position for layout, _ in step.parts for position in layout)
    for layout, part in step.parts:
        if len(layout) != 1:
            continue
        yield from rotate_to_front(waiting, layout[0])
        waiting.pop(0)
        for index, line in enumerate(_lines(part)):
            yield f"{_BULLET if index == 0 else '  '}{line}"
    if waiting:
        yield from rotate_to_front(waiting, min(waiting))


def rotate_to_front(waiting: list[int], position: int) -> Iterator[str]:
    """Bring a goal to the front of the waiting ones, if it is not there already."""
    places = waiting.index(position)
    if places:
        yield f"rotate_left {places}"
        waiting[:] = waiting[places:] + waiting[:places]


def find_superfluous(
    step: Step, holds: Callable[[str], bool], most_checks: int = MOST_CHECKS
) -> tuple[Place, ...]:
    """Return the places of steps without which the script still `holds`, from its end to its start.

    Each place refers to the script without the steps before it in the tuple. Only a step that
    leaves one group of goals can be left out. There are at most `most_checks` tries, and none for a
    very long script.
    """
    if render(step).count("\n") > LONGEST_MINIMISED:
        return ()
    tries = 0
    found: list[Place] = []
    for place in reversed(list(step_places(step))):
        target = step_at(step, place)
        if len(target.parts) != 1:
            continue
        if tries >= most_checks:
            break
        tries += 1
        shorter = remove_steps(step, [place])
        if holds(render(shorter)):
            step = shorter
            found.append(place)
    return tuple(found)


def remove_steps(step: Step, places: Iterable[Place]) -> Step:
    """Return the script without the steps at some places. Raises ValueError if that cannot be."""
    for place in places:
        try:
            target = step_at(step, place)
        except IndexError:
            raise ValueError(f"there is no step at {place}") from None
        if len(target.parts) != 1:
            raise ValueError(f"the step at {place} cannot be left out")
        step = replace_step(step, place, target.parts[0][1])
    return step


def step_places(step: Step, above: Place = ()) -> Iterator[Place]:
    """Yield the places of all steps, each before the places below it."""
    yield above
    for index, (_, part) in enumerate(step.parts):
        yield from step_places(part, (*above, index))


def step_at(step: Step, place: Place) -> Step:
    """Return the step at a place. Raises IndexError."""
    for index in place:
        step = step.parts[index][1]
    return step


def replace_step(step: Step, place: Place, new: Step) -> Step:
    """Return the script with the step at a place replaced."""
    if not place:
        return new
    index = place[0]
    layout, part = step.parts[index]
    changed = (layout, replace_step(part, place[1:], new))
    return replace(step, parts=(*step.parts[:index], changed, *step.parts[index + 1 :]))
