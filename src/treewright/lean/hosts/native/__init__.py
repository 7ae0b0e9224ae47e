"""The project's own toolchain, serving the protocol with one Lean file of ours."""
