"""The replay check: the only code that may say "proved".

What enters: an original text with a `sorry`, and a candidate text with a proof. What leaves: a
`Verdict`, with a `Certificate` if every target is proved. Three Lean processes take part: one reads
the original, one reads the candidate, and the judge reads neither: it decides on terms that they
send as data.

Read first: `replayer.py`, `originals.py`, `judge.py`.
"""
