"""Scripts formatted as a person would write them: named cases, no repetition, indented.

Formatting never decides about a proof. The formatted script is tried in Lean before it is shown,
and the replay check judges it like any script. If Lean does not accept it, the script stays as it
was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from treewright.proving.script.extraction import (
    LONGEST_MINIMISED,
    Step,
    render,
    replace_step,
    rotate_to_front,
    step_at,
    step_places,
)
from treewright.proving.tactics.goal_outline import Fresh, words

_WIDEST = 90
_MOST_CHECKS = 12
_SPLITS = re.compile(r"(?P<head>(?:induction|cases)\b[^|]*?) with (?P<cases>\|.*)", re.DOTALL)
_CASE = re.compile(r"\|\s*(?P<case>[^|⟨]*?)\s*=>\s*\?_\s*")
_BARE = re.compile(r"(?P<how>induction|cases) [^|:;]*")
_RENAMES = re.compile(r"rename_i (?P<names>[^;|\n]+)")
_REWRITES = re.compile(r"rw \[(?P<rules>[^\n]*)\]")
_INTRODUCES = re.compile(r"intro(?P<names>(?: [^\s;|<]+)+)")
_GIVEN = re.compile(
    r"(?P<how>grind|simp|simp_all)(?P<limits>(?: \(\w+ := \d+\))*)(?: \[(?P<lemmas>[\w.'?!, ]+)\])?"
)
_SIMPLE = re.compile(r"[\w?]+(?: [^|;<\n]*)?")


@dataclass(frozen=True, slots=True)
class Style:
    """`indent` is the indentation of a block; `names`, whether cases without names get some."""

    indent: int = 2
    names: bool = True


def format_script(step: Step, closes: Callable[[str], bool], indent: int = 2) -> str:
    """Return the best form of a script that `closes` its goal, else the script as it is."""
    plain = render(step)
    if plain.count("\n") > LONGEST_MINIMISED:
        return plain
    step = _remove_needless_parts(_remove_detours(step, closes), closes)
    seen: set[str] = set()
    for style in (Style(indent), Style(indent, names=False)):
        text = write_styled(step, style)
        if text not in seen and (text == plain or closes(text)):
            return text
        seen.add(text)
    return render(step)


def write_styled(step: Step, style: Style) -> str:
    """Return a script in a style, without trying it."""
    return "\n".join(_lines(step, style))


def _lines(step: Step, style: Style) -> list[str]:
    lines: list[str] = []
    while True:
        step = _join_steps(step)
        if cases := _case_distinction(step, style):
            return [*lines, cases.head, *cases.lines(style)]
        if one := _on_one_line(step, style):
            return [*lines, one]
        lines += step.tactic.splitlines()
        if len(step.parts) > 1:
            lines += _bullets(step, style)
        linked = [p for layout, p in step.parts if len(layout) > 1 or len(step.parts) == 1]
        if not linked:
            return lines
        step = linked[0]


# -- cases ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cases:
    """A case distinction: `induction n with`, and bodies for `| zero =>` and `| succ n ih =>`."""

    head: str
    alternatives: Sequence[tuple[str, Step]]

    def lines(self, style: Style) -> Iterator[str]:
        for case, step in self.alternatives:
            yield from _block(f"| {case} =>", _lines(step, style), style)


def _block(opening: str, body: list[str], style: Style) -> Iterator[str]:
    """Write an opening and its body, on one line if they fit there."""
    if len(body) == 1 and len(opening) + len(body[0]) < _WIDEST:
        yield f"{opening} {body[0]}"
        return
    yield opening
    for line in body:
        yield f"{' ' * style.indent}{line}"


def _case_distinction(step: Step, style: Style) -> _Cases | None:
    """Return a step as a case distinction, if each case is one goal and they are in order."""
    if [layout for layout, _ in step.parts] != [(n,) for n in range(len(step.parts))]:
        return None
    bodies = [body for _, body in step.parts]
    if found := _SPLITS.fullmatch(step.tactic):
        names = _CASE.findall(found["cases"])
        if len(names) == len(bodies) and not _CASE.sub("", found["cases"]):
            return _Cases(f"{found['head']} with", list(zip(names, bodies, strict=True)))
        return None
    if not style.names or not bodies or not _BARE.fullmatch(step.tactic):
        return None
    named = [_name_case(step, body) for body in bodies]
    alternatives = [pair for pair in named if pair is not None]
    if len({case.split()[0] for case, _ in alternatives}) != len(bodies):
        return None
    return _Cases(f"{step.tactic} with", alternatives)


def _name_case(above: Step, body: Step) -> tuple[str, Step] | None:
    """Return `succ n ih` and its script with these names; None if the case's name is unknown."""
    if len(above.goals) != 1 or len(body.goals) != 1 or not body.goals[0].case:
        return None
    goal = body.goals[0]
    nameless = [h.name for h in goal.hypotheses if not h.accessible]
    older = sum(not h.accessible for h in above.goals[0].hypotheses)
    carried = nameless[older:]  # the hypotheses of the case come last
    given: list[str] = []
    if found := _RENAMES.fullmatch(body.tactic):
        given = found["names"].split()
        if len(given) > len(carried) or len(body.parts) != 1:
            return None
        body = body.parts[0][1]
    fresh = Fresh({h.name for h in goal.hypotheses if h.accessible} | set(given))
    unnamed = carried[: len(carried) - len(given)]
    names = [*(fresh.name(name.partition("✝")[0]) for name in unnamed), *given]
    shorter = _shorten_hypothesis_names(names)
    if set(shorter.values()).isdisjoint(_words_of(body) | set(names)):
        names = [shorter.get(name, name) for name in names]
        body = _rename(body, shorter)
    # Lean puts the names of the enclosing cases in front of the case's name.
    return " ".join([(goal.case or "").rpartition(".")[2], *names]), body


def _shorten_hypothesis_names(names: Sequence[str]) -> dict[str, str]:
    """Return shorter names: `n_ih` becomes `ih`; of several, `l_ih` becomes `ihl`."""
    stems = [name.removesuffix("_ih") for name in names if name.endswith("_ih")]
    return {f"{stem}_ih": f"ih{stem if len(stems) > 1 else ''}" for stem in stems}


def _words_of(step: Step) -> set[str]:
    return words(render(step))


def _rename(step: Step, names: dict[str, str]) -> Step:
    tactic = step.tactic
    for name, new in names.items():
        tactic = re.sub(rf"(?<![\w.'✝]){re.escape(name)}(?![\w'✝])", new, tactic)
    parts = tuple((layout, _rename(part, names)) for layout, part in step.parts)
    return replace(step, tactic=tactic, parts=parts)


# -- steps that become one ----------------------------------------------------------------------


def _join_steps(step: Step) -> Step:
    """Join steps: `intro a`, `intro b` is `intro a b`; two rewrites are one."""
    while len(step.parts) == 1:
        following = step.parts[0][1]
        for pattern, form, between in _JOINED:
            one, other = pattern.fullmatch(step.tactic), pattern.fullmatch(following.tactic)
            if one and other:
                step = replace(following, tactic=form.format(one[1] + between + other[1]))
                break
        else:
            return step
    return step


def _on_one_line(step: Step, style: Style) -> str:
    """Write a step and the steps that close its goals on one line; '' if that is not usual."""
    if len(step.parts) < 2 or any(len(layout) > 1 for layout, _ in step.parts):
        return ""
    bodies = [_lines(part, style) for _, part in step.parts]
    if any(len(body) > 1 for body in bodies):
        return ""
    texts = [body[0] for body in bodies]
    if step.tactic == "constructor" and all(text.startswith("exact ") for text in texts):
        line = f"exact ⟨{', '.join(text.removeprefix('exact ') for text in texts)}⟩"
    elif len(set(texts)) == 1 and _SIMPLE.fullmatch(step.tactic) and _SIMPLE.fullmatch(texts[0]):
        line = f"{step.tactic} <;> {texts[0]}"
    else:
        return ""
    return line if len(line) <= _WIDEST else ""


def _bullets(step: Step, style: Style) -> Iterator[str]:
    """Write bullets as `extraction` does; a case becomes a `next` if its hypotheses are renamed."""
    waiting = sorted(position for layout, _ in step.parts for position in layout)
    for layout, part in step.parts:
        if len(layout) != 1:
            continue
        yield from rotate_to_front(waiting, layout[0])
        waiting.pop(0)
        found = _RENAMES.fullmatch(part.tactic)
        if found and len(part.parts) == 1 and len(part.parts[0][0]) == 1:
            yield from _block(f"next {found['names']} =>", _lines(part.parts[0][1], style), style)
            continue
        for index, line in enumerate(_lines(part, style)):
            yield f"{'· ' if index == 0 else '  '}{line}"
    if waiting:
        yield from rotate_to_front(waiting, min(waiting))


def _remove_detours(step: Step, closes: Callable[[str], bool]) -> Step:
    """Remove case distinctions that the script of one case replaces."""
    for _ in range(_MOST_CHECKS):
        shorter = next((s for s in _shortcuts(step) if closes(render(s))), None)
        if shorter is None:
            return step
        step = shorter
    return step


def _shortcuts(step: Step) -> Iterator[Step]:
    """Yield the script with one of its case distinctions replaced by the script of a case."""
    if len(step.parts) > 1 and not step.tactic.startswith(_NO_DETOURS):
        yield from (part for layout, part in step.parts if len(layout) == 1)
    for index, (layout, part) in enumerate(step.parts):
        for shorter in _shortcuts(part):
            changed = (layout, shorter)
            yield replace(step, parts=(*step.parts[:index], changed, *step.parts[index + 1 :]))


def _remove_needless_parts(step: Step, closes: Callable[[str], bool]) -> Step:
    """Remove limits and lemmas that a tactic does not need."""
    checks = _MOST_CHECKS
    for place in list(step_places(step)):
        for needless in _removable_parts(step_at(step, place).tactic):
            if checks == 0:
                return step
            checks -= 1
            target = step_at(step, place)
            changed = replace(target, tactic=_remove_part(target.tactic, needless))
            shorter = replace_step(step, place, changed)
            if closes(render(shorter)):
                step = shorter
    return step


_LIMITS = ""
"""Stands for the limits of a tactic in the list of its removable parts; a lemma is never empty."""


def _removable_parts(tactic: str) -> list[str]:
    """Return the removable parts of a tactic: limits, then lemmas from the last to the first."""
    given = _GIVEN.fullmatch(tactic)
    if given is None:
        return []
    lemmas = given["lemmas"].split(", ") if given["lemmas"] else []
    return [_LIMITS] * bool(given["limits"]) + lemmas[::-1]


def _remove_part(tactic: str, part: str) -> str:
    given = _GIVEN.fullmatch(tactic)
    assert given is not None
    lemmas = [lemma for lemma in (given["lemmas"] or "").split(", ") if lemma not in ("", part)]
    return given["how"] + given["limits"] * (part != _LIMITS) + _lemma_list(lemmas)


def _lemma_list(lemmas: Sequence[str]) -> str:
    return f" [{', '.join(lemmas)}]" if lemmas else ""


# A tactic that only takes the target apart is always needed.
_NO_DETOURS = ("constructor", "refine", "apply", "exact", "ext", "funext", "congr")
_JOINED = (
    (_INTRODUCES, "intro{}", ""),
    (_REWRITES, "rw [{}]", ", "),
)
