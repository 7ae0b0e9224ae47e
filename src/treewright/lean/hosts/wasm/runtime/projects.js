'use strict';
/**
 * Modules of a project: reading headers, compiling a module to bytes, importing from bytes.
 *
 * A process is handed compiled modules over its pipe and keeps them in a file system in memory, where
 * Lean finds them and nothing of Lean can write. They are imported like the library's, and are not
 * trusted like it: `isLibrary` is what the judge asks.
 */
const { posix } = require('node:path');
const { COMMAND_STATE } = require('./elaborator.js');
const { RequestError } = require('./proofs.js');

const ROOT = '/project';
const OUTPUT = '/compiled';
const TEXTS = '/text/1/2/3/4/5/6/7/8'; // where a text is, as Lean sees it
// Lean makes a path of it.
const MODULE_NAME = /^(«[^«»/\\.\0]+»|[^«»/\\.\0\s]+)(\.(«[^«»/\\.\0]+»|[^«»/\\.\0\s]+))*$/;
const LIBRARY_ROOTS = new Set(['Init', 'Std', 'Lean', 'Lake']);
// They become text of commands: nothing but a name and a value may be in them.
const OPTION_NAME = /^[A-Za-z_][\w!?']*(\.[A-Za-z_][\w!?']*)*$/;
const OPTION_VALUE = /^(true|false|\d+|"[^"\\\n\r]*")$/;
// What Lean says where a metaprogram has no code.
const NO_CODE = /has not been implemented|no executable code|\(interpreter\)|has no IR|could not evaluate/;
// What Lean says of names that the release 4.28.0 has and the bundled commit, which is older, has not.
const OF_THE_RELEASE = [
  /`(Rel)` is not a field of structure `FinitenessRelation`/,
  /does not contain `((?:Init|Std|Lean)\.[^`]+)`/,
  /^Unknown (?:constant|identifier|attribute|namespace|option) `\[?((?:Init|Std|Lean)\.[^`]+?)\]?`/,
];
const EVERYTHING = 2; // of the levels of an olean: exported, server, private
const HEADER = { modules: 3, moduleData: 5 };
const MODULE_DATA = { imports: 0 };
// The interpreter finds code of imported modules by the names of constants only, so that none may be
// taken out into names of its own.
const COMPILING = [['compiler.extract_closed', 'false']];

/**
 * `given`: the names of the modules that were handed over, known to others too. `importedAtStart`: gives the
 * environment that a process starts with, for a header that imports just that.
 */
function createProjects(host, heap, calls, names, elaborator, given, importedAtStart) {
  const { box, inc, dec, field, readArray } = heap;
  const { call, run } = calls;
  const { files } = host;

  const pathOf = (name) => `${ROOT}/${name.replace(/[«»]/g, '').split('.').join('/')}.olean`;

  /** What texts import, by Lean's own parser. */
  function headers({ texts }) {
    return {
      headers: texts.map((text) => {
        const parsed = elaborator.parseHeader(text);
        const problem = elaborator.notes(parsed).find((m) => m.severity === 'error')?.text ?? '';
        elaborator.releaseHeader(parsed);
        return { imports: [...new Set(parsed.imports.map((i) => i.module))], problem };
      }),
    };
  }

  /**
   * Takes compiled modules, [{ name, olean: base64 }], the options that texts are elaborated with, and files that
   * texts include, [{ path: as the text says it, content: base64 }].
   */
  function provide({ modules, options, files: included = [] }) {
    // A path that goes up begins in the directory of the text, which has to be there.
    if (included.length > 0) files.store(`${TEXTS}/input.lean`, Buffer.alloc(0));
    for (const { path, content } of included) {
      const place = posix.join(TEXTS, path);
      if (!place.startsWith('/text/')) throw new RequestError(`${path.slice(0, 60)} is too far from the text that includes it`);
      files.store(place, Buffer.from(content, 'base64'));
    }
    for (const { name, olean } of modules) {
      if (!MODULE_NAME.test(name)) throw new RequestError(`${name.slice(0, 60)} is no name for a module`);
      if (LIBRARY_ROOTS.has(name.split('.')[0])) throw new RequestError(`${name} is a module of Lean itself`);
      if (given.has(name)) continue;
      files.store(pathOf(name), Buffer.from(olean, 'base64'));
      given.add(name);
    }
    const odd = (options ?? []).find(([name, value]) => !OPTION_NAME.test(name) || !OPTION_VALUE.test(value));
    if (odd) throw new RequestError(`${odd[0].slice(0, 40)} is no option with a plain value`);
    if (options !== undefined) elaborator.setOptions(options);
    return {};
  }

  /**
   * Lean looks for modules there too, and runs what they say with `initialize` when they are imported: attributes
   * and extensions of a library are there only then. Said again before each import: memory may have been put
   * back. A judge is given no modules, so that nothing is initialised there.
   */
  function lookThere() {
    if (given.size === 0) return;
    elaborator.runInitializers();
    const reference = heap.global('l_Lean_searchPathRef');
    const roots = heap.readList(heap.refValue(reference));
    if (roots.some((root) => heap.readString(root) === ROOT)) return;
    const more = heap.list([...roots.map(inc), heap.string(ROOT)]);
    dec(calls.raw('lean_st_ref_set')(reference, more) >>> 0);
  }

  /**
   * Elaborates a module under its own name: its compiled form as `olean`, or null and the messages. With errors
   * there is none, unless the bundled Lean lacks what the module needs, which `lacks` says: then all that does not
   * rest on it can be used, and a theorem without a proof is one by `sorry`.
   */
  function compile({ module, text }) {
    lookThere();
    const parsed = elaborator.parseHeader(text);
    const { state, messages } = elaborator.importHeader(parsed, module, COMPILING, importedAtStart(parsed));
    if (!state) return { messages, stopped: 'header', olean: null };
    const result = elaborator.commands(state, text, { input: parsed.input, parserState: parsed.parserState });
    dec(state);
    const reply = { messages: messages.concat(result.messages), stopped: result.stopped, olean: null, lacks: '' };
    const errors = reply.messages.filter((m) => m.severity === 'error');
    if (errors.length > 0) reply.lacks = lackOf(parsed.imports, errors);
    if (!result.stopped && (errors.length === 0 || reply.lacks !== '')) {
      reply.olean = save(heap.field(result.state, COMMAND_STATE.env), module);
    }
    dec(result.state);
    return reply;
  }

  /** What the bundled Lean has not got, if that may be why a module has these errors, or ''. */
  function lackOf(imports, errors) {
    const whole = imports.filter(({ module, all }) => all && LIBRARY_ROOTS.has(module.split('.')[0])).map(({ module }) => module);
    if (whole.length > 0) return `the private scope of ${whole.join(', ')}`;
    const newer = OF_THE_RELEASE.map((pattern) => errors[0].text.match(pattern)?.[1]).find((name) => name !== undefined);
    if (newer !== undefined) return `${newer}, which the release may have`;
    return errors.every(({ text }) => NO_CODE.test(text)) ? 'code that the module runs' : '';
  }

  /** The bytes of a module. Nothing but Lean's serialiser runs while there is a place to write to. */
  function save(env, module) {
    elaborator.unmarkModule(env); // a plain file has the code of all that it declares, and a `module` of some
    const path = `${OUTPUT}/module.olean`;
    const data = run('l_Lean_mkModuleData', inc(env), box(EVERYTHING));
    const parts = heap.array([heap.constructor(0, [heap.string(path), data])]);
    const write = () => dec(run('lean_save_module_data_parts', names.parse(module), parts));
    return files.collect(OUTPUT, write, (read) => Buffer.from(read(path)).toString('base64'));
  }

  const nameOfImport = (o) => names.show(field(o, 0));

  /** The modules of the library that an environment (borrowed) imports, itself or through its project. */
  function libraryImports(env, direct) {
    const found = new Set(direct.filter((module) => !given.has(module)));
    const header = call('l_Lean_Environment_header', inc(env));
    const data = readArray(field(header, HEADER.moduleData));
    readArray(field(header, HEADER.modules)).forEach((module, i) => {
      if (!given.has(nameOfImport(field(module, 0)))) return;
      const imports = readArray(field(data[i], MODULE_DATA.imports)).map(nameOfImport);
      imports.filter((name) => !given.has(name)).forEach((name) => found.add(name));
    });
    dec(header);
    return [...found].sort();
  }

  return { headers, provide, lookThere, compile, libraryImports };
}

module.exports = { createProjects };
