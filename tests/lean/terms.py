"""Writes the judge's input by hand, as a corrupted elaborator could send it."""

from __future__ import annotations

from typing import Any

import msgspec

Term = int


class Data:
    """Terms are numbers of items; `raw` is what `Judge.rule` takes."""

    def __init__(self) -> None:
        self.names: list[list[Any]] = []
        self.levels: list[list[Any]] = []
        self.exprs: list[list[Any]] = []
        self.declarations: list[dict[str, Any]] = []

    def raw(self) -> msgspec.Raw:
        return msgspec.Raw(
            msgspec.json.encode(
                {
                    "names": self.names,
                    "levels": self.levels,
                    "exprs": self.exprs,
                    "declarations": self.declarations,
                }
            )
        )

    # -- names and levels -----------------------------------------------------------------

    def name(self, text: str) -> int:
        parent = 0
        for part in text.split(".") if text else []:
            item = [parent, {"num": part} if part.isdigit() else part]
            parent = self._put(self.names, item) + 1
        return parent

    def level(self, number: int) -> int:
        at = self._put(self.levels, [0])
        for _ in range(number):
            at = self._put(self.levels, [1, at])
        return at

    def param(self, name: str) -> int:
        return self._put(self.levels, [4, self.name(name)])

    # -- terms ----------------------------------------------------------------------------

    def bvar(self, index: int) -> Term:
        return self._put(self.exprs, [0, str(index)])

    def sort(self, level: int) -> Term:
        return self._put(self.exprs, [1, self.level(level)])

    def const(self, name: str, *levels: int) -> Term:
        return self._put(self.exprs, [2, self.name(name), [self.level(x) for x in levels]])

    def app(self, head: Term, *arguments: Term) -> Term:
        for argument in arguments:
            head = self._put(self.exprs, [3, head, argument])
        return head

    def lam(self, kind: Term, body: Term) -> Term:
        return self._put(self.exprs, [4, 0, kind, body])

    def pi(self, kind: Term, body: Term) -> Term:
        return self._put(self.exprs, [5, 0, kind, body])

    def nat(self, number: int) -> Term:
        return self._put(self.exprs, [7, str(number)])

    def proj(self, structure: str, index: int, value: Term) -> Term:
        return self._put(self.exprs, [9, self.name(structure), str(index), value])

    def eq_nat(self, left: Term, right: Term) -> Term:
        return self.app(self.const("Eq", 1), self.const("Nat"), left, right)

    def literal(self, number: int) -> Term:
        """`OfNat.ofNat Nat n _`, which is what `n : Nat` elaborates to."""
        raw = self.nat(number)
        instance = self.app(self.const("instOfNatNat"), raw)
        return self.app(self.const("OfNat.ofNat", 0), self.const("Nat"), raw, instance)

    def refl(self, value: Term) -> Term:
        return self.app(self.const("Eq.refl", 1), self.const("Nat"), value)

    # -- declarations ---------------------------------------------------------------------

    def declare(
        self, kind: str, name: str, type_: Term, value: Term | None = None, **more: Any
    ) -> None:
        entry = {"kind": kind, "name": self.name(name), "params": [], "type": type_}
        self.declarations.append({**entry, "value": value, "hints": 0, "unsafe": False, **more})

    def inductive(
        self, name: str, type_: Term, constructors: dict[str, Term], *, params: int = 0
    ) -> None:
        made = [{"name": self.name(c), "type": t} for c, t in constructors.items()]
        types = [{"name": self.name(name), "type": type_, "constructors": made}]
        self.declarations.append(
            {
                "kind": "inductive",
                "params": [],
                "count": str(params),
                "unsafe": False,
                "types": types,
            }
        )

    def _put(self, items: list[list[Any]], item: list[Any]) -> int:
        items.append(item)
        return len(items) - 1
