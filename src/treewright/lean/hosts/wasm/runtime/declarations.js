'use strict';
/**
 * Declarations of a text as data: read from an environment into an arena, with everything they
 * rest on beyond the library, what is needed before what needs it.
 *
 *   { kind: 'axiom' | 'def' | 'theorem' | 'opaque', name, params, type, value, hints, unsafe }
 *   { kind: 'inductive', params, count, unsafe, types: [{ name, type, constructors: [{ name, type }] }] }
 *
 * `hints`: -2 opaque, -1 abbreviation, else the height. Constructors and recursors are not there: the
 * kernel makes its own from the inductive type.
 */
const { EXPR: TERM } = require('./terms.js');
const { EXPR, LEVEL } = require('./arena.js');

const KINDS = ['axiom', 'def', 'theorem', 'opaque', 'quot', 'inductive', 'constructor', 'recursor'];
const CONSTANT_VAL = { name: 0, levelParams: 1, type: 2 };
const INDUCTIVE_VAL = { numParams: 1, all: 3, constructors: 4 };
const INDUCTIVE_UNSAFE = 1; // scalar bytes: isRec, isUnsafe, isReflexive
const SAFE = 1; // DefinitionSafety: unsafe, safe, partial
const BINDER_INFO = 8; // scalar byte after the cached data of an Expr

function createDeclarations(heap, environment, terms) {
  const { field, tag, isBox, scalar8, readList, readString } = heap;

  /** Reads heap objects into an arena; addresses are remembered, so the objects must stay alive. */
  function createReader(arena) {
    const seen = { name: new Map(), level: new Map(), expr: new Map() };
    const remember = (map, address, read) => {
      const known = map.get(address);
      if (known !== undefined) return known;
      const number = read();
      map.set(address, number);
      return number;
    };

    function name(o) {
      if (isBox(o)) return 0;
      return remember(seen.name, o, () => arena.name(
        name(field(o, 0)), tag(o) === 1 ? readString(field(o, 1)) : { num: terms.natural(field(o, 1)) },
      ));
    }

    function level(o) {
      return remember(seen.level, o, () => {
        switch (tag(o)) {
          case 0: return arena.level(LEVEL.zero);
          case 1: return arena.level(LEVEL.succ, level(field(o, 0)));
          case 2: return arena.level(LEVEL.max, level(field(o, 0)), level(field(o, 1)));
          case 3: return arena.level(LEVEL.imax, level(field(o, 0)), level(field(o, 1)));
          case 4: return arena.level(LEVEL.param, name(field(o, 0)));
          default: throw new Error('a universe level is not decided');
        }
      });
    }

    function expr(o) {
      return remember(seen.expr, o, () => {
        switch (tag(o)) {
          case TERM.bvar: return arena.expr(EXPR.bvar, terms.natural(field(o, 0)));
          case TERM.sort: return arena.expr(EXPR.sort, level(field(o, 0)));
          case TERM.const: return arena.expr(EXPR.const, name(field(o, 0)), readList(field(o, 1)).map(level));
          case TERM.app: {
            // Along the spine without recursion: applications nest deeply to the left.
            const spine = [];
            let head = o;
            while (tag(head) === TERM.app && !seen.expr.has(head)) {
              spine.push(head);
              head = field(head, 0);
            }
            let number = expr(head);
            while (spine.length > 0) {
              const app = spine.pop();
              number = arena.expr(EXPR.app, number, expr(field(app, 1)));
              seen.expr.set(app, number);
            }
            return number;
          }
          case TERM.lam:
          case TERM.forall:
            return arena.expr(
              tag(o) === TERM.lam ? EXPR.lam : EXPR.forall, scalar8(o, BINDER_INFO), expr(field(o, 1)), expr(field(o, 2)),
            );
          case TERM.let: return arena.expr(EXPR.let, expr(field(o, 1)), expr(field(o, 2)), expr(field(o, 3)));
          case TERM.lit: {
            const literal = field(o, 0);
            return tag(literal) === 0 ? arena.expr(EXPR.nat, terms.natural(field(literal, 0)))
              : arena.expr(EXPR.string, readString(field(literal, 0)));
          }
          case TERM.mdata: return expr(field(o, 1));
          case TERM.proj:
            return arena.expr(EXPR.proj, name(field(o, 0)), terms.natural(field(o, 1)), expr(field(o, 2)));
          default: throw new Error('a term has a hole');
        }
      });
    }

    return { name, level, expr };
  }

  const hintsOf = (o) => (isBox(o) ? heap.unbox(o) - 2 : heap.scalar32(o, 0));

  /** The declaration that made a constant (borrowed); `lookup` finds others by name. */
  function read(info, reader, lookup, proofless) {
    const details = field(info, 0);
    const constant = field(details, 0);
    const kind = KINDS[tag(info)];
    const params = readList(field(constant, CONSTANT_VAL.levelParams)).map(reader.name);
    const type = () => reader.expr(field(constant, CONSTANT_VAL.type));
    if (kind === 'inductive') {
      return {
        kind, params, count: terms.natural(field(details, INDUCTIVE_VAL.numParams)),
        unsafe: scalar8(details, INDUCTIVE_UNSAFE) === 1,
        types: readList(field(details, INDUCTIVE_VAL.all)).map((name) => {
          const one = field(lookup(name), 0);
          return {
            name: reader.name(name), type: reader.expr(field(field(one, 0), CONSTANT_VAL.type)),
            constructors: readList(field(one, INDUCTIVE_VAL.constructors)).map((c) => ({
              name: reader.name(c), type: reader.expr(field(field(field(lookup(c), 0), 0), CONSTANT_VAL.type)),
            })),
          };
        }),
      };
    }
    const name = reader.name(field(constant, CONSTANT_VAL.name));
    const value = kind === 'axiom' || proofless ? null : reader.expr(field(details, 1));
    const unsafe = kind === 'def' ? scalar8(details, 0) !== SAFE : kind !== 'theorem' && scalar8(details, 0) === 1;
    return { kind, name, params, type: type(), value, hints: kind === 'def' ? hintsOf(field(details, 2)) : 0, unsafe };
  }

  /**
   * Everything of this text and its project that some (borrowed) names rest on, in an order in which the
   * kernel can take it. What is the library's, or not there, is left out. Of `whole` names everything counts, of
   * `stated` ones what they say: a theorem then comes without its proof.
   */
  function collect(env, arena, whole, stated = []) {
    const reader = createReader(arena);
    const kept = []; // owned ConstantInfos: the reader remembers addresses of what they hold
    const declarations = [];
    const done = new Set(); // name numbers that are in the list, on their way, or not ours
    const lookup = (name) => {
      const info = environment.find(env, name);
      if (!info) throw new Error('an inductive type is not whole');
      kept.push(info);
      return info;
    };
    visit(whole, true);
    visit(stated, false);
    return { declarations, release: () => kept.forEach(heap.dec) };

    function visit(roots, withProofs) {
      const stack = roots.map((name) => ({ name }));
      while (stack.length > 0) {
        const top = stack[stack.length - 1];
        if (top.declaration) {
          stack.pop();
          declarations.push(top.declaration);
          continue;
        }
        const number = reader.name(top.name);
        if (done.has(number)) { stack.pop(); continue; }
        done.add(number);
        const info = environment.isLibrary(env, top.name) ? 0 : environment.find(env, top.name);
        if (!info) { stack.pop(); continue; }
        kept.push(info);
        const needs = [];
        const kind = KINDS[tag(info)];
        const proofless = kind === 'theorem' && !withProofs;
        if (proofless) terms.eachConstant(environment.typeOf(info), (name) => needs.push({ name }));
        else environment.eachDependency(info, (name) => needs.push({ name }));
        if (kind === 'quot') throw new Error('a text has no quotients of its own');
        if (kind === 'constructor' || kind === 'recursor') {
          stack.pop();
          for (const need of needs) stack.push(need);
          continue;
        }
        top.declaration = read(info, reader, lookup, proofless);
        if (kind === 'inductive') {
          for (const type of top.declaration.types) {
            done.add(type.name);
            for (const c of type.constructors) done.add(c.name);
          }
          for (const other of readList(field(field(info, 0), INDUCTIVE_VAL.all))) {
            for (const c of readList(field(field(lookup(other), 0), INDUCTIVE_VAL.constructors))) {
              environment.eachDependency(lookup(c), (name) => needs.push({ name }));
            }
            environment.eachDependency(lookup(other), (name) => needs.push({ name }));
          }
        }
        for (const need of needs) stack.push(need);
      }
    }
  }

  /** A borrowed closed term, in an arena. */
  const readTerm = (arena, e) => createReader(arena).expr(e);

  return { collect, readTerm };
}

module.exports = { createDeclarations };
