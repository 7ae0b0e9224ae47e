'use strict';
/** What small terms about a goal are made of: its functions and their types, with names for variables. */
const { EXPR } = require('./terms.js');
const { BINDER_INFO } = require('./patterns.js');
const { INFIX } = require('./notation.js');

const DEFINITION = 1; // tags of a ConstantInfo
const CONSTRUCTOR = 6;
const EXPLICIT = 0; // BinderInfo
const MOST_FUNCTIONS = 14;
// Definitions by which Lean compiles others, and what says which case there is.
const AUXILIARY = /(^|\.)(_|match_\d|rec$|recOn$|casesOn$|brecOn$|below$|ite$|dite$|noConfusion)|^(Decidable|OfNat|PProd|PUnit|And|Or|Not|Eq|Ne|Iff|Exists|HEq|WellFounded|Acc|Inhabited|id|cond|outParam|sizeOf|SizeOf)(\.|$)/;

function createVocabulary(heap, calls, names, terms, environment) {
  const { field, tag, scalar8, inc } = heap;
  const { truth } = calls;

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

  return { instantiateTypes, createWorld, findFunctions };
}

module.exports = { createVocabulary };
