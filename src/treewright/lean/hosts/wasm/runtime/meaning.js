'use strict';
/**
 * Whether what a candidate declares means what the original says.
 *
 * Names count whole, and a name that both texts declare counts by what it means there. What may
 * differ: what stands where the original has `sorry`; one proof for another of the same proposition;
 * the name of an auxiliary declaration (`foo.match_1`, `foo._proof_2`) that means the same.
 */
const { DataError, EXPR } = require('./arena.js');

const MOST_PROOF_QUESTIONS = 400; // about parts of terms that differ; each is asked of the kernel

/** Where constants of a text are declared: name number -> { declaration, part }. */
function indexOf(declarations) {
  const index = new Map();
  const put = (name, entry) => {
    if (index.has(name)) throw new DataError('a name is declared twice');
    index.set(name, entry);
  };
  for (const declaration of declarations) {
    if (declaration.kind === 'inductive') {
      for (const type of declaration.types) {
        put(type.name, { declaration, part: 'type' });
        for (const c of type.constructors) put(c.name, { declaration, part: 'constructor' });
      }
    } else put(declaration.name, { declaration, part: 'whole' });
  }
  return index;
}

/**
 *   arena                  holds the terms of both texts
 *   original, candidate    indexes as of `indexOf`
 *   isImported(name)       whether both have it from the imports
 *   isOwn(name)            whether the original's author gave the name, so that it has to stay
 *   isProof(side, binders, e)   whether a term proves a proposition, in a text's environment
 */
function createComparison(arena, original, candidate, { isImported, isOwn, isProof }) {
  const { exprs } = arena;
  const sorryAx = arena.nameOf(['sorryAx']);
  const constants = new Map(); // 'original candidate' -> boolean
  const unchanged = new Map(); // term -> whether every constant in it means the same in both texts
  const filled = new Set(); // names (of the original) whose `sorry` the candidate has filled
  const partner = { original: new Map(), candidate: new Map() }; // auxiliary names that stand for each other
  let holes = 0; // how many were matched so far
  let questions = 0;
  let different = 0; // the first name that was found to mean something else

  /** The part of a name that its author wrote: without the prefix of a private one. */
  function userComponents(name) {
    const parts = arena.components(name);
    if (parts[0] !== '_private') return parts;
    return parts.slice(parts.findIndex((p) => typeof p !== 'string') + 1);
  }

  const isAuxiliary = (name) => userComponents(name).some((p) => typeof p === 'string'
    && (p.startsWith('_') || /^(match|proof|eq|omega|unary|mutual|sunfold|def)_\d+$/.test(p)));

  /** The inductive declaration a recursor belongs to, or undefined. */
  function recursorOf(name, index) {
    if (name === 0) return undefined;
    const [parent, part] = arena.names[name];
    if (typeof part !== 'string' || !/^rec(_\d+)?$/.test(part)) return undefined;
    const entry = index.get(parent);
    return entry && entry.part === 'type' ? entry : undefined;
  }

  function sameConstant(o, c) {
    if (o === c && isImported(o)) return true;
    if (o !== c && !mayStandFor(o, c)) return false;
    const key = `${o} ${c}`;
    const known = constants.get(key);
    if (known !== undefined) return known;
    constants.set(key, true); // an inductive type mentions itself
    const result = sameEntry(o, c);
    if (!result) { // what was found equal by assuming this may not be
      different ||= o;
      for (const [pair, same] of constants) if (same) constants.delete(pair);
      unchanged.clear();
    }
    constants.set(key, result);
    return result;
  }

  /**
   * Whether an auxiliary declaration may have another name: both texts made it themselves, each name
   * stands for one other, and what it means is decided by what it is, as it is not for an opaque
   * constant, an axiom, or a definition that was open.
   */
  function mayStandFor(o, c) {
    if (!isAuxiliary(o) || !isAuxiliary(c) || isOwn(o) || isOwn(c)) return false;
    if ((partner.original.get(o) ?? c) !== c || (partner.candidate.get(c) ?? o) !== o) return false;
    const kind = original.get(o)?.declaration.kind;
    if (kind === 'theorem') return true;
    if (kind !== 'def') return false;
    partner.original.set(o, c);
    partner.candidate.set(c, o);
    return true;
  }

  function sameEntry(o, c) {
    const first = original.get(o) || recursorOf(o, original);
    const second = candidate.get(c) || recursorOf(c, candidate);
    if (!first || !second || first.part !== second.part) return false;
    if (first.part === 'whole') {
      const before = holes;
      return sameDeclaration(first.declaration, second.declaration) && (o === c || holes === before || first.declaration.kind === 'theorem');
    }
    return o === c && sameInductive(first.declaration, second.declaration);
  }

  const sameLength = (a, b) => a.length === b.length;

  /** Universe parameters are known by their places, so the candidate's get the original's names. */
  const sameParams = (a, b) => sameLength(a.params, b.params) && a.params.every((p, i) => p === b.params[i]);

  function sameInductive(a, b) {
    return a.count === b.count && a.unsafe === b.unsafe && sameParams(a, b) && sameLength(a.types, b.types)
      && a.types.every((t, i) => {
        const u = b.types[i];
        return t.name === u.name && match(t.type, u.type, t.name, []) && sameLength(t.constructors, u.constructors)
          && t.constructors.every((x, j) => x.name === u.constructors[j].name && match(x.type, u.constructors[j].type, t.name, []));
      });
  }

  /** Of theorems the statements, of definitions the values too. */
  function sameDeclaration(a, b) {
    if (a.kind !== b.kind || a.unsafe !== b.unsafe || !sameParams(a, b)) return false;
    if (!match(a.type, b.type, a.name, [])) return false;
    return a.kind === 'theorem' || a.kind === 'axiom' || match(a.value, b.value, a.name, []);
  }

  /** Whether every constant in a term means the same in both texts. */
  function isUnchanged(e) {
    let result = unchanged.get(e);
    if (result === undefined) {
      result = [...arena.constantsOf([e])].every((name) => sameConstant(name, name));
      unchanged.set(e, result);
    }
    return result;
  }

  const isHole = (e) => {
    const { head } = arena.spine(e);
    return exprs[head][0] === EXPR.const && exprs[head][1] === sorryAx;
  };

  /** `binders`: what stands around both terms, outermost first: [original, candidate] of { type, value }. */
  function match(o, c, owner, binders) {
    if (o === c && isUnchanged(o)) return true;
    if (isHole(o)) {
      holes += 1;
      filled.add(owner);
      return true;
    }
    return matchParts(o, c, owner, binders) || bothProve(o, c, binders);
  }

  function matchParts(o, c, owner, binders) {
    const [tag, ...a] = exprs[o];
    const [other, ...b] = exprs[c];
    if (tag !== other) return false;
    const under = (first, second) => [...binders, [first, second]];
    switch (tag) {
      case EXPR.const: return sameLength(a[1], b[1]) && a[1].every((l, i) => l === b[1][i]) && sameConstant(a[0], b[0]);
      case EXPR.app: {
        const first = arena.spine(o);
        const second = arena.spine(c);
        return sameLength(first.args, second.args) && match(first.head, second.head, owner, binders)
          && first.args.every((x, i) => match(x, second.args[i], owner, binders));
      }
      case EXPR.lam:
      case EXPR.forall:
        return a[0] === b[0] && match(a[1], b[1], owner, binders)
          && match(a[2], b[2], owner, under({ type: a[1] }, { type: b[1] }));
      case EXPR.let:
        return match(a[0], b[0], owner, binders) && match(a[1], b[1], owner, binders)
          && match(a[2], b[2], owner, under({ type: a[0], value: a[1] }, { type: b[0], value: b[1] }));
      case EXPR.proj: return a[1] === b[1] && sameConstant(a[0], b[0]) && match(a[2], b[2], owner, binders);
      default: return o === c;
    }
  }

  /**
   * Two proofs in one place prove the same proposition, since what is around them matches: the
   * kernel does not tell them apart, and neither does the meaning of what contains them.
   */
  function bothProve(o, c, binders) {
    questions += 2;
    if (questions > MOST_PROOF_QUESTIONS) return false;
    return isProof('original', binders.map(([first]) => first), o) && isProof('candidate', binders.map(([, second]) => second), c);
  }

  return { sameConstant, userComponents, filled, different: () => different };
}

module.exports = { createComparison, indexOf };
