"""Search where an action leaves several goals that must all be solved: AND/OR graphs.

`graph` is the structure, `statistics` what visits leave behind in it, `policies/` choose the next
goal to work on (pure). The domain says what an action does; it never chooses a goal.
"""
