'use strict';
/**
 * Values of types: random ones, and the normal forms of closed terms.
 *
 * Everything here works on closed terms and by reduction, so it needs no compiled code. Each question to Lean has a
 * limit, counted in heartbeats (small allocations), so a term that computes for ever is a term without a value.
 * Terms that are made live until `release`. A `Values` object serves one request.
 */
const { EXPR } = require('./terms.js');
const { CORE_STATE, CORE_CONTEXT } = require('./elaborator.js');
const { META_CONTEXT } = require('./goals.js');

const INDUCTIVE = 5; // tags of a ConstantInfo
const CONSTRUCTOR = 6;
const INDUCTIVE_VAL = { numParams: 1, numIndices: 2, constructors: 4 };
const CONSTRUCTOR_VAL = { induct: 1, numParams: 3, numFields: 4 };
const LARGEST_NORMAL_FORM = 400; // constructors
const MOST_TRIES = 4; // to find a value whose conditions hold
const MOST_VALUES = 40; // of a type whose values are listed
const REDUCTION_HEARTBEATS = 4e4; // of one reduction by the kernel: a tenth of a second, most of it for leaving a deep recursion
const ELABORATOR_HEARTBEATS = 1e6; // of one question to the elaborator; the search for an instance is one
const BUILT_IN = new Set(['Nat', 'Int', 'Char', 'String', 'Fin']);

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
  const { call, run, raw, truth } = calls;
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
  const proofFields = new Map(); // a constructor with its levels -> [whether the field is a proof]
  const zero = heap.global('l_Lean_Level_zero___override');
  let numerals = []; // that random numbers should come near to
  let monad; // for closed terms: without the instances among the hypotheses, and with the limit
  {
    const [meta, metaRef, core, coreRef] = monadArgs();
    monad = [
      heap.copyWith(meta, { [META_CONTEXT.localInstances]: heap.array([]) }), metaRef,
      heap.copyWith(core, { [CORE_CONTEXT.maxHeartbeats]: heap.box(ELABORATOR_HEARTBEATS) }), coreRef,
    ].map(hold);
    [meta, core].forEach(dec);
  }

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

  // -- random values --------------------------------------------------------------------

  /** A random value of a closed type, or 0 if none is known. `size` bounds its depth. */
  function random_(type, size) {
    const found = spine(type);
    return make(BUILT_IN.has(found.name) ? type : whnf(type), size);
  }

  function make(type, size) {
    type = strip(type);
    if (tag(type) === EXPR.sort) return makeType(type);
    if (tag(type) === EXPR.forall) return makeFunction(type, size);
    const { head, name, args } = spine(type);
    switch (name) {
      case '': return 0;
      case 'Nat': return natural(makeNumber(size));
      case 'Int': return integer(random.below(3) ? makeNumber(size) : -1 - makeNumber(size));
      case 'Char': return apply(constant('Char.ofNat'), natural(97 + random.below(3)));
      case 'String': return keep(call('l_Lean_mkStrLit', heap.string(Array.from({ length: random.below(size + 1) }, () => random.pick('abc')).join(''))));
      case 'Fin': return makeFin(type, args[0]);
      default: return makeInductive(head, name, args, size);
    }
  }

  const integer = (n) => (n >= 0 ? apply(constant('Int.ofNat'), natural(n)) : apply(constant('Int.negSucc'), natural(-n - 1)));

  /** A small number, or sometimes one near a number of the goal. */
  function makeNumber(size) {
    if (numerals.length > 0 && size > 1 && random.below(4) === 0) return Math.max(0, random.pick(numerals) + random.below(size + 2) - 1);
    return random.below(size + 2);
  }

  /** A number below a closed bound. */
  function makeFin(type, bound) {
    const size = normalize(bound);
    if (!size || size.key === '0' || size.key.length > 6) return 0;
    return build(constructorsOf('Fin')[0], spine(type).head, [bound], 0, [natural(random.below(Number(size.key)))]);
  }

  const isProp = (sort) => highest(field(sort, 0)) === 0;

  /** `Prop` has two values; of a sort that may be `Type`, numbers and truth values are members. */
  function makeType(sort) {
    if (isProp(sort)) return constant(random.pick(['True', 'False']));
    const level = field(sort, 0);
    return lowest(level) <= 1 && highest(level) >= 1 ? constant(random.pick(['Nat', 'Nat', 'Bool'])) : 0;
  }

  /** The lowest and the highest number that a borrowed level can be. */
  function lowest(l) {
    switch (isBox(l) ? 0 : tag(l)) {
      case 1: return 1 + lowest(field(l, 0));
      case 2: return Math.max(lowest(field(l, 0)), lowest(field(l, 1)));
      case 3: return lowest(field(l, 1)) === 0 ? 0 : Math.max(lowest(field(l, 0)), lowest(field(l, 1)));
      default: return 0;
    }
  }

  function highest(l) {
    switch (isBox(l) ? 0 : tag(l)) {
      case 0: return 0;
      case 1: return 1 + highest(field(l, 0));
      case 2: return Math.max(highest(field(l, 0)), highest(field(l, 1)));
      case 3: return highest(field(l, 1)) === 0 ? 0 : Math.max(highest(field(l, 0)), highest(field(l, 1)));
      default: return Infinity;
    }
  }

  /** A function: constant, an argument of its own, or one that tells a value from the others. */
  function makeFunction(type, size) {
    const [domain, codomain] = [field(type, 1), field(type, 2)];
    if (truth('l_Lean_Expr_hasLooseBVars', inc(codomain))) return 0;
    const bound = (n) => keep(call('l_Lean_Expr_bvar___override', heap.box(n)));
    const same = (one, other) => truth('l_Lean_Expr_eqv', inc(strip(one)), inc(strip(other)));
    if (same(domain, codomain) && random.below(2)) {
      if (spine(domain).name === 'Nat' && random.below(2)) return lambda(domain, apply(constant('Nat.succ'), bound(0)));
      return lambda(domain, bound(0));
    }
    const inner = strip(codomain);
    if (tag(inner) === EXPR.forall && same(domain, field(inner, 2)) && random.below(3) === 0) return lambda(domain, lambda(field(inner, 1), bound(1)));
    const value = random_(codomain, size);
    if (!value) return 0;
    if (truthOfType(domain) || random.below(2)) return lambda(domain, value);
    const decidable = instance(apply(constant('DecidableEq', [levelOf(domain)]), domain));
    const argument = decidable && random_(domain, size);
    const other = argument && random_(codomain, size);
    if (!other) return lambda(domain, value);
    const isArgument = apply(constant('Eq', [levelOf(domain)]), domain, bound(0), argument);
    return lambda(domain, apply(constant('ite', [levelOf(codomain)]), codomain, isArgument, apply(decidable, bound(0), argument), other, value));
  }

  /** The level of the sort of a closed type; that of `Type` if Lean cannot say it. */
  const levelOf = (type) => attempt('l_Lean_Meta_getLevel', type) || keep(call('l_Lean_Level_succ___override', inc(zero)));

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

  /** All values of a closed type, or null if they are not known or too many. */
  function all(type, most = MOST_VALUES) {
    if (most <= 0) return null;
    type = strip(BUILT_IN.has(spine(type).name) ? type : whnf(type));
    if (tag(type) === EXPR.sort) return isProp(type) ? [constant('True'), constant('False')] : null;
    const { head, name, args } = spine(type);
    if (name === 'Fin') {
      const bound = normalize(args[0]);
      if (!bound || Number(bound.key) > most) return null;
      const found = Array.from({ length: Number(bound.key) }, (_, i) => build(constructorsOf('Fin')[0], head, [args[0]], 0, [natural(i)]));
      return found.every((v) => v) ? found : null;
    }
    const known = BUILT_IN.has(name) || !name ? null : constructorsOf(name);
    if (!known || known.indices > 0 || known.some((c) => c.isRecursive)) return null;
    const found = [];
    for (const one of known) {
      let partial = [{ value: apply(keep(call('l_Lean_Expr_const___override', inc(one.name), inc(field(head, 1)))), ...args.slice(0, known.params)) }];
      for (let i = 0; i < one.fields; i++) {
        const next = [];
        for (const { value } of partial) {
          let rest = attempt('l_Lean_Meta_inferType', value);
          rest = rest && strip(tag(strip(rest)) === EXPR.forall ? rest : whnf(rest));
          if (!rest || tag(rest) !== EXPR.forall) return null;
          const domain = field(rest, 1);
          if (truthOfType(domain)) {
            const holds = decide(domain);
            if (holds === null) return null;
            if (holds) next.push({ value: apply(value, proof(domain)) });
            continue;
          }
          const choices = all(domain, most - found.length);
          if (!choices) return null;
          next.push(...choices.map((c) => ({ value: apply(value, c) })));
        }
        if (next.length + found.length > most) return null;
        partial = next;
      }
      found.push(...partial.map(({ value }) => value));
    }
    return found.length > most ? null : found;
  }

  /** A constructor applied to fields: the given ones first, then random ones. */
  function build(chosen, head, params, size, given = []) {
    let value = apply(keep(call('l_Lean_Expr_const___override', inc(chosen.name), inc(field(head, 1)))), ...params);
    let type = attempt('l_Lean_Meta_inferType', value);
    for (let i = 0; i < chosen.fields && type; i++) {
      type = strip(type);
      if (tag(type) !== EXPR.forall) type = whnf(type);
      if (tag(type) !== EXPR.forall) return 0;
      const domain = field(type, 1);
      const one = given[i] ?? (truthOfType(domain) ? proof(domain) : random_(domain, size));
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
      if (isProofField(head, name, i, one)) {
        term = apply(term, one);
        continue;
      }
      const part = normalize(one, budget);
      if (!part) return null;
      parts.push(part.key);
      term = apply(term, part.term);
    }
    const key = `${name}(${parts.join()})`;
    return { key: name === 'String.ofByteArray' ? textOf(key) : key, term };
  }

  /** The key of a text that was computed as bytes: that of the literal with the same characters. */
  const textOf = (key) => JSON.stringify(Buffer.from([...key.matchAll(/Fin\.mk\((\d+)/g)].map((m) => Number(m[1]))).toString('utf8'));

  const infos = new Map();

  function constructorInfo(head, name) {
    if (infos.has(name)) return infos.get(name);
    const info = environment.find(env, field(head, 0));
    let found = null;
    if (info && hold(info) && tag(info) === CONSTRUCTOR) {
      const value = field(info, 0);
      found = {
        params: Number(terms.natural(field(value, CONSTRUCTOR_VAL.numParams))),
        fields: Number(terms.natural(field(value, CONSTRUCTOR_VAL.numFields))),
      };
    }
    infos.set(name, found);
    return found;
  }

  /** Whether a field of a constructor is a proof. That depends on its levels too: `PProd` holds proofs or data. */
  function isProofField(head, name, at, value) {
    const levels = heap.isBox(field(head, 1)) ? '' : terms.canonical(head, { fvar: names.show }).text;
    const known = proofFields.get(name + levels) ?? [];
    if (known[at] === undefined) {
      const answer = attempt('l_Lean_Meta_isProof', value);
      known[at] = answer !== 0 && heap.unbox(answer) === 1;
      proofFields.set(name + levels, known);
    }
    return known[at];
  }

  /** A value as people write it: numbers for integers and members of `Fin`, lists in brackets. */
  function presentable(value) {
    const e = strip(value);
    if (tag(e) === EXPR.lam) return lambda(field(e, 1), presentable(field(e, 2)));
    if (tag(e) !== EXPR.app) return e;
    const { head, name, args } = spine(e);
    const numeral = (type, n) => {
      const found = instance(apply(constant('OfNat', [zero]), type, n));
      return found ? apply(constant('OfNat.ofNat', [zero]), type, n, found) : e;
    };
    const isLiteral = (n) => tag(strip(n)) === EXPR.lit;
    if (name === 'Int.ofNat' && isLiteral(args[0])) return numeral(constant('Int'), args[0]);
    if (name === 'Int.negSucc' && isLiteral(args[0])) {
      const negation = instance(apply(constant('Neg', [zero]), constant('Int')));
      const positive = numeral(constant('Int'), natural(1 + Number(terms.natural(field(field(strip(args[0]), 0), 0)))));
      return negation ? apply(constant('Neg.neg', [zero]), constant('Int'), negation, positive) : e;
    }
    if (name === 'Fin.mk' && isLiteral(args[1])) return numeral(apply(constant('Fin'), args[0]), args[1]);
    if (name === 'Array.mk') return apply(constant('List.toArray', heap.readList(field(head, 1))), args[0], presentable(args[1]));
    return apply(head, ...args.map(presentable));
  }

  /** Has random numbers come near to these. */
  const suggest = (numbers) => { numerals = numbers; };

  /** Frees the terms that were made since there were `from` of them. */
  const release = (from = 0) => { kept.splice(from).forEach(dec); };

  return {
    env, constant, apply, natural, instantiate, variable, replace, lambda, strip, exposed, spine, whnf, attempt, instance, constructorsOf,
    random: random_, all, isProp, truthOfType, decide, normalize, presentable, suggest, keep, mark: () => kept.length, release,
    end: () => { release(); held.forEach(dec); },
  };
}

module.exports = { createValues, createRandom, processorMs };
