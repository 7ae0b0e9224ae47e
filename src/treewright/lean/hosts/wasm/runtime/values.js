'use strict';
/**
 * Values of types: random ones, and the normal forms of closed terms.
 *
 * Everything here works on closed terms and by reduction, so it needs no compiled code. Terms that are made live
 * until `release`. A `Values` object serves one request.
 */
const { EXPR } = require('./terms.js');
const { CORE_STATE } = require('./elaborator.js');

const INDUCTIVE = 5; // tags of a ConstantInfo
const CONSTRUCTOR = 6;
const INDUCTIVE_VAL = { numParams: 1, numIndices: 2, constructors: 4 };
const CONSTRUCTOR_VAL = { induct: 1, numParams: 3, numFields: 4 };
const LARGEST_NORMAL_FORM = 400; // constructors
const MOST_TRIES = 4; // to find a value whose conditions hold
const BUILT_IN = new Set(['Nat', 'Int', 'Char', 'String']);

/** The processor time of this process in ms: limits by it hold on a busy machine, too. */
const processorMs = () => process.cpuUsage().user / 1000;

/** Small pseudo-random numbers from a seed (mulberry32). */
function createRandom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6D2B79F5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return { below: (n) => Math.floor(next() * n), pick: (items) => items[Math.floor(next() * items.length)] };
}

function createValues(heap, calls, names, terms, environment, state, monadArgs, random) {
  const { inc, dec, field, tag, isBox } = heap;
  const { call, run, truth } = calls;
  const env = field(state.core, CORE_STATE.env);
  const kept = [];
  const keep = (o) => {
    kept.push(o);
    return o;
  };
  const constructors = new Map(); // name of an inductive type -> [{ name, params, fields }] or null
  const proofFields = new Map(); // of a constructor -> [whether the field is a proof]

  // -- terms ----------------------------------------------------------------------------

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
    try {
      return keep(run(name, ...args.map(inc), ...monadArgs()));
    } catch (error) {
      if (!(error instanceof calls.LeanException)) throw error;
      dec(error.object);
      return 0;
    }
  }

  const whnf = (e) => attempt('l_Lean_Meta_whnf', e) || e;

  /** The weak head normal form by the kernel; 0 if the kernel raises an error. */
  function reduce(e) {
    const result = call('l_Lean_Kernel_whnf', inc(env), call('lean_mk_empty_local_ctx', heap.box(0)), inc(e));
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
    const parsed = keep(names.parse(name));
    const info = environment.find(env, parsed);
    let found = null;
    if (info && keep(info) && tag(info) === INDUCTIVE) {
      const value = field(info, 0);
      found = heap.readList(field(value, INDUCTIVE_VAL.constructors)).map((c) => ({ name: c, shown: names.show(c) }));
      found.params = Number(terms.natural(field(value, INDUCTIVE_VAL.numParams)));
      found.indices = Number(terms.natural(field(value, INDUCTIVE_VAL.numIndices)));
      for (const one of found) {
        const details = keep(environment.find(env, one.name));
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

  // -- random values --------------------------------------------------------------------

  /** A random value of a closed type, or 0 if none is known. `size` bounds its depth. */
  function random_(type, size) {
    const found = spine(type);
    return make(BUILT_IN.has(found.name) ? type : whnf(type), size);
  }

  function make(type, size) {
    type = strip(type);
    if (tag(type) === EXPR.sort) return isProp(type) ? constant(random.pick(['True', 'False'])) : constant('Nat');
    if (tag(type) === EXPR.forall) return makeFunction(type, size);
    const { head, name, args } = spine(type);
    switch (name) {
      case '': return 0;
      case 'Nat': return natural(random.below(size + 2));
      case 'Int': return apply(constant(random.below(3) ? 'Int.ofNat' : 'Int.negSucc'), natural(random.below(size + 2)));
      case 'Char': return apply(constant('Char.ofNat'), natural(97 + random.below(3)));
      case 'String': return keep(call('l_Lean_mkStrLit', heap.string(Array.from({ length: random.below(size + 1) }, () => random.pick('abc')).join(''))));
      default: return makeInductive(head, name, args, size);
    }
  }

  const isProp = (sort) => isBox(field(sort, 0)) || tag(field(sort, 0)) === 0;

  /** A function that ignores its argument, or gives it back. */
  function makeFunction(type, size) {
    const [domain, codomain] = [field(type, 1), field(type, 2)];
    if (truth('l_Lean_Expr_hasLooseBVars', inc(codomain))) return 0;
    const from = spine(domain).name;
    const to = spine(codomain).name;
    if (from === to && from !== '' && random.below(2)) return lambda(domain, keep(call('l_Lean_Expr_bvar___override', heap.box(0))));
    if (from === 'Nat' && to === 'Bool' && random.below(2)) {
      const test = random.pick(['Nat.beq', 'Nat.ble']);
      return lambda(domain, apply(constant(test), keep(call('l_Lean_Expr_bvar___override', heap.box(0))), natural(random.below(3))));
    }
    const value = random_(codomain, size);
    return value && lambda(domain, value);
  }

  function makeInductive(head, name, args, size) {
    const all = constructorsOf(name);
    if (!all || all.length === 0 || all.indices > 0) return 0;
    const simple = all.filter((c) => !c.isRecursive);
    const choices = size <= 0 && simple.length > 0 ? simple : all;
    for (let i = 0; i < MOST_TRIES; i++) {
      const value = build(random.pick(choices), head, args.slice(0, all.params), size - 1);
      if (value) return value;
      if (size < -MOST_TRIES) return 0;
    }
    return 0;
  }

  /** A constructor applied to random fields. */
  function build(chosen, head, params, size) {
    let value = apply(keep(call('l_Lean_Expr_const___override', inc(chosen.name), inc(field(head, 1)))), ...params);
    let type = attempt('l_Lean_Meta_inferType', value);
    for (let i = 0; i < chosen.fields && type; i++) {
      type = strip(type);
      if (tag(type) !== EXPR.forall) type = whnf(type);
      if (tag(type) !== EXPR.forall) return 0;
      const domain = field(type, 1);
      const one = truthOfType(domain) ? proof(domain) : random_(domain, size);
      if (!one) return 0;
      value = apply(value, one);
      type = instantiate(field(type, 2), one);
    }
    return type ? value : 0;
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
    const one = keep(call('l_Lean_Level_succ___override', inc(keep(heap.box(0)))));
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

  // -- normal forms ---------------------------------------------------------------------

  /** The normal form of a closed term of data: { key, term }, or null if it is none or too large. */
  function normalize(e, budget = { left: LARGEST_NORMAL_FORM }) {
    if (budget.left-- <= 0) return null;
    const reduced = reduce(e);
    if (!reduced) return null;
    const whole = strip(reduced);
    if (tag(whole) === EXPR.lit) {
      const literal = field(whole, 0);
      return { key: tag(literal) === 0 ? terms.natural(literal.value ?? field(literal, 0)) : JSON.stringify(heap.readString(field(literal, 0))), term: whole };
    }
    if (tag(whole) === EXPR.sort || tag(whole) === EXPR.forall || tag(whole) === EXPR.lam) return null;
    const { head, name, args } = spine(whole);
    if (name === 'Nat.zero') return { key: '0', term: natural(0) };
    if (name === 'Nat.succ') {
      const below = normalize(args[0], budget);
      return below && /^\d+$/.test(below.key) ? { key: String(BigInt(below.key) + 1n), term: whole } : null;
    }
    const info = name ? constructorInfo(head, name) : null;
    if (!info) return null;
    const fields = args.slice(info.params);
    if (fields.length !== info.fields) return null;
    const parts = [];
    let term = apply(head, ...args.slice(0, info.params));
    for (const [i, one] of fields.entries()) {
      if (isProofField(name, i, one)) {
        term = apply(term, one);
        continue;
      }
      const part = normalize(one, budget);
      if (!part) return null;
      parts.push(part.key);
      term = apply(term, part.term);
    }
    return { key: `${name}(${parts.join()})`, term };
  }

  const infos = new Map();

  function constructorInfo(head, name) {
    if (infos.has(name)) return infos.get(name);
    const info = environment.find(env, field(head, 0));
    let found = null;
    if (info && keep(info) && tag(info) === CONSTRUCTOR) {
      const value = field(info, 0);
      found = {
        params: Number(terms.natural(field(value, CONSTRUCTOR_VAL.numParams))),
        fields: Number(terms.natural(field(value, CONSTRUCTOR_VAL.numFields))),
      };
    }
    infos.set(name, found);
    return found;
  }

  function isProofField(name, at, value) {
    const known = proofFields.get(name) ?? [];
    if (known[at] === undefined) {
      const answer = attempt('l_Lean_Meta_isProof', value);
      known[at] = answer !== 0 && heap.unbox(answer) === 1;
      proofFields.set(name, known);
    }
    return known[at];
  }

  return {
    env, constant, apply, natural, instantiate, variable, replace, lambda, strip, spine, whnf, attempt, instance, constructorsOf,
    random: random_, truthOfType, decide, normalize, keep, release: () => { kept.forEach(dec); },
  };
}

module.exports = { createValues, createRandom, processorMs };
