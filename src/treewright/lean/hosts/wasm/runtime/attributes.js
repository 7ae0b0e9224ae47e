'use strict';
/**
 * What attributes did to an environment, undone: a theorem that is being proved is not in the `simp` set.
 *
 * Lean notes the environment of a command when it is over, and by then `@[simp]`, `@[grind]`, `@[ext]`, an
 * instance and their like have entered their declaration. A proof is elaborated before that. All of them
 * are kept by scoped extensions of the environment, so these are put back to what they were.
 */
const SCOPED_EXTENSION = { ext: 1 }; // of Lean.ScopedEnvExtension
const PERSISTENT_EXTENSION = { plain: 0 };
const EXTENSION = { asyncMode: 2 };

function createAttributes(heap, calls) {
  const { box, inc, dec, field } = heap;
  const { call } = calls;

  /** Borrowed from the environment. */
  function stateOf(extension, env) {
    const mode = inc(field(field(extension, PERSISTENT_EXTENSION.plain), EXTENSION.asyncMode));
    const [noDefault, anyDeclaration] = [box(0), box(0)];
    const state = call('l_Lean_PersistentEnvExtension_getState___redArg', noDefault, inc(extension), inc(env), mode, anyDeclaration);
    dec(state);
    return state;
  }

  /**
   * The environment at a place (owned): an extension that is there as at the end of its command is as it was
   * before that. What differs from the end as well was made inside, as by `open … in`, and stays.
   */
  function withheld(place, before, end) {
    let env = inc(place);
    for (const scoped of heap.readArray(heap.refValue(heap.global('l_Lean_scopedEnvExtensionsRef')))) {
      const extension = field(scoped, SCOPED_EXTENSION.ext);
      const [here, earlier, later] = [place, before, end].map((each) => stateOf(extension, each));
      if (here === earlier || here !== later) continue;
      env = call('l_Lean_PersistentEnvExtension_setState___redArg', inc(extension), env, inc(earlier));
    }
    return env;
  }

  return { withheld };
}

module.exports = { createAttributes };
