'use strict';
/**
 * Elaborating text: headers, commands, and the way into Lean's elaborator monads.
 *
 * A command state (Lean.Elab.Command.State) is a value: elaborating on top of one gives another
 * and leaves the first as it was. That is what makes branching free.
 */
// Object fields, in declaration order (scalar fields come after them in memory).
const COMMAND_STATE = { env: 0, messages: 1, scopes: 2, infoState: 8 };
const SCOPE = { opts: 1, currNamespace: 2, openDecls: 3 };
const CORE_STATE = { env: 0, ngen: 2, messages: 6 };
const CORE_CONTEXT = { currNamespace: 6, initHeartbeats: 8, maxHeartbeats: 9 };
const ALL_LEVELS = 2; // of what a module exports: to everybody, to servers, to itself
const ENVIRONMENT = { base: 0, realizations: 5 }; // base: { private, public }, two kernel environments
const KERNEL_ENVIRONMENT = { constants: 0, moduleOfName: 2, header: 5 };
const HEADER = { modules: 3, wholeModules: 4, moduleData: 5 };
const EFFECTIVE_IMPORT = { import: 0 };
const IMPORT = { module: 0, isAll: 0, isExported: 1, isMeta: 2 }; // the last three are scalar bytes
const MODULE_DATA = { imports: 0, extraNames: 3 };
const HEADER_IS_MODULE = 4; // scalar byte of EnvironmentHeader, behind the trust level
const SYNTAX_ARGS = 2; // of a node
const INFO_ENABLED = 0; // scalar byte of InfoState
const INFO_TREES = 2;

const IMPORTING = 'l___private_Lean_ImportingFlag_0__Lean_importingRef';
const RUNS_INITIALIZERS = 'l___private_Lean_ImportingFlag_0__Lean_runInitializersRef';
const SETUP = 'set_option Elab.async false\n'; // there are no other threads to elaborate on

function createElaborator(heap, calls, names, messages, syntax, watchdog, codegen) {
  const { box, inc, dec, field, refValue, constructor, copyWith } = heap;
  const { call, run, truth, makeRef, LeanException } = calls;
  const emptyOptions = heap.global('l_Lean_Options_empty');
  let noTrees = 0; // the empty array of info trees, once an environment is there to take it from
  // Deep enough that a path which goes up from it (`include_str "../a.txt"`) stays below `/text`; see projects.js.
  const FILE = '/text/1/2/3/4/5/6/7/8/input.lean';
  let options = [];
  let runsInitializers = false;

  const inputContext = (text) => call(
    'l_Lean_Parser_mkInputContext___redArg',
    heap.string(text), heap.string(FILE), box(1), box(Buffer.byteLength(text)),
  );

  const commandContext = (input) => constructor(0, [
    heap.string(FILE), inc(field(input, 2)), box(0), box(0), box(0), box(0), box(1), box(0), box(0),
    heap.some(inc(watchdog.token)),
  ], 1);

  /** The header of a text: the modules it imports and where its commands begin. */
  function parseHeader(text) {
    const input = inputContext(text);
    const parsed = run('l_Lean_Parser_parseHeader', inc(input));
    const header = inc(field(parsed, 0));
    const rest = field(parsed, 1);
    const parserState = inc(field(rest, 0));
    const log = inc(field(rest, 1));
    dec(parsed);
    const array = call('l_Lean_Elab_headerToImports', inc(header), box(1));
    const imports = heap.readArray(array).map((i) => ({
      module: names.show(field(i, IMPORT.module)), all: heap.scalar8(i, IMPORT.isAll) === 1, meta: heap.scalar8(i, IMPORT.isMeta) === 1,
    }));
    dec(array);
    const [moduleToken] = heap.readArray(field(header, SYNTAX_ARGS));
    const isModule = heap.arraySize(field(moduleToken, SYNTAX_ARGS)) > 0;
    return { input, header, parserState, log, imports, isModule };
  }

  function releaseHeader({ input, header, parserState, log }) {
    [input, header, parserState, log].forEach(dec);
  }

  /** What the parser says about a header. */
  const notes = (parsed) => messages.read(parsed.log);

  /** Options for every text whose header is imported from now on: [name, value as text]. */
  function setOptions(given) {
    options = given;
  }
  const givenOptions = () => JSON.stringify(options);

  /**
   * Imports what a parsed header asks for: { state } or { messages } that say why not. `compiled` is the
   * name of the module that the text is compiled as, with `more` options: then everything in it is for
   * everybody, even if it begins with `module`. `known` (borrowed): what it imports, if that is there already.
   *
   * Not by Lean's `processHeader`: in this Lean it takes whoever imports for a `module`, in which all is
   * private that is not said to be public, and which can import none but `module`s. With all levels
   * asked for, a text is a plain file, unless it says that it is none.
   */
  function importHeader({ header, log, imports, isModule }, compiled = '', more = [], known = 0) {
    const notes = messages.read(log);
    if (notes.some((m) => m.severity === 'error')) return { messages: notes };
    const env = known ? inc(known) : importModules(call('l_Lean_Elab_headerToImports', inc(header), box(1)), notes);
    if (!env) return { messages: notes };
    if (isModule) markModule(env, imports);
    const named = call('l_Lean_Environment_setMainModule', env, names.parse(compiled || '_input'));
    const fresh = call('l_Lean_Elab_Command_mkState', named, inc(messages.empty), inc(emptyOptions));
    if (!noTrees) noTrees = inc(field(field(fresh, COMMAND_STATE.infoState), INFO_TREES));
    const silent = withInfo(fresh, false);
    dec(fresh);
    const lines = [...options, ...more].map(([name, value]) => `set_option ${name} ${value}\n`);
    const { state } = commands(silent, SETUP + lines.join(''), {});
    dec(silent);
    return { state, messages: notes };
  }

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

  /** A copy of a command state that collects info trees, or does not. */
  function withInfo(state, enabled) {
    const info = field(state, COMMAND_STATE.infoState);
    return copyWith(state, {
      [COMMAND_STATE.infoState]: copyWith(info, {}, { [INFO_ENABLED]: enabled ? 1 : 0 }),
    });
  }

  /**
   * Elaborates `text` from `parserState` (or its beginning) on top of a borrowed command state.
   *   inspect(stx)             looks at a command before it runs; a string it returns stops everything
   *   isGenerated(stx)         whether a command gets no code; see codegen.js
   *   shorten(stx, env)        a command to elaborate in the place of one, or 0; then only errors are said of it
   *   after(trees, before)     looks at a command's info trees and the state before it
   *   passed({ command, before, state, parser, notes, error, generated })    is told of each command, with
   *                            what was said of it and the first error; all ends if it returns true
   * Returns { state, messages, stopped }.
   */
  function commands(start, text, { input = inputContext(text), parserState, inspect, isGenerated, shorten, after, passed }) {
    let parser = parserState || constructor(0, [box(0)], 1);
    let state = inc(start);
    const notes = [];
    let stopped = '';
    let isOver = false;
    while (!stopped && !isOver) {
      const scope = field(field(state, COMMAND_STATE.scopes), 0);
      const context = constructor(0, [
        inc(field(state, COMMAND_STATE.env)), inc(field(scope, SCOPE.opts)),
        inc(field(scope, SCOPE.currNamespace)), inc(field(scope, SCOPE.openDecls)),
      ]);
      const said = notes.length;
      const parsed = call('l_Lean_Parser_parseCommand', inc(input), context, parser, inc(messages.empty));
      const command = inc(field(parsed, 0));
      parser = inc(field(field(parsed, 1), 0));
      notes.push(...messages.read(field(field(parsed, 1), 1)));
      dec(parsed);
      if (truth('l_Lean_Parser_isTerminalCommand', inc(command))) {
        const kind = syntax.kind(command);
        if (inspect && !stopped) stopped = inspect(command) || '';
        if (kind !== 'Lean.Parser.Command.eoi') stopped = stopped || `the text ends early, at ${kind}`;
        dec(command);
        break;
      }
      stopped = (inspect && inspect(command)) || '';
      if (stopped) {
        dec(command);
        break;
      }
      const before = state;
      const generated = Boolean(isGenerated && isGenerated(command));
      const mode = generated ? codegen.MODE.data : codegen.MODE.all;
      const shorter = shorten ? shorten(command, field(before, COMMAND_STATE.env)) : 0;
      state = codegen.during(mode, () => elaborate(shorter || inc(command), before, input, notes));
      if (shorter) notes.push(...notes.splice(said).filter((m) => m.severity === 'error'));
      else if (after) {
        after(heap.readPersistentArray(field(field(state, COMMAND_STATE.infoState), INFO_TREES)), before, notes);
      }
      if (watchdog.isSet()) stopped = 'interrupted';
      else if (passed) {
        const own = notes.slice(said);
        const error = own.find((m) => m.severity === 'error');
        isOver = passed({ command, before, state, parser, notes: own, error, generated }) === true;
      }
      dec(command);
      dec(before);
    }
    dec(input);
    dec(parser);
    return { state, messages: notes, stopped };
  }

  /** One command (taken) on a borrowed state; appends its messages to `notes`. */
  function elaborate(command, before, input, notes) {
    const info = field(before, COMMAND_STATE.infoState);
    const enabled = heap.scalar8(info, INFO_ENABLED) === 1;
    const changes = { [COMMAND_STATE.messages]: inc(messages.empty) };
    if (enabled) { // info trees of earlier commands are not needed again
      changes[COMMAND_STATE.infoState] = copyWith(info, { [INFO_TREES]: inc(noTrees) });
    }
    const ref = makeRef(copyWith(before, changes));
    const at = place(command, input);
    call('lean_io_set_heartbeats', box(0));
    let failure = '';
    try {
      dec(run('l_Lean_Elab_Command_elabCommandTopLevel', command, commandContext(input), inc(ref)));
    } catch (error) {
      if (!(error instanceof LeanException)) throw error;
      failure = messages.ofException(error.object);
      dec(error.object);
    }
    const state = inc(refValue(ref));
    dec(ref);
    notes.push(...messages.read(field(state, COMMAND_STATE.messages)));
    if (failure && !watchdog.isSet()) notes.push({ severity: 'error', text: failure, ...at, kind: '' });
    notes.push(...codegen.remarks().map((remark) => ({ ...remark, ...at, kind: '' })));
    return state;
  }

  /** Where a borrowed command begins, as messages say it: { line, column }. */
  function place(command, input) {
    const start = syntax.range(command)?.start ?? 0;
    const position = call('l_Lean_FileMap_toPosition', inc(field(input, 2)), box(start));
    const at = { line: heap.unbox(field(position, 0)), column: heap.unbox(field(position, 1)) };
    dec(position);
    return at;
  }

  // One closure for every visit to TermElabM; what it does is in `visitor`. Its arity counts
  // the world token: contexts and references of Term, Meta and Core, and the token.
  let visitor = null;
  const visit = heap.closure((...args) => {
    visitor(args.slice(0, 6).map((a) => a >>> 0));
    return constructor(0, [box(0)]);
  }, 7);

  /**
   * Runs body(monad) inside TermElabM on a borrowed command state. `monad` is { term, termRef,
   * meta, metaRef, core, coreRef } (borrowed) and arguments for calls: `monad.args()` (owned).
   * Returns body's result, or throws its LeanException.
   */
  function inTermElab(state, body) {
    let result;
    let thrown = null;
    visitor = ([term, termRef, meta, metaRef, core, coreRef]) => {
      const metaArgs = () => [inc(meta), inc(metaRef), inc(core), inc(coreRef)];
      const args = () => [inc(term), inc(termRef), ...metaArgs()];
      try {
        result = body({ term, termRef, meta, metaRef, core, coreRef, args, metaArgs });
      } catch (error) {
        thrown = error;
      }
    };
    const input = inputContext('');
    const context = commandContext(input);
    dec(input);
    const ref = makeRef(copyWith(state, { [COMMAND_STATE.messages]: inc(messages.empty) }));
    call('lean_io_set_heartbeats', box(0));
    const outcome = call('l_Lean_Elab_Command_liftTermElabM___redArg', inc(visit.object), context, inc(ref));
    dec(ref);
    if (thrown) {
      dec(outcome);
      throw thrown;
    }
    dec(calls.unwrap(outcome));
    return result;
  }

  let metaVisitor = null;
  const metaVisit = heap.closure((...args) => {
    metaVisitor(args.slice(0, 4).map((a) => a >>> 0));
    return constructor(0, [box(0)]);
  }, 5);

  /** Runs body(args) in MetaM with the instances among borrowed declarations as local instances. */
  function withLocalInstances(declarations, [meta, metaRef, core, coreRef], body) {
    let result;
    let thrown = null;
    metaVisitor = (inner) => {
      try {
        result = body(() => inner.map(inc));
      } catch (error) {
        thrown = error;
      }
    };
    const outcome = call(
      'l_Lean_Meta_withLocalInstancesImp___redArg', heap.list(declarations.map(inc)), inc(metaVisit.object),
      inc(meta), inc(metaRef), inc(core), inc(coreRef),
    );
    if (thrown) throw thrown;
    dec(calls.unwrap(outcome));
    return result;
  }

  /** Parses text in a syntax category: { syntax } (owned) or { error }. */
  function parse(env, category, text) {
    const result = call(
      'l_Lean_Parser_runParserCategory', inc(env), names.make([category]), heap.string(text), heap.string(FILE),
    );
    const value = inc(field(result, 0));
    const failed = heap.tag(result) === 0;
    dec(result);
    return failed ? { error: heap.takeString(value) } : { syntax: value };
  }

  // What this module remembers of Lean's memory, to be found again in a copy of it.
  const roots = () => ({ noTrees });
  const adopt = (found) => { noTrees = found.noTrees; };

  return {
    parseHeader, releaseHeader, notes, setOptions, givenOptions, importHeader, runInitializers, unmarkModule, roots, adopt, commands, withInfo, inTermElab,
    withLocalInstances, parse,
  };
}

module.exports = { createElaborator, COMMAND_STATE, CORE_STATE, CORE_CONTEXT, SCOPE };
