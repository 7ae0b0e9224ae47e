'use strict';
/** Universe levels and sorts as text without Lean's printer, for plain_types.js. */

const MAX = 1024;

function createPlainLevels(heap, names) {
  const { field, tag } = heap;

  function level(l) {
    let plus = 0;
    for (; tag(l) === 1; l = field(l, 0)) plus++;
    switch (tag(l)) {
      case 0: return String(plus);
      case 2: case 3: {
        const text = `${tag(l) === 2 ? 'max' : 'imax'} ${atomicLevel(field(l, 0))} ${atomicLevel(field(l, 1))}`;
        return plus ? `(${text})+${plus}` : text;
      }
      default: return `${names.show(field(l, 0))}${plus ? `+${plus}` : ''}`;
    }
  }
  const atomicLevel = (l) => (/^[\w.]+$/.test(level(l)) ? level(l) : `(${level(l)})`);

  /** `Sort l` in words, and how tightly it binds. */
  function sort(l) {
    if (tag(l) === 0) return ['Prop', MAX];
    if (tag(l) === 1) {
      const below = field(l, 0);
      return tag(below) === 0 ? ['Type', MAX] : [`Type ${atomicLevel(below)}`, MAX - 1];
    }
    return [`Sort ${atomicLevel(l)}`, MAX - 1];
  }

  return { sort };
}

module.exports = { createPlainLevels, MAX };
