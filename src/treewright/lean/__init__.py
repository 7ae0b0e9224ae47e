"""Lean processes: sessions for proof steps, the check that may say "proved", and Lake projects.

What enters: Lean text, statements, tactics and paths of Lake projects. What leaves: proof states,
diagnostics, `sorry` positions, and verdicts with certificates. This package imports
`treewright.kernel` only; it knows no search trees and no language models.

- `session`: one Lean process and its requests.
- `verify`: the replay check, its verdict and its certificate.
- `hosts`: the two kinds of Lean, bundled (`wasm`) and the user's toolchain (`native`).
- `project`: the modules of a Lake project.
- `processes.py`: starts, lends, renews and ends Lean processes.
- `choice.py`: which Lean is used, and why. `sorries.py`: every `sorry` of a text, and its
  replacement.

Read first: `session/interface.py`, `verify/replayer.py`, `choice.py`.
"""
