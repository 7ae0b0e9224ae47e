-- snippet: two-to-the-31
theorem big : 2 ^ 31 = 2147483648 := by decide

-- snippet: limit-definition
def limit : Nat := 4294967296
theorem limit_eq : limit = 2 ^ 32 := rfl
theorem below (n : Nat) (h : n < 10) : n < limit := by unfold limit; omega

-- snippet: u64-arithmetic
def wordSize : Nat := 2 ^ 64
def wrap (n : Nat) : Nat := n % wordSize
theorem wrap_lt (n : Nat) : wrap n < 18446744073709551616 := by
  unfold wrap wordSize
  exact Nat.mod_lt _ (by decide)

-- snippet: big-int
def debt : Int := -9223372036854775808
example : debt + 9223372036854775808 = 0 := by decide
example : debt.natAbs = 2 ^ 63 := by decide

-- snippet: uint-literals
def mask : UInt32 := 0xFFFFFFFF
def seed : UInt64 := 6364136223846793005
def step (s : UInt64) : UInt64 := s * 6364136223846793005 + 1442695040888963407
example : mask.toNat = 4294967295 := rfl

-- snippet: bitvec
def hi : BitVec 64 := 0xDEADBEEFCAFEBABE#64
example : hi.toNat < 2 ^ 64 := hi.isLt
example (x y : BitVec 8) : x + y = y + x := BitVec.add_comm x y

-- snippet: factorial-big
def fact : Nat → Nat
  | 0 => 1
  | n + 1 => (n + 1) * fact n

#eval fact 25
-- value: 15511210043330985984000000
example : fact 15 = 1307674368000 := by decide

-- snippet: hex-and-binary
def flags : Nat := 0xFFFF_FFFF
def bits : Nat := 0b1010
def oct : Nat := 0o777
example : flags = 4294967295 := by unheard_of
-- error:

-- snippet: hex-and-octal
def allOnes : Nat := 0xFFFFFFFF
example : allOnes = 4294967295 := rfl
example : 0b1010 + 0o17 = 25 := rfl

-- snippet: big-in-match
def classify : Nat → String
  | 0 => "zero"
  | 4294967296 => "wrap"
  | n => if n < 4294967296 then "small" else "large"

-- snippet: mersenne
theorem mersenne31 : (2 ^ 31 - 1) * (2 ^ 31 + 1) = 2 ^ 62 - 1 := by decide
theorem mod_big : 123456789012345678901234567890 % 97 < 97 := by omega
theorem norm_big : (10 : Nat) ^ 20 = 100000000000000000000 := by decide

-- snippet: simp-big
theorem simp_big : 3000000000 + 4000000000 = 7000000000 := by simp
theorem omega_big (x : Nat) (h : x < 5000000000) : x < 6000000000 := by omega

-- snippet: float-code
def circleArea (r : Float) : Float := 3.14159 * r * r
def epsilon : Float := 1.0e-9
def near (a b : Float) : Bool := (a - b).abs < epsilon

-- snippet: fin-arithmetic
def days : Fin 7 := 3
def tomorrow (d : Fin 7) : Fin 7 := d + 1
example : tomorrow 6 = 0 := rfl
theorem all_days (d : Fin 7) : tomorrow d ≠ d := by revert d; decide

-- snippet: gcd-termination
def gcd' (a b : Nat) : Nat :=
  if h : b = 0 then a else gcd' b (a % b)
termination_by b
decreasing_by exact Nat.mod_lt _ (Nat.pos_of_ne_zero h)

-- snippet: ackermann
def ack : Nat → Nat → Nat
  | 0, n => n + 1
  | m + 1, 0 => ack m 1
  | m + 1, n + 1 => ack m (ack (m + 1) n)
termination_by m n => (m, n)

theorem ack_zero (n : Nat) : ack 0 n = n + 1 := by simp [ack]

-- snippet: binary-search
def search (xs : Array Nat) (key : Nat) : Option Nat := go 0 xs.size
where
  go (lo hi : Nat) : Option Nat :=
    if h : lo < hi then
      let mid := (lo + hi) / 2
      let v := xs[mid]!
      if v == key then some mid
      else if v < key then go (mid + 1) hi
      else go lo mid
    else none
  termination_by hi - lo

-- snippet: even-odd-mutual
mutual
def isEven : Nat → Bool
  | 0 => true
  | n + 1 => isOdd n
def isOdd : Nat → Bool
  | 0 => false
  | n + 1 => isEven n
end

example : isEven 10 = true := by decide

-- snippet: primes
def isPrime (n : Nat) : Bool := n ≥ 2 && (List.range n).all fun d => d < 2 || n % d != 0
example : isPrime 31 = true := by decide
def primes (n : Nat) : List Nat := (List.range n).filter isPrime

-- snippet: char-literals
def letterA : Char := 'a'
def emoji : String := "λ → 日本語 🎉"
example : letterA.toNat = 97 := rfl
example : '\n'.toNat = 10 := rfl
def codepoints (s : String) : List Nat := s.toList.map Char.toNat

-- snippet: big-exponent
theorem pow_pos' (n : Nat) : 0 < 2 ^ n := Nat.pos_of_ne_zero (by simp)
theorem huge : 2 ^ 200 % 7 = 4 := by decide

-- snippet: reduce-big
#reduce (2 : Nat) + 3
-- says: 5
#eval (2 : Nat) ^ 40
-- value: 1099511627776

-- snippet: nat-repr-eval
#eval 2147483648
-- value: 2147483648
#eval (4294967296 : Int) * -1
-- value: -4294967296
