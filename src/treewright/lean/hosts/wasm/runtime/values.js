'use strict';
/** Values of types, random ones or all of them. A `Values` object serves one request, and is what tests and explorations use. */
const { EXPR } = require('./terms.js');
const { createClosedTerms } = require('./closed_terms.js');
const { createNormalForms } = require('./normal_forms.js');

const MOST_TRIES = 4; // to find a value whose conditions hold
const MOST_VALUES = 40; // of a type whose values are listed
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
  const { inc, field, tag, isBox } = heap;
  const { call, truth } = calls;
  const closed = createClosedTerms(heap, calls, names, terms, environment, state, monadArgs);
  const { zero, constant, apply, natural, instantiate, lambda, strip, spine, whnf, attempt, instance, constructorsOf, truthOfType, proof, decide, keep } = closed;
  const { normalize, presentable } = createNormalForms(heap, names, terms, environment, closed);
  let numerals = []; // that random numbers should come near to

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

  /** Has random numbers come near to these. */
  const suggest = (numbers) => { numerals = numbers; };
  return { ...closed, random: random_, all, isProp, normalize, presentable, suggest };
}

module.exports = { createValues, createRandom, processorMs };
