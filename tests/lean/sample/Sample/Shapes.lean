namespace Sample

structure Point where
  x : Nat
  y : Nat

@[ext]
structure Box where
  low : Point
  high : Point

instance : Add Point := ⟨fun p q => ⟨p.x + q.x, p.y + q.y⟩⟩

@[simp] theorem Point.add_x (p q : Point) : (p + q).x = p.x + q.x := rfl

theorem Point.add_x_comm (p q : Point) : (p + q).x = (q + p).x := by
  sorry

end Sample
