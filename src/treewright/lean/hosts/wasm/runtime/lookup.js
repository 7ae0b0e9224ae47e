'use strict';
/** Finding constants in an environment. */
function createLookup(heap, { call, truth }) {
  const { box, isBox, inc, dec, field } = heap;

  /** The ConstantInfo of a borrowed name, owned, or 0. */
  function find(env, name) {
    const result = call('l_Lean_Environment_find_x3f', inc(env), inc(name), box(0));
    if (isBox(result)) return 0;
    const info = inc(field(result, 0));
    dec(result);
    return info;
  }

  /**
   * Whether a borrowed name is of a constant that the environment imports. Lean knows a module for more names:
   * those of code that its compiler made, which a text may declare.
   */
  const isImported = (env, name) => truth('l_Lean_Environment_isImportedConst', inc(env), inc(name));

  return { find, isImported };
}

module.exports = { createLookup };
