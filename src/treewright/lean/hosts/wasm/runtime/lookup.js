'use strict';
/** Finding constants in an environment. */
const ADDED = 1; // of the imported and the added constants
const CONTAINS = 'l_Lean_PersistentHashMap_contains___at___00Lean_SMap_contains___at___00'
  + 'Lean_Environment_containsOnBranch_spec__0_spec__0___redArg';

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
  function isImported(env, name) {
    const result = call('l_Lean_Environment_getModuleIdxFor_x3f', inc(env), inc(name));
    const imported = !isBox(result);
    dec(result);
    return imported && !isDeclared(env, name);
  }

  /** Whether a name is of a constant that was added to what is imported. */
  function isDeclared(env, name) {
    const constants = call('l_Lean_Environment_constants', inc(env));
    const added = truth(CONTAINS, inc(field(constants, ADDED)), inc(name));
    dec(constants);
    return added;
  }

  return { find, isImported };
}

module.exports = { createLookup };
