"""Agents: planner, coder and reviewer carry out one idea in a worktree.

Enters: an idea as Markdown, a worktree at the parent's commit, and the configured backends.
Leaves: changed files in the worktree, logs of every call, and the usage; or an `AgentFailure` with
the reason code for the record. Agents commit nothing.
May import: `tree.config`, `tree.guard`, `tree.repository`, `tree.records`, `tree.deciding.caps`,
`tree.ideas.idea_text`, `llm`, `kernel`.
Read first: `implementation.py` (the rounds of one candidate), `backend.py` (the interface of a
backend), `prompts.py` (the templates, and the files that models see).
"""
