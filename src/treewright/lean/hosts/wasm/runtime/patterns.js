'use strict';
/**
 * Terms as patterns: what a lemma says, to be matched with what a goal says.
 *
 * Heads that no constant has: `#` a free variable, `^` a bound one, `$` a variable of the pattern, `?` a hole, `=` a number.
 *
 * A node is { id, head, args, size, open }: a head (a constant, a variable, a binder, a literal) and its
 * arguments, without those that are instances, which unification finds by itself. Equal nodes are one node.
 * `open` says that it mentions a bound variable, so that it cannot stand for anything outside its binder.
 * Matching is first-order and lenient: it decides what is worth trying, and Lean what is true.
 */
const { EXPR } = require('./terms.js');

const BINDER_INFO = 8; // scalar byte after the cached data of an Expr
const INSTANCE = 3; // BinderInfo: default, implicit, strict implicit, instance
const LARGEST = 600; // nodes; larger statements are no lemmas to match with
const KEPT = 400000; // nodes, before all are forgotten
const BINDERS = new Set(['λ', '∀', 'let']);
const TURNED = { 'GE.ge': 'LE.le', 'GT.gt': 'LT.lt' };

class TooLarge extends Error {}

function createPatterns(heap, names, terms) {
  const { field, tag, scalar8 } = heap;
  let known = new Map();
  let nextId = 0;

  function node(head, args, extra) {
    const key = `${head}(${args.map((a) => a.id).join()})`;
    let found = known.get(key);
    if (!found) {
      let size = 1;
      let open = extra?.open ?? false;
      for (const a of args) {
        size += a.size;
        open = open || a.open;
      }
      found = { id: nextId++, head, args, size, open, ...extra, variable: extra?.variable ?? -1 };
      known.set(key, found);
    }
    return found;
  }

  const variable = (index) => node(`$${index}`, [], { variable: index });

  /**
   * Reads a borrowed expression below `count` binders whose variables are the pattern's.
   *   fvar(name)          the head that stands for a free variable
   *   infos(name)         the binder infos of a constant's arguments
   */
  function read(root, count, { fvar, infos }) {
    let budget = LARGEST;

    function visit(e, depth) {
      if (budget-- <= 0) throw new TooLarge();
      switch (tag(e)) {
        case EXPR.bvar: {
          const i = Number(terms.natural(field(e, 0)));
          return i < depth ? node(`^${i}`, [], { open: true }) : variable(count - 1 - (i - depth));
        }
        case EXPR.fvar: return node(`#${fvar(field(e, 0))}`, []);
        case EXPR.mvar: return node(`?${names.show(field(e, 0))}`, [], { hole: true });
        case EXPR.sort: return node('Sort', []);
        case EXPR.lam: return node('λ', [visit(field(e, 1), depth), visit(field(e, 2), depth + 1)]);
        case EXPR.forall: return node('∀', [visit(field(e, 1), depth), visit(field(e, 2), depth + 1)]);
        case EXPR.let: return node('let', [visit(field(e, 2), depth), visit(field(e, 3), depth + 1)]);
        case EXPR.lit: {
          const literal = field(e, 0);
          return node(tag(literal) === 0 ? `=${terms.natural(field(literal, 0))}` : `"${heap.readString(field(literal, 0))}`, []);
        }
        case EXPR.mdata: return visit(field(e, 1), depth);
        case EXPR.proj: return node(`.${names.show(field(e, 0))}.${terms.natural(field(e, 1))}`, [visit(field(e, 2), depth)]);
        case EXPR.const: return applied(names.show(field(e, 0)), []);
        default: return application(e, depth);
      }
    }

    function application(e, depth) {
      const spine = [];
      let head = e;
      while (tag(head) === EXPR.app) {
        spine.push(field(head, 1));
        head = field(head, 0);
        if (tag(head) === EXPR.mdata) head = field(head, 1);
      }
      spine.reverse();
      if (tag(head) !== EXPR.const) {
        const fn = visit(head, depth);
        const args = spine.map((a) => visit(a, depth));
        if (fn.variable >= 0) return node('$@', [fn, ...args], { anything: true });
        return node('@', [fn, ...args]);
      }
      const name = names.show(field(head, 0));
      const kinds = infos(name);
      return applied(name, spine.filter((_, i) => kinds[i] !== INSTANCE).map((a) => visit(a, depth)));
    }

    return visit(root, 0);
  }

  function applied(name, args) {
    if (name in TURNED && args.length === 3) return node(TURNED[name], [args[0], args[2], args[1]]);
    if (name === 'Ne' && args.length === 3) return node('Not', [node('Eq', args)]);
    return node(name, args);
  }

  const isNumber = (n) => n.head === 'OfNat.ofNat' || n.head.startsWith('=');

  /** The variables of a pattern stand for something that Lean will find. */
  function leaveToLean(pattern, bound) {
    if (pattern.variable >= 0) bound[pattern.variable] ??= node('?found', [], { hole: true });
    pattern.args.forEach((a) => leaveToLean(a, bound));
  }

  const digits = (n) => (n.head === 'OfNat.ofNat' && n.args.length > 1 ? n.args[1] : n).head.slice(1);

  /** Whether Lean sees the term in the pattern although they look different: `zero` and `0`, `succ n` and `3`, `n + 2` and `4`. */
  function isSaidOtherwise(pattern, term) {
    if (isNumber(pattern) === isNumber(term)) return false;
    const [number, other] = isNumber(pattern) ? [pattern, term] : [term, pattern];
    const value = digits(number);
    if (/\bzero$/.test(other.head)) return value === '0';
    if (other !== pattern) return false;
    if (/\bsucc$/.test(other.head)) return value !== '0';
    const added = other.head === 'HAdd.hAdd' ? other.args.at(-1) : undefined;
    return added !== undefined && isNumber(added) && BigInt(digits(added)) <= BigInt(value);
  }

  /**
   * Matches a pattern with a term: how much of it was there (constants found), or -1. `bound` has the terms that
   * the pattern's variables stand for, and is changed.
   */
  function match(pattern, term, bound) {
    if (pattern.variable >= 0) {
      const before = bound[pattern.variable];
      if (before) return before === term || term.hole || before.hole || (isNumber(before) && isNumber(term)) ? 0 : -1;
      if (term.open) return -1;
      bound[pattern.variable] = term;
      return 0;
    }
    if (pattern === term) return pattern.size;
    if (pattern.anything || term.hole || pattern.hole) return 0;
    if (pattern.head !== term.head || pattern.args.length !== term.args.length) {
      // `zero` and `0`, `n + 1` and `succ n`: Lean looks through these, so they are worth trying.
      if (!isSaidOtherwise(pattern, term)) return -1;
      leaveToLean(pattern, bound);
      return 0;
    }
    let found = 1;
    for (let i = 0; i < pattern.args.length; i++) {
      const part = match(pattern.args[i], term.args[i], bound);
      if (part < 0) return -1;
      found += part;
    }
    return found;
  }

  /** A pattern with its variables replaced, as far as they are bound. */
  function instance(pattern, bound) {
    if (pattern.variable >= 0) return bound[pattern.variable] ?? pattern;
    if (pattern.args.length === 0) return pattern;
    return node(pattern.head, pattern.args.map((a) => instance(a, bound)), pattern.anything ? { anything: true } : undefined);
  }

  /** A term in which the variable of the binder around it is replaced. */
  function substitute(term, depth, by) {
    if (!term.open) return term;
    if (term.args.length === 0) return term.head === `^${depth}` ? by : term;
    const args = term.args.map((a, i) => substitute(a, BINDERS.has(term.head) && i === 1 ? depth + 1 : depth, by));
    return node(term.head, args, term.anything ? { anything: true } : undefined);
  }

  /** Calls visit(term) for a term's distinct parts that mention no bound variable; the outermost first. */
  function eachPart(term, visit, seen = new Set()) {
    if (seen.has(term.id)) return;
    seen.add(term.id);
    if (!term.open) visit(term);
    for (const arg of term.args) eachPart(arg, visit, seen);
  }

  /** Whether so much is remembered that it should be forgotten before the next goal. */
  const isFull = () => known.size > KEPT;
  const forget = () => { known = new Map(); };

  return { read, node, match, instance, substitute, eachPart, isFull, forget };
}

module.exports = { createPatterns, TooLarge, BINDER_INFO, INSTANCE };
