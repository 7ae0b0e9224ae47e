namespace Sample

class Below (α : Type) where
  below : α → α → Prop
  refl : ∀ a : α, below a a

instance : Below Nat := ⟨fun a b => a ≤ b, Nat.le_refl⟩

theorem below_self {α : Type} [Below α] (a : α) : Below.below a a := Below.refl a

end Sample
