'use strict';
/** Reading Lean syntax trees: where a node stands, and what a piece of text contains. */

function createSyntax(heap, { call }, names) {
  const { field, tag, readArray, readString, unbox, option } = heap;

  const position = (fn, stx) => {
    const result = call(fn, heap.inc(stx), heap.box(0));
    const value = option(result);
    const at = value === null ? null : unbox(value);
    heap.dec(result);
    return at;
  };

  /** The byte range [start, end) of a borrowed node, or null if the text does not contain it. */
  function range(stx) {
    const start = position('l_Lean_Syntax_getPos_x3f', stx);
    const end = position('l_Lean_Syntax_getTailPos_x3f', stx);
    return start === null || end === null ? null : { start, end };
  }

  const kind = (stx) => (!heap.isBox(stx) && tag(stx) === 1 ? names.show(field(stx, 1)) : '');

  /** Calls visit({ kind | atom | ident, stx }) for every node below a borrowed one. */
  function walk(root, visit) {
    const stack = [root];
    while (stack.length > 0) {
      const stx = stack.pop();
      if (heap.isBox(stx)) continue;
      switch (tag(stx)) {
        case 1: {
          visit({ kind: names.show(field(stx, 1)), stx });
          const children = readArray(field(stx, 2));
          for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]);
          break;
        }
        case 2: visit({ atom: readString(field(stx, 1)), stx }); break;
        case 3: visit({ ident: names.show(field(stx, 2)), stx }); break;
        default: break;
      }
    }
  }

  /** A borrowed node and what is below it, down to a depth, as { kind, start, end, children }. */
  function outline(stx, depth) {
    const isNode = !heap.isBox(stx) && tag(stx) === 1;
    const { start, end } = range(stx) || { start: -1, end: -1 };
    const children = isNode && depth > 0 ? readArray(field(stx, 2)).map((child) => outline(child, depth - 1)) : [];
    return { kind: kind(stx), start, end, children };
  }

  return { range, kind, walk, outline };
}

module.exports = { createSyntax };
