'use strict';
/**
 * Proof states: values like everything in Lean, so any of them can be continued at any time,
 * any number of times. A state does not involve the kernel: it says what Lean's elaborator
 * accepts, and a proof is one only after the replay check.
 */
const { CORE_STATE, CORE_CONTEXT } = require('./elaborator.js');
const { META_STATE, META_CONTEXT } = require('./goals.js');

const PARTS = ['core', 'meta', 'term', 'goals', 'termContext', 'metaContext', 'coreContext', 'root'];

function createProofs(heap, calls, names, messages, terms, goals, elaborator, watchdog) {
  const { box, inc, dec, field, refValue, copyWith } = heap;
  const { call, run, truth, makeRef, LeanException } = calls;
  const states = new Map();
  let nextId = 1;
  // Lean.Elab.Tactic.Context: no elaborator, recover := false, so that the first error counts.
  const tacticContext = heap.constructor(0, [box(0)], 1);

  function keep(state) {
    const id = nextId++;
    states.set(id, state);
    return id;
  }

  function free(id) {
    const state = states.get(id);
    if (!state) return;
    states.delete(id);
    for (const part of PARTS) dec(state[part]);
  }

  function find(id) {
    const state = states.get(id);
    if (!state) throw new RequestError(`there is no proof state ${id}`);
    return state;
  }

  /** What the caller sees of a state. */
  function report(id, notes, extra = {}) {
    const state = find(id);
    const list = goals.describeAll(heap.readList(state.goals), state);
    return { state: id, goals: list, messages: notes, ...extra };
  }

  /** A state from the inside of TermElabM: one goal, given as an owned metavariable expression. */
  function capture(monad, goal, environment) {
    return {
      core: inc(refValue(monad.coreRef)),
      meta: inc(refValue(monad.metaRef)),
      term: inc(refValue(monad.termRef)),
      goals: heap.list([inc(field(goal, 0))]),
      termContext: inc(monad.term),
      metaContext: inc(monad.meta),
      coreContext: inc(monad.core),
      root: goal,
      environment,
      origin: { declaration: '', isTheorem: false }, // stands for where the proof began, in all states that come of it
    };
  }

  /** Opens the proof of what makeType(monad) gives (an owned type). */
  function open(environment, commandState, makeType) {
    try {
      const state = elaborator.inTermElab(commandState, (monad) => {
        const type = makeType(monad);
        const errors = messages.read(field(refValue(monad.coreRef), CORE_STATE.messages))
          .filter((m) => m.severity === 'error');
        if (errors.length > 0) throw new RequestError(errors.map((m) => m.text).join('\n'), 'statement');
        const goal = run('l_Lean_Meta_mkFreshExprSyntheticOpaqueMVar', type, box(0), ...monad.metaArgs());
        return capture(monad, goal, environment);
      });
      return keep(state);
    } catch (error) {
      if (!(error instanceof LeanException)) throw error;
      const text = messages.ofException(error.object);
      dec(error.object);
      throw new RequestError(text, 'statement');
    }
  }

  function startStatement(environment, commandState, env, text) {
    const parsed = elaborator.parse(env, 'term', text);
    if (parsed.error) throw new RequestError(parsed.error, 'statement');
    return open(environment, commandState, (monad) => {
      const raw = run('l_Lean_Elab_Term_elabType', parsed.syntax, ...monad.args());
      dec(run('l_Lean_Elab_Term_synthesizeSyntheticMVarsNoPostponing', box(0), ...monad.args()));
      const type = goals.instantiate(field(refValue(monad.metaRef), META_STATE.mctx), raw);
      dec(raw);
      if (truth('l_Lean_Expr_hasExprMVar', inc(type))) {
        throw new RequestError('the statement leaves something for Lean to guess that it cannot', 'statement');
      }
      return type;
    });
  }

  const startType = (environment, commandState, type) => open(environment, commandState, () => inc(type));

  /** A state at a place inside a declaration, the `origin`: see sorries.js. `place` is borrowed. */
  function startAt(environment, commandState, place, origin) {
    const state = elaborator.inTermElab(commandState, (monad) => {
      let core = copyWith(refValue(monad.coreRef), {
        [CORE_STATE.env]: inc(place.env), [CORE_STATE.ngen]: inc(place.ngen),
      });
      let meta = copyWith(refValue(monad.metaRef), { [META_STATE.mctx]: inc(place.mctx) });
      let root;
      if (place.goal) {
        root = call('l_Lean_Expr_mvar___override', inc(place.goal));
      } else { // a hole in a term: a new goal of its type in its context
        const metaRef = makeRef(meta);
        const coreRef = makeRef(core);
        const context = copyWith(monad.meta, { [META_CONTEXT.lctx]: inc(place.lctx) });
        root = elaborator.withLocalInstances(
          goals.declarations(place.lctx), [context, metaRef, monad.core, coreRef],
          (args) => run('l_Lean_Meta_mkFreshExprSyntheticOpaqueMVar', inc(place.type), box(0), ...args()),
        );
        meta = inc(refValue(metaRef));
        core = inc(refValue(coreRef));
        for (const o of [metaRef, coreRef, context]) dec(o);
      }
      return {
        core, meta, term: inc(refValue(monad.termRef)), goals: heap.list([inc(field(root, 0))]),
        termContext: inc(monad.term), metaContext: inc(monad.meta), coreContext: inc(monad.core), root, environment,
        origin,
      };
    });
    return keep(state);
  }

  /**
   * The same state, seen with some of its goals only, in the given order. Its root is these goals:
   * it is complete when they are closed, whatever became of the others.
   */
  function focus(id, indices) {
    const state = find(id);
    const all = heap.readList(state.goals);
    if (indices.length === 0) throw new RequestError('there is no goal to focus on');
    if (indices.some((i) => !(i in all))) throw new RequestError(`state ${id} has ${all.length} goals`);
    const next = { ...state };
    for (const part of PARTS) if (part !== 'goals' && part !== 'root') inc(next[part]);
    next.goals = heap.list(indices.map((i) => inc(all[i])));
    // An application of one goal to the next is no term; it is only searched for holes.
    next.root = indices
      .map((i) => call('l_Lean_Expr_mvar___override', inc(all[i])))
      .reduce((several, goal) => call('l_Lean_Expr_app___override', several, goal));
    return keep(next);
  }

  /**
   * One tactic, or several on lines of their own. Several come first where there are lines: read
   * as one, `have : α := default` and `rfl` below it would be an application.
   */
  function parseTactic(env, text) {
    const single = () => elaborator.parse(env, 'tactic', text);
    const several = () => elaborator.parse(env, 'tactic', `(\n${text}\n)`);
    const [first, second] = text.includes('\n') ? [several, single] : [single, several];
    const parsed = first();
    if (parsed.syntax) return parsed;
    const other = second();
    return other.syntax ? other : parsed;
  }

  /**
   * Runs a tactic: { id, messages } or { error, kind, messages }. What it makes must use none of the declarations
   * `without`, and the proof of a theorem not the theorem: it is in the environment, from after its command.
   * `heartbeats`: its own limit, or 0.
   */
  function runTactic(id, text, { heartbeats = 0, without = [] } = {}) {
    const state = find(id);
    const parsed = parseTactic(field(state.core, CORE_STATE.env), text);
    if (parsed.error) return { error: parsed.error, kind: 'parse', messages: [] };
    const goalsRef = makeRef(inc(state.goals));
    const termRef = makeRef(inc(state.term));
    const metaRef = makeRef(inc(state.meta));
    const coreRef = makeRef(copyWith(state.core, { [CORE_STATE.messages]: inc(messages.empty) }));
    const context = heartbeats ? copyWith(state.coreContext, { [CORE_CONTEXT.maxHeartbeats]: box(heartbeats) }) : inc(state.coreContext);
    const termArgs = () => [inc(state.termContext), inc(termRef), inc(state.metaContext), inc(metaRef), inc(context), inc(coreRef)];
    const tacticArgs = () => [inc(tacticContext), inc(goalsRef), ...termArgs()];
    call('lean_io_set_heartbeats', inc(field(state.coreContext, CORE_CONTEXT.initHeartbeats)));
    try {
      dec(run('l_Lean_Elab_Tactic_evalTactic', inc(parsed.syntax), ...tacticArgs()));
      dec(run('l_Lean_Elab_Term_synthesizeSyntheticMVarsNoPostponing', box(0), ...termArgs()));
      dec(run('l_Lean_Elab_Tactic_pruneSolvedGoals', ...tacticArgs()));
      const notes = messages.read(field(refValue(coreRef), CORE_STATE.messages));
      const errors = notes.filter((m) => m.severity === 'error');
      if (errors.length > 0) return { error: errors.map((m) => m.text).join('\n'), kind: 'tactic', messages: notes };
      const next = {
        ...state,
        core: inc(refValue(coreRef)), meta: inc(refValue(metaRef)), term: inc(refValue(termRef)), goals: inc(refValue(goalsRef)),
      };
      for (const part of ['termContext', 'metaContext', 'coreContext', 'root']) inc(next[part]);
      const after = keep(next);
      const excluded = excludedUse(next, without);
      if (excluded === '') return { id: after, messages: notes };
      free(after);
      return { error: excluded, kind: 'tactic', messages: notes };
    } catch (error) {
      if (!(error instanceof LeanException)) throw error;
      const notes = messages.read(field(refValue(coreRef), CORE_STATE.messages));
      const logged = notes.filter((m) => m.severity === 'error').map((m) => m.text);
      const internal = messages.isInternal(error.object);
      const own = messages.ofException(error.object);
      dec(error.object);
      const shown = internal && logged.length > 0 ? logged.join('\n') : own;
      const exhausted = /\(deterministic\) timeout|maximum recursion depth/.test(shown);
      return { error: shown, kind: exhausted ? 'exhausted' : 'tactic', messages: notes };
    } finally {
      for (const o of [goalsRef, termRef, metaRef, coreRef, parsed.syntax, context]) dec(o);
    }
  }

  /** What a state's proof uses and must not, in words; '' if nothing. A theorem's own name is looked for at the end. */
  function excludedUse(state, without) {
    const { declaration, isTheorem } = state.origin;
    const own = isTheorem && heap.isBox(state.goals) ? [declaration] : [];
    const excluded = new Set([...own, ...without]);
    if (excluded.size === 0) return '';
    const used = new Set();
    const whole = goals.instantiate(field(state.meta, META_STATE.mctx), state.root);
    terms.eachConstant(whole, (name) => { if (excluded.has(names.showUser(name))) used.add(names.showUser(name)); });
    dec(whole);
    if (own.some((name) => used.has(name))) return `the proof uses ${declaration} itself`;
    return used.size === 0 ? '' : `it uses ${[...used].join(', ')}, not proved yet`;
  }

  /** For a state without goals: does its proof term still have holes, does it use sorry? */
  function completeness(id) {
    const state = find(id);
    const whole = goals.instantiate(field(state.meta, META_STATE.mctx), state.root);
    let sorry = false;
    terms.eachConstant(whole, (name) => { if (names.show(name) === 'sorryAx') sorry = true; });
    const open = truth('l_Lean_Expr_hasExprMVar', inc(whole));
    dec(whole);
    return { complete: !open && !sorry, uses_sorry: sorry };
  }

  return {
    startStatement, startType, startAt, focus, runTactic, completeness, report, find, free, states, watchdog,
  };
}

/** A request that is wrong in itself; its text goes to the caller. */
class RequestError extends Error {
  constructor(message, kind = 'request') {
    super(message);
    this.kind = kind;
  }
}

module.exports = { createProofs, RequestError };
