"""The bundled Lean: a real Lean 4 compiled to WebAssembly, run by Node."""
