/-
Natural numbers from nothing, after the worlds of the Natural Number Game: addition, multiplication,
powers, implication, advanced addition, order, advanced multiplication, algorithm. Every theorem is
given all earlier ones. The proofs here show that each can be proved; a benchmark leaves them out.
-/

inductive MyNat where
  | zero : MyNat
  | succ (n : MyNat) : MyNat

namespace MyNat

instance : OfNat MyNat 0 := ⟨zero⟩
instance : OfNat MyNat 1 := ⟨succ zero⟩
instance : OfNat MyNat 2 := ⟨succ (succ zero)⟩
instance : OfNat MyNat 3 := ⟨succ (succ (succ zero))⟩
instance : OfNat MyNat 4 := ⟨succ (succ (succ (succ zero)))⟩

def add : MyNat → MyNat → MyNat
  | a, zero => a
  | a, succ b => succ (add a b)

instance : Add MyNat := ⟨add⟩

def mul : MyNat → MyNat → MyNat
  | _, zero => zero
  | a, succ b => mul a b + a

instance : Mul MyNat := ⟨mul⟩

def pow : MyNat → MyNat → MyNat
  | _, zero => succ zero
  | a, succ b => pow a b * a

instance : HPow MyNat MyNat MyNat := ⟨pow⟩

def le (a b : MyNat) : Prop := ∃ c, b = a + c

instance : LE MyNat := ⟨le⟩

def pred : MyNat → MyNat
  | zero => zero
  | succ n => n

def isZero : MyNat → Prop
  | zero => True
  | succ _ => False

@[elab_as_elim, induction_eliminator]
theorem rec' {motive : MyNat → Prop} (zero : motive 0) (succ : ∀ n, motive n → motive (succ n))
    (n : MyNat) : motive n :=
  MyNat.rec zero succ n

-- What the game gives as axioms.
theorem zero_eq_zero : (MyNat.zero : MyNat) = 0 := rfl
theorem one_eq_succ_zero : (1 : MyNat) = succ 0 := rfl
theorem two_eq_succ_one : (2 : MyNat) = succ 1 := rfl
theorem three_eq_succ_two : (3 : MyNat) = succ 2 := rfl
theorem four_eq_succ_three : (4 : MyNat) = succ 3 := rfl
theorem add_zero (a : MyNat) : a + 0 = a := rfl
theorem add_succ (a b : MyNat) : a + succ b = succ (a + b) := rfl
theorem mul_zero (a : MyNat) : a * 0 = 0 := rfl
theorem mul_succ (a b : MyNat) : a * succ b = a * b + a := rfl
theorem pow_zero (a : MyNat) : a ^ (0 : MyNat) = 1 := rfl
theorem pow_succ (a b : MyNat) : a ^ succ b = a ^ b * a := rfl
theorem pred_succ (n : MyNat) : pred (succ n) = n := rfl
theorem le_iff_exists_add (a b : MyNat) : a ≤ b ↔ ∃ c, b = a + c := Iff.rfl

-- Tutorial
theorem level_rfl (x q : MyNat) : x * q = q → x + q = x + q := fun _ => rfl
theorem level_rw (x y : MyNat) (h : y = x + 3) : y + y = (x + 3) + (x + 3) := by rw [h]
theorem two_eq_ss0 : (2 : MyNat) = succ (succ 0) := rfl
theorem level_add_zero (a b c : MyNat) : a + (b + 0) + (c + 0) = a + b + c := by
  rw [add_zero, add_zero]
theorem succ_eq_add_one (n : MyNat) : succ n = n + 1 := rfl
theorem two_add_two : (2 : MyNat) + 2 = 4 := rfl

-- Addition
theorem zero_add (n : MyNat) : 0 + n = n := by
  induction n with
  | zero => rfl
  | succ n ih => rw [add_succ, ih]
theorem succ_add (a b : MyNat) : succ a + b = succ (a + b) := by
  induction b with
  | zero => rfl
  | succ b ih => rw [add_succ, ih, add_succ]
theorem add_comm (a b : MyNat) : a + b = b + a := by
  induction b with
  | zero => rw [zero_add, add_zero]
  | succ b ih => rw [add_succ, ih, succ_add]
theorem add_assoc (a b c : MyNat) : a + b + c = a + (b + c) := by
  induction c with
  | zero => rfl
  | succ c ih => rw [add_succ, ih, add_succ, add_succ]
theorem add_right_comm (a b c : MyNat) : a + b + c = a + c + b := by
  rw [add_assoc, add_comm b c, add_assoc]
theorem add_left_comm (a b c : MyNat) : a + (b + c) = b + (a + c) := by
  rw [← add_assoc, add_comm a b, add_assoc]

-- Multiplication
theorem mul_one (m : MyNat) : m * 1 = m := by
  rw [one_eq_succ_zero, mul_succ, mul_zero, zero_add]
theorem zero_mul (m : MyNat) : 0 * m = 0 := by
  induction m with
  | zero => rfl
  | succ m ih => rw [mul_succ, ih, add_zero]
theorem succ_mul (a b : MyNat) : succ a * b = a * b + b := by
  induction b with
  | zero => rfl
  | succ b ih => rw [mul_succ, ih, mul_succ, add_succ, add_succ, add_assoc, add_assoc, add_comm b a]
theorem mul_comm (a b : MyNat) : a * b = b * a := by
  induction b with
  | zero => rw [zero_mul, mul_zero]
  | succ b ih => rw [mul_succ, ih, succ_mul]
theorem one_mul (m : MyNat) : 1 * m = m := by rw [mul_comm, mul_one]
theorem two_mul (m : MyNat) : 2 * m = m + m := by
  rw [two_eq_succ_one, succ_mul, one_mul]
theorem mul_add (a b c : MyNat) : a * (b + c) = a * b + a * c := by
  induction c with
  | zero => rw [add_zero, mul_zero, add_zero]
  | succ c ih => rw [add_succ, mul_succ, ih, mul_succ, add_assoc]
theorem add_mul (a b c : MyNat) : (a + b) * c = a * c + b * c := by
  rw [mul_comm, mul_add, mul_comm c a, mul_comm c b]
theorem mul_assoc (a b c : MyNat) : a * b * c = a * (b * c) := by
  induction c with
  | zero => rfl
  | succ c ih => rw [mul_succ, ih, mul_succ, mul_add]

-- Powers
theorem zero_pow_zero : (0 : MyNat) ^ (0 : MyNat) = 1 := rfl
theorem zero_pow_succ (m : MyNat) : (0 : MyNat) ^ succ m = 0 := rfl
theorem pow_one (a : MyNat) : a ^ (1 : MyNat) = a := by
  rw [one_eq_succ_zero, pow_succ, pow_zero, one_mul]
theorem one_pow (m : MyNat) : (1 : MyNat) ^ m = 1 := by
  induction m with
  | zero => rfl
  | succ m ih => rw [pow_succ, ih, mul_one]
theorem pow_two (a : MyNat) : a ^ (2 : MyNat) = a * a := by
  rw [two_eq_succ_one, pow_succ, pow_one]
theorem pow_add (a m n : MyNat) : a ^ (m + n) = a ^ m * a ^ n := by
  induction n with
  | zero => rw [add_zero, pow_zero, mul_one]
  | succ n ih => rw [add_succ, pow_succ, ih, pow_succ, mul_assoc]
theorem mul_pow (a b n : MyNat) : (a * b) ^ n = a ^ n * b ^ n := by
  induction n with
  | zero => rw [pow_zero, pow_zero, pow_zero, mul_one]
  | succ n ih =>
    rw [pow_succ, pow_succ, pow_succ, ih, mul_assoc, mul_assoc, ← mul_assoc (b ^ n) a b,
      mul_comm (b ^ n) a, mul_assoc a (b ^ n) b]
theorem pow_pow (a m n : MyNat) : (a ^ m) ^ n = a ^ (m * n) := by
  induction n with
  | zero => rw [mul_zero, pow_zero, pow_zero]
  | succ n ih => rw [pow_succ, ih, mul_succ, pow_add]
theorem add_sq (a b : MyNat) :
    (a + b) ^ (2 : MyNat) = a ^ (2 : MyNat) + b ^ (2 : MyNat) + 2 * a * b := by
  rw [pow_two, pow_two, pow_two, add_mul, mul_add, mul_add, mul_comm b a, two_mul, add_mul]
  rw [add_assoc, ← add_assoc (a * b) (a * b) (b * b), add_comm (a * b + a * b) (b * b), ← add_assoc]

-- Implication
theorem level_exact (x y z : MyNat) (h1 : x + y = 3) (_h2 : 3 * x + z = 4) : x + y = 3 := h1
theorem level_rw_at (x : MyNat) (h : 0 + x = 0 + (1 + 2)) : x = 1 + 2 := by
  rw [zero_add, zero_add] at h; exact h
theorem level_apply (x y : MyNat) (h1 : x = 3) (h2 : x = 3 → y = 4) : y = 4 := h2 h1
theorem succ_inj (a b : MyNat) (h : succ a = succ b) : a = b := by
  rw [← pred_succ a, h, pred_succ]
theorem level_succ_inj (x : MyNat) (h : x + 1 = 4) : x = 3 := succ_inj x 3 h
theorem level_intro (x : MyNat) : x = 1 → x = 1 := fun h => h
theorem level_intro_succ (x y : MyNat) : x + 1 = y + 1 → x = y := succ_inj x y
theorem level_ne (x y : MyNat) (h1 : x = y) (h2 : x ≠ y) : False := h2 h1
theorem zero_ne_succ (a : MyNat) : 0 ≠ succ a := nofun
theorem zero_ne_one : (0 : MyNat) ≠ 1 := zero_ne_succ 0
theorem one_ne_zero : (1 : MyNat) ≠ 0 := zero_ne_one.symm
theorem two_add_two_ne_five : succ (succ 0) + succ (succ 0) ≠ succ (succ (succ (succ (succ 0)))) := by
  intro h
  exact zero_ne_succ 0 (succ_inj _ _ (succ_inj _ _ (succ_inj _ _ (succ_inj _ _ h))))

-- Algorithm
theorem level_add_perm (a b c d e f : MyNat) :
    (a + b) + (c + d) + (e + f) = (f + e) + (d + c) + (b + a) := by
  rw [add_comm a b, add_comm c d, add_comm e f, add_comm ((b + a) + (d + c)) (f + e),
    add_comm (b + a) (d + c), ← add_assoc]
theorem succ_ne_zero (a : MyNat) : succ a ≠ 0 := nofun
theorem succ_ne_succ (m n : MyNat) (h : m ≠ n) : succ m ≠ succ n := fun e => h (succ_inj m n e)
theorem level_decide : (2 : MyNat) + 2 = 4 ∧ succ 2 = 3 := ⟨rfl, rfl⟩

-- Advanced addition
theorem add_right_cancel (a b n : MyNat) : a + n = b + n → a = b := by
  induction n with
  | zero => exact fun h => h
  | succ n ih => exact fun h => ih (succ_inj _ _ h)
theorem add_left_cancel (a b n : MyNat) : n + a = n + b → a = b := by
  rw [add_comm n a, add_comm n b]; exact add_right_cancel a b n
theorem add_left_eq_self (x y : MyNat) : x + y = y → x = 0 := by
  intro h; exact add_right_cancel x 0 y (by rw [h, zero_add])
theorem add_right_eq_self (x y : MyNat) : x + y = x → y = 0 := by
  rw [add_comm]; exact add_left_eq_self y x
theorem add_right_eq_zero (a b : MyNat) : a + b = 0 → a = 0 := by
  induction b with
  | zero => exact fun h => h
  | succ b _ => exact fun h => absurd h (succ_ne_zero _)
theorem add_left_eq_zero (a b : MyNat) : a + b = 0 → b = 0 := by
  rw [add_comm]; exact add_right_eq_zero b a

-- Order
theorem le_refl (x : MyNat) : x ≤ x := ⟨0, rfl⟩
theorem zero_le (x : MyNat) : 0 ≤ x := ⟨x, (zero_add x).symm⟩
theorem le_succ_self (x : MyNat) : x ≤ succ x := ⟨1, rfl⟩
theorem le_trans (x y z : MyNat) (hxy : x ≤ y) (hyz : y ≤ z) : x ≤ z := by
  obtain ⟨a, rfl⟩ := hxy
  obtain ⟨b, rfl⟩ := hyz
  exact ⟨a + b, add_assoc x a b⟩
theorem le_zero (x : MyNat) (hx : x ≤ 0) : x = 0 := by
  obtain ⟨a, h⟩ := hx
  exact add_right_eq_zero x a h.symm
theorem le_antisymm (x y : MyNat) (hxy : x ≤ y) (hyx : y ≤ x) : x = y := by
  obtain ⟨a, rfl⟩ := hxy
  obtain ⟨b, h⟩ := hyx
  rw [add_assoc] at h
  rw [add_right_eq_zero a b (add_right_eq_self x (a + b) h.symm), add_zero]
theorem or_swap (x y : MyNat) (h : x = 3 → y = 4 ∨ x = 2) (e : x = 3) : x = 2 ∨ y = 4 :=
  (h e).symm
theorem succ_le_succ_of_le (x y : MyNat) (h : x ≤ y) : succ x ≤ succ y := by
  obtain ⟨a, rfl⟩ := h
  exact ⟨a, (succ_add x a).symm⟩
theorem le_total (x y : MyNat) : x ≤ y ∨ y ≤ x := by
  induction y with
  | zero => exact Or.inr (zero_le x)
  | succ y ih =>
    cases ih with
    | inl h => exact Or.inl (le_trans _ _ _ h (le_succ_self y))
    | inr h =>
      obtain ⟨c, rfl⟩ := h
      cases c with
      | zero => exact Or.inl (le_succ_self y)
      | succ c => exact Or.inr ⟨c, by show succ (y + c) = succ y + c; rw [succ_add]⟩
theorem succ_le_succ (x y : MyNat) (hx : succ x ≤ succ y) : x ≤ y := by
  obtain ⟨c, h⟩ := hx
  exact ⟨c, succ_inj _ _ (by rw [h, succ_add])⟩
theorem le_one (x : MyNat) (hx : x ≤ 1) : x = 0 ∨ x = 1 := by
  cases x with
  | zero => exact Or.inl rfl
  | succ n => exact Or.inr (by rw [le_zero n (succ_le_succ n 0 hx)]; rfl)
theorem le_two (x : MyNat) (hx : x ≤ 2) : x = 0 ∨ x = 1 ∨ x = 2 := by
  cases x with
  | zero => exact Or.inl rfl
  | succ n =>
    cases le_one n (succ_le_succ n 1 hx) with
    | inl h => exact Or.inr (Or.inl (by rw [h]; rfl))
    | inr h => exact Or.inr (Or.inr (by rw [h]; rfl))

-- Advanced multiplication
theorem mul_le_mul_right (a b t : MyNat) (h : a ≤ b) : a * t ≤ b * t := by
  obtain ⟨c, rfl⟩ := h
  exact ⟨c * t, add_mul a c t⟩
theorem mul_left_ne_zero (a b : MyNat) (h : a * b ≠ 0) : b ≠ 0 := by
  intro hb; exact h (by rw [hb, mul_zero])
theorem eq_succ_of_ne_zero (a : MyNat) (ha : a ≠ 0) : ∃ n, a = succ n := by
  cases a with
  | zero => exact absurd rfl ha
  | succ n => exact ⟨n, rfl⟩
theorem one_le_of_ne_zero (a : MyNat) (ha : a ≠ 0) : 1 ≤ a := by
  obtain ⟨n, rfl⟩ := eq_succ_of_ne_zero a ha
  exact succ_le_succ_of_le 0 n (zero_le n)
theorem le_mul_right (a b : MyNat) (h : a * b ≠ 0) : a ≤ a * b := by
  obtain ⟨n, rfl⟩ := eq_succ_of_ne_zero b (mul_left_ne_zero a b h)
  exact ⟨a * n, by rw [mul_succ, add_comm]⟩
theorem mul_right_eq_one (x y : MyNat) (h : x * y = 1) : x = 1 := by
  have hxy : x * y ≠ 0 := by rw [h]; exact one_ne_zero
  have hx := le_mul_right x y hxy
  rw [h] at hx
  cases le_one x hx with
  | inl h0 => rw [h0, zero_mul] at h; exact absurd h zero_ne_one
  | inr h1 => exact h1
theorem mul_ne_zero (a b : MyNat) (ha : a ≠ 0) (hb : b ≠ 0) : a * b ≠ 0 := by
  obtain ⟨m, rfl⟩ := eq_succ_of_ne_zero a ha
  obtain ⟨n, rfl⟩ := eq_succ_of_ne_zero b hb
  exact nofun
theorem mul_eq_zero (a b : MyNat) (h : a * b = 0) : a = 0 ∨ b = 0 := by
  cases a with
  | zero => exact Or.inl rfl
  | succ m =>
    cases b with
    | zero => exact Or.inr rfl
    | succ n => exact absurd h (mul_ne_zero _ _ (succ_ne_zero m) (succ_ne_zero n))
theorem mul_left_cancel (a b c : MyNat) (ha : a ≠ 0) (h : a * b = a * c) : b = c := by
  induction b generalizing c with
  | zero =>
    rw [mul_zero] at h
    cases mul_eq_zero a c h.symm with
    | inl h0 => exact absurd h0 ha
    | inr h0 => exact h0.symm
  | succ b ih =>
    cases c with
    | zero =>
      cases mul_eq_zero a (succ b) h with
      | inl h0 => exact absurd h0 ha
      | inr h0 => exact absurd h0 (succ_ne_zero b)
    | succ c => rw [ih c (add_right_cancel _ _ a h)]
theorem mul_right_eq_self (a b : MyNat) (ha : a ≠ 0) (h : a * b = a) : b = 1 :=
  mul_left_cancel a b 1 ha (by rw [h, mul_one])

end MyNat
