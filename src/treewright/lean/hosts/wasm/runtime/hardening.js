'use strict';
/**
 * What the bundled kernel takes on trust and should not, checked by asking it once more.
 *
 * Older kernels do not look at every parameter of a nested inductive type (lean4#14576), mix up names
 * while they take one apart (#14616), and may take a proposition for data where its universe has to
 * be computed first (#14807). So every constructor's type is checked as a term once its type is
 * there, and is what was given; the universe of an inductive type is written down, not computed; and
 * a projection is out of data, or out of a proposition and a proof itself.
 */
const { EXPR, LEVEL } = require('./arena.js');

const MOST_PROJECTIONS = 2000; // out of possible propositions, in one proof

class Suspicion extends Error {}

/**
 *   sortOf(name)       the universe (a level of the arena) of an inductive type, or null
 *   isProof(binders, e)   whether a term, inside binders, proves a proposition
 */
function createHardening(arena, sortOf, isProof) {
  const { exprs, levels, loose } = arena;

  /** Whether a universe level is above zero whatever its parameters are. */
  function isPositive(l) {
    const [tag, first, second] = levels[l];
    switch (tag) {
      case LEVEL.succ: return true;
      case LEVEL.max: return isPositive(first) || isPositive(second);
      case LEVEL.imax: return isPositive(second);
      default: return false;
    }
  }

  const suspects = new Map(); // structure -> whether it is a proposition
  function isSuspect(structure) {
    if (!suspects.has(structure)) {
      const sort = sortOf(structure);
      const isProp = sort !== null && levels[sort][0] === LEVEL.zero;
      if (!isProp && (sort === null || !isPositive(sort))) throw new Suspicion('it has a projection out of what may be a proposition');
      suspects.set(structure, isProp);
    }
    return suspects.get(structure);
  }

  const holding = new Map(); // term -> whether a suspect projection is in it
  function holds(root) {
    const stack = [root];
    while (stack.length > 0) {
      const e = stack[stack.length - 1];
      const children = arena.childrenOf(exprs[e]).map(([child]) => child);
      const open = holding.has(e) ? [] : children.filter((child) => !holding.has(child));
      if (open.length > 0) {
        for (const child of open) stack.push(child);
        continue;
      }
      stack.pop();
      if (!holding.has(e)) {
        holding.set(e, (exprs[e][0] === EXPR.proj && isSuspect(exprs[e][1])) || children.some((child) => holding.get(child)));
      }
    }
    return holding.get(root);
  }

  /** Raises a Suspicion unless every projection in some closed terms is of data out of data, or a proof. */
  function checkProjections(roots) {
    const done = new Set(); // closed terms, which mean the same wherever they are
    let count = 0;
    const visit = (e, binders) => {
      if (!holds(e) || (loose[e] === 0 && done.has(e))) return;
      if (loose[e] === 0) done.add(e);
      const [tag, ...parts] = exprs[e];
      if (tag === EXPR.proj && isSuspect(parts[0])) {
        count += 1;
        if (count > MOST_PROJECTIONS) throw new Suspicion('it has too many projections out of propositions');
        if (!isProof(binders, e)) throw new Suspicion('data is projected out of a proposition');
      }
      for (const [child, under] of arena.childrenOf(exprs[e])) {
        if (under === 0) visit(child, binders);
        else visit(child, [...binders, tag === EXPR.let ? { type: parts[0], value: parts[1] } : { type: parts[1] }]);
      }
    };
    for (const root of roots) visit(root, []);
  }

  return { checkProjections };
}

module.exports = { createHardening, Suspicion };
