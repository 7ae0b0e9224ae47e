'use strict';
/**
 * Which declarations an error elsewhere in their text has nothing to do with.
 *
 * An error in a declaration concerns what it declares and all that rests on it. If it declares nothing
 * because of the error, or if the command is not a declaration, it may have been meant to change how the
 * text behind it is read (`open`, `variable`, `notation`, an instance), so it concerns everything behind
 * it, unless it is of a kind that changes nothing: a theorem, an example, a question to Lean.
 */
const { COMMAND_STATE } = require('./elaborator.js');

const DECLARATION = 'Lean.Parser.Command.declaration';
const MUTUAL = 'Lean.Parser.Command.mutual';
const IN = 'Lean.Parser.Command.in';
const CHANGES_NOTHING = new Set([
  ...['theorem', 'example', 'check', 'check_failure', 'eval', 'evalBang', 'reduce', 'print', 'printAxioms', 'printSig', 'printEqns',
    'synth', 'where', 'moduleDoc', 'eoi'].map((kind) => `Lean.Parser.Command.${kind}`),
  'Lean.guardCmd', 'Lean.guardMsgsCmd', 'Lean.reduceCmd',
]);

function createTroubles(heap, names, environment, syntax) {
  const { inc, dec, field, readArray } = heap;
  const envOf = (state) => field(state, COMMAND_STATE.env);

  const children = (stx) => readArray(field(stx, 2));

  /** Whether an error in a command may concern what does not rest on anything that it declares. */
  function reachesFurther(command, declaresSome) {
    const kind = syntax.kind(command);
    if (kind === IN) return reachesFurther(children(command).at(-1), declaresSome);
    if (CHANGES_NOTHING.has(kind)) return false;
    if (kind === MUTUAL) return !declaresSome;
    if (kind === DECLARATION) return !declaresSome && !CHANGES_NOTHING.has(syntax.kind(children(command)[1]));
    return true;
  }

  /** The shown names of what is declared in `after` and not in `before`. */
  function declaredBetween(before, after) {
    const { found, release } = environment.sessionConstants(envOf(after));
    const fresh = found.filter(([, , name]) => {
      const info = environment.find(envOf(before), name);
      if (info) dec(info);
      return !info;
    }).map(([shown]) => shown);
    release();
    return new Set(fresh);
  }

  /** Collects the troubles of one text. Whoever makes one releases it. */
  function create() {
    const found = []; // { error, declared (shown names), before (an environment, if it concerns all behind it) }

    /** For `commands`: a command (borrowed, as it was parsed) had an error. */
    function failed(command, before, after, error) {
      const declared = declaredBetween(before, after);
      found.push({ error, declared, before: reachesFurther(command, declared.size > 0) ? inc(envOf(before)) : 0 });
    }

    const isDeclared = (env, name) => {
      const info = environment.find(env, name);
      if (info) dec(info);
      return info !== 0;
    };

    /** The error that concerns a declaration (its borrowed name) of the whole text's environment, or null. */
    function concerning(env, name) {
      if (found.length === 0) return null;
      const info = environment.find(env, name);
      if (!info) return null;
      const { local } = environment.restingOn(env, { name, info }, environment.isImported);
      dec(info);
      const hit = found.find(({ declared, before }) => local.some((shown) => declared.has(shown))
        || (before !== 0 && !isDeclared(before, name)));
      return hit ? hit.error : null;
    }

    const release = () => found.forEach(({ before }) => { if (before) dec(before); });

    return { failed, concerning, release };
  }

  return { create };
}

module.exports = { createTroubles };
