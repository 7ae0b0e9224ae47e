'use strict';
/**
 * Testing a goal on random values: is it false?
 *
 * Variables get values, hypotheses are evaluated, then the target. A value of the target that is certainly false
 * while every hypothesis is certainly true is a counterexample. Nothing is proved by a test.
 */
const { EXPR } = require('./terms.js');
const { createValues, createRandom, processorMs } = require('./values.js');

const TRUE = 'true';
const FALSE = 'false';
const LIKELY = 'likely'; // no instance of a universal statement was false
const UNKNOWN = 'unknown';
const INSTANCES = 6; // of a quantifier
const DEEPEST_UNFOLDING = 6;

function createTester(heap, calls, names, terms, environment, goals) {
  const { field, tag } = heap;
  const { truth } = calls;

  /**
   * { outcome: 'false' | 'passed' | 'unknown', tried, held, values: [{ name, value }], reason }: how often the goal
   * was tried, how often its hypotheses held, and for a false goal the values that show it.
   */
  function test(state, { samples, seed, ms }) {
    const first = goals.firstOf(state);
    const values = createValues(heap, calls, names, terms, environment, state, first.monadArgs, createRandom(seed));
    const evaluate = createEvaluator(values);
    const end = processorMs() + ms;
    const result = { outcome: UNKNOWN, tried: 0, held: 0, values: [], reason: '' };
    try {
      for (let i = 0; i < samples && processorMs() < end; i++) {
        const size = 1 + Math.floor((6 * i) / samples);
        const chosen = assign(first, values, evaluate, size);
        result.tried++;
        if (chosen.reason !== undefined) {
          result.reason = chosen.reason;
          if (chosen.isFinal) break;
          continue;
        }
        result.held++;
        const quantified = [];
        const answer = evaluate(chosen.put(first.target), size, quantified);
        if (answer === FALSE && chosen.isCertain) {
          const found = [...chosen.values, ...quantified];
          result.outcome = 'false';
          result.values = found.map(({ name, value, kind = 'value' }) => ({ name, kind, value: kind === 'value' ? first.print(value) : '' }));
          break;
        }
        if (answer === UNKNOWN) result.reason = 'the target cannot be evaluated';
        else result.outcome = 'passed';
      }
    } finally {
      values.release();
      first.release();
    }
    return result;
  }

  /** Values for the variables of a goal such that its hypotheses hold: { values, isCertain, put }, or { reason }. */
  function assign(first, values, evaluate, size) {
    const variables = [];
    const given = [];
    const shown = [];
    let isCertain = true;
    const put = (e) => values.replace(e, variables, given);
    for (const h of first.hypotheses) {
      const type = put(h.type);
      let value;
      if (h.isLet) value = put(h.value);
      else if (truth('l_Lean_Expr_isSort', heap.inc(type)) || !values.truthOfType(type)) {
        value = isClass(type, values) ? values.instance(type) : values.random(type, size);
        if (!value) return { reason: `no values are known for ${h.name}`, isFinal: true };
        shown.push({ name: h.name, value, kind: isClass(type, values) ? 'instance' : 'value' });
      } else {
        const answer = evaluate(type, size, []);
        if (answer === FALSE) return { reason: 'the hypotheses never held' };
        if (answer === UNKNOWN) return { reason: `${h.name} cannot be evaluated` };
        isCertain &&= answer === TRUE;
        value = values.constant('True.intro'); // stands for the proof, which nothing reduces
        shown.push({ name: h.name, value, kind: 'proof' });
      }
      variables.push(values.variable(h.id));
      given.push(value);
    }
    return { values: shown, isCertain, put };
  }

  function isClass(type, values) {
    const { name } = values.spine(type);
    if (!name) return false;
    const parsed = values.keep(names.parse(name));
    return truth('l_Lean_isClass', heap.inc(values.env), heap.inc(parsed));
  }

  /** evaluate(e, size, witnesses): what is known of a closed proposition; `witnesses` gets the values that make a `∀` false. */
  function createEvaluator(values) {
    function evaluate(e, size, witnesses, depth = 0) {
      e = values.strip(e);
      if (tag(e) === EXPR.forall) return forall(e, size, witnesses, depth);
      const { name, args } = values.spine(e);
      switch (`${name} ${args.length}`) {
        case 'True 0': return TRUE;
        case 'False 0': return FALSE;
        case 'And 2': return both(evaluate(args[0], size, witnesses, depth), () => evaluate(args[1], size, witnesses, depth));
        case 'Or 2': return negate(both(
          negate(evaluate(args[0], size, [], depth)), () => negate(evaluate(args[1], size, [], depth)),
        ));
        case 'Not 1': return negate(evaluate(args[0], size, [], depth));
        case 'Iff 2': return same(evaluate(args[0], size, [], depth), evaluate(args[1], size, [], depth));
        case 'Ne 3': return negate(equal(args, size, depth));
        case 'Eq 3': return equal(args, size, depth);
        case 'Exists 2': return exists(args, size, depth);
        default: return other(e, size, witnesses, depth);
      }
    }

    const both = (one, other) => {
      if (one === FALSE) return FALSE;
      const two = other();
      return two === FALSE ? FALSE : [one, two].includes(UNKNOWN) ? UNKNOWN : [one, two].includes(LIKELY) ? LIKELY : TRUE;
    };
    const negate = (answer) => ({ [TRUE]: FALSE, [FALSE]: TRUE })[answer] ?? UNKNOWN;
    const same = (one, two) => ([one, two].every((a) => a === TRUE || a === FALSE) ? (one === two ? TRUE : FALSE) : UNKNOWN);

    function equal([type, left, right], size, depth) {
      const kind = values.strip(type);
      if (tag(kind) === EXPR.sort) return same(evaluate(left, size, [], depth), evaluate(right, size, [], depth));
      if (tag(kind) === EXPR.forall) return equalFunctions(kind, left, right, size, depth);
      const one = values.normalize(left);
      const two = one && values.normalize(right);
      if (two) return one.key === two.key ? TRUE : FALSE;
      return UNKNOWN;
    }

    function equalFunctions(type, left, right, size, depth) {
      for (let i = 0; i < INSTANCES; i++) {
        const x = values.random(field(type, 1), size);
        if (!x) return UNKNOWN;
        const answer = equal([values.instantiate(field(type, 2), x), values.apply(left, x), values.apply(right, x)], size, depth);
        if (answer !== TRUE && answer !== LIKELY) return answer;
      }
      return LIKELY;
    }

    function forall(e, size, witnesses, depth) {
      const [domain, body] = [field(e, 1), field(e, 2)];
      if (values.truthOfType(domain)) {
        const premise = evaluate(domain, size, [], depth);
        if (premise === FALSE) return TRUE;
        const rest = evaluate(values.instantiate(body, values.constant('True.intro')), size, witnesses, depth);
        if (rest === TRUE || rest === LIKELY) return rest;
        return premise === TRUE ? rest : UNKNOWN;
      }
      let answer = LIKELY;
      for (let i = 0; i < INSTANCES; i++) {
        const x = isClass(domain, values) ? values.instance(domain) : values.random(domain, size);
        if (!x) return UNKNOWN;
        const inner = [];
        const one = evaluate(values.instantiate(body, x), size, inner, depth);
        if (one === FALSE) {
          witnesses.push({ name: names.show(field(e, 0)), value: x }, ...inner);
          return FALSE;
        }
        if (one === UNKNOWN) answer = UNKNOWN;
      }
      return answer;
    }

    function exists([type, predicate], size, depth) {
      for (let i = 0; i < 3 * INSTANCES; i++) {
        const x = values.random(type, size);
        if (!x) return UNKNOWN;
        const body = values.strip(predicate);
        const one = tag(body) === EXPR.lam ? values.instantiate(field(body, 2), x) : values.apply(body, x);
        if (evaluate(one, size, [], depth) === TRUE) return TRUE;
      }
      return UNKNOWN;
    }

    function other(e, size, witnesses, depth) {
      const decided = values.decide(e);
      if (decided !== null) return decided ? TRUE : FALSE;
      if (depth >= DEEPEST_UNFOLDING) return UNKNOWN;
      const unfolded = values.attempt('l_Lean_Meta_unfoldDefinition_x3f', e, heap.box(0));
      if (!unfolded || heap.isBox(unfolded)) return UNKNOWN;
      return evaluate(field(unfolded, 0), size, witnesses, depth + 1);
    }

    return evaluate;
  }

  return { test };
}

module.exports = { createTester };
