"""The two kinds of Lean: bundled as WebAssembly (`wasm`), and the user's own toolchain (`native`).

What enters: a choice of `treewright.lean.choice`. What leaves: a `Host`, which says how a Lean
process is started and which files a verdict of it depends on.

Read first: `host.py`, `wasm/home.py`, `native/host.py`.
"""
