'use strict';
/**
 * Goals as data: hypotheses, target, case name, metavariables and a strict hash.
 *
 * The hash covers names, types and values of the hypotheses in order, and the target, all by
 * their terms, not by their printed form. Metavariables are numbered by first occurrence and
 * enter with their types. The case name does not enter. Two goals with one hash in one
 * environment are the same goal: a script that closes one closes the other.
 */
const { createHash } = require('node:crypto');

const META_STATE = { mctx: 0 };
const META_CONTEXT = { lctx: 2, localInstances: 3 };
const CORE_CONTEXT = { options: 2 };
const MVAR_DECL = { userName: 0, lctx: 1, type: 2, localInstances: 4 };
const LOCAL_CONTEXT = { decls: 1 };
const LOCAL_DECL = { fvarId: 1, userName: 2, type: 3, value: 4 };
const DECL_KIND = 1; // scalar byte of a LocalDecl; 0 means an ordinary hypothesis
const WIDTH = 100;
const PRINTED_LIMIT = 20e6; // characters in the printing cache

function createGoals(heap, calls, names, terms) {
  const { box, inc, dec, field, tag, copyWith, option } = heap;
  const { call, run, makeRef } = calls;
  let printed = new Map(); // environment and canonical text -> printed text
  let printedSize = 0;

  /** A borrowed expression with assigned metavariables replaced (owned). */
  function instantiate(mctx, e) {
    const pair = call('lean_instantiate_expr_mvars', inc(mctx), inc(e));
    const result = inc(field(pair, 1));
    dec(pair);
    return result;
  }

  /** Prints a borrowed expression in a prepared monad { meta, metaRef, core, coreRef }. */
  function print(e, monad) {
    const format = run(
      'l_Lean_Meta_ppExpr', inc(e), inc(monad.meta), inc(monad.metaRef), inc(monad.core), inc(monad.coreRef),
    );
    return heap.takeString(call('l_Std_Format_pretty', format, box(WIDTH), box(0), box(0)));
  }

  /** A local context in which every name shows as Lean shows it (`x✝` for what text cannot name). */
  function sanitize(lctx, options) {
    const state = heap.constructor(0, [inc(options), box(1), box(1)]);
    const pair = call('l_Lean_LocalContext_sanitizeNames', inc(lctx), state);
    const result = inc(field(pair, 0));
    dec(pair);
    return result;
  }

  const declarations = (lctx) => heap.readPersistentArray(field(lctx, LOCAL_CONTEXT.decls))
    .map(option).filter((d) => d !== null);

  /** The declaration of a metavariable, borrowed from the context, or null. */
  function findDecl(mctx, mvarId) {
    const result = call('l_Lean_MetavarContext_findDecl_x3f', inc(mctx), inc(mvarId));
    const decl = option(result);
    dec(result); // the context keeps it alive
    return decl;
  }

  /** The metavariable a delayed assignment waits for, borrowed, or null. */
  function delayedTarget(mctx, mvarId) {
    const result = call('lean_get_delayed_mvar_assignment', inc(mctx), inc(mvarId));
    const assignment = option(result);
    const target = assignment === null ? null : field(assignment, 1);
    dec(result);
    return target;
  }

  /**
   * The goals of a proof state (whose parts are borrowed). Goals of one step mostly share their
   * local context, so each context is read once.
   */
  function describeAll(mvarIds, state) {
    const contexts = new Map(); // address of a local context -> what was read of it
    const readers = [];
    const result = mvarIds.map((mvarId) => {
      const mctx = field(state.meta, META_STATE.mctx);
      const decl = findDecl(mctx, mvarId);
      if (decl === null) throw new Error(`unknown goal ${names.show(mvarId)}`);
      const lctx = field(decl, MVAR_DECL.lctx);
      let context = contexts.get(lctx);
      if (!context) {
        const reader = createReader(state, mctx, decl);
        readers.push(reader);
        context = { reader, hypotheses: readHypotheses(reader) };
        contexts.set(lctx, context);
      }
      return describe(mvarId, decl, mctx, context);
    });
    readers.forEach((reader) => reader.release());
    return result;
  }

  /** Reads expressions in the local context of a metavariable declaration. */
  function createReader(state, mctx, decl) {
    const lctx = sanitize(field(decl, MVAR_DECL.lctx), field(state.coreContext, CORE_CONTEXT.options));
    const monad = {
      meta: copyWith(state.metaContext, {
        [META_CONTEXT.lctx]: inc(lctx), [META_CONTEXT.localInstances]: inc(field(decl, MVAR_DECL.localInstances)),
      }),
      metaRef: makeRef(inc(state.meta)),
      core: inc(state.coreContext),
      coreRef: makeRef(inc(state.core)),
    };
    const shownNames = new Map(); // free variable -> shown name
    const visible = [];
    for (const d of declarations(lctx)) {
      const shown = names.show(field(d, LOCAL_DECL.userName));
      shownNames.set(names.show(field(d, LOCAL_DECL.fvarId)), shown);
      if (heap.scalar8(d, DECL_KIND) === 0) visible.push({ shown, decl: d });
    }
    const kept = [];
    const fvar = (name) => shownNames.get(names.show(name)) ?? `?${names.show(name)}`;

    /** { text, mvars } as of terms.canonical, and `shown` unless it is not wanted. */
    function read(e, wantShown = true) {
      const whole = instantiate(mctx, e);
      const { text, mvars, hasLevelMVar } = terms.canonical(whole, { fvar });
      const cacheable = mvars.length === 0 && !hasLevelMVar;
      const key = `${state.environment}\n${text}`;
      let shown = wantShown && cacheable ? printed.get(key) : undefined;
      if (wantShown && shown === undefined) {
        shown = print(whole, monad);
        if (cacheable) {
          printedSize += key.length + shown.length;
          if (printedSize > PRINTED_LIMIT) {
            printed = new Map();
            printedSize = key.length + shown.length;
          }
          printed.set(key, shown);
        }
      }
      kept.push(whole); // the names of its metavariables are borrowed from it
      return { text, mvars, shown };
    }

    const release = () => { for (const o of [monad.meta, monad.metaRef, monad.core, monad.coreRef, lctx, ...kept]) dec(o); };
    return { read, visible, release };
  }

  const readHypotheses = (reader) => reader.visible.map(({ shown, decl }) => ({
    name: shown,
    type: reader.read(field(decl, LOCAL_DECL.type)),
    value: tag(decl) === 1 ? reader.read(field(decl, LOCAL_DECL.value)) : null,
  }));

  /** One goal, given what was read of its context. */
  function describe(mvarId, decl, mctx, { reader, hypotheses }) {
    const numbers = new Map(); // metavariable -> number, in order of first occurrence
    const waiting = []; // metavariables whose types are still to be hashed
    const hash = createHash('sha256');
    const mention = (name) => {
      const key = names.show(name);
      if (!numbers.has(key)) {
        numbers.set(key, numbers.size);
        waiting.push(name);
      }
      return numbers.get(key);
    };
    const add = ({ text, mvars }) => hash.update(`${text}\u0001${mvars.map(mention).join()}\u0001`);

    for (const { name, type, value } of hypotheses) {
      hash.update(`h${name}\u0001`);
      add(type);
      if (value) add(value);
    }
    hash.update('⊢\u0001');
    const target = reader.read(field(decl, MVAR_DECL.type));
    add(target);
    while (waiting.length > 0) {
      const name = waiting.shift();
      const delayed = delayedTarget(mctx, name);
      if (delayed !== null) mention(delayed);
      const own = findDecl(mctx, name);
      if (own !== null) add(reader.read(field(own, MVAR_DECL.type), false));
    }
    const caseName = field(decl, MVAR_DECL.userName);
    return {
      id: names.show(mvarId),
      case: heap.isBox(caseName) ? null : names.show(caseName),
      hypotheses: hypotheses.map(({ name, type, value }) => ({
        name, type: type.shown, value: value ? value.shown : null, accessible: !name.includes('✝'),
      })),
      target: target.shown,
      metavariables: [...numbers.keys()],
      hash: hash.digest('hex'),
    };
  }

  /**
   * The first goal of a state by its terms: { target, hypotheses: [{ name, fvar, id, type, isLet, value }], unfold, print,
   * monadArgs, release }. Terms are without assigned metavariables and live until `release`; `unfold` gives what a type
   * says when its head is unfolded; `monadArgs` are arguments for operations in MetaM.
   */
  function firstOf(state) {
    const [mvarId] = heap.readList(state.goals);
    const mctx = field(state.meta, META_STATE.mctx);
    const decl = findDecl(mctx, mvarId);
    const lctx = sanitize(field(decl, MVAR_DECL.lctx), field(state.coreContext, CORE_CONTEXT.options));
    const kept = [lctx];
    const whole = (e) => {
      kept.push(instantiate(mctx, e));
      return kept[kept.length - 1];
    };
    const hypotheses = declarations(lctx).filter((d) => heap.scalar8(d, DECL_KIND) === 0).map((d) => ({
      name: names.show(field(d, LOCAL_DECL.userName)), fvar: names.show(field(d, LOCAL_DECL.fvarId)),
      id: field(d, LOCAL_DECL.fvarId), type: whole(field(d, LOCAL_DECL.type)), isLet: tag(d) === 1,
      value: tag(d) === 1 ? whole(field(d, LOCAL_DECL.value)) : 0,
    }));
    const monad = [
      copyWith(state.metaContext, {
        [META_CONTEXT.lctx]: inc(lctx), [META_CONTEXT.localInstances]: inc(field(decl, MVAR_DECL.localInstances)),
      }),
      makeRef(inc(state.meta)), inc(state.coreContext), makeRef(inc(state.core)),
    ];
    kept.push(...monad);
    const unfold = (e) => {
      try {
        const found = run('l_Lean_Meta_whnf', inc(e), ...monad.map(inc));
        kept.push(found);
        return found;
      } catch (error) {
        if (!(error instanceof calls.LeanException)) throw error;
        dec(error.object);
        return e;
      }
    };
    const shown = (e) => print(e, { meta: monad[0], metaRef: monad[1], core: monad[2], coreRef: monad[3] });
    return {
      target: whole(field(decl, MVAR_DECL.type)), hypotheses, unfold, print: shown, monadArgs: () => monad.map(inc),
      release: () => kept.forEach(dec),
    };
  }

  return { describeAll, firstOf, instantiate, print, declarations };
}

module.exports = { createGoals, META_STATE, META_CONTEXT, MVAR_DECL };
