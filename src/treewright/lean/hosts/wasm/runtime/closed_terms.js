'use strict';
/**
 * Closed terms: making them, and asking Lean about them.
 *
 * Everything here works by reduction, so it needs no compiled code. Each question to Lean has a limit, counted in
 * heartbeats (small allocations), so a term that computes for ever is a term without a value. Terms that are made live
 * until `release`, those of a cache until `end`.
 */
const { EXPR } = require('./terms.js');
const { CORE_STATE, CORE_CONTEXT } = require('./elaborator.js');
const { META_CONTEXT } = require('./goals.js');

const INDUCTIVE = 5; // tag of a ConstantInfo
const INDUCTIVE_VAL = { numParams: 1, numIndices: 2, constructors: 4 };
const CONSTRUCTOR_VAL = { numFields: 4 };
const REDUCTION_HEARTBEATS = 4e4; // of one reduction by the kernel: a tenth of a second, most of it for leaving a deep recursion
const ELABORATOR_HEARTBEATS = 1e6; // of one question to the elaborator; the search for an instance is one

function createClosedTerms(heap, calls, names, terms, environment, state, monadArgs) {
  const { inc, dec, field, tag, isBox } = heap;
  const { call, run, raw } = calls;
  const env = field(state.core, CORE_STATE.env);
  const kept = []; // until `release`
  const held = []; // until the end: what a cache refers to
  const keep = (o) => {
    kept.push(o);
    return o;
  };
  const hold = (o) => {
    held.push(o);
    return o;
  };
  const constructors = new Map(); // name of an inductive type -> [{ name, params, fields }] or null
  const zero = heap.global('l_Lean_Level_zero___override');
  let monad; // for closed terms: without the instances among the hypotheses, and with the limit
  {
    const [meta, metaRef, core, coreRef] = monadArgs();
    monad = [
      heap.copyWith(meta, { [META_CONTEXT.localInstances]: heap.array([]) }), metaRef,
      heap.copyWith(core, { [CORE_CONTEXT.maxHeartbeats]: heap.box(ELABORATOR_HEARTBEATS) }), coreRef,
    ].map(hold);
    [meta, core].forEach(dec);
  }

  const constant = (name, levels = []) => keep(call('l_Lean_Expr_const___override', names.parse(name), heap.list(levels.map(inc))));
  const apply = (f, ...args) => args.reduce((g, a) => keep(call('l_Lean_Expr_app___override', inc(g), inc(a))), f);
  const natural = (n) => keep(call('l_Lean_mkRawNatLit', heap.box(n)));
  const instantiate = (body, value) => keep(call('lean_expr_instantiate1', inc(body), inc(value)));
  const variable = (id) => keep(call('l_Lean_Expr_fvar___override', inc(id)));
  const replace = (e, variables, values) => keep(call(
    'l_Lean_Expr_replaceFVars', inc(e), heap.array(variables.map(inc)), heap.array(values.map(inc)),
  ));
  const lambda = (type, body) => keep(call('l_Lean_Expr_lam___override', names.parse('x'), inc(type), inc(body), heap.box(0)));

  const strip = (e) => {
    while (tag(e) === EXPR.mdata) e = field(e, 1);
    return e;
  };

  /** The function and the arguments of a borrowed application, in order. */
  function spine(e) {
    const args = [];
    for (e = strip(e); tag(e) === EXPR.app; e = strip(field(e, 0))) args.push(field(e, 1));
    return { head: e, name: tag(e) === EXPR.const ? names.show(field(e, 0)) : '', args: args.reverse() };
  }

  /** The result of an operation in MetaM, or 0 if Lean raises an error. */
  function attempt(name, ...args) {
    call('lean_io_set_heartbeats', inc(field(monad[2], CORE_CONTEXT.initHeartbeats)));
    try {
      return keep(run(name, ...args.map(inc), ...monad.map(inc)));
    } catch (error) {
      if (!(error instanceof calls.LeanException)) throw error;
      dec(error.object);
      return 0;
    }
  }

  /** A closed term without annotations, a `let` or an applied function at its head. */
  function exposed(e) {
    for (;;) {
      e = strip(e);
      if (tag(e) === EXPR.let) e = instantiate(field(e, 3), field(e, 2));
      else if (tag(e) === EXPR.app && tag(strip(spine(e).head)) === EXPR.lam) e = keep(call('l_Lean_Expr_headBeta', inc(e)));
      else return e;
    }
  }

  const whnf = (e) => attempt('l_Lean_Meta_whnf', e) || e;

  /** The weak head normal form by the kernel; 0 if the kernel raises an error, such as that its limit was reached. */
  function reduce(e) {
    raw('_ZN4lean15reset_heartbeatEv')();
    raw('lean_internal_set_max_heartbeat')(REDUCTION_HEARTBEATS);
    let result;
    try {
      result = call('l_Lean_Kernel_whnf', inc(env), call('lean_mk_empty_local_ctx', heap.box(0)), inc(e));
    } finally {
      raw('lean_internal_set_max_heartbeat')(0);
    }
    const value = tag(result) === 0 ? 0 : keep(inc(field(result, 0)));
    dec(result);
    return value;
  }

  /** An instance of a class, or 0. */
  function instance(type) {
    const found = attempt('l_Lean_Meta_synthInstance_x3f', type, heap.box(0));
    return found && !isBox(found) ? field(found, 0) : 0;
  }

  /** The constructors of an inductive type by its name, or null. */
  function constructorsOf(name) {
    if (constructors.has(name)) return constructors.get(name);
    const parsed = hold(names.parse(name));
    const info = environment.find(env, parsed);
    let found = null;
    if (info && hold(info) && tag(info) === INDUCTIVE) {
      const value = field(info, 0);
      found = heap.readList(field(value, INDUCTIVE_VAL.constructors)).map((c) => ({ name: c, shown: names.show(c) }));
      found.params = Number(terms.natural(field(value, INDUCTIVE_VAL.numParams)));
      found.indices = Number(terms.natural(field(value, INDUCTIVE_VAL.numIndices)));
      for (const one of found) {
        const details = hold(environment.find(env, one.name));
        one.fields = Number(terms.natural(field(field(details, 0), CONSTRUCTOR_VAL.numFields)));
        one.info = details;
        one.isRecursive = mentions(environment.typeOf(details), name, found.params);
      }
    }
    constructors.set(name, found);
    return found;
  }

  /** Whether a field of a constructor's borrowed type has a type with this name. */
  function mentions(type, name, params) {
    let at = 0;
    for (let e = type; tag(e) === EXPR.forall; e = field(e, 2), at++) {
      let used = false;
      if (at >= params) terms.eachConstant(field(e, 1), (n) => { used ||= names.show(n) === name; });
      if (used) return true;
    }
    return false;
  }

  /** Whether a closed type is a proposition. */
  function truthOfType(type) {
    const answer = attempt('l_Lean_Meta_isProp', type);
    return answer !== 0 && heap.unbox(answer) === 1;
  }

  /** A proof of a decidable closed proposition that is true, or 0. */
  function proof(type) {
    const decidable = instance(apply(constant('Decidable'), type));
    if (!decidable || !isTrue(apply(constant('Decidable.decide'), type, decidable))) return 0;
    const one = keep(call('l_Lean_Level_succ___override', inc(zero)));
    const refl = apply(constant('Eq.refl', [one]), constant('Bool'), constant('Bool.true'));
    return apply(constant('of_decide_eq_true'), type, decidable, refl);
  }

  const isTrue = (e) => nameOf(reduce(e)) === 'Bool.true';
  const nameOf = (e) => (e ? spine(e).name : '');

  /** Whether a decidable closed proposition is true: true, false, or null if that is not known. */
  function decide(type) {
    const decidable = instance(apply(constant('Decidable'), type));
    if (!decidable) return null;
    const name = nameOf(reduce(apply(constant('Decidable.decide'), type, decidable)));
    return name === 'Bool.true' ? true : name === 'Bool.false' ? false : null;
  }

  /** Frees the terms that were made since there were `from` of them. */
  const release = (from = 0) => { kept.splice(from).forEach(dec); };
  return {
    env, zero, constant, apply, natural, instantiate, variable, replace, lambda, strip, exposed, spine, whnf, attempt, reduce, instance,
    constructorsOf, truthOfType, proof, decide, keep, hold, mark: () => kept.length, release,
    end: () => { release(); held.forEach(dec); },
  };
}

module.exports = { createClosedTerms };
