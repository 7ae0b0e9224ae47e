"""Ideas: the sources that propose them, and the choice of the ideas to try on a node.

Enters: a node of the run with its history, and the configured idea sources.
Leaves: idea files in the node's directory, and the `NodeExpanded` event that records them; or an
`IdeaSourceError`. `idea_text.py` defines which ideas are the same, and finds patches in ideas.
May import: `tree.config`, `tree.agents` (prompts, views, logs), `tree.records`, `tree.report`,
`tree.guard`, `tree.repository`, `tree.deciding`, `llm`, `kernel`.
Read first: `expansion.py` (the choice for one node), `idea_source.py` (the interface of a source),
`search_history.py` (the facts about earlier evaluations).
"""
