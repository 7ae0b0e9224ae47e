'use strict';
/**
 * Equations that hold between small terms over the functions of a goal, as far as tests show.
 *
 * Terms are made by size from variables, constructors and functions, and evaluated on random values of the variables.
 * Two terms with the same values make an equation, and only the first is used in larger terms. Type variables are
 * evaluated as `Nat`. Nothing is proved here.
 */
const { CORE_CONTEXT } = require('./elaborator.js');
const { createShortNames } = require('./short_names.js');
const { createVocabulary } = require('./vocabulary.js');
const { createValues, createRandom, processorMs } = require('./values.js');

const VARIABLES = 3; // of each type

function createExplorer(heap, calls, names, terms, environment, goals) {
  const { field } = heap;
  const { instantiateTypes, createWorld, findFunctions } = createVocabulary(heap, calls, names, terms, environment);
  const createShortener = createShortNames(environment, names, heap, calls);

  /** { equations: [{ binders: [[name, type]], type, left, right, size, constructors, functions }], terms, functions, isComplete }. */
  function explore(state, { size: largest, samples, seed, ms, most }) {
    const first = goals.firstOf(state);
    const random = createRandom(seed);
    const values = createValues(heap, calls, names, terms, environment, state, first.monadArgs, random);
    const short = createShortener(values.env, names.show(field(state.coreContext, CORE_CONTEXT.currNamespace)), new Set(first.hypotheses.map((h) => h.name)));
    const end = processorMs() + ms;
    try {
      const concrete = instantiateTypes(first, values);
      const world = createWorld(first, values, short, concrete);
      const functions = findFunctions(first, values, world);
      const found = grow(functions, world, values, { largest, samples, end, most });
      return { ...found, functions: functions.map((f) => f.text) };
    } finally {
      values.end();
      first.release();
    }
  }

  function grow(functions, world, values, { largest, samples, end, most }) {
    const pool = new Map(); // type key -> size -> [term]
    const classes = new Map(); // type key and values -> term
    const results = new Map(); // function and values of its arguments -> value
    const equations = [];
    let count = 0;
    let isComplete = true;

    const keepTerm = (type, term) => {
      const signature = `${type.key}|${term.values.map((v) => v.key).join('|')}`;
      const known = classes.get(signature);
      count++;
      if (known) {
        if (!term.isVariable) enter(known, term, type);
        return;
      }
      classes.set(signature, term);
      const bySize = pool.get(type.key) ?? new Map();
      pool.set(type.key, bySize);
      bySize.set(term.size, [...(bySize.get(term.size) ?? []), term]);
    };

    function enter(known, term, type) {
      const sides = isAbove(known, term) ? [[known, term]] : isAbove(term, known) ? [[term, known]] : [[term, known], [known, term]];
      const fitting = sides.filter(([one, other]) => isWithin(other.variables, one.variables));
      if (fitting.length === 0) fitting.push(...[[term, known], [known, term]].filter(([one, other]) => isWithin(other.variables, one.variables)));
      const chosen = fitting.find(([one]) => isFirstNaming(one)); // where none is, the same equation comes with other names
      if (!chosen || chosen[0].variables.length === 0) return;
      const [left, right] = chosen;
      const binders = [...left.variables].map((v) => [v.text, v.type.text]);
      equations.push({ sides: [left, right], binders, type: type.text, left: left.text, right: right.text, size: left.size + right.size, constructors: left.constructors + right.constructors, functions: [...new Set([...left.functions, ...right.functions])] });
    }

    const types = [...new Set(functions.flatMap((f) => [...f.argumentTypes, f.resultType]))];
    for (const type of types) {
      if (values.truthOfType(type.concrete)) continue;
      const isArgument = functions.some((f) => f.argumentTypes.includes(type));
      for (const letter of isArgument ? type.letters.slice(0, VARIABLES) : []) {
        const own = sample(type, samples, values);
        if (own) keepTerm(type, { text: letter, size: 1, values: own, letter, variables: [{ text: letter, type }], functions: [], constructors: 0, isVariable: true });
      }
    }
    for (let size = 1; size <= largest; size++) {
      for (const f of functions) {
        for (const args of choices(f.argumentTypes, size - 1, pool)) {
          if (processorMs() > end || count > most) {
            isComplete = false;
            return { equations: mostGeneral(equations), terms: count, isComplete };
          }
          const term = applied(f, args, samples, results, values);
          if (term) keepTerm(f.resultType, term);
        }
      }
    }
    return { equations: mostGeneral(equations), terms: count, isComplete };
  }

  /** Random values of a type's variable, or null if none are known. */
  function sample(type, samples, values) {
    const found = [];
    for (let i = 0; i < samples; i++) {
      const value = values.random(type.concrete, 1 + (i % 4));
      if (!value) return null;
      const normal = values.normalize(value) ?? { key: `λ${i}${terms.canonical(value, { fvar: names.show }).text}`, term: value };
      found.push(normal);
    }
    return found;
  }

  /** All lists of terms of given types whose sizes add up to `size`. */
  function* choices(types, size, pool) {
    if (types.length === 0) {
      if (size === 0) yield [];
      return;
    }
    const [type, ...rest] = types;
    const bySize = pool.get(type.key);
    if (!bySize) return;
    for (let own = 1; own <= size - rest.length; own++) {
      for (const term of [...(bySize.get(own) ?? [])]) for (const others of choices(rest, size - own, pool)) yield [term, ...others];
    }
  }

  function applied(f, args, samples, results, values) {
    const found = [];
    for (let i = 0; i < samples; i++) {
      const given = args.map((a) => a.values[i]);
      const key = `${f.key}(${given.map((g) => g.key).join(';')})`;
      if (!results.has(key)) results.set(key, values.normalize(values.apply(f.concrete, ...given.map((g) => g.term))));
      const value = results.get(key);
      if (value === null) return null;
      found.push(value);
    }
    const variables = [];
    for (const a of args) for (const v of a.variables) if (!variables.some((w) => w.text === v.text)) variables.push(v);
    const group = (a) => (a.text.includes(' ') ? `(${a.text})` : a.text);
    let text = [f.text, ...args.map(group)].join(' ');
    if (f.infix) text = `${group(args[0])} ${f.infix} ${group(args[1])}`;
    if (f.name === 'Nat.succ') text = `${group(args[0])} + 1`;
    const functions = [...(f.isConstructor ? [] : [f.text]), ...args.flatMap((a) => a.functions)];
    const constructors = args.reduce((sum, a) => sum + a.constructors, f.isConstructor && f.argumentTypes.length > 0 ? 1 : 0);
    return { f, args, text, size: 1 + args.reduce((sum, a) => sum + a.size, 0), values: found, variables, functions, constructors };
  }

  /** Whether a term belongs on the left: its function is defined by that of the other term. */
  const isAbove = (one, other) => Boolean(one.f && other.f && !one.f.isConstructor && !other.f.isConstructor && one.f.order < other.f.order);

  /** Equations without those that are instances of others. */
  function mostGeneral(equations) {
    const kept = equations.filter(({ sides: [left, right] }, i) => !equations.some(({ sides }, j) => i !== j && (
      isInstance(sides, [left, right]) || isInstance(sides, [right, left])
    ) && !(j > i && (isInstance([left, right], sides) || isInstance([right, left], sides)))));
    return kept.map(({ sides, ...equation }) => equation);
  }

  /** Whether terms are an instance of others: those with terms for their variables. */
  function isInstance(patterns, found) {
    const bound = new Map();
    const matches = (pattern, term) => {
      if (pattern.letter !== undefined) {
        const known = bound.get(pattern.letter);
        if (known === undefined) bound.set(pattern.letter, term.text);
        return known === undefined ? pattern.variables[0].type === (term.f?.resultType ?? term.variables[0].type) : known === term.text;
      }
      return pattern.f === term.f && pattern.args.every((a, i) => matches(a, term.args[i]));
    };
    return patterns.every((pattern, i) => matches(pattern, found[i]));
  }

  const isWithin = (some, all) => some.every((v) => all.some((w) => w.text === v.text));

  /** Whether the variables of each type come in the order of their names: of equations that differ in names one is enough. */
  function isFirstNaming(term) {
    const next = new Map();
    return term.variables.every((v) => {
      const at = next.get(v.type.key) ?? 0;
      next.set(v.type.key, at + 1);
      return v.type.letters[at] === v.text;
    });
  }

  return { explore };
}

module.exports = { createExplorer };
