'use strict';
/** How lemmas would be used on a goal: concluding it, rewriting in it, saying more about its hypotheses. */
const { isVariable, NO_CONSTANT } = require('./outlines.js');

const MOST = { conclude: 24, rewrite: 32, at: 24, forward: 16, library: 24, libraryAt: 6, related: 16 };
const INSTANCES = 4; // of one rewriting, with other arguments
const READ_AT_MOST = 1500; // lemmas of the library for one goal
const COMMON = new Set(['Eq', 'Not', 'Iff', 'And', 'Or', 'False', 'True', 'OfNat.ofNat']); // says nothing of what a lemma is about
const ORDINARY = new Set([...COMMON, 'LE.le', 'LT.lt']); // cancelling on both sides is a step like another
const INFIX = {
  'HAdd.hAdd': '+', 'HSub.hSub': '-', 'HMul.hMul': '*', 'HDiv.hDiv': '/', 'HMod.hMod': '%', 'HPow.hPow': '^', 'HAppend.hAppend': '++',
};

function createUses(statements, lemmas, outline) {
  const { patterns } = statements;

  /** The uses of a goal's own rules and of some lemmas, the best of each kind. */
  function ownUses(goal, own) {
    const lists = { conclude: [], rewrite: [], at: [], forward: [] };
    for (const lemma of [...goal.rules, ...own]) useLemma(lemma, goal, lists);
    return Object.entries(lists).flatMap(([kind, list]) => best(list, MOST[kind]));
  }

  /** Names of own lemmas that are about what the goal is about: the greater part of their constants is in it. */
  function relatedTo(goal, own) {
    const here = new Set();
    const collect = (node, into, seen) => {
      if (seen.has(node.id)) return;
      seen.add(node.id);
      if (!NO_CONSTANT.test(node.head) && !COMMON.has(node.head)) into.add(node.head);
      node.args.forEach((a) => collect(a, into, seen));
    };
    const seen = new Set();
    if (goal.target) collect(goal.target, here, seen);
    goal.facts.forEach((fact) => collect(fact.node, here, seen));
    return own
      .map((lemma) => {
        if (!lemma.constants) {
          lemma.constants = new Set();
          const met = new Set();
          collect(lemma.conclusion, lemma.constants, met);
          lemma.binders.forEach((b) => { if (b.premise) collect(b.type, lemma.constants, met); });
        }
        let shared = 0;
        lemma.constants.forEach((c) => { if (here.has(c)) shared++; });
        return { lemma, worth: shared / Math.max(2, lemma.constants.size) };
      })
      .filter(({ worth }) => worth > 0.5)
      .sort((a, b) => b.worth - a.worth || b.lemma.order - a.lemma.order)
      .slice(0, MOST.related)
      .map(({ lemma }) => lemma.name);
  }

  function useLemma(lemma, goal, lists) {
    if (goal.target) conclude(lemma, goal, lists.conclude);
    const sided = lemma.conclusion.head === 'Eq' || lemma.conclusion.head === 'Iff';
    if (sided && goal.target) rewrite(lemma, goal.target, '', goal, lists.rewrite);
    if (sided) for (const fact of goal.facts) if (fact.name !== lemma.name && !fact.turned) rewrite(lemma, fact.node, fact.name, goal, lists.at);
    // From a fact a constructor makes another one of its kind, and from that again.
    if (!lemma.constructs && lemma.binders.some((b) => b.premise)) forward(lemma, goal, lists.forward);
  }

  function conclude(lemma, goal, into) {
    const { conclusion } = lemma;
    if (conclusion.variable >= 0 || conclusion.anything) return;
    for (const { node, wrap } of goal.targets) concludeOne(lemma, node, wrap, goal, into);
    if (conclusion.head === 'False' && goal.target.head !== 'False') {
      const made = entry(lemma, 'elim', [], goal, 1);
      if (made.unmet === 0) into.push(made);
    }
  }

  function concludeOne(lemma, target, wrap, goal, into) {
    const { conclusion } = lemma;
    const attempt = (pattern, use) => {
      if (pattern.variable >= 0 || pattern.anything) return false;
      const bound = [];
      const fit = patterns.match(pattern, target, bound);
      if (fit < 0) return false;
      const made = entry(lemma, use, bound, goal, fit, { wrap });
      if (wrap === '%' || made.unmet === 0) into.push(made);
      return true;
    };
    if (attempt(conclusion, 'exact')) return;
    if (conclusion.head === 'Eq') attempt(patterns.node('Eq', [conclusion.args[0], conclusion.args[2], conclusion.args[1]]), 'symm');
    if (conclusion.head === 'Iff') {
      attempt(conclusion.args[0], 'mpr');
      attempt(conclusion.args[1], 'mp');
    }
  }

  /** Whether concluding with a lemma leads to something larger of the same kind, and so from there: `p (n + 2) → p n`. */
  function isGrowing(lemma) {
    lemma.grows ??= !ORDINARY.has(lemma.conclusion.head) && lemma.binders.some((b) => b.premise && b.type.head === lemma.conclusion.head && b.type.size > lemma.conclusion.size);
    return lemma.grows;
  }

  /**
   * `comm ∘`, `assoc ∘` or, for other orders of the same, `turns ∘`, with the operation and its type, for a lemma that
   * says just that; '' for others.
   */
  function lawOf(lemma) {
    const { head, args: [type, left, right] } = lemma.conclusion;
    if (head !== 'Eq' || lemma.binders.some((b) => b.premise)) return '';
    const operands = (n) => (n.head === left.head && n.args.length >= 2 && n.args.slice(0, -2).every((a, i) => a === left.args[i]) ? n.args.slice(-2) : []);
    const leaves = (n) => { const parts = operands(n); return parts.length ? parts.flatMap(leaves) : [n]; };
    const [before, after] = [leaves(left), leaves(right)];
    if (before.length < 2 || before.length !== after.length || new Set(before).size !== before.length) return '';
    if (before.some((n) => n.variable < 0 || !after.includes(n))) return '';
    const isNested = before.length === 3 && operands(left)[0].variable < 0;
    const kind = before.length === 2 ? 'comm' : isNested && before.every((n, i) => n === after[i]) ? 'assoc' : 'turns';
    return [kind, ...[left, type].filter((n) => !NO_CONSTANT.test(n.head)).map((n) => n.head)].join(' ');
  }

  /** The use of a lemma whose variables stand for `bound`: premises that are at hand bind more of them. */
  function entry(lemma, use, bound, goal, fit, extra = {}) {
    const by = new Map(); // premise -> hypothesis
    let unmet = 0;
    lemma.binders.forEach((b, i) => {
      if (!b.premise) return;
      const wanted = patterns.instance(b.type, bound);
      const given = goal.facts.find((f) => f.node === wanted && f.name !== lemma.name) ?? goal.facts.find((f) => {
        if (f.name === lemma.name) return false;
        const more = bound.slice();
        if (patterns.match(wanted, f.node, more) <= 0) return false;
        more.forEach((v, k) => { bound[k] = v; });
        return true;
      });
      if (given) by.set(i, given.name);
      else unmet++;
    });
    let loose = 0;
    lemma.binders.forEach((b, i) => { if (!b.premise && b.info !== statements.INSTANCE && !bound[i]) loose++; });
    const args = lemma.binders.map((b, i) => (b.info === 0 ? by.get(i) ?? text(bound[i], goal) : null)).filter((a) => a !== null);
    return {
      name: lemma.name, use, args, unmet, loose, fit, met: by.size, local: lemma.local, order: lemma.order,
      size: lemma.conclusion.size, grows: isGrowing(lemma), law: (lemma.law ??= lawOf(lemma)), ...extra,
    };
  }

  function rewrite(lemma, term, at, goal, into) {
    const [left, right] = lemma.conclusion.args.slice(-2);
    if (lemma.conclusion.args.length < 2) return;
    for (const [pattern, other, back] of [[left, right, false], [right, left, true]]) {
      if (pattern.variable >= 0 || pattern.anything || pattern.head.startsWith('=')) continue;
      const instances = new Set();
      patterns.eachPart(term, (part) => {
        if (instances.size >= INSTANCES || part.head !== pattern.head) return;
        const bound = [];
        const fit = patterns.match(pattern, part, bound);
        if (fit < 0) return;
        const key = patterns.instance(pattern, bound).id;
        if (instances.has(key)) return;
        const made = entry(lemma, 'rw', bound, goal, fit, { back, at, nth: instances.size, whole: part === term });
        made.closes = patterns.instance(other, bound).id === part.id;
        if (made.closes) return; // changes nothing
        instances.add(key);
        into.push(made);
      });
    }
  }

  function forward(lemma, goal, into) {
    const premises = lemma.binders.map((b, i) => [b, i]).filter(([b]) => b.premise && !b.type.anything && b.type.variable < 0);
    if (premises.length === 0) return;
    const [[b]] = premises;
    const seen = new Set();
    for (const fact of goal.facts) {
      if (fact.name === lemma.name) continue;
      const bound = [];
      const fit = patterns.match(b.type, fact.node, bound);
      if (fit <= 0) continue;
      const made = entry(lemma, 'forward', bound, goal, fit);
      const conclusion = patterns.instance(lemma.conclusion, bound);
      if (made.unmet > 0 || made.loose > 0 || seen.has(conclusion.id)) continue;
      seen.add(conclusion.id);
      if (conclusion === goal.target || goal.facts.some((f) => f.node === conclusion)) continue;
      into.push({ ...made, gives: outline(conclusion) });
    }
  }

  /** A term as an argument in text; `_` if it cannot be said simply. */
  function text(node, goal) {
    if (!node || node.open) return '_';
    if (isVariable(node)) {
      const name = goal.shown.get(node.head.slice(1));
      return name && !name.includes('✝') && node.args.length === 0 ? name : '_';
    }
    if (node.head.startsWith('=')) return node.head.slice(1);
    if (NO_CONSTANT.test(node.head)) return '_';
    if (node.head === 'OfNat.ofNat') return text(node.args[1], goal);
    const kinds = goal.constants.infos(node.head).filter((k) => k !== statements.INSTANCE);
    const explicit = node.args.filter((_, i) => kinds[i] === 0 || kinds[i] === undefined).map((a) => text(a, goal));
    if (explicit.includes('_')) return '_';
    if (node.head in INFIX && explicit.length === 2) return `(${explicit[0]} ${INFIX[node.head]} ${explicit[1]})`;
    return explicit.length === 0 ? node.head : `(${[node.head, ...explicit].join(' ')})`;
  }

  /** Those that say most about the goal and leave least open. */
  function best(list, count) {
    const worth = (u) => u.fit + 3 * u.met - 2 * u.unmet - 3 * u.loose + (u.order > 1 ? 1 : 0);
    return list
      .sort((a, b) => worth(b) - worth(a) || b.order - a.order || a.size - b.size || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
      .slice(0, count)
      .map(({ order, size, closes, ...use }) => use);
  }

  function fromLibrary(goal, known, index) {
    if (!goal.target) return [];
    const conclusions = [];
    const rewritings = [];
    let read = 0;
    const each = (rows, use) => {
      for (const row of rows ?? []) {
        if (read++ >= READ_AT_MOST) return;
        const lemma = lemmas.lemmaOf(row, known.constants);
        if (lemma) use(lemma);
      }
    };
    const { target } = goal;
    const keysOf = ({ head, args }) => {
      if (head !== 'Eq' && head !== 'Iff') return [head];
      const sides = head === 'Eq' ? args.slice(-2) : args.slice(0, 1);
      return [...new Set([...sides.map((side) => `${head} ${side.head}`), head])]; // the last is `m = n` of two variables
    };
    for (const { node, wrap } of goal.targets) {
      for (const key of keysOf(node)) each(index.conclusion.get(key), (lemma) => concludeOne(lemma, node, wrap, goal, conclusions));
    }
    each(index.left.get(target.head), (lemma) => { if (lemma.conclusion.head === 'Iff') conclude(lemma, goal, conclusions); });
    const seen = new Set();
    patterns.eachPart(target, (part) => {
      if (part.args.length === 0 || seen.has(part.head) || part === target) return;
      seen.add(part.head);
      each(index.left.get(part.head), (lemma) => rewrite(lemma, target, '', goal, rewritings));
    });
    read = 0;
    const others = []; // ways to say a hypothesis: `a * a = b * b` is `a = b`
    for (const fact of goal.facts) {
      const { head, args } = fact.node;
      if (!fact.turned) each(index.equivalent.get(head === 'Eq' ? `Eq ${args[1].head}` : head), (lemma) => rewrite(lemma, fact.node, fact.name, goal, others));
    }
    const isAtHand = (u) => u.met > 0 && u.unmet === 0 && u.loose === 0;
    return [
      ...best(conclusions.filter((u) => (u.fit >= 3 && u.loose <= 1) || isAtHand(u)), MOST.library),
      ...best(rewritings.filter((u) => !u.back && u.loose === 0), MOST.library),
      ...best(others.filter((u) => u.whole && !u.back && u.fit >= 3 && u.unmet === 0 && u.loose === 0), MOST.libraryAt),
    ];
  }

  return { ownUses, relatedTo, fromLibrary };
}

module.exports = { createUses };
