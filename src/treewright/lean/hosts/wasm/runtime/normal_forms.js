'use strict';
/** Normal forms of closed terms of data, by which values are compared, and values as people write them. */
const { EXPR } = require('./terms.js');

const CONSTRUCTOR = 6; // tag of a ConstantInfo
const CONSTRUCTOR_VAL = { numParams: 3, numFields: 4 };
const LARGEST_NORMAL_FORM = 400; // constructors

/** `closed`: of closed_terms.js. */
function createNormalForms(heap, names, terms, environment, closed) {
  const { field, tag } = heap;
  const { env, zero, constant, apply, natural, lambda, strip, spine, attempt, reduce, instance, hold } = closed;
  const proofFields = new Map(); // a constructor with its levels -> [whether the field is a proof]

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

  return { normalize, presentable };
}

module.exports = { createNormalForms };
