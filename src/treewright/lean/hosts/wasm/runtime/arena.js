'use strict';
/**
 * Lean names, universe levels and terms outside Lean: plain data, hash-consed.
 *
 * Two terms are equal if and only if their numbers are: names count whole, with every component;
 * names of bound variables, annotations (mdata) and whether a `let` is non-dependent do not count.
 * `encode` and `decode` are what crosses from the process that elaborated a candidate to the judge:
 * an array of each kind whose items refer to earlier items only. `decode` trusts nothing it reads.
 */
const EXPR = {
  bvar: 0, sort: 1, const: 2, app: 3, lam: 4, forall: 5, let: 6, nat: 7, string: 8, proj: 9,
};
const LEVEL = { zero: 0, succ: 1, max: 2, imax: 3, param: 4 };
const BINDERS = 4; // default, implicit, strict implicit, instance

class DataError extends Error {}

/** The arguments of each kind of term: e(xpression), l(evel), L(evels), n(ame), b(inder), s(mall number), d(igits), t(ext). */
const SHAPES = ['s', 'l', 'nL', 'ee', 'bee', 'bee', 'eee', 'd', 't', 'nse'];
const SMALL = 6; // digits: bound variables, fields, parameters; Lean packs them into few bits
const NAME_DIGITS = 10; // of the numbers that hygiene puts into names
const LEVEL_SHAPES = ['', 'l', 'll', 'll', 'n'];

function createArena() {
  const names = [null]; // number -> [parent, part]; 0 is the anonymous name
  const levels = [];
  const levelSizes = []; // written out as trees: nothing in Lean shares parts of levels
  const exprs = [];
  const depths = []; // of terms
  const loose = []; // of terms: one more than the largest loose bound variable
  const known = { name: new Map(), level: new Map(), expr: new Map() };

  function intern(kind, list, item) {
    const key = JSON.stringify(item);
    let number = known[kind].get(key);
    if (number === undefined) {
      number = list.length;
      list.push(item);
      known[kind].set(key, number);
    }
    return number;
  }

  const name = (parent, part) => intern('name', names, [parent, part]);
  /** A name from its components; a numeric component is { num: decimal digits }. */
  const nameOf = (components) => components.reduce((parent, part) => name(parent, part), 0);

  function components(number) {
    const parts = [];
    for (; number !== 0; [number] = names[number]) parts.push(names[number][1]);
    return parts.reverse();
  }

  const showName = (number) => components(number).map((p) => (typeof p === 'string' ? p : p.num)).join('.');

  function level(tag, ...parts) {
    const number = intern('level', levels, [tag, ...parts]);
    if (number === levelSizes.length) {
      levelSizes.push(tag === LEVEL.param ? 1 : parts.reduce((size, part) => size + levelSizes[part], 1));
    }
    return number;
  }

  function expr(tag, ...parts) {
    const number = intern('expr', exprs, [tag, ...parts]);
    if (number === depths.length) {
      const children = childrenOf(exprs[number]);
      depths.push(1 + children.reduce((most, [e]) => Math.max(most, depths[e]), 0));
      loose.push(tag === EXPR.bvar ? Number(parts[0]) + 1
        : children.reduce((most, [e, binders]) => Math.max(most, loose[e] - binders), 0));
    }
    return number;
  }

  /** The subterms of an item as [number, binders above it]. */
  function childrenOf(item) {
    switch (item[0]) {
      case EXPR.app: return [[item[1], 0], [item[2], 0]];
      case EXPR.lam:
      case EXPR.forall: return [[item[2], 0], [item[3], 1]];
      case EXPR.let: return [[item[1], 0], [item[2], 0], [item[3], 1]];
      case EXPR.proj: return [[item[3], 0]];
      default: return [];
    }
  }

  /** Calls visit(name number) for every constant below some terms, once each. */
  function constantsOf(roots) {
    const found = new Set();
    const seen = new Set();
    const stack = [...roots];
    while (stack.length > 0) {
      const e = stack.pop();
      if (seen.has(e)) continue;
      seen.add(e);
      const item = exprs[e];
      if (item[0] === EXPR.const || item[0] === EXPR.proj) found.add(item[1]);
      for (const [child] of childrenOf(item)) stack.push(child);
    }
    return found;
  }

  /** The head and arguments of an application. */
  function spine(e) {
    const args = [];
    while (exprs[e][0] === EXPR.app) {
      args.push(exprs[e][2]);
      [, e] = exprs[e];
    }
    return { head: e, args: args.reverse() };
  }

  /**
   * The declarations (see declarations.js) with the items they need, as plain arrays. A name's
   * number, and so on, is its place in its array; names begin at 1.
   */
  function encode(declarations) {
    const out = { names: [], levels: [], exprs: [], declarations: [] };
    const placed = { name: new Map([[0, 0]]), level: new Map(), expr: new Map() };
    const place = (kind, list, number, item) => {
      const at = list.push(item) - (kind === 'name' ? 0 : 1);
      placed[kind].set(number, at);
      return at;
    };
    const putName = (n) => {
      if (placed.name.has(n)) return placed.name.get(n);
      const missing = [];
      for (let at = n; !placed.name.has(at); [at] = names[at]) missing.push(at);
      for (const at of missing.reverse()) place('name', out.names, at, [placed.name.get(names[at][0]), names[at][1]]);
      return placed.name.get(n);
    };
    const putLevel = (l) => {
      if (placed.level.has(l)) return placed.level.get(l);
      const [tag, ...parts] = levels[l];
      return place('level', out.levels, l, [tag, ...parts.map(tag === LEVEL.param ? putName : putLevel)]);
    };
    const put = { n: putName, l: putLevel, L: (list) => list.map(putLevel), e: (e) => placed.expr.get(e) };
    const putExpr = (root) => {
      const stack = [root];
      while (stack.length > 0) {
        const e = stack[stack.length - 1];
        if (placed.expr.has(e)) { stack.pop(); continue; }
        const item = exprs[e];
        const missing = childrenOf(item).map(([child]) => child).filter((child) => !placed.expr.has(child));
        if (missing.length > 0) { stack.push(...missing); continue; }
        stack.pop();
        const shape = SHAPES[item[0]];
        place('expr', out.exprs, e, [item[0], ...item.slice(1).map((part, i) => (put[shape[i]] || ((x) => x))(part))]);
      }
      return placed.expr.get(root);
    };
    out.declarations = declarations.map((d) => mapDeclaration(d, putName, putExpr));
    return out;
  }

  /** Reads what `encode` wrote, into this arena; throws DataError on anything else. */
  function decode(data, limits) {
    if (data === null || typeof data !== 'object') throw new DataError('the data is no object');
    const list = (key, most) => {
      if (!Array.isArray(data[key])) throw new DataError(`the data has no ${key}`);
      if (data[key].length > most) throw new DataError(`the data has more than ${most} ${key}`);
      return data[key];
    };
    const index = (value, map) => {
      if (!Number.isInteger(value) || value < 0 || value >= map.length) throw new DataError('the data refers to what is not there');
      return map[value];
    };
    const digits = (value, most = limits.digits) => {
      if (typeof value !== 'string' || value.length > most || !/^(0|[1-9][0-9]*)$/.test(value)) throw new DataError('the data has a number that is none');
      return value;
    };
    const small = (value) => digits(value, SMALL);
    const text = (value) => {
      if (typeof value !== 'string' || value.length > limits.text || !value.isWellFormed()) throw new DataError('the data has a text that is none');
      return value;
    };
    const nameMap = [0];
    for (const item of list('names', limits.items)) {
      if (!Array.isArray(item) || item.length !== 2) throw new DataError('the data has a name that is none');
      const [parent, part] = item;
      const plain = typeof part === 'string' ? text(part) : { num: digits(part?.num, NAME_DIGITS) };
      const number = name(index(parent, nameMap), plain);
      // The kernel makes names that begin so for itself while it takes a nested inductive type apart.
      if (components(number)[0] === '_nested') throw new DataError('the data has a name that is the kernel\'s own');
      nameMap.push(number);
    }
    const levelMap = [];
    const exprMap = [];
    const takeLevels = (value) => {
      if (!Array.isArray(value) || value.length > limits.levels) throw new DataError('the data has levels that are none');
      return value.map((l) => index(l, levelMap));
    };
    const binder = (value) => {
      if (!Number.isInteger(value) || value < 0 || value >= BINDERS) throw new DataError('the data has a binder that is none');
      return value;
    };
    const take = {
      n: (v) => index(v, nameMap), l: (v) => index(v, levelMap), L: takeLevels, e: (v) => index(v, exprMap), b: binder, s: small, d: (v) => digits(v), t: text,
    };
    const read = (item, shapes) => {
      if (!Array.isArray(item) || !Number.isInteger(item[0]) || !(item[0] in shapes)) throw new DataError('the data has an item of no kind');
      const shape = shapes[item[0]];
      if (item.length !== shape.length + 1) throw new DataError('the data has an item of another shape');
      return [item[0], ...item.slice(1).map((part, i) => take[shape[i]](part))];
    };
    for (const item of list('levels', limits.items)) {
      const l = level(...read(item, LEVEL_SHAPES));
      if (levelSizes[l] > limits.levelSize) throw new DataError('the data has a universe level that is too large');
      levelMap.push(l);
    }
    for (const item of list('exprs', limits.items)) {
      const plain = read(item, SHAPES);
      const e = expr(...plain);
      if (depths[e] > limits.depth) throw new DataError(`the data has a term deeper than ${limits.depth}`);
      exprMap.push(e);
    }
    const named = (value) => {
      const n = index(value, nameMap);
      if (n === 0) throw new DataError('the data has a declaration without a name');
      return n;
    };
    const closed = (value) => {
      const e = index(value, exprMap);
      if (loose[e] > 0) throw new DataError('the data has a declaration with a loose variable');
      return e;
    };
    return list('declarations', limits.declarations)
      .map((d) => checkedDeclaration(d, named, closed, small));
  }

  return {
    names, levels, exprs, depths, loose, name, nameOf, components, showName, level, expr, childrenOf, constantsOf, spine, encode, decode,
  };
}

/** A declaration with its names and terms replaced. */
function mapDeclaration(d, name, expr) {
  const all = (list) => list.map(name);
  switch (d.kind) {
    case 'inductive':
      return {
        kind: d.kind, params: all(d.params), count: d.count, unsafe: d.unsafe,
        types: d.types.map((t) => ({
          name: name(t.name), type: expr(t.type),
          constructors: t.constructors.map((c) => ({ name: name(c.name), type: expr(c.type) })),
        })),
      };
    default:
      return {
        kind: d.kind, name: name(d.name), params: all(d.params), type: expr(d.type),
        value: d.value === null ? null : expr(d.value), hints: d.hints, unsafe: d.unsafe,
      };
  }
}

const KINDS = ['axiom', 'def', 'theorem', 'opaque'];

function checkedDeclaration(d, name, expr, small) {
  const isList = (value) => Array.isArray(value) && value.length < 10000;
  const bad = () => { throw new DataError('the data has a declaration that is none'); };
  if (d === null || typeof d !== 'object' || typeof d.unsafe !== 'boolean' || !isList(d.params)) bad();
  if (d.kind === 'inductive') {
    small(d.count);
    if (!isList(d.types) || d.types.length === 0) bad();
    for (const type of d.types) {
      if (type === null || typeof type !== 'object' || !isList(type.constructors)) bad();
      for (const c of type.constructors) if (c === null || typeof c !== 'object') bad();
    }
  } else {
    if (!KINDS.includes(d.kind) || (d.value === null && d.kind !== 'axiom' && d.kind !== 'theorem') || (d.kind === 'axiom' && d.value !== null)) bad();
    if (!Number.isInteger(d.hints) || d.hints < -2 || d.hints > 0xffffffff) bad();
  }
  return mapDeclaration(d, name, expr);
}

module.exports = { createArena, DataError, EXPR, LEVEL };
