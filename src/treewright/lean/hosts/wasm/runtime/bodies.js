'use strict';
/**
 * Theorems without their proofs, for who wants to open a goal behind them: only what they say matters there.
 *
 * A proof stays if something else could see it: a `sorry` in it, or a macro of the text that may stand for one; names
 * that it declares; reflexivity, which makes a theorem one for `dsimp`. A short one costs next to nothing and stays too.
 */
const DECLARATION = 'Lean.Parser.Command.declaration';
const THEOREM = 'Lean.Parser.Command.theorem';
const VALUE = 'Lean.Parser.Command.declValSimple';
const BY = 'Lean.Parser.Term.byTactic';
const SORRY = ['Lean', 'Parser', 'Term', 'sorry'];
const STAYING = /^(sorry|admit|stop|dsimp|change|show|unfold|delta|decide|(.*\.)?refl|(.*\.)?rfl)$/;
const DECLARING = /let_?rec|where/i;
const SHORT = 40; // bytes
const SYNTAX = { node: 1, atom: 2 };
const ARGS = 2; // of a node
const NO_POSITION = 2; // SourceInfo.none

function createBodies(heap, names, syntax, environment) {
  const { box, inc, dec, field, readArray, arraySize, constructor, copyWith } = heap;

  /** The last of the arguments of a borrowed node, if it has this kind and number of them; else 0. */
  function last(stx, kind, count) {
    if (syntax.kind(stx) !== kind) return 0;
    const children = field(stx, ARGS);
    return arraySize(children) === count ? heap.arrayItem(children, count - 1) : 0;
  }

  function withArgument(stx, place, argument) {
    const children = readArray(field(stx, ARGS)).map((child, i) => (i === place ? argument : inc(child)));
    return copyWith(stx, { [ARGS]: heap.array(children) });
  }

  /** Whether a kind of syntax is a text's or a project's own: nobody knows what it stands for. */
  function isOwn(env, kind) {
    const name = names.parse(kind);
    const info = environment.find(env, name);
    const own = info && !environment.isLibrary(env, name);
    if (info) dec(info);
    dec(name);
    return Boolean(own);
  }

  function mayBeLeftOut(env, body) {
    const range = syntax.range(body);
    if (range === null || range.end - range.start < SHORT) return false;
    const kinds = new Set();
    let stays = false;
    syntax.walk(body, ({ kind, atom, ident }) => {
      if (kind !== undefined) kinds.add(kind);
      else stays ||= STAYING.test(atom ?? ident);
    });
    return !stays && ![...kinds].some((kind) => DECLARING.test(kind) || isOwn(env, kind));
  }

  /** A command (owned) that says the same as a borrowed theorem and does not prove it, or 0. */
  function withoutBody(command, env) {
    const theorem = last(command, DECLARATION, 2);
    const value = theorem && last(theorem, THEOREM, 4);
    if (!value || syntax.kind(value) !== VALUE) return 0;
    const [, body, ...behind] = readArray(field(value, ARGS));
    if (syntax.kind(body) !== BY || behind.some((stx) => syntax.range(stx) !== null) || !mayBeLeftOut(env, body)) return 0;
    const word = constructor(SYNTAX.atom, [box(NO_POSITION), heap.string('sorry')]);
    const sorry = constructor(SYNTAX.node, [box(NO_POSITION), names.make(SORRY), heap.array([word])]);
    return withArgument(command, 1, withArgument(theorem, 3, withArgument(value, 1, sorry)));
  }

  return { withoutBody };
}

module.exports = { createBodies };
