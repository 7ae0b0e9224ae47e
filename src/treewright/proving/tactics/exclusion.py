"""Tactics and knowledge without some declarations: for a search that must not use open lemmas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from treewright.lean.session.knowledge import Knowledge
from treewright.proving.environment import Outcome
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.source import Suggestions, TacticSource, stop_when

_NAME = re.compile(r"[^\W\d][\w'!?]*(?:\.[^\W\d][\w'!?]*)*")


def possible_names(script: str) -> list[str]:
    """Return every word of a script that could be the name of a declaration, each once."""
    return list(dict.fromkeys(_NAME.findall(script)))


def find_named(script: str, names: Iterable[str], local: Iterable[str] = ()) -> list[str]:
    """Return which of the declarations `names` a script mentions.

    `local` are the names of hypotheses: a hypothesis hides a declaration of the same name.
    """
    hidden = set(local)
    words = [word for word in possible_names(script) if word not in hidden]
    return [name for name in names if any(_refers_to(word, name) for word in words)]


def _refers_to(word: str, name: str) -> bool:
    """Return whether a word of a script can mean a declaration.

    `append_nil` and `List.append_nil` both mean `List.append_nil`. So does `xs.append_nil`, where
    `xs` is a value: the part before the dot is then a single lower-case name.
    """
    if name == word or name.endswith(f".{word}"):
        return True
    value, dot, last = word.rpartition(".")
    is_value = bool(dot) and "." not in value and not value[0].isupper()
    return is_value and name.endswith(f".{last}")


_SET_TACTIC = re.compile(r"\b(?P<word>simp|simp_all|simpa|grind)\b(?!\s*(only|\?))(?P<list>\s*\[)?")
_ERASED_FACTOR = 0.9
"""The prior of a tactic with erased lemmas, as a share of the prior of the tactic as it is."""


class Environment(Protocol):
    """The environment of a goal, as far as it is asked here; the root is node 0."""

    def apply(self, node: int, tactic: str) -> Outcome:
        """Try a tactic on a node."""
        ...

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        """Tell that the search does not use the last outcome."""
        ...


class WithoutNames:
    """A tactic source without some declarations.

    It drops every tactic that mentions one of them. A declaration with an attribute such as `simp`
    is used without its name, so `simp` is also offered as `simp [-name]`.
    """

    name = "without"

    def __init__(
        self, source: TacticSource, names: Sequence[str], environment: Environment | None = None
    ) -> None:
        self._source = source
        self._names = tuple(names)
        self._environment = environment
        self._erasable: dict[str, list[str]] = {}
        self.overlaps = bool(getattr(source, "overlaps", False))

    def stop_when(self, stop: Callable[[], bool]) -> None:
        stop_when(self._source, stop)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        answer = self._source.suggest(goals, round_number)
        local = {h.name for h in goals[0].hypotheses} if goals else set[str]()

        def is_allowed(candidate: Candidate) -> bool:
            return not find_named(candidate.tactic, self._names, local)

        candidates: list[Candidate] = []
        for candidate in filter(is_allowed, answer.candidates):
            candidates.append(candidate)
            if (erased := _SET_TACTIC.sub(self._erase, candidate.tactic)) != candidate.tactic:
                prior = candidate.prior and _ERASED_FACTOR * candidate.prior
                candidates.append(msgspec.structs.replace(candidate, tactic=erased, prior=prior))
        return Suggestions(tuple(candidates), answer.complete)

    def _erase(self, found: re.Match[str]) -> str:
        names = self._names_in_set("grind" if found["word"] == "grind" else "simp")
        if not names:
            return found[0]
        erased = ", ".join(f"-{name}" for name in names)
        return f"{found['word']} [{erased}, " if found["list"] else f"{found['word']} [{erased}]"

    def _names_in_set(self, word: str) -> list[str]:
        """Return the declarations that Lean can erase from the set of `simp` or `grind`."""
        if self._environment is None:
            return []
        if word not in self._erasable:
            self._erasable[word] = []
            for name in self._names:
                tactic = f"have : True := by {word} [-{name}]"
                outcome = self._environment.apply(0, tactic)
                if outcome.kind == "goals":
                    self._environment.bind(0, tactic, ())
                    self._erasable[word].append(name)
        return self._erasable[word]


def knowledge_without(
    knowledge: Callable[[int], Knowledge], names: Sequence[str]
) -> Callable[[int], Knowledge]:
    """Wrap a function that returns Lean's knowledge about a node, so that it leaves out `names`.

    The names are taken out here and not from the finished tactics: a tactic with a set of lemmas
    then keeps the other lemmas.
    """

    def is_allowed(name: str) -> bool:
        return not find_named(name, names)

    def reduced(node: int) -> Knowledge:
        found = knowledge(node)
        return msgspec.structs.replace(
            found,
            uses=tuple(use for use in found.uses if is_allowed(use.name)),
            library=tuple(use for use in found.library if is_allowed(use.name)),
            related=tuple(filter(is_allowed, found.related)),
            definitions=tuple(filter(is_allowed, found.definitions)),
        )

    return reduced
