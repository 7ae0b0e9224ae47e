import Sample.Basic

namespace Sample

def twice (n : Nat) : Nat := n + n

scoped prefix:max "dbl" => twice
notation:50 n " is_even" => Even n

theorem twice_zero : dbl 0 = 0 := rfl

end Sample
