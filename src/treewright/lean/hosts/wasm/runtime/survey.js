'use strict';
/**
 * What is known about a goal: which lemmas fit it and how each would be used, what its variables are made of, which
 * definitions it mentions. Nothing is tried here: a use is a proposal.
 *
 * use: exact | symm | mp | mpr | elim | rw | forward, of the `name` of a lemma or hypothesis, with `args` for what is
 * explicit (`_` for what Lean finds), `back` for a rewriting from right to left, `at` a hypothesis or the target. `unmet`
 * premises stay to be proved, `loose` variables would have to be guessed. `fit` counts what of the lemma was found in
 * the goal.
 */
const { createStatements } = require('./statements.js');
const { createLemmas } = require('./lemmas.js');
const { createShortNames } = require('./short_names.js');
const { createOutlines, isVariable } = require('./outlines.js');
const { createUses } = require('./uses.js');
const { createVariables } = require('./variables.js');
const { CORE_CONTEXT } = require('./elaborator.js');

function createSurvey(heap, calls, names, terms, environment, goals, given) {
  const { field } = heap;
  const statements = createStatements(heap, names, terms, environment);
  const { patterns } = statements;
  const lemmas = createLemmas(heap, calls, names, environment, statements, given);
  const { isUnfoldable, outline, waysTo } = createOutlines(patterns);
  const { ownUses, relatedTo, fromLibrary } = createUses(statements, lemmas, outline);
  const { drivenBy, eliminatorOf, definitionsIn, reachableFrom, recursiveCalls } = createVariables(heap, calls, names, terms, environment, patterns);
  const createShortener = createShortNames(environment, names, heap, calls);
  const libraries = new Map(); // of an imported environment -> index
  let opened = new WeakMap(); // of where a proof began -> { constants, own, eliminators }

  function libraryOf(base, env) {
    if (!libraries.has(base)) libraries.set(base, lemmas.indexLibrary(env));
    return libraries.get(base);
  }

  /** What is the same for all goals of a proof. */
  function knownAt(origin, env) {
    if (!opened.has(origin)) {
      const constants = statements.createConstants(env);
      opened.set(origin, { constants, own: lemmas.own(env, constants, origin.declaration), eliminators: new Map(), definitions: new Map() });
    }
    return opened.get(origin);
  }

  function survey(state, env, base, wantLibrary) {
    if (patterns.isFull()) {
      patterns.forget();
      opened = new WeakMap();
      libraries.clear();
    }
    const known = knownAt(state.origin, env);
    const goal = readGoal(state, known);
    const short = createShortener(env, names.show(field(state.coreContext, CORE_CONTEXT.currNamespace)), new Set(goal.shown.values()));
    const uses = ownUses(goal, known.own);
    const definitions = definitionsIn(goal, env, known);
    const result = {
      uses: uses.map((use) => ({ ...use, name: short(use.name) })), variables: goal.variables,
      definitions: definitions.map(short), reachable: reachableFrom(definitions, env, known).map(short), related: relatedTo(goal, known.own).map(short),
      calls: recursiveCalls(goal, env, known).map((call) => ({ ...call, function: short(call.function) })),
    };
    if (wantLibrary) result.library = fromLibrary(goal, known, libraryOf(base, env));
    goal.release();
    return result;
  }

  function readGoal(state, known) {
    const first = goals.firstOf(state);
    const shown = new Map(first.hypotheses.map((h) => [h.fvar, h.name]));
    const makes = new Set(); // free variables that make propositions
    const ways = { fvar: (n) => names.show(n), isProposition: (n) => makes.has(names.show(n)), infos: known.constants.infos };
    const facts = [];
    const turned = []; // equations the other way round
    const rules = [];
    const variables = [];
    const target = readType(first.target, known, ways);
    const unfolded = (e, node) => (node && isUnfoldable(node.head) ? readType(first.unfold(e), known, ways) ?? node : node);
    const targets = target ? waysTo(unfolded(first.target, target), target) : [];
    const inTarget = new Set();
    if (target) collectVariables(target, inTarget);
    const driving = target ? drivenBy(target, known) : new Map();
    for (const h of first.hypotheses) {
      if (statements.isPropSort(statements.resultOf(h.type))) makes.add(h.fvar);
      const accessible = !h.name.includes('✝');
      const lemma = statements.read(h.name, h.type, known.constants, ways, { local: true, order: 1e6, hypothesis: true });
      const node = readType(h.type, known, ways);
      const isProof = Boolean(lemma && lemma.says);
      if (node && isProof && accessible) {
        facts.push({ name: h.name, node });
        if (node.head === 'Eq') turned.push({ name: `${h.name}.symm`, node: patterns.node('Eq', [node.args[0], node.args[2], node.args[1]]), turned: true });
      }
      if (isProof && accessible) rules.push(lemma);
      variables.push({
        name: h.name, accessible, kind: kindOf(h, node, isProof), shown: inTarget.has(`#${h.fvar}`),
        made_of: node && !h.isLet ? eliminatorOf(h, node, state, known) : null,
        drives: driving.get(`#${h.fvar}`) ?? 0,
        says: isProof && node ? outline(unfolded(h.type, node)) : '',
      });
    }
    return { target, targets, facts: [...facts, ...turned], rules, variables, shown, constants: known.constants, release: first.release };
  }

  const readType = (e, known, ways) => {
    try {
      return patterns.read(e, 0, ways);
    } catch {
      return null;
    }
  };

  function collectVariables(node, found, seen = new Set()) {
    if (seen.has(node.id)) return;
    seen.add(node.id);
    if (isVariable(node)) found.add(node.head);
    node.args.forEach((a) => collectVariables(a, found, seen));
  }

  function kindOf(h, node, isProof) {
    if (isProof) return 'proof';
    if (node === null) return 'other';
    if (node.head === 'Sort') return statements.isPropSort(h.type) ? 'proposition' : 'type';
    return node.head === '∀' ? 'function' : 'data';
  }

  return survey;
}

module.exports = { createSurvey };
