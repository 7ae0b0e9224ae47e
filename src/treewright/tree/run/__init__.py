"""A run: opening it, the loop, and the searches that the loop works for.

In: a `RunRequest` (`open.py`) and the records of the run. Out: events in the journal, nodes as
branches and worktrees, a report.

Imports: `evaluating`, `ideas`, `agents`, `deciding`, `report`, `guard`, `repository`, `records` and
`config` of `tree`, `search` for policies, `llm` for usage, and `kernel`. Imported by `validation`,
`cheats`, `checkup`, `inspection` and the command line.

Words: a *stage* is the work that a search gives to the loop at once. A *measurement* is the
held-out sweep of an evaluated candidate. An evaluation is *recorded* when its outcome is in the
journal, and *decided* (or *settled*) when its fate is there as well. A *peer* is an evaluation with
which a failure is compared.

Read first: `coordinator.py` and `loop.py`, the loop from top to bottom; `outcomes.py`, the decision
about every result; `beam_search.py` and `policy_search.py`, the two kinds of search.

The loop of a run
-----------------

    Coordinator.advance()                             coordinator.py, loop.py
      apply the user's commands; wait while the run is paused
      stage = search.begin()
      while there is a stage:
        WorkLoop.run(stage)
          until no work runs or waits:
            start     Scheduler: held-out sweeps, then the oldest evaluation   event: started
                      search.more() while a worker is free
            wait      for the next result of the executor
            decide    outcomes.decide_outcome: Record, Retry, Hold or Pause    (pure)
            record    the outcome, or the evaluation back in the queue         events: completed,
                      search.on_recorded: confirmations, settled candidates      failed, requeued
          then decide about held failures: was it an outage?                   decide_held (pure)
        stage = search.next_stage()

The loop knows retries, outages, suspects and caps, but no nodes, depths or policies. A search
(`tree_search.TreeSearch`) knows those, but no executors. Every step first reads the manifest and
does the missing work, so resuming needs no other code. A `Worker` gets an `EvalRequest` and
returns an `EvalOutcome`. It never sees the coordinator's state, so it can run in a thread or on
another machine.

One depth of beam search
------------------------

    BeamSearch.begin()
      expand    for each frontier node: idea sources, dedupe, files            event: expanded
      queue     ids in a fixed order, within the budget                        event: queued
      stage 1   the evaluations: worktree, agents, commit, tests, sweep,       events of the loop
                  score, in any order
      - barrier: every evaluation of the depth has an outcome -
    BeamSearch.next_stage()
      select    beam.select(evaluations) names the candidates to confirm
      stage 2   their held-out sweeps, recorded by rank; then select again     events: heldout,
                                                                                 confirmed
      decide    fates, new nodes, next frontier, stop reason                   event: decided
      promote   a branch and a worktree per new node
      prune     candidates' worktrees and branches
    then: report, snapshot

Search without a barrier
------------------------

    PolicySearch.begin()
      rebuild   a search.Sequencer from the records: choices, outcomes, known outcomes
    PolicySearch.more(), whenever a worker is free (in fixed order as early as possible):
      choose    Sequencer.propose(): policy, tree, seed give a node
      expand    if the node has no idea left: generate some in a thread        event: expanded
                  (ideas_ahead.py); in live order, choose other nodes meanwhile
      queue     its next idea is evaluation k, with what the choice knew       event: queued
    PolicySearch.on_recorded()
      confirm   passed the gate: a held-out sweep on the same executor         event: confirmed
      settle    in the order of choices: fate, node; tell the sequencer        event: settled
    PolicySearch.next_stage(): the stop reason                                 event: stopped

Validation asks the policy for every choice again (`validation/choices.py`).
"""
