// A proof search as lines of an outline: the way first, everything else folded with a count.
//
// A tactic that leaves one goal goes on at the same level, as a script does. The goals of one
// that leaves several are one level further in, and so are all tactics of a goal of which the
// reader wants to see the others too. A tactic that closes its goal stands on the goal's line.

import { weight } from "./proof-ways.js";

const FEW_GOALS = 40;
const OTHERS_AT_ONCE = 12;

/** What the reader has opened and closed; the rest is as it begins. */
export class Folds {
  constructor() {
    this.said = new Map();
    this.others = new Map();
  }

  isOpen(key, usual) {
    return this.said.get(key) ?? usual;
  }

  /** How many other tactics of a goal are shown. */
  othersOf(id, usual) {
    return this.others.get(id) ?? usual;
  }

  set(key, open) {
    this.said.set(key, open);
  }

  toggleOthers(id, shown) {
    this.others.set(id, shown ? 0 : OTHERS_AT_ONCE);
  }

  more(id) {
    this.others.set(id, (this.others.get(id) ?? OTHERS_AT_ONCE) + 2 * OTHERS_AT_ONCE);
  }

  clear() {
    this.said.clear();
    this.others.clear();
  }

  /** Opens everything between the root and a goal. */
  reveal(tree, id) {
    for (let node = tree.nodes.get(id); node?.home; node = tree.nodes.get(node.home.from)) {
      const edge = node.home;
      const parent = tree.nodes.get(edge.from);
      const place = parent.others.indexOf(edge);
      this.set(goalKey(parent), true);
      this.set(edgeKey(edge), true);
      if (place >= 0) this.others.set(parent.id, Math.max(place + 1, this.othersOf(parent.id, OTHERS_AT_ONCE)));
    }
  }
}

export const goalKey = (node) => `g${node.id}`;
const edgeKey = (edge) => `e${edge.id}`;

/**
 * The lines: {key, kind, level, parent, node, edge, open, foldable, hidden, …}; `edge` is the tactic
 * that a line names, `hidden` what is folded in it.
 * Kinds: `goal`, `split` (a tactic that leaves several goals), `closed` (one that leaves none),
 * `same` (a goal drawn elsewhere), `more` (further tactics).
 */
export function rowsOf(tree, folds) {
  const few = tree.nodes.size <= FEW_GOALS;
  const rows = [];
  const root = tree.nodes.get(tree.root);
  const stack = [() => goal(root, null, 0, null, true)];
  const later = (...steps) => stack.push(...steps.reverse());

  function goal(node, edge, level, parent, usual) {
    const key = goalKey(node);
    const closes = node.best !== null && !node.best.children.length;
    const foldable = node.best !== null && !closes;
    const open = closes || (foldable && folds.isOpen(key, usual || few));
    const shown = open ? Math.min(folds.othersOf(node.id, few ? OTHERS_AT_ONCE : 0), node.others.length) : 0;
    const row = { key, kind: "goal", node, edge, level, parent, foldable, open, shown, closing: closes && !shown, hidden: null };
    if (foldable && !open) row.hidden = node.below;
    else if (open && node.others.length && !shown) row.hidden = weight(tree, node.others);
    rows.push(row);
    if (!open) return;
    const steps = node.others.slice(0, shown).map((other) => () => step(node, other, level + 1, key, false));
    if (shown && shown < node.others.length) steps.push(() => more(node, shown, level + 1));
    if (!row.closing) later(() => step(node, node.best, shown ? level + 1 : level, key, true), ...steps);
  }

  function step(node, edge, level, parent, usual) {
    const children = [...new Set(edge.children)].map((id) => tree.nodes.get(id)).filter(Boolean);
    if (!children.length) {
      rows.push({ key: edgeKey(edge), kind: "closed", node, edge, level, parent, foldable: false, open: false });
      return;
    }
    if (children.length === 1) {
      child(children[0], edge, level, parent, usual);
      return;
    }
    const key = edgeKey(edge);
    const open = folds.isOpen(key, usual || few);
    rows.push({ key, kind: "split", node, edge, level, parent, foldable: true, open, goals: children.length, hidden: open ? null : weight(tree, [edge]) });
    if (open) later(...children.map((one) => () => child(one, edge, level + 1, key, true, true)));
  }

  function child(node, edge, level, parent, usual, oneOfMany = false) {
    if (node.home === edge) goal(node, oneOfMany ? null : edge, level, parent, usual);
    else rows.push({ key: `s${edge.id}.${node.id}`, kind: "same", node, edge, level, parent, foldable: false, open: false });
  }

  function more(node, shown, level) {
    const left = node.others.slice(shown);
    rows.push({ key: `m${node.id}`, kind: "more", node, edge: null, level, parent: goalKey(node), foldable: true, open: false, left: left.length, hidden: weight(tree, left) });
  }

  while (stack.length) stack.pop()();
  return rows;
}
