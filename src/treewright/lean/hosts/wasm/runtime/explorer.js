'use strict';
/**
 * Equations that hold between small terms over the functions of a goal, as far as tests show.
 *
 * Terms are made by size from variables, constructors and functions, and evaluated on random values of the variables.
 * Two terms with the same values make an equation, and only the first is used in larger terms. Type variables are
 * evaluated as `Nat`. Nothing is proved here.
 */
const { EXPR } = require('./terms.js');
const { CORE_CONTEXT } = require('./elaborator.js');
const { BINDER_INFO } = require('./patterns.js');
const { INFIX } = require('./notation.js');
const { createShortNames } = require('./short_names.js');
const { createValues, createRandom, processorMs } = require('./values.js');

const DEFINITION = 1; // tags of a ConstantInfo
const CONSTRUCTOR = 6;
const EXPLICIT = 0; // BinderInfo
const MOST_FUNCTIONS = 14;
const VARIABLES = 3; // of each type
// Definitions by which Lean compiles others, and what says which case there is.
const AUXILIARY = /(^|\.)(_|match_\d|rec$|recOn$|casesOn$|brecOn$|below$|ite$|dite$|noConfusion)|^(Decidable|OfNat|PProd|PUnit|And|Or|Not|Eq|Ne|Iff|Exists|HEq|WellFounded|Acc|Inhabited|id|cond|outParam|sizeOf|SizeOf)(\.|$)/;

function createExplorer(heap, calls, names, terms, environment, goals) {
  const { field, tag, scalar8, inc } = heap;
  const { truth } = calls;
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

  /** Gives the function that puts `Nat` for the type variables of a goal, and instances for its instances. */
  function instantiateTypes(first, values) {
    const variables = [];
    const given = [];
    const put = (e) => values.replace(e, variables, given);
    for (const h of first.hypotheses) {
      const type = values.strip(put(h.type));
      let value = 0;
      if (tag(type) === EXPR.sort) value = values.constant('Nat');
      else {
        const { name } = values.spine(type);
        const parsed = values.keep(names.parse(name || 'x'));
        if (name && truth('l_Lean_isClass', inc(values.env), inc(parsed))) value = values.instance(type);
      }
      if (!value) continue;
      variables.push(values.variable(h.id));
      given.push(value);
    }
    return put;
  }

  /** The types of terms, each with its variables: { key, text, variables: [{ text, values }] }. */
  function createWorld(first, values, short, concrete) {
    const shown = new Map(first.hypotheses.map((h) => [h.fvar, h.name]));
    const fvar = (name) => shown.get(names.show(name)) ?? names.show(name);
    const types = new Map();
    const taken = new Set();

    function typeOf(e) {
      const { text: key } = terms.canonical(e, { fvar });
      if (!types.has(key)) types.set(key, { key, e, concrete: concrete(e), text: first.print(e), letters: lettersOf(e) });
      return types.get(key);
    }

    /** Names for the variables of a type. */
    function lettersOf(e) {
      const type = values.strip(e);
      const { name } = values.spine(type);
      const own = tag(type) === EXPR.forall ? ['f', 'g', 'h'] : lettersOfInductive(name);
      const free = own.every((letter) => !taken.has(letter)) ? own : own.map((letter) => `${letter}${taken.size}`);
      free.forEach((letter) => taken.add(letter));
      return free;
    }

    function lettersOfInductive(name) {
      const all = values.constructorsOf(name);
      if (name === 'Nat' || name === 'Int') return ['n', 'm', 'k'];
      if (!all || !all.some((c) => c.isRecursive)) return name === 'Bool' ? ['b', 'c', 'd'] : ['x', 'y', 'z'];
      if (all.every((c) => !c.isRecursive || c.fields === 1)) return ['n', 'm', 'k'];
      return all.some((c) => c.isRecursive && c.fields > 2) ? ['t', 's', 'r'] : ['xs', 'ys', 'zs'];
    }

    return { typeOf, short, concrete };
  }

  /**
   * The functions of a goal with their type arguments, those that these are defined by, and the constructors of their
   * types: [{ key, name, text, infix, concrete, argumentTypes, resultType, isConstructor }].
   */
  function findFunctions(first, values, world) {
    const found = new Map();
    const opened = new Set();
    const queue = [first.target, ...first.hypotheses.map((h) => h.type)];
    while (queue.length > 0 && found.size < MOST_FUNCTIONS) eachFunction(queue.shift(), values, (term, name) => {
      if (opened.has(term.key)) return;
      opened.add(term.key);
      const one = describe(term.e, name, values, world);
      if (one) found.set(term.key, one);
      const body = bodyOf(term, name, values);
      if (body) queue.push(body);
    });
    const functions = [...found.values()];
    for (const type of new Set(functions.flatMap((f) => [...f.argumentTypes, f.resultType]))) functions.push(...constructorsOf(type, values, world));
    const seen = new Set();
    return functions.filter((f) => !seen.has(f.key) && seen.add(f.key)).map((f, order) => ({ ...f, order }));
  }

  /** Calls visit({ e, key }, name) for each constant in a term with the implicit arguments that it is applied to. */
  function eachFunction(root, values, visit) {
    const seen = new Set();
    const walk = (e) => {
      e = values.strip(e);
      if (seen.has(e)) return;
      seen.add(e);
      switch (tag(e)) {
        case EXPR.app: case EXPR.const: {
          const { head, name, args } = values.spine(e);
          args.forEach(walk);
          if (name === '') { walk(head); return; }
          const implicit = countImplicit(name, values);
          if (implicit > args.length) return;
          const given = args.slice(0, implicit);
          if (given.some((a) => truth('l_Lean_Expr_hasLooseBVars', inc(a)))) return;
          const term = values.apply(head, ...given);
          visit({ e: term, head, given, key: terms.canonical(term, { fvar: (n) => names.show(n) }).text }, name);
          return;
        }
        case EXPR.lam: case EXPR.forall: walk(field(e, 1)); walk(field(e, 2)); return;
        case EXPR.let: walk(field(e, 2)); walk(field(e, 3)); return;
        case EXPR.proj: walk(field(e, 2)); return;
        default:
      }
    };
    walk(root);
  }

  /** The number of arguments before the first explicit one. */
  function countImplicit(name, values) {
    const parsed = values.keep(names.parse(name));
    const info = environment.find(values.env, parsed);
    if (!info) return 99;
    values.keep(info);
    let count = 0;
    for (let e = environment.typeOf(info); tag(e) === EXPR.forall && scalar8(e, BINDER_INFO) !== EXPLICIT; e = field(e, 2)) count++;
    return count;
  }

  /** The body of a definition of the text, for its implicit arguments; 0 for others. */
  function bodyOf({ head, given }, name, values) {
    const info = environment.find(values.env, field(head, 0));
    if (!info) return 0;
    values.keep(info);
    if (tag(info) !== DEFINITION || environment.isImported(values.env, field(head, 0))) return 0;
    let body = field(field(info, 0), 1);
    for (const a of given) {
      body = values.strip(body);
      if (tag(body) !== EXPR.lam) return 0;
      body = values.instantiate(field(body, 2), a);
    }
    return body;
  }

  function describe(e, name, values, world) {
    if (AUXILIARY.test(name) || /^inst|\.inst/.test(name)) return null;
    const parsed = values.keep(names.parse(name));
    if (truth('l_Lean_Meta_isInstanceCore', inc(values.env), inc(parsed))) return null;
    const type = values.attempt('l_Lean_Meta_inferType', e);
    if (!type) return null;
    const argumentTypes = [];
    let rest = values.strip(type);
    for (; tag(rest) === EXPR.forall; rest = values.strip(field(rest, 2))) {
      if (scalar8(rest, BINDER_INFO) !== EXPLICIT) return null;
      if (truth('l_Lean_Expr_hasLooseBVars', inc(field(rest, 1)))) return null;
      argumentTypes.push(field(rest, 1));
    }
    if (tag(rest) === EXPR.sort || truth('l_Lean_Expr_hasLooseBVars', inc(rest))) return null;
    if (argumentTypes.some((t) => isSortLike(t, values)) || values.truthOfType(rest)) return null;
    const isConstructor = kindOf(name, values) === CONSTRUCTOR;
    if (argumentTypes.length === 0 && !isConstructor && !isOwn(name, values)) return null;
    return {
      key: name + argumentTypes.length + world.typeOf(rest).key, name, concrete: world.concrete(e), text: world.short(name), infix: argumentTypes.length === 2 ? INFIX[name]?.[0] ?? '' : '',
      argumentTypes: argumentTypes.map(world.typeOf), resultType: world.typeOf(rest), isConstructor,
    };
  }

  /** The tag of a constant's ConstantInfo. */
  function kindOf(name, values) {
    const info = environment.find(values.env, values.keep(names.parse(name)));
    return info ? tag(values.keep(info)) : -1;
  }

  const isOwn = (name, values) => !environment.isImported(values.env, values.keep(names.parse(name)));

  const isSortLike = (type, values) => {
    const e = values.strip(type);
    return tag(e) === EXPR.sort || values.truthOfType(type);
  };

  function constructorsOf(type, values, world) {
    const { head, name, args } = values.spine(type.e);
    if (name === 'Nat') {
      return [
        { key: '0', name: 'Nat.zero', concrete: values.constant('Nat.zero'), text: '0', infix: '', argumentTypes: [], resultType: type, isConstructor: true },
        { key: 'succ', name: 'Nat.succ', concrete: values.constant('Nat.succ'), text: 'succ', infix: '', argumentTypes: [type], resultType: type, isConstructor: true },
      ];
    }
    const all = values.constructorsOf(name);
    if (!all || all.indices > 0 || ['Int', 'Char', 'String'].includes(name)) return [];
    return all.map((c) => {
      const term = values.apply(values.keep(calls.call('l_Lean_Expr_const___override', inc(c.name), inc(field(head, 1)))), ...args.slice(0, all.params));
      return describe(term, c.shown, values, world);
    }).filter((c) => c !== null);
  }

  // -- growing --------------------------------------------------------------------------

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
