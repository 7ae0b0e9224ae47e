'use strict';
/** Importing modules: the environment of a header, and what makes a text on top of it a `module`. */
const ALL_LEVELS = 2; // of what a module exports: to everybody, to servers, to itself
const ENVIRONMENT = { base: 0, realizations: 5 }; // base: { private, public }, two kernel environments
const KERNEL_ENVIRONMENT = { constants: 0, moduleOfName: 2, header: 5 };
const HEADER = { modules: 3, wholeModules: 4, moduleData: 5 };
const EFFECTIVE_IMPORT = { import: 0 };
const MODULE_DATA = { imports: 0, extraNames: 3 };
const IMPORTING = 'l___private_Lean_ImportingFlag_0__Lean_importingRef';
const RUNS_INITIALIZERS = 'l___private_Lean_ImportingFlag_0__Lean_runInitializersRef';
const HEADER_IS_MODULE = 4; // scalar byte of EnvironmentHeader, behind the trust level
const IMPORT = { module: 0, isAll: 0, isExported: 1, isMeta: 2 }; // the last three are scalar bytes

function createImporting(heap, calls, names) {
  const { box, inc, dec, field, copyWith } = heap;
  const { call, run, LeanException } = calls;
  const emptyOptions = heap.global('l_Lean_Options_empty');
  let runsInitializers = false;

  /** The environment of some imports (taken), or 0 and a note. */
  function importModules(imports, notes) {
    // Called unboxed for its UInt32 trust level, so borrowed arguments are kept alive here.
    const fn = calls.raw('l_Lean_importModules');
    const [trust, leak, extensions, level] = [0, 1, runsInitializers ? 0 : 1, ALL_LEVELS];
    const args = [imports, inc(emptyOptions), trust, heap.array([]), leak, extensions, level, box(1)];
    for (const owned of [0, 1, 3]) inc(args[owned]);
    if (fn.length === args.length + 1) args.push(box(0));
    try {
      const env = calls.unwrap(fn(...args) >>> 0);
      findGeneratedNames(env);
      return runsInitializers ? initialize(env) : env;
    } catch (error) {
      if (!(error instanceof LeanException)) throw error;
      const text = heap.takeString(call('lean_io_error_to_string', error.object));
      notes.push({ severity: 'error', text, line: 1, column: 0, kind: '' });
      return 0;
    }
  }

  /**
   * Notes of the names that Lean's compiler made (`foo._redArg`) in which module they are. Lean looks for
   * their code there, and notes it of a name with code in an `.ir` file only, which the bundled Lean
   * does not have: their code is compiled into the module itself. Nobody else has seen the environment yet.
   */
  function findGeneratedNames(env) {
    const base = field(env, ENVIRONMENT.base);
    const known = field(field(base, 0), KERNEL_ENVIRONMENT.moduleOfName);
    let map = copyWith(known, { 1: heap.array(heap.readArray(field(known, 1)).map(inc)) });
    const data = heap.readArray(field(field(field(base, 0), KERNEL_ENVIRONMENT.header), HEADER.moduleData));
    data.forEach((module, index) => {
      for (const name of heap.readArray(field(module, MODULE_DATA.extraNames))) {
        map = call('l_Std_DHashMap_Internal_Raw_u2080_insertIfNew___at___00Lean_finalizeImport_spec__4___redArg', map, inc(name), box(index));
      }
    });
    calls.raw('lean_mark_persistent')(map);
    for (const side of [0, 1]) heap.setField(field(base, side), KERNEL_ENVIRONMENT.moduleOfName, map);
  }

  /**
   * The second half of importing, for an environment (taken) without the state of its extensions: what imported
   * modules declare with `initialize` runs now, when the names of its code are known.
   */
  function initialize(env) {
    const data = inc(field(field(field(field(env, ENVIRONMENT.base), 0), KERNEL_ENVIRONMENT.header), HEADER.moduleData));
    const set = (flag, yes) => dec(calls.raw('lean_st_ref_set')(heap.global(flag), box(yes ? 1 : 0)) >>> 0);
    const flags = [IMPORTING, RUNS_INITIALIZERS]; // importing ends with both unset
    let whole;
    flags.forEach((flag) => set(flag, true));
    try {
      whole = run('l___private_Lean_Environment_0__Lean_finalizePersistentExtensions', env, data, inc(emptyOptions));
    } finally {
      flags.forEach((flag) => set(flag, false));
    }
    // What Lean derives from imported constants later is derived in a copy of this environment.
    const copy = copyWith(whole, { [ENVIRONMENT.realizations]: box(0) });
    for (const shared of [whole, copy]) calls.raw('lean_mark_persistent')(shared);
    heap.setField(field(field(whole, ENVIRONMENT.realizations), 0), 0, copy);
    return whole;
  }

  /** From now on imports run what modules declare with `initialize`. */
  const runInitializers = () => { runsInitializers = true; };

  /**
   * Makes a text on top of this environment a `module`, with its own private and public scope. Every import is
   * public: which scope may mention what it declares is for the project's own build to decide. Private names
   * of a module are found if it is imported by `import all`. Nobody else has seen the environment yet.
   */
  function markModule(env, imports) {
    const base = field(env, ENVIRONMENT.base);
    const [own, shared] = [field(base, 0), field(base, 1)];
    heap.setField(shared, KERNEL_ENVIRONMENT.constants, inc(field(own, KERNEL_ENVIRONMENT.constants)));
    for (const kernel of [own, shared]) {
      const header = field(kernel, KERNEL_ENVIRONMENT.header);
      heap.setScalar8(header, HEADER_IS_MODULE, 1);
      const whole = importedWhole(header, imports);
      for (const module of heap.readArray(field(header, HEADER.modules))) {
        const imported = field(module, EFFECTIVE_IMPORT.import);
        heap.setScalar8(imported, IMPORT.isAll, whole.has(names.show(field(imported, IMPORT.module))) ? 1 : 0);
        heap.setScalar8(imported, IMPORT.isExported, 1);
      }
      const isWhole = (module) => heap.scalar8(field(module, EFFECTIVE_IMPORT.import), IMPORT.isAll) === 1;
      const found = heap.array(heap.readArray(field(header, HEADER.modules)).filter(isWhole).map(inc));
      calls.raw('lean_mark_persistent')(found);
      heap.setField(header, HEADER.wholeModules, found);
    }
  }

  /** Makes what was elaborated as a `module` a plain file, for others to import. Nothing is elaborated on top of it. */
  function unmarkModule(env) {
    const base = field(env, ENVIRONMENT.base);
    for (const side of [0, 1]) heap.setScalar8(field(field(base, side), KERNEL_ENVIRONMENT.header), HEADER_IS_MODULE, 0);
  }

  /** The names of the modules that are imported with their private scope, by an `import all` or a chain of them. */
  function importedWhole(header, imports) {
    const found = new Set();
    const modules = heap.readArray(field(header, HEADER.modules));
    const data = heap.readArray(field(header, HEADER.moduleData));
    const importsOf = new Map(modules.map((module, i) => (
      [names.show(field(field(module, EFFECTIVE_IMPORT.import), IMPORT.module)), field(data[i], MODULE_DATA.imports)]
    )));
    const pending = imports.filter((i) => i.all).map((i) => i.module);
    while (pending.length > 0) {
      const name = pending.pop();
      if (found.has(name) || !importsOf.has(name)) continue;
      found.add(name);
      const more = heap.readArray(importsOf.get(name)).filter((i) => heap.scalar8(i, IMPORT.isAll) === 1);
      pending.push(...more.map((i) => names.show(field(i, IMPORT.module))));
    }
    return found;
  }

  return { importModules, markModule, unmarkModule, runInitializers };
}

module.exports = { createImporting, IMPORT };
