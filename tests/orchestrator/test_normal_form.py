"""Goals that say the same share a hash; goals that differ never do. Lean decides."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass

import pytest

from treewright.lean.session.answers import CheckResult
from treewright.orchestrator.goals.normal_form import hash_goal, hash_text, is_plain, normal_form
from treewright.orchestrator.types import Goal
from treewright.orchestrator.workers.lean_access import LeanAccess

NAMES = ["x", "y", "n", "m", "Nat", "succ"]
SAME_MEANING = "by constructor <;> intro h <;> first | exact h | (intros; apply h <;> assumption)"


# -- random statements, as trees in which variables are binders, not names ----------------


@dataclass(eq=False)
class Binder:
    style: str


@dataclass
class Node:
    kind: str
    parts: tuple


def number(generator: random.Random, scope: list[Binder], depth: int) -> Node:
    choice = generator.random()
    if depth == 0 or choice < 0.5:
        if scope and generator.random() < 0.8:
            return Node("var", (generator.choice(scope),))
        return Node("lit", (generator.randrange(3),))
    left = number(generator, scope, depth - 1)
    if choice < 0.65:
        return Node("succ", (left,))
    return Node(generator.choice("+*"), (left, number(generator, scope, depth - 1)))


def statement(generator: random.Random, scope: list[Binder], depth: int) -> Node:
    choice = generator.random()
    if depth == 0 or choice < 0.2:
        kind = generator.choice(["=", "<", "≤"])
        return Node(kind, (number(generator, scope, 1), number(generator, scope, 1)))
    if choice < 0.4:
        parts = [statement(generator, scope, depth - 1) for _ in range(2)]
        return Node(generator.choice(["∧", "∨", "→", "↔"]), tuple(parts))
    if choice < 0.5:
        return Node("¬", (statement(generator, scope, depth - 1),))
    style = generator.choice(["∀ :", "∀ ()", "∃ :", "∀ >", "∀ {}", "∃ ()"])
    binder = Binder(style)
    return Node("bind", (binder, statement(generator, [*scope, binder], depth - 1)))


def names_for(node: Node, generator: random.Random, used: dict[Binder, str]) -> None:
    """Give each binder a name that shadows only names that are not used below."""
    if node.kind == "bind":
        binder, body = node.parts
        needed = {used[b] for b in free(body) if b is not binder}
        if says_nat(body):
            needed.add("Nat")
        allowed = [n for n in NAMES if n not in needed]
        used[binder] = generator.choice(allowed or [f"v{len(used)}"])
        names_for(body, generator, used)
    else:
        for part in node.parts:
            if isinstance(part, Node):
                names_for(part, generator, used)


def says_nat(node: Node) -> bool:
    """Whether the text of this will mention the type."""
    if node.kind in ("bind", "succ"):
        return True
    return any(isinstance(part, Node) and says_nat(part) for part in node.parts)


def free(node: Node) -> set[Binder]:
    if node.kind == "var":
        return {node.parts[0]}
    found = set().union(*(free(p) for p in node.parts if isinstance(p, Node)))
    return found - {node.parts[0]} if node.kind == "bind" else found


def written(node: Node, names: dict[Binder, str], generator: random.Random) -> str:
    def gap() -> str:
        return generator.choice([" ", "  ", "\n  "])

    def go(node: Node) -> str:
        match node.kind:
            case "var":
                return names[node.parts[0]]
            case "lit":
                return str(node.parts[0])
            case "succ":
                return f"(Nat.succ{gap()}{go(node.parts[0])})"
            case "¬":
                return f"(¬{gap()}{go(node.parts[0])})"
            case "bind":
                binder, body = node.parts
                name = names[binder]
                quantifier = binder.style[0]
                shown = {
                    ":": f"{name}{gap()}: Nat",
                    "()": f"({name} : Nat)",
                    "{}": f"{{{name} : Nat}}",
                    ">": f"{name} > (0 : Nat)",
                }[binder.style[2:]]
                return f"({quantifier}{gap()}{shown},{gap()}{go(body)})"
            case operator:
                left, right = node.parts
                return f"({go(left)}{gap()}{operator}{gap()}{go(right)})"

    return go(node)


def nameless(node: Node, scope: tuple[Binder, ...] = ()) -> str:
    """The statement with variables by their distance to the binder: equal iff it is the same."""
    match node.kind:
        case "var":
            return f"#{scope[::-1].index(node.parts[0])}"
        case "bind":
            binder, body = node.parts
            style = binder.style.replace(":", "()")
            return f"({style} {nameless(body, (*scope, binder))})"
        case _:
            shown = [nameless(p, scope) if isinstance(p, Node) else str(p) for p in node.parts]
            return f"({node.kind} {' '.join(shown)})"


def variant(node: Node, generator: random.Random) -> str:
    names: dict[Binder, str] = {}
    names_for(node, generator, names)
    return written(node, names, generator)


def judged_same(lean: LeanAccess, pairs: list[tuple[str, str]]) -> list[bool]:
    """Whether Lean proves each pair of statements equivalent by unfolding names and order."""
    text = "".join(
        f"theorem pair{i} : ({' '.join(a.split())}) ↔ ({' '.join(b.split())}) := {SAME_MEANING}\n"
        for i, (a, b) in enumerate(pairs)
    )

    async def check() -> CheckResult:
        async with lean.session() as session:
            result = await session.check(text, timeout=300)
            assert isinstance(result, CheckResult)
            return result

    wrong = {d.line for d in asyncio.run(check()).errors}
    return [line not in wrong for line in range(1, len(pairs) + 1)]


@pytest.mark.xdist_group("orchestrator-lean")
def test_equal_hashes_mean_equal_goals_and_renamed_goals_have_equal_hashes(
    lean_access: LeanAccess,
) -> None:
    generator = random.Random(6)
    trees = [statement(generator, [], 3) for _ in range(120)]
    texts = [(tree, variant(tree, generator)) for tree in trees for _ in range(2)]
    assert sum(normal_form(text)[0] == "term" for _, text in texts) > 0.8 * len(texts)

    known = [(hash_text(text), normal_form(text)[0], nameless(tree), text) for tree, text in texts]
    same_hash: list[tuple[str, str]] = []
    for (hash_1, form_1, meaning_1, one), (
        hash_2,
        form_2,
        meaning_2,
        other,
    ) in itertools.combinations(known, 2):
        if form_1 == form_2 == "term":
            assert (hash_1 == hash_2) == (meaning_1 == meaning_2), (one, other)
        if hash_1 == hash_2:
            same_hash.append((one, other))
    assert len(same_hash) > 80
    sample = generator.sample(same_hash, 60)
    # Lean has to agree; and to disagree where one variable was exchanged for another.
    different = (
        ("∀ x y : Nat, x < y", "∀ x y : Nat, y = x"),
        ("∀ x : Nat, x = x", "∃ x : Nat, x = 1"),
    )
    verdicts = judged_same(lean_access, [*sample, *different])
    assert verdicts[:60] == [True] * 60
    assert verdicts[60:] == [False, False]


@pytest.mark.xdist_group("orchestrator-lean")
def test_the_order_of_hypotheses_does_not_matter_unless_it_does(lean_access: LeanAccess) -> None:
    generator = random.Random(3)
    hypotheses = ["n : Nat", "f : Nat → Nat", "p : Prop", "h : f n = 0", "k : p ∧ n < 3"]
    needs = {3: {0, 1}, 4: {0, 2}}
    renamed = {"n": "a", "f": "g", "p": "q", "h": "u", "k": "w"}
    target = "p ∧ f n = 0"

    def rename(text: str) -> str:
        return " ".join(renamed.get(word, word) for word in text.split())

    def closed(lines: list[str], goal: str) -> str:
        return f"∀ {' '.join(f'({line})' for line in lines)}, {goal}"

    goals, statements = [], []
    orders = [
        order
        for order in itertools.permutations(range(5))
        if all(order.index(i) > order.index(j) for i, js in needs.items() for j in js)
    ]
    for order in generator.sample(orders, 4):
        lines = [hypotheses[i] for i in order]
        for shown, goal in ((lines, target), ([rename(x) for x in lines], rename(target))):
            goals.append("\n".join([*shown, f"⊢ {goal}"]))
            statements.append(closed(shown, goal))
    assert len({hash_text(goal) for goal in goals}) == 1
    assert all(judged_same(lean_access, [(statements[0], other) for other in statements[1:]]))


def test_implicit_binders_are_sorted_and_stay_implicit() -> None:
    first = "∀ {a : Int} {b : Nat}, p a b"
    assert hash_text(first) == hash_text("∀ {y : Nat} {x : Int}, p x y")
    assert hash_text(first) != hash_text("∀ {y : Nat} {x : Int}, p y x")
    assert hash_text(first) != hash_text("∀ (a : Int) (b : Nat), p a b")
    assert hash_text("∀ (a : Int) (b : Nat), q") != hash_text("∀ (b : Nat) (a : Int), q")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("∀ n : Nat, f (n := n) = 0", "∀ m : Nat, f (m := m) = 0"),
        ('"a  b" = x', '"a b" = x'),
        ("1 = 1 -- so\n∧ False", "1 = 1 -- so ∧ False"),
        ("'\t' = c", "' ' = c"),
        ("by\n exact p\n  q", "by exact p q"),
        ("let x := 1\nx = 1", "let x := 1 x = 1"),
        ("a[0] = b", "a [0] = b"),
        ("∀ p q : Prop, (p : Prop) → q", "∀ q p : Prop, (p : Prop) → q"),
        ("x : Nat\nNat : Type\n⊢ x = x", "A : Type\nx : A\n⊢ x = x"),
        ("∀ x y : Nat, x < y", "∀ y x : Nat, x < y"),
        ("(∀ x, p x) ∧ q x", "(∀ x, p x) ∧ q y"),
        ("(fun x => x : T x) = y", "(fun z => z : T z) = y"),
        ("∀ x, ∀ x, p x", "∀ x, ∀ y, p x"),
        ("∃ x, p x", "∀ x, p x"),
        ("∀ x : Nat, x.succ = y", "∀ x : Nat, x.pred = y"),
        ("h : p\n⊢ q", "h : q\n⊢ p"),
        ("x✝ : Nat\n⊢ p", "y : Nat\n⊢ p"),
        ("{x | p x} = s", "{y | p y} = s"),
        ("p -> q", "p - > q"),
        ("∀ x ∈ s, p", "∀ x, x ∈ s → p"),
        ("f x .y", "f x.y"),
        ("#0", "x"),
        ("Type u → Type v", "Type u → Type u"),
        (
            "∀ (u : Nat) (α : Type u), ∀ u : Nat, ∀ β : Type u, α = β",
            "∀ (u : Nat) (α : Type u), ∀ v : Nat, ∀ β : Type v, α = β",
        ),
        ("u : Nat\nα : Type u\nβ : Type u\n⊢ p", "u v : Nat\nα : Type u\nβ : Type v\n⊢ p"),
        ("∀ u v : Nat, f Type u", "∀ u v : Nat, f Type v"),
        ("Type _ → Type _", "Type u → Type u"),
        ("∀ α : Type (max u v), p", "∀ α : Type (max u u), p"),
    ],
)
def test_goals_that_could_differ_do_not_collide(one: str, other: str) -> None:
    assert hash_text(one) != hash_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("∀ n : Nat, n + 0 = n", "  ∀ (m:Nat),\n m+0 = m"),
        ("∀ x y : Nat, x = y", "∀ (a : Nat) (b : Nat), a = b"),
        ("fun x => x + 1", "λ y ↦ y + 1"),
        ("∃ ε > 0, p ε", "∃ δ > 0, p δ"),
        ("∀ _ : Nat, p", "∀ x : Nat, p"),
        ("∀ n : Nat, n.succ ≠ 0", "∀ k : Nat, k.succ ≠ 0"),
        ("case left\nh : p\n⊢ q", "h' : p\n⊢ q"),
        ("h : a =\n    b\n⊢ q", "h : a = b\n⊢ q"),
        ("x |> f", "x   |>   f"),
        ("Type u → Type v", "Type v → Type u"),
        ("∀ α : Sort (max u v), p", "∀ β : Sort (max w u), p"),
    ],
)
def test_goals_that_say_the_same_collide(one: str, other: str) -> None:
    assert hash_text(one) == hash_text(other)


def test_universes_that_a_preamble_shares_keep_their_names() -> None:
    def hashed(text: str, preamble: str) -> str:
        return hash_goal(Goal("g", text, preamble=preamble))

    one, other = "∀ α : Type u, p α", "∀ α : Type v, p α"
    assert hashed(one, "open Nat") == hashed(other, "open Nat")
    shared = "universe u v\nvariable (p : Type u → Prop)"
    assert hashed(one, shared) != hashed(other, shared)


def test_where_notation_may_be_added_names_are_left_alone() -> None:
    assert is_plain(("Init", "Std.Data.HashMap"), "open Nat")
    assert not is_plain(("Mathlib",), "")
    assert not is_plain(("Init",), 'local notation "x" => 3')
    one, other = "∀ x : Nat, x = x", "∀ y : Nat, y = y"
    assert hash_text(one, plain_syntax=False) != hash_text(other, plain_syntax=False)
    assert hash_text(one, plain_syntax=False) == hash_text("∀  x : Nat, x = x", plain_syntax=False)
