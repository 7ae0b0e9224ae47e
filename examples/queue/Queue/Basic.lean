/-! A queue as two lists: one to take from, one to put onto. -/

structure Queue (α : Type) where
  front : List α
  back : List α

namespace Queue

def push (q : Queue α) (x : α) : Queue α := ⟨q.front, x :: q.back⟩

def toList (q : Queue α) : List α := q.front ++ q.back.reverse

def size (q : Queue α) : Nat := q.front.length + q.back.length

theorem toList_push (q : Queue α) (x : α) : (q.push x).toList = q.toList ++ [x] := by
  sorry

end Queue
