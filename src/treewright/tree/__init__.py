"""Beam search over git commits: idea -> implement -> sweep -> score.

`ideas` proposes and `agents` implement, `evaluating` measures one candidate, `deciding` compares,
`running` goes from depth to depth and is the only writer of `records`. Deciding is pure; doing
(git, agents, sweeps, files) is at the edge.
"""
