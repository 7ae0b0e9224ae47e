'use strict';
/** What the variables and definitions in a goal are: how values are taken apart, what can be unfolded. */
const { EXPR } = require('./terms.js');
const { isVariable, NO_CONSTANT } = require('./outlines.js');
const { BINDER_INFO, INSTANCE } = require('./patterns.js');

const DEFINITION = 1; // tags of a ConstantInfo
const INDUCTIVE = 5;
const CONSTRUCTOR = 6;
const EXPLICIT = 0; // BinderInfo
const INDUCTIVE_VAL = { numIndices: 2 };
const MOST_REACHABLE = 16;
const GENERATED = /(^|\.)(_|match_\d|rec$|recOn$|casesOn$|brecOn|below|noConfusion|ctorIdx|toCtorIdx|ctorElim|sizeOf|inst[A-Z])/; // by Lean, for a definition or type

function createVariables(heap, calls, names, terms, environment, patterns) {
  const { field, tag, scalar8, inc, dec } = heap;
  const { truth } = calls;

  /** How often a variable stands where an equation of the text wants a constructor: what induction on it lets one rewrite. */
  function drivenBy(target, known) {
    known.wanted ??= new Set(known.own.filter((lemma) => lemma.conclusion.head === 'Eq').flatMap(({ conclusion }) => {
      const left = conclusion.args[1];
      return left.args.map((a, i) => (isMade(a, known) ? `${left.head}#${i}` : '')).filter((key) => key !== '');
    }));
    const found = new Map();
    patterns.eachPart(target, (part) => part.args.forEach((a, i) => {
      if (isVariable(a) && known.wanted.has(`${part.head}#${i}`)) found.set(a.head, (found.get(a.head) ?? 0) + 1);
    }));
    return found;
  }

  const isMade = (node, known) => node.head === 'OfNat.ofNat'
    || (!NO_CONSTANT.test(node.head) && known.constants.typed(node.head, (_, info) => tag(info) === CONSTRUCTOR, false));

  /**
   * How a value of an inductive type is taken apart: { type, plain, recursive, alternatives: [{ name, fields: [{ name, hypothesis }] }] }.
   * `plain`: its indices are variables, so that induction works on it as it is.
   */
  function eliminatorOf(h, node, state, known) {
    if (NO_CONSTANT.test(node.head)) return null;
    const env = field(state.core, 0);
    if (!known.eliminators.has(node.head)) known.eliminators.set(node.head, readEliminator(node.head, env, known));
    const found = known.eliminators.get(node.head);
    if (!found) return null;
    const indices = found.indices > 0 ? node.args.slice(-found.indices) : [];
    const distinct = new Set(indices.map((i) => i.id));
    const plain = indices.every((i) => isVariable(i)) && distinct.size === indices.length;
    return { type: node.head, plain, recursive: found.recursive, alternatives: found.alternatives };
  }

  function readEliminator(name, env, known) {
    const parsed = names.parse(name);
    const info = environment.find(env, parsed);
    const isClass = truth('l_Lean_isClass', inc(env), parsed);
    if (!info) return null;
    const isType = tag(info) === INDUCTIVE && !isClass;
    const indices = isType ? Number(terms.natural(field(field(info, 0), INDUCTIVE_VAL.numIndices))) : 0;
    dec(info);
    if (!isType) return null;
    const alternatives = known.constants.typed(`${name}.rec`, readAlternatives, null);
    if (!alternatives) return null;
    return { indices, alternatives, recursive: alternatives.some((a) => a.fields.some((f) => f.hypothesis)) };
  }

  /** The minor premises of a recursor's borrowed type. */
  function readAlternatives(type) {
    const binders = [];
    let e = type;
    for (; tag(e) === EXPR.forall; e = field(e, 2)) binders.push([names.show(field(e, 0)), field(e, 1)]);
    const motive = binders.findIndex(([shown]) => /^motive/.test(shown));
    if (motive < 0) return null;
    const alternatives = [];
    binders.forEach(([shown, t], at) => {
      if (at <= motive) return;
      const fields = [];
      let depth = at;
      let inner = t;
      for (; tag(inner) === EXPR.forall; inner = field(inner, 2), depth++) {
        if (scalar8(inner, BINDER_INFO) !== EXPLICIT) continue; // an alternative names only what is explicit
        fields.push({ name: names.show(field(inner, 0)), hypothesis: isMotive(field(inner, 1), depth, motive) });
      }
      if (isMotive(inner, depth, motive)) alternatives.push({ name: shown, fields });
    });
    return alternatives;
  }

  function isMotive(type, depth, motive) {
    let e = type;
    for (; tag(e) === EXPR.forall; e = field(e, 2)) depth++;
    while (tag(e) === EXPR.app) e = field(e, 0);
    return tag(e) === EXPR.bvar && depth - 1 - Number(terms.natural(field(e, 0))) === motive;
  }

  /** Definitions of the text and its project that the goal mentions: in the target first. */
  function definitionsIn(goal, env, known) {
    const found = new Map();
    const look = (node, seen) => {
      if (seen.has(node.id)) return;
      seen.add(node.id);
      if (!found.has(node.head) && isDefinition(node.head, env, known)) found.set(node.head, found.size);
      node.args.forEach((a) => look(a, seen));
    };
    const seen = new Set();
    if (goal.target) look(goal.target, seen);
    goal.facts.forEach((fact) => look(fact.node, seen));
    return [...found.keys()];
  }

  /** Definitions of the text and its project by which these are defined, themselves included. */
  function reachableFrom(definitions, env, known) {
    const found = new Set(definitions);
    for (const head of found) {
      if (found.size >= MOST_REACHABLE) break;
      known.constants.typed(head, (_, info) => terms.eachConstant(field(field(info, 0), 1), (n) => {
        const shown = names.show(n);
        if (found.size < MOST_REACHABLE && !GENERATED.test(shown) && isDefinition(shown, env, known)) found.add(shown);
      }), null);
    }
    return [...found];
  }

  /** Calls in the target of recursive definitions of the text whose explicit arguments are variables: [{ function, arguments }]. */
  function recursiveCalls(goal, env, known) {
    const found = new Map();
    if (goal.target) patterns.eachPart(goal.target, (part) => {
      if (!isDefinition(part.head, env, known) || !isRecursive(part.head, known)) return;
      const infos = known.constants.infos(part.head).filter((info) => info !== INSTANCE);
      const explicit = part.args.filter((_, i) => (infos[i] ?? EXPLICIT) === EXPLICIT);
      if (explicit.length === 0 || !explicit.every((a) => goal.shown.has(a.head.slice(1)) && isVariable(a))) return;
      const names_ = explicit.map((a) => goal.shown.get(a.head.slice(1)));
      if (new Set(names_).size === names_.length) found.set(part.id, { function: part.head, arguments: names_ });
    });
    return [...found.values()];
  }

  /** Whether Lean has an induction principle for the calls of a function. */
  const isRecursive = (name, known) => known.constants.typed(`${name}.eq_def`, () => true, false) || known.constants.typed(name, (_, info) => {
    let recursive = false;
    terms.eachConstant(field(field(info, 0), 1), (n) => { recursive ||= /(brecOn|WellFounded\.fix|WellFounded\.Nat\.fix|\.rec)$/.test(names.show(n)); });
    return recursive;
  }, false);

  function isDefinition(head, env, known) {
    if (NO_CONSTANT.test(head)) return false;
    if (!known.definitions.has(head)) {
      const name = names.parse(head);
      const info = environment.find(env, name);
      known.definitions.set(head, info !== 0 && tag(info) === DEFINITION && !environment.isLibrary(env, name)
        && !truth('l_Lean_Meta_isInstanceCore', inc(env), inc(name)));
      if (info) dec(info);
      dec(name);
    }
    return known.definitions.get(head);
  }

  return { drivenBy, eliminatorOf, definitionsIn, reachableFrom, recursiveCalls };
}

module.exports = { createVariables };
