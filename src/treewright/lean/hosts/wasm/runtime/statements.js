'use strict';
/**
 * Statements as lemmas: variables and premises in front, and what is concluded from them.
 *
 *   { name, binders: [{ name, info, type, premise }], conclusion, local, order, constructs }
 *
 * A negation is a lemma that concludes `False` from one more premise.
 */
const { EXPR } = require('./terms.js');
const { createPatterns, TooLarge, BINDER_INFO, INSTANCE } = require('./patterns.js');

const MOST_BINDERS = 24;

function createStatements(heap, names, terms, environment) {
  const { field, tag, scalar8, dec } = heap;
  const patterns = createPatterns(heap, names, terms);

  /** What is asked of one environment about its constants, each once. */
  function createConstants(env) {
    const infos = new Map();
    const propositions = new Map();
    const typed = (name, ask, otherwise) => {
      const parsed = names.parse(name);
      const info = environment.find(env, parsed);
      dec(parsed);
      if (!info) return otherwise;
      const answer = ask(environment.typeOf(info), info);
      dec(info);
      return answer;
    };
    const cached = (map, name, ask, otherwise) => {
      if (!map.has(name)) map.set(name, typed(name, ask, otherwise));
      return map.get(name);
    };
    return {
      infos: (name) => cached(infos, name, binderInfos, []),
      /** Whether applying the constant gives a proposition. */
      isPredicate: (name) => cached(propositions, name, (type) => isPropSort(resultOf(type)), false),
      typed,
    };
  }

  function binderInfos(type) {
    const found = [];
    for (; tag(type) === EXPR.forall; type = field(type, 2)) found.push(scalar8(type, BINDER_INFO));
    return found;
  }

  function resultOf(type) {
    for (;;) {
      if (tag(type) === EXPR.forall) type = field(type, 2);
      else if (tag(type) === EXPR.mdata) type = field(type, 1);
      else return type;
    }
  }

  const isPropSort = (e) => tag(e) === EXPR.sort && tag(field(e, 0)) === 0;

  /** The constant at the head of a borrowed type's result, or ''. */
  function headOf(type) {
    let e = resultOf(type);
    while (tag(e) === EXPR.app || tag(e) === EXPR.mdata) e = field(e, tag(e) === EXPR.app ? 0 : 1);
    return tag(e) === EXPR.const ? names.show(field(e, 0)) : '';
  }

  /**
   * Reads a borrowed statement. `isProposition(fvar)` tells whether a free variable makes propositions. Returns null if
   * it is too large, or no statement.
   */
  function read(name, type, constants, { fvar, isProposition }, extra) {
    const ways = { fvar, infos: constants.infos };
    const binders = [];
    const makes = []; // whether the variable makes propositions, such as `p : α → Prop`
    let e = type;
    const proposes = (t, count) => {
      let r = resultOf(t);
      let depth = 0;
      for (let x = t; tag(x) === EXPR.forall; x = field(x, 2)) depth++;
      while (tag(r) === EXPR.app || tag(r) === EXPR.mdata) r = field(r, tag(r) === EXPR.app ? 0 : 1);
      if (tag(r) === EXPR.const) return constants.isPredicate(names.show(field(r, 0)));
      if (tag(r) === EXPR.fvar) return isProposition(field(r, 0));
      if (tag(r) === EXPR.bvar) {
        const i = Number(terms.natural(field(r, 0))) - depth;
        return i >= 0 && makes[count - 1 - i] === true;
      }
      return false;
    };
    try {
      for (;;) {
        if (tag(e) === EXPR.mdata) { e = field(e, 1); continue; }
        if (tag(e) !== EXPR.forall) break;
        if (binders.length >= MOST_BINDERS) return null;
        const t = field(e, 1);
        const premise = proposes(t, binders.length);
        binders.push({
          name: names.show(field(e, 0)), info: scalar8(e, BINDER_INFO), premise, type: patterns.read(t, binders.length, ways),
        });
        makes.push(isPropSort(resultOf(t)));
        e = field(e, 2);
      }
      let conclusion = patterns.read(e, binders.length, ways);
      const says = proposes(e, binders.length);
      if (conclusion.head === 'Not') {
        binders.push({ name: '', info: 0, premise: true, type: conclusion.args[0], negated: true });
        conclusion = patterns.node('False', []);
      }
      return { name, binders, conclusion, says, ...extra };
    } catch (error) {
      if (error instanceof TooLarge) return null;
      throw error;
    }
  }

  return { patterns, createConstants, read, resultOf, headOf, isPropSort, INSTANCE };
}

module.exports = { createStatements };
