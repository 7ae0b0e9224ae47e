'use strict';
/**
 * Testing a goal on random values: is it false?
 *
 * The variables of the goal, and those that its target begins with, get values. Hypotheses and premises are evaluated,
 * then the conclusion. A conclusion that is certainly false while everything before it is certainly true is a
 * counterexample. Nothing is proved by a test.
 *
 * A proof among the values is `True.intro`, whatever it proves. It is only there if the proposition holds, and no value
 * depends on it: a term that computes with the proof itself has no normal form here, and is not known.
 */
const { EXPR } = require('./terms.js');
const { createValues, createRandom, processorMs } = require('./values.js');

const TRUE = 'true';
const FALSE = 'false';
const LIKELY = 'likely'; // no instance of a universal statement was false
const UNKNOWN = 'unknown';
const INSTANCES = 6; // of a quantifier inside of a proposition; half as many of one inside of that
const DEEPEST_UNFOLDING = 40;
const MOST_VARIABLES = 24;
const TRIES_PER_SAMPLE = 12; // to find values for which the hypotheses hold
const HOPELESS = 24; // assignments without one whose hypotheses could be evaluated
const LARGEST_NUMERAL = 2000; // of the goal, that values come near to

function createTester(heap, calls, names, terms, environment, goals) {
  const { field, tag, inc } = heap;
  const { truth } = calls;

  /**
   * { outcome: 'false' | 'passed' | 'unknown', tried, held, values: [{ name, kind, value }], reason }: how often the goal
   * was tried, how often its hypotheses held, and for a false goal the values that show it. Of the kinds `instance` and
   * `proof` there is no text.
   */
  function test(state, { samples, seed, ms }) {
    const first = goals.firstOf(state);
    const values = createValues(heap, calls, names, terms, environment, state, first.monadArgs, createRandom(seed));
    const end = processorMs() + ms;
    const result = { outcome: UNKNOWN, tried: 0, held: 0, values: [], reason: '' };
    try {
      values.suggest(numeralsOf([first.target, ...first.hypotheses.map((h) => h.type)]));
      const evaluate = createEvaluator(values, () => processorMs() > end);
      let evaluated = 0;
      while (result.held < samples && result.tried < samples * TRIES_PER_SAMPLE && processorMs() < end) {
        if (evaluated === 0 && result.tried >= HOPELESS) break;
        const size = 1 + Math.floor((6 * result.held) / samples) + (result.tried % 3);
        const start = values.mark();
        const tried = tryOnce(first, values, evaluate, size);
        result.tried++;
        if (tried.holds) result.held++;
        if (tried.holds || tried.wasEvaluated) evaluated++;
        if (tried.reason && result.outcome !== 'passed') result.reason = tried.reason;
        if (tried.answer === TRUE || tried.answer === LIKELY) [result.outcome, result.reason] = ['passed', ''];
        if (tried.answer === FALSE) {
          Object.assign(result, { outcome: 'false', reason: '' });
          result.values = tried.found.map(({ name, kind, value }) => ({ name, kind, value: kind === 'value' ? shown(first, values, value) : '' }));
          break;
        }
        values.release(start);
        if (tried.isFinal) break;
      }
    } finally {
      values.end();
      first.release();
    }
    return result;
  }

  /** A value as Lean reads it; what it leaves out are proofs of decidable propositions. */
  const shown = (first, values, value) => first.print(values.presentable(value)).replaceAll('⋯', 'by decide');

  /** The numbers in some terms: random values near them tell cases apart. */
  function numeralsOf(roots) {
    const found = new Set();
    const seen = new Set();
    const stack = [...roots];
    while (stack.length > 0) {
      const e = stack.pop();
      if (seen.has(e)) continue;
      seen.add(e);
      switch (tag(e)) {
        case EXPR.app: stack.push(field(e, 0), field(e, 1)); break;
        case EXPR.lam: case EXPR.forall: stack.push(field(e, 1), field(e, 2)); break;
        case EXPR.let: stack.push(field(e, 1), field(e, 2), field(e, 3)); break;
        case EXPR.mdata: stack.push(field(e, 1)); break;
        case EXPR.proj: stack.push(field(e, 2)); break;
        case EXPR.lit: {
          const literal = field(e, 0);
          const number = tag(literal) === 0 ? Number(terms.natural(field(literal, 0))) : 0;
          if (number > 1 && number <= LARGEST_NUMERAL) found.add(number);
          break;
        }
        default:
      }
    }
    return [...found];
  }

  /**
   * One assignment: { holds: whether all hypotheses held, answer: of the conclusion, found: the values }, or a reason why
   * there is no answer. The answer is only `FALSE` if nothing that it rests on is uncertain.
   */
  function tryOnce(first, values, evaluate, size) {
    const variables = [];
    const given = [];
    const found = [];
    let isCertain = true;
    /** The value for a variable or a hypothesis of a closed type: { value } or { reason }. */
    const choose = (name, type) => {
      if (!values.truthOfType(type)) {
        const instance = isClass(type, values) ? values.instance(type) : 0;
        const value = instance || values.random(type, size);
        if (!value) return { reason: `no values are known for ${name}` };
        found.push({ name, value, kind: instance ? 'instance' : 'value' });
        return { value };
      }
      const answer = evaluate(type, size);
      if (answer === FALSE) return { reason: 'the hypotheses never held', wasEvaluated: true };
      if (answer === UNKNOWN) return { reason: `${name} cannot be evaluated` };
      isCertain &&= answer === TRUE;
      found.push({ name, value: 0, kind: 'proof' });
      return { value: values.constant('True.intro') };
    };
    for (const h of first.hypotheses) {
      const put = (e) => values.replace(e, variables, given);
      const chosen = h.isLet ? { value: put(h.value) } : choose(h.name, put(h.type));
      if (!chosen.value) return { holds: false, ...chosen };
      variables.push(values.variable(h.id));
      given.push(chosen.value);
    }
    let target = values.exposed(values.replace(first.target, variables, given));
    for (let i = 0; i < MOST_VARIABLES && tag(target) === EXPR.forall; i++) {
      const chosen = choose(names.show(field(target, 0)), field(target, 1));
      if (!chosen.value) return { holds: false, ...chosen };
      target = values.exposed(values.instantiate(field(target, 2), chosen.value));
    }
    const quantified = [];
    const answer = evaluate(target, size, { witnesses: quantified });
    if (answer === FALSE && !isCertain) return { holds: true, reason: 'it is false for some values, if the hypotheses hold there' };
    if (answer === UNKNOWN) return { holds: true, reason: 'the target cannot be evaluated' };
    return { holds: true, answer, found: [...found, ...quantified], isFinal: found.length === 0 && answer === TRUE };
  }

  /** Whether a closed type is that of instances, such as `DecidablePred p`. */
  function isClass(type, values) {
    const found = values.attempt('l_Lean_Meta_isClass_x3f', type);
    return found !== 0 && !heap.isBox(found);
  }

  /**
   * Gives evaluate(e, size, { witnesses }): what is known of a closed proposition. `witnesses` gets the values that make
   * a `∀` false. After `isOver()` nothing more is known.
   */
  function createEvaluator(values, isOver) {
    const start = { witnesses: [], instances: INSTANCES, unfolded: 0 };
    const evaluate = (e, size, context = {}) => look(e, size, { ...start, ...context });
    const inside = (context) => ({ ...context, witnesses: [] });

    function look(e, size, context) {
      if (isOver()) return UNKNOWN;
      e = values.exposed(e);
      if (tag(e) === EXPR.forall) return forall(e, size, context);
      const { name, args } = values.spine(e);
      switch (`${name} ${args.length}`) {
        case 'True 0': return TRUE;
        case 'False 0': return FALSE;
        case 'And 2': return both(look(args[0], size, context), () => look(args[1], size, context));
        case 'Or 2': return either(look(args[0], size, inside(context)), () => look(args[1], size, inside(context)));
        case 'Not 1': return negate(look(args[0], size, inside(context)));
        case 'Iff 2': return same(look(args[0], size, inside(context)), look(args[1], size, inside(context)));
        case 'Ne 3': return negate(equal(args, size, context));
        case 'Eq 3': return equal(args, size, context);
        case 'Exists 2': return exists(e, args, size, context);
        default: return other(e, name, args, size, context);
      }
    }

    const both = (one, other) => {
      if (one === FALSE) return FALSE;
      const two = other();
      return two === FALSE ? FALSE : [one, two].includes(UNKNOWN) ? UNKNOWN : [one, two].includes(LIKELY) ? LIKELY : TRUE;
    };
    const either = (one, other) => {
      if (one === TRUE) return TRUE;
      const two = other();
      return two === TRUE ? TRUE : [one, two].includes(LIKELY) ? LIKELY : [one, two].includes(UNKNOWN) ? UNKNOWN : FALSE;
    };
    const negate = (answer) => ({ [TRUE]: FALSE, [FALSE]: TRUE })[answer] ?? UNKNOWN;
    const same = (one, two) => {
      if ([one, two].includes(UNKNOWN)) return UNKNOWN;
      if (one === LIKELY || two === LIKELY) return [one, two].includes(FALSE) ? UNKNOWN : LIKELY;
      return one === two ? TRUE : FALSE;
    };

    function equal([type, left, right], size, context) {
      if (values.truthOfType(type)) return TRUE; // two proofs of one proposition
      const kind = values.strip(values.whnf(type));
      if (tag(kind) === EXPR.sort) return values.isProp(kind) ? same(look(left, size, inside(context)), look(right, size, inside(context))) : UNKNOWN;
      if (tag(kind) === EXPR.forall) return equalFunctions(kind, left, right, size, context);
      const one = values.normalize(left);
      const two = one && values.normalize(right);
      if (two) return one.key === two.key ? TRUE : FALSE;
      return UNKNOWN;
    }

    function equalFunctions(type, left, right, size, context) {
      return instances(field(type, 1), size, context, (x) => (
        equal([values.instantiate(field(type, 2), x), values.apply(left, x), values.apply(right, x)], size, inside(context))
      )).answer;
    }

    /** What is known if a statement is looked at for values of a type: { answer, value: one for which it is false }. */
    function instances(type, size, context, at) {
      const listed = values.all(type);
      let answer = listed ? TRUE : LIKELY;
      const one = (x) => (isClass(type, values) && values.instance(type)) || x();
      for (let i = 0; i < (listed ? listed.length : context.instances); i++) {
        const x = listed ? listed[i] : one(() => values.random(type, size));
        if (!x || isOver()) return { answer: UNKNOWN };
        const found = at(x);
        if (found === FALSE) return { answer: FALSE, value: x };
        if (found === UNKNOWN) answer = UNKNOWN;
        else if (found === LIKELY && answer === TRUE) answer = LIKELY;
      }
      return { answer };
    }

    const deeper = (context) => ({ ...inside(context), instances: Math.max(2, Math.ceil(context.instances / 2)) });

    function forall(e, size, context) {
      const [domain, body] = [field(e, 1), field(e, 2)];
      if (values.truthOfType(domain)) {
        const premise = look(domain, size, inside(context));
        if (premise === FALSE) return TRUE;
        const inner = [];
        const rest = look(values.instantiate(body, values.constant('True.intro')), size, { ...context, witnesses: inner });
        if (rest === FALSE) context.witnesses.push({ name: names.show(field(e, 0)), value: 0, kind: 'proof' }, ...inner);
        if (rest === TRUE || rest === LIKELY) return rest;
        return premise === TRUE ? rest : UNKNOWN;
      }
      let inner = [];
      const { answer, value } = instances(domain, size, context, (x) => {
        inner = [];
        return look(values.instantiate(body, x), size, { ...deeper(context), witnesses: inner });
      });
      if (answer === FALSE) context.witnesses.push({ name: names.show(field(e, 0)), value, kind: isClass(domain, values) ? 'instance' : 'value' }, ...inner);
      if (answer !== LIKELY) return answer;
      return values.decide(e) ? TRUE : LIKELY;
    }

    function exists(e, [type, predicate], size, context) {
      const wide = { ...context, instances: 3 * context.instances };
      const { answer } = instances(type, size, wide, (x) => (
        negate(look(values.apply(predicate, x), size, deeper(context)))
      ));
      if (answer === TRUE || answer === FALSE) return negate(answer);
      const decided = values.decide(e);
      return decided === null ? UNKNOWN : decided ? TRUE : FALSE;
    }

    function other(e, name, args, size, context) {
      const decided = values.decide(e);
      if (decided !== null) return decided ? TRUE : FALSE;
      if (context.unfolded >= DEEPEST_UNFOLDING) return UNKNOWN;
      if (isClass(e, values) && values.instance(e)) return TRUE;
      const next = { ...context, unfolded: context.unfolded + 1 };
      const parts = name ? values.constructorsOf(name) : null;
      if (parts) return inductive(e, parts, args, size, next);
      const unfolded = values.attempt('l_Lean_Meta_unfoldDefinition_x3f', e, heap.box(0));
      if (unfolded && !heap.isBox(unfolded)) return look(field(unfolded, 0), size, next);
      const reduced = values.attempt('l_Lean_Meta_whnfCore', e);
      return reduced && !truth('l_Lean_Expr_eqv', inc(reduced), inc(e)) ? look(reduced, size, next) : UNKNOWN;
    }

    /** An inductive proposition without indices and recursion: one of its constructors must apply. */
    function inductive(e, constructors, args, size, context) {
      if (constructors.indices > 0 || constructors.some((c) => c.isRecursive)) return UNKNOWN;
      const { head } = values.spine(e);
      let answer = FALSE;
      for (const one of constructors) {
        const term = values.apply(values.keep(calls.call('l_Lean_Expr_const___override', inc(one.name), inc(field(head, 1)))), ...args.slice(0, constructors.params));
        const type = values.attempt('l_Lean_Meta_inferType', term);
        answer = either(answer, () => (type ? fields(type, one.fields, size, context) : UNKNOWN));
        if (answer === TRUE) return TRUE;
      }
      return answer;
    }

    /** Whether there are values for the fields of a constructor. */
    function fields(type, count, size, context) {
      if (count === 0) return TRUE;
      const e = values.exposed(type);
      if (tag(e) !== EXPR.forall) return UNKNOWN;
      const [domain, body] = [field(e, 1), field(e, 2)];
      if (values.truthOfType(domain)) {
        return both(look(domain, size, inside(context)), () => fields(values.instantiate(body, values.constant('True.intro')), count - 1, size, context));
      }
      return negate(instances(domain, size, context, (x) => negate(fields(values.instantiate(body, x), count - 1, size, deeper(context)))).answer);
    }

    return evaluate;
  }

  return { test };
}

module.exports = { createTester };
