'use strict';
/**
 * Reading Lean expressions: a canonical text of one, and the constants it mentions.
 *
 * The canonical text lists the distinct subterms in a fixed order, each by the numbers of its
 * parts, so shared subterms cost once and equal terms give equal texts in every session.
 */
const EXPR = {
  bvar: 0, fvar: 1, mvar: 2, sort: 3, const: 4, app: 5, lam: 6, forall: 7, let: 8, lit: 9, mdata: 10, proj: 11,
};
const DATA_BYTES = 8; // the cached hash and flags that follow the object fields of an Expr

function createTerms(heap, { call }, names) {
  const { field, tag, isBox, unbox, scalar8, readString, readList } = heap;

  const natural = (o) => (isBox(o) ? String(unbox(o)) : heap.takeString(call('l_Nat_reprFast', heap.inc(o))));

  /**
   * The canonical text of a borrowed expression: { text, mvars, levels }, where `mvars` holds
   * the (borrowed) names of its metavariables in order of first occurrence.
   *   fvar(name)      the text that stands for a free variable
   */
  function canonical(root, { fvar }) {
    const numbers = new Map(); // description -> number
    const seen = new Map(); // address -> number
    const lines = [];
    const mvars = [];
    const mvarIndex = new Map();
    const levelIndex = new Map();

    function number(description) {
      let n = numbers.get(description);
      if (n === undefined) {
        n = numbers.size;
        numbers.set(description, n);
        lines.push(description);
      }
      return n;
    }

    function metavariable(name) {
      const key = names.show(name);
      if (!mvarIndex.has(key)) {
        mvarIndex.set(key, mvars.length);
        mvars.push(name);
      }
      return mvarIndex.get(key);
    }

    function levelText(l) {
      switch (tag(l)) {
        case 0: return '0';
        case 1: return `S${levelText(field(l, 0))}`;
        case 2: return `M(${levelText(field(l, 0))},${levelText(field(l, 1))})`;
        case 3: return `I(${levelText(field(l, 0))},${levelText(field(l, 1))})`;
        case 4: return `p<${names.key(field(l, 0))}>`;
        default: {
          const key = names.show(field(l, 0));
          if (!levelIndex.has(key)) levelIndex.set(key, levelIndex.size);
          return `?${levelIndex.get(key)}`;
        }
      }
    }

    function visit(e) {
      const known = seen.get(e);
      if (known !== undefined) return known;
      let n;
      switch (tag(e)) {
        case EXPR.bvar: n = number(`b${natural(field(e, 0))}`); break;
        case EXPR.fvar: n = number(`f${fvar(field(e, 0))}`); break;
        case EXPR.mvar: n = number(`?${metavariable(field(e, 0))}`); break;
        case EXPR.sort: n = number(`s${levelText(field(e, 0))}`); break;
        case EXPR.const:
          n = number(`c${names.key(field(e, 0))}{${readList(field(e, 1)).map(levelText).join(',')}}`);
          break;
        case EXPR.app: {
          // Along the spine without recursion: applications nest deeply to the left.
          const spine = [];
          let head = e;
          while (tag(head) === EXPR.app && !seen.has(head)) {
            spine.push(head);
            head = field(head, 0);
          }
          n = visit(head);
          while (spine.length > 0) {
            const app = spine.pop();
            n = number(`a${n} ${visit(field(app, 1))}`);
            seen.set(app, n);
          }
          break;
        }
        case EXPR.lam:
        case EXPR.forall:
          n = number(`${tag(e) === EXPR.lam ? 'l' : 'A'}${scalar8(e, DATA_BYTES)}${names.binderKey(field(e, 0))} `
            + `${visit(field(e, 1))} ${visit(field(e, 2))}`);
          break;
        case EXPR.let:
          n = number(`L${scalar8(e, DATA_BYTES)}${names.binderKey(field(e, 0))} ${visit(field(e, 1))} ${visit(field(e, 2))} `
            + `${visit(field(e, 3))}`);
          break;
        case EXPR.lit: {
          const literal = field(e, 0);
          n = number(tag(literal) === 0
            ? `n${natural(field(literal, 0))}` : `"${JSON.stringify(readString(field(literal, 0)))}`);
          break;
        }
        case EXPR.mdata: n = visit(field(e, 1)); break;
        case EXPR.proj:
          n = number(`P${names.key(field(e, 0))}.${natural(field(e, 1))} ${visit(field(e, 2))}`);
          break;
        default: throw new Error(`unknown expression tag ${tag(e)}`);
      }
      seen.set(e, n);
      return n;
    }

    visit(root);
    return { text: lines.join('\n'), mvars, hasLevelMVar: levelIndex.size > 0 };
  }

  /** Calls visit(name) for every constant (borrowed) in a borrowed expression, at least once each. */
  function eachConstant(root, visit) {
    const seen = new Set();
    const stack = [root];
    while (stack.length > 0) {
      const e = stack.pop();
      if (seen.has(e)) continue;
      seen.add(e);
      switch (tag(e)) {
        case EXPR.const: visit(field(e, 0)); break;
        case EXPR.app: stack.push(field(e, 0), field(e, 1)); break;
        case EXPR.lam:
        case EXPR.forall: stack.push(field(e, 1), field(e, 2)); break;
        case EXPR.let: stack.push(field(e, 1), field(e, 2), field(e, 3)); break;
        case EXPR.mdata: stack.push(field(e, 1)); break;
        case EXPR.proj: visit(field(e, 0)); stack.push(field(e, 2)); break;
        default: break;
      }
    }
  }

  return { canonical, eachConstant, natural };
}

module.exports = { createTerms, EXPR };
