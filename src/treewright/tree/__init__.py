"""Beam search over git commits: idea -> implement -> sweep -> score.

Deciding (scoring, gate, beam, state transitions) is pure; doing (git, agents,
sweeps, files) is at the edge; the coordinator is the only writer of a run.
"""
