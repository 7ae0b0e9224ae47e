import Lake
open Lake DSL

package «helper» where
  srcDir := "src"

@[default_target]
lean_lib «Helper» where
  roots := #[`Helper]
