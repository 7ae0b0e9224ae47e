import Queue.Basic

namespace Queue

theorem length_toList (q : Queue α) : q.toList.length = q.size := by
  sorry

def pushAll (q : Queue α) : List α → Queue α
  | [] => q
  | x :: xs => (q.push x).pushAll xs

theorem toList_pushAll (q : Queue α) (xs : List α) :
    (q.pushAll xs).toList = q.toList ++ xs := by
  sorry

end Queue
