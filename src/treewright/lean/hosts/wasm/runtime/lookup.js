'use strict';
/** Finding constants in an environment. */
function createLookup(heap, { call }) {
  const { box, isBox, inc, dec, field } = heap;

  /** The ConstantInfo of a borrowed name, owned, or 0. */
  function find(env, name) {
    const result = call('l_Lean_Environment_find_x3f', inc(env), inc(name), box(0));
    if (isBox(result)) return 0;
    const info = inc(field(result, 0));
    dec(result);
    return info;
  }

  /** Whether a borrowed name comes from a module that the environment imports. */
  function isImported(env, name) {
    const result = call('l_Lean_Environment_getModuleIdxFor_x3f', inc(env), inc(name));
    const imported = !isBox(result);
    dec(result);
    return imported;
  }

  return { find, isImported };
}

module.exports = { createLookup };
