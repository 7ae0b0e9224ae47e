import Sample.Basic

syntax "even_step" : tactic

macro_rules
  | `(tactic| even_step) => `(tactic| (apply Sample.Even.step))

macro "the_answer" : term => `(42)

theorem Sample.answer : the_answer = 42 := rfl
