'use strict';
/** Lean objects from an arena's data, each made once. Nothing here looks at what the data means. */
const { EXPR, LEVEL } = require('./arena.js');

const SMALL_DIGITS = 9; // numbers of so many digits fit into a scalar on a 32-bit heap
const DECLARATION = { axiom: 0, def: 1, theorem: 2, opaque: 3, inductive: 6 };
const SAFE = 1;

function createBuilder(heap, { call, raw }, arena) {
  const { box, inc, constructor, list } = heap;
  const made = { name: new Map([[0, box(0)]]), level: new Map(), expr: new Map() };

  function remember(map, number, make) {
    let object = map.get(number);
    if (object === undefined) {
      object = make();
      map.set(number, object);
    }
    return object;
  }

  function natural(digits) {
    return digits.length <= SMALL_DIGITS ? box(Number(digits)) : heap.withCString(digits, (address) => raw('lean_cstr_to_nat')(address) >>> 0);
  }

  /** All three return borrowed objects: the builder owns them. */
  function name(number) {
    return remember(made.name, number, () => {
      const [parent, part] = arena.names[number];
      return typeof part === 'string'
        ? call('l_Lean_Name_str___override', inc(name(parent)), heap.string(part))
        : call('l_Lean_Name_num___override', inc(name(parent)), natural(part.num));
    });
  }

  function level(number) {
    return remember(made.level, number, () => {
      const [tag, first, second] = arena.levels[number];
      switch (tag) {
        case LEVEL.zero: return inc(heap.global('l_Lean_levelZero'));
        case LEVEL.succ: return call('l_Lean_Level_succ___override', inc(level(first)));
        case LEVEL.max: return call('l_Lean_Level_max___override', inc(level(first)), inc(level(second)));
        case LEVEL.imax: return call('l_Lean_Level_imax___override', inc(level(first)), inc(level(second)));
        default: return call('l_Lean_Level_param___override', inc(name(first)));
      }
    });
  }

  function make([tag, ...parts]) {
    const part = (i) => inc(made.expr.get(parts[i]));
    switch (tag) {
      case EXPR.bvar: return call('l_Lean_Expr_bvar___override', natural(parts[0]));
      case EXPR.sort: return call('l_Lean_Expr_sort___override', inc(level(parts[0])));
      case EXPR.const: return call('l_Lean_Expr_const___override', inc(name(parts[0])), list(parts[1].map((l) => inc(level(l)))));
      case EXPR.app: return call('l_Lean_Expr_app___override', part(0), part(1));
      case EXPR.lam: return call('l_Lean_Expr_lam___override', box(0), part(1), part(2), box(parts[0]));
      case EXPR.forall: return call('l_Lean_Expr_forallE___override', box(0), part(1), part(2), box(parts[0]));
      case EXPR.let: return call('l_Lean_Expr_letE___override', box(0), part(0), part(1), part(2), box(0));
      case EXPR.nat: return call('l_Lean_Expr_lit___override', constructor(0, [natural(parts[0])]));
      case EXPR.string: return call('l_Lean_Expr_lit___override', constructor(1, [heap.string(parts[0])]));
      default: return call('l_Lean_Expr_proj___override', inc(name(parts[0])), natural(parts[1]), part(2));
    }
  }

  function expr(root) {
    const stack = [root];
    while (stack.length > 0) {
      const number = stack[stack.length - 1];
      const missing = made.expr.has(number) ? []
        : arena.childrenOf(arena.exprs[number]).map(([child]) => child).filter((child) => !made.expr.has(child));
      if (missing.length > 0) {
        for (const child of missing) stack.push(child);
        continue;
      }
      stack.pop();
      remember(made.expr, number, () => make(arena.exprs[number]));
    }
    return made.expr.get(root);
  }

  const names = (numbers) => list(numbers.map((n) => inc(name(n))));
  const hints = (value) => {
    if (value < 0) return box(value + 2);
    const regular = constructor(2, [], 4);
    heap.setScalar32(regular, 0, value);
    return regular;
  };

  /** A Lean.Declaration, owned. Always safe: what is not was refused before, or fails in the kernel. */
  function declaration(d) {
    if (d.kind === 'inductive') {
      const types = d.types.map((t) => constructor(0, [
        inc(name(t.name)), inc(expr(t.type)),
        list(t.constructors.map((c) => constructor(0, [inc(name(c.name)), inc(expr(c.type))]))),
      ]));
      return constructor(DECLARATION.inductive, [names(d.params), natural(d.count), list(types)], 1);
    }
    const constant = constructor(0, [inc(name(d.name)), names(d.params), inc(expr(d.type))]);
    const own = names([d.name]);
    switch (d.value === null ? 'axiom' : d.kind) {
      case 'axiom': return constructor(DECLARATION.axiom, [constructor(0, [constant], 1)]);
      case 'theorem': return constructor(DECLARATION.theorem, [constructor(0, [constant, inc(expr(d.value)), own])]);
      case 'opaque': return constructor(DECLARATION.opaque, [constructor(0, [constant, inc(expr(d.value)), own], 1)]);
      default: {
        const value = constructor(0, [constant, inc(expr(d.value)), hints(d.hints), own], 1);
        heap.setScalar8(value, 0, SAFE);
        return constructor(DECLARATION.def, [value]);
      }
    }
  }

  return { name, level, expr, declaration };
}

module.exports = { createBuilder };
