"""The sets of benchmarks/external, on problems of our own in their formats, and the scoreboard."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
import pytest
from benchmarks.external import natural_numbers, scoreboard, tip, verina
from benchmarks.external.scoreboard import Problem, Row

from treewright.kernel.errors import TreewrightError
from treewright.proving.records import GoalResult
from treewright.proving.run import RunResult

# -- TIP ------------------------------------------------------------------------------------------

LIST = "(declare-datatype list (par (a) ((nil) (cons (head a) (tail (list a))))))"
APPEND = """
(define-fun-rec ++ (par (a) (((x (list a)) (y (list a))) (list a)))
  (match x ((nil y) ((cons z xs) (cons z (++ xs y))))))
"""


def translated(text: str) -> str:
    return tip.Translator(tip.parse(text)).lean("prop")


def test_a_recursive_function_over_a_datatype() -> None:
    text = translated(
        LIST + APPEND + "(prove (par (a) (forall ((x (list a))) (= (++ x (_ nil a)) x))))"
    )
    assert "inductive list (a : Type) where\n  | nil\n  | cons (head : a) (tail : (list a))" in text
    assert "def append {a : Type} (x : (list a)) (y : (list a)) : (list a) :=" in text
    assert "    | list.cons z xs => list.cons z (append xs y)" in text
    assert "theorem prop {a : Type} (x : (list a)) :\n    (append x list.nil) = x := by" in text


def test_a_default_case_binds_no_name() -> None:
    """The case `_` was written `x`, so that its body meant the matched value by `x`."""
    text = translated(
        "(declare-datatype T ((A) (B) (C)))"
        "(define-fun f ((x T) (y T)) T (match y ((A B) (_ x))))"
        "(prove (forall ((x T)) (= (f x C) x)))"
    )
    assert "    | _ => x" in text


def test_symbols_that_would_get_the_same_name_stay_different() -> None:
    text = translated(
        "(declare-datatype T ((A)))"
        "(define-fun |!2| ((x T)) T x)"
        "(define-fun f ((x2 T)) T (|!2| x2))"
        "(prove (forall ((x2 T)) (= (f x2) A)))"
    )
    assert "def x2 (x : T) : T :=" in text
    assert "def f (x2_2 : T) : T :=\n  x2 x2_2" in text


def test_a_parameter_in_a_recursive_call_is_written_as_its_pattern() -> None:
    """Else Lean does not see that the argument is no larger than the parameter."""
    text = translated(
        "(declare-datatype T ((A) (B (p T))))"
        "(define-funs-rec ((f ((x T)) T) (g ((x T)) T)) ("
        "(match x ((A A) ((B y) (g x))))"
        "(match x ((A A) ((B y) (B (f y)))))))"
        "(prove (forall ((x T)) (= (f x) x)))"
    )
    assert "    | T.B y => g (T.B y)" in text
    assert "    | T.B y => T.B (f y)" in text


def test_a_pattern_is_not_used_where_its_variables_mean_something_else() -> None:
    text = translated(
        "(declare-datatype T ((A) (B (p T))))"
        "(define-fun-rec f ((x T) (z T)) T"
        " (match x ((A A) ((B y) (match z ((A A) ((B y) (f x y))))))))"
        "(prove (forall ((x T)) (= (f x x) x)))"
    )
    assert "T.B y => f x y" in text


@pytest.mark.parametrize(
    ("body", "measure"),
    [
        ("(ite (> x y) nil (cons x (f (+ 1 x) y)))", "(y + 1 - x).toNat"),
        ("(ite (< y x) nil (cons x (f (+ x 1) y)))", "(y + 1 - x).toNat"),
        ("(ite (<= x 0) nil (cons y (f (- x 1) y)))", "x.toNat"),
        ("(ite (= x 0) nil (cons y (f (- x 1) y)))", ""),
        ("(ite (> x y) nil (cons x (f (+ 1 x) x)))", ""),
        ("(ite (> x y) nil (cons x (f x y)))", ""),
        ("(ite (<= x y) nil nil)", ""),
    ],
)
def test_a_recursion_over_integers_says_how_it_ends(body: str, measure: str) -> None:
    text = translated(
        LIST + f"(define-fun-rec f ((x Int) (y Int)) (list Int) {body})"
        "(prove (forall ((x Int)) (= (f x x) (_ nil Int))))"
    )
    assert ("termination_by" in text) == bool(measure)
    assert f"\ntermination_by {measure}\n" in text or not measure


def test_truth_values_become_propositions_only_where_a_proposition_is_wanted() -> None:
    text = translated(
        "(define-fun f ((x Int) (y Bool)) Bool (and (=> y (< x 3)) (not (= x 4))))"
        "(prove (forall ((x Int) (y Bool)) (=> (f x y) (distinct x 4))))"
    )
    assert "(!y || (decide (x < 3))) && (!(decide (x = 4)))" in text
    assert "(f x y) → (x ≠ 4)" in text


def test_a_command_without_a_translation_is_named() -> None:
    with pytest.raises(ValueError, match="declare-const"):
        translated("(declare-const undefined Int)")


def test_the_halves_of_isaplanner_are_odd_and_even_properties() -> None:
    assert tip.half_of("isaplanner", "prop_07") == "tuned"
    assert tip.half_of("isaplanner", "prop_08") == "held_out"
    assert tip.half_of("prod", "prop_07") == scoreboard.sha256_half("prop_07")


def test_lean_accepts_the_translations(lean_session) -> None:
    texts = [
        translated(
            LIST + APPEND + "(define-fun-rec f ((x Int) (y Int)) (list Int)"
            " (ite (> x y) nil (cons x (f (+ 1 x) y))))"
            "(prove (par (a) (forall ((x (list a))) (= (++ x (_ nil a)) x))))"
        ),
        translated(
            "(declare-datatype T ((A) (B (p T) (q T))))"
            "(define-funs-rec ((f ((x T)) T) (g ((x T)) T)) ("
            "(match x ((A A) ((B y z) (g x))))"
            "(match x ((A A) ((B y z) (B (f y) (f z)))))))"
            "(prove (forall ((return T)) (= (f return) return)))"
        ),
    ]
    for text in texts:
        assert [d.text for d in lean_session().check(text, timeout=600).errors] == []


# -- VERINA ---------------------------------------------------------------------------------------

TASK = """\
-- !benchmark @start import type=solution
import Mathlib
import Std.Data.HashMap
-- !benchmark @end import

-- !benchmark @start code_aux
def half (n : Nat) : Nat := n / 2
-- !benchmark @end code_aux

def f (n : Nat) : Nat :=
  -- !benchmark @start code
  half n
  -- !benchmark @end code

-- !benchmark @start proof_aux
theorem hint (n : Nat) : half n ≤ n := by omega
-- !benchmark @end proof_aux

theorem f_spec_satisfied (n : Nat) :
    f n ≤ n := by
  -- !benchmark @start proof
  exact hint n
  -- !benchmark @end proof
"""


def test_a_task_keeps_its_definitions_and_loses_its_proof() -> None:
    assert verina.problem_text(TASK) == (
        "import Std.Data.HashMap\n\n"
        "def half (n : Nat) : Nat := n / 2\n\n"
        "def f (n : Nat) : Nat :=\n  half n\n\n"
        "theorem f_spec_satisfied (n : Nat) :\n    f n ≤ n := by\n  sorry\n"
    )


def test_a_task_without_a_proof_is_left_out(tmp_path: Path, capsys) -> None:
    for name, text in (("good", TASK), ("bad", "def f := 1\n")):
        (tmp_path / "datasets" / "verina" / name).mkdir(parents=True)
        (tmp_path / "datasets" / "verina" / name / "task.lean").write_text(text)
    problems = verina.write_problems(tmp_path, tmp_path / "files")
    assert [problem.name for problem in problems] == ["good"]
    assert "bad is left out" in capsys.readouterr().out


# -- the Natural Number Game ----------------------------------------------------------------------

GAME = {
    "Game": "import GameServer\nimport Game.Levels.Sums\n",
    "Game.Levels.Sums": "import Game.Levels.Sums.L01\nimport Game.Levels.Sums.L02\n",
    "Game.MyNat.Number": (
        "import Mathlib\n\ninductive MyNat where\n| zero : MyNat\n| succ : MyNat → MyNat\n\n"
        "namespace MyNat\n\ninstance : Inhabited MyNat := ⟨zero⟩\n\n"
        "opaque add : MyNat → MyNat → MyNat\n\n"
        "@[simp, MyNat_decide]\naxiom add_zero (a : MyNat) : add a zero = a\n\n"
        "lemma trivial_one : True := trivial\n"
    ),
    "Game.Levels.Sums.L01": (
        'import Game.MyNat.Number\n\nWorld "Sums"\n\nnamespace MyNat\n\n'
        "Statement add_zero_zero (a : MyNat) :\n    add (add a zero) zero = a := by\n"
        '  Hint "use it"\n  rw [add_zero]\n\nattribute [simp] add_zero_zero\n'
    ),
    "Game.Levels.Sums.L02": (
        "import Game.Levels.Sums.L01\n\nnamespace MyNat\n\n"
        "Statement -- a remark\n    (a : MyNat) : add a zero = a := by\n  rw [add_zero]\n"
    ),
}


def checkout_of_game(root: Path) -> Path:
    for module, text in GAME.items():
        path = root / f"{module.replace('.', '/')}.lean"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_level_gets_the_earlier_ones_as_axioms(tmp_path: Path) -> None:
    problems, axioms = natural_numbers.write_game(checkout_of_game(tmp_path), tmp_path / "files")
    assert [problem.name for problem in problems] == ["Sums.L01", "Sums.L02"]
    assert axioms == {"MyNat.add_zero_given", "MyNat.add_zero_zero_given"}
    text = problems[1].path.read_text()
    assert "@[simp]\ntheorem add_zero : type_of% @add_zero_given := @add_zero_given" in text
    assert "axiom add_zero_zero_given (a : MyNat) :\n    add (add a zero) zero = a\n" in text
    assert "attribute [simp] add_zero_zero" in text
    assert text.endswith(
        "theorem level\n    (a : MyNat) : add a zero = a := by\n  sorry\n\nend MyNat\n"
    )


def test_lean_accepts_the_levels(tmp_path: Path, lean_session) -> None:
    problems, _ = natural_numbers.write_game(checkout_of_game(tmp_path), tmp_path / "files")
    for problem in problems:
        checked = lean_session().check(problem.path.read_text(), timeout=600)
        assert [d.text for d in checked.errors] == []
        assert len(checked.unproved) == 1


def test_the_levels_of_the_bench_have_their_own_halves(tmp_path: Path) -> None:
    problems = natural_numbers.write_bench(tmp_path)
    assert {problem.half for problem in problems} == {"tuned", "held_out"}
    assert all(problem.path.read_text().endswith(":= by\n  sorry\n") for problem in problems)


# -- the scoreboard -------------------------------------------------------------------------------


def result(goals: tuple[GoalResult, ...] = (), **given) -> RunResult:
    return RunResult("r", "d", "mcts", 0, 1, True, None, goals, **given)


def problem(name: str, half: scoreboard.Half = "tuned") -> Problem:
    return Problem(name, Path(f"{name}.lean"), half)


def measured(outcome: RunResult | TreewrightError) -> Row:
    def prove(asked: Problem) -> RunResult:
        if isinstance(outcome, TreewrightError):
            raise outcome
        return outcome

    (row,) = scoreboard.measure([problem("p")], prove, limit=60.0)
    return row


def test_a_proof_has_a_certificate_with_a_digest(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}")
    goal = GoalResult(1, "p", "proved", proof="rfl", iterations=3)
    row = measured(result((goal,), certificate=str(tmp_path / "c.json")))
    assert (row.status, row.reason, row.proof, row.simulations) == ("proved", "", "rfl", 3)
    assert row.certificate_sha256 is not None
    assert row.certificate_sha256.startswith("44136fa355b3678a")


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (result((GoalResult(1, "p", "false"),)), "refuted", ""),
        (
            result((GoalResult(1, "p", "unproved", detail="no time\nmore"),)),
            "open",
            "unproved: no time",
        ),
        (result((GoalResult(1, "p", "ill_typed"),)), "not_opened", "ill_typed:"),
        (result(), "open", "stopped after 60 processor seconds"),
        (result(left_alone=("p",)), "not_opened", "an error in the file concerns p"),
        (TreewrightError("\nunknown module\n  more"), "not_opened", "unknown module"),
    ],
)
def test_every_result_has_a_status_and_a_reason_in_one_line(
    outcome: RunResult | TreewrightError, status: str, reason: str
) -> None:
    row = measured(outcome)
    assert (row.status, row.reason) == (status, reason)


def test_the_table_has_a_line_for_each_half() -> None:
    rows = [
        Row("a", "tuned", "proved", "", 2.0, 3.0),
        Row("b", "tuned", "refuted", "", 4.0, 3.0),
        Row("c", "tuned", "open", "x", 60.0, 3.0),
        Row("d", "held_out", "not_opened", "x", 1.0, 3.0),
    ]
    lines = scoreboard.table(rows).splitlines()
    assert lines[2:] == [
        "| tuned | 3 | 2 (67%) | 1 | 1 | 1 | 0 | 4.0 | 3.0 | 66 |",
        "| held out | 1 | 0 (0%) | 0 | 0 | 0 | 1 | 1.0 | – | 1 |",
    ]


def options_for(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    scoreboard.add_options(parser)
    return parser.parse_args(["--out", "unused", *given])


def test_each_half_is_sampled_alone() -> None:
    problems = [problem(f"{half}{n}", half) for n in range(4) for half in ("tuned", "held_out")]

    def chosen(*given: str) -> list[str]:
        return [p.name for p in scoreboard.choose_problems(problems, options_for(*given))]

    assert chosen("--every", "2") == ["tuned0", "tuned2", "held_out0", "held_out2"]
    assert chosen("--half", "tuned", "--every", "3") == ["tuned0", "tuned3"]
    assert chosen("--only", "tuned1", "held_out2") == ["tuned1", "held_out2"]


def test_a_measurement_goes_on_where_it_ended(tmp_path: Path, capsys) -> None:
    """Results that are there are not measured again; a line that was cut off is."""
    out = tmp_path / "results.jsonl"
    row = msgspec.json.encode(Row("p", "tuned", "proved", "", 1.0, 1.0)) + b"\n"
    out.write_bytes(row + row[:30])
    assert [row.name for row in scoreboard.read_rows(out)] == ["p"]
    options = options_for()
    options.out = out
    scoreboard.run([problem("p")], options)
    assert "| tuned | 1 | 1 (100%) | 1 |" in capsys.readouterr().out


def test_single_results_of_the_held_out_half_are_not_printed(tmp_path: Path) -> None:
    secret = Row("name", "held_out", "proved", "why", 1.0, 1.0)
    assert "name" not in scoreboard.progress(secret)
    assert "proved" not in scoreboard.progress(secret)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], {"true": "proved", "false": "refuted", "broken": "not_opened"}),
        (["--alone"], {"true": "proved"}),
    ],
)
def test_problems_are_proved_in_shared_processes_or_alone(
    tmp_path: Path, flags: list[str], expected: dict[str, str]
) -> None:
    texts = {
        "true": "theorem t (p : Prop) (h : p) : p := by\n  sorry\n",
        "false": "theorem t (n : Nat) : n = 0 := by\n  sorry\n",
        "broken": "def f : Nat := missing\n\ntheorem t : f = 0 := by\n  sorry\n",
    }
    for name in expected:
        (tmp_path / f"{name}.lean").write_text(texts[name])
    options = options_for(*flags, "--step-seconds", "60", "--lean", "wasm")
    options.out = tmp_path / "results.jsonl"
    scoreboard.run([Problem(n, tmp_path / f"{n}.lean", "tuned") for n in expected], options)
    rows = scoreboard.read_rows(options.out)
    assert {row.name: row.status for row in rows} == expected
    assert rows[0].certificate_sha256
    assert all(row.processor_seconds > 0 for row in rows)
