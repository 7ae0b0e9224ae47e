'use strict';
/**
 * Which lemmas there are: those of the library by what they conclude and rewrite, found without reading more of them
 * than their heads; those of the text and its project one by one.
 */
const { EXPR } = require('./terms.js');

const HEADER = { modules: 3, moduleData: 5 };
const MODULE_DATA = { constNames: 1, constants: 2 };
const ENVIRONMENT = { asyncConsts: 3 }; // for readers with all rights, and for others
const ASYNC_CONSTS = { latestFirst: 1 };
const AXIOM = 0; // tags of a ConstantInfo; imported theorems come as axioms, without their proofs
const THEOREM = 2;
const CONSTRUCTOR = 6; // of a predicate: its rules
// What Lean makes by itself for types and definitions, and what programs about programs are made of.
const GENERATED = /(^|\.)(_|match_|proof_|eq_\d+$|eq_def$|induct|fun_cases|congr_simp$|hcongr_|sizeOf_spec$|noConfusion|ofNat_eq_|ctorIdx|ctor_eq|toCtorIdx|(rec|recOn|casesOn|brecOn|below)$)/;
const ELSEWHERE = /^(Lean|Lake|Std\.(Internal|Do|Sat|Tactic)|_private)\b/;
const SIDED = new Set(['Eq', 'Iff', 'HEq']);

function createLemmas(heap, calls, names, environment, statements, given) {
  const { field, tag, inc, dec, readArray } = heap;
  const { call } = calls;

  const mayBeLemma = (info) => tag(info) === AXIOM || tag(info) === THEOREM || tag(info) === CONSTRUCTOR;

  /** The function and the arguments of a borrowed application, the last first. */
  function spine(e) {
    const args = [];
    for (; tag(e) === EXPR.app || tag(e) === EXPR.mdata; e = field(e, tag(e) === EXPR.app ? 0 : 1)) {
      if (tag(e) === EXPR.app) args.push(field(e, 1));
    }
    return [e, args];
  }

  /** What a proposition is found by where it is the left side of an `↔`: its head, and of an equation the head of its left side. */
  function saying(e) {
    const head = statements.headOf(e);
    return head === 'Eq' ? `Eq ${statements.headOf(spine(e)[1][1])}` : head;
  }

  /** The heads of a borrowed conclusion and of its sides; '' where there is none. The left one of an `↔` last, see `saying`. */
  function heads(type) {
    const [e, args] = spine(statements.resultOf(type));
    if (tag(e) !== EXPR.const) return ['', '', '', ''];
    let head = names.show(field(e, 0));
    if (head === 'GE.ge') head = 'LE.le';
    if (head === 'GT.gt') head = 'LT.lt';
    if (head === 'Ne' || head === 'Not') head = 'False';
    if (!SIDED.has(head)) return [head, '', '', ''];
    return [head, statements.headOf(args[1]), statements.headOf(args[0]), head === 'Iff' ? saying(args[1]) : ''];
  }

  /** Rows of the library by head: { conclusion, left, right, equivalent }, each a Map from a head to [{ name, type }]. */
  function indexLibrary(env) {
    const index = { conclusion: new Map(), left: new Map(), right: new Map(), equivalent: new Map(), size: 0 };
    const constants = statements.createConstants(env);
    const enter = (map, key, row) => { const rows = map.get(key); if (rows) rows.push(row); else map.set(key, [row]); };
    eachImported(env, (name, info, module) => {
      if (given.has(module)) return;
      const shown = names.show(name);
      if (GENERATED.test(shown) || ELSEWHERE.test(shown)) return;
      const type = environment.typeOf(info);
      const [head, left, right, equivalent] = heads(type);
      if (head === '' || (tag(info) === CONSTRUCTOR && !constants.isPredicate(head))) return;
      const row = { name: shown, type, lemma: undefined };
      index.size++;
      enter(index.conclusion, left ? `${head} ${left}` : head, row);
      if (left) enter(index.left, left, row);
      if (right) enter(index.right, right, row);
      if (equivalent) enter(index.equivalent, equivalent, row);
    });
    return index;
  }

  /** Calls visit(name, info, module), borrowed, for what may be a lemma of imported modules. These live for ever. */
  function eachImported(env, visit) {
    const header = call('l_Lean_Environment_header', inc(env));
    const modules = readArray(field(header, HEADER.modules));
    readArray(field(header, HEADER.moduleData)).forEach((data, i) => {
      const module = names.show(field(field(modules[i], 0), 0));
      if (/^Lean\b/.test(module)) return;
      const infos = readArray(field(data, MODULE_DATA.constants));
      readArray(field(data, MODULE_DATA.constNames)).forEach((name, j) => { if (mayBeLemma(infos[j])) visit(name, infos[j], module); });
    });
    dec(header);
  }

  /**
   * The lemmas of the text itself and of its project, read; the later, the higher `order`. None of them is the
   * `declaration` that is being proved, or a part of it: Lean has its statement before it has its proof.
   */
  function own(env, constants, declaration) {
    const found = [];
    const isOneself = (shown) => declaration !== '' && (`${shown}.`.startsWith(`${declaration}.`) || declaration.startsWith(`${shown}.`));
    const take = (name, info, order) => {
      if (!mayBeLemma(info)) return;
      const shown = names.showUser(name);
      if (GENERATED.test(shown) || names.isInaccessible(name) || isOneself(shown)) return;
      const lemma = statements.read(shown, environment.typeOf(info), constants, NO_VARIABLES, { local: true, order, constructs: tag(info) === CONSTRUCTOR });
      if (lemma && lemma.says) found.push(lemma);
    };
    if (given.size > 0) eachImported(env, (name, info, module) => { if (given.has(module)) take(name, info, 0); });
    const order = declarationOrder(env);
    const session = environment.sessionConstants(env);
    for (const [shown, info, name] of session.found) take(name, info, order.get(shown) ?? 1);
    session.release();
    return found.sort((a, b) => b.order - a.order || (a.name < b.name ? -1 : 1));
  }

  /** Shown names by when they were declared in this text, from 1. */
  function declarationOrder(env) {
    const latestFirst = heap.readList(field(field(field(env, ENVIRONMENT.asyncConsts), 0), ASYNC_CONSTS.latestFirst));
    return new Map(latestFirst.map((c, i) => [names.show(field(field(c, 0), 0)), latestFirst.length - i]));
  }

  const lemmaOf = (row, constants) => {
    if (row.lemma === undefined) row.lemma = statements.read(row.name, row.type, constants, NO_VARIABLES, { local: false, order: 0 });
    return row.lemma;
  };

  return { indexLibrary, own, lemmaOf };
}

const NO_VARIABLES = { fvar: () => '', isProposition: () => false };

module.exports = { createLemmas };
