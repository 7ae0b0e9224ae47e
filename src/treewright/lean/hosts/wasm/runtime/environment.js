'use strict';
/**
 * What an environment contains: declarations, and what they rest on.
 */
const { createLookup } = require('./lookup.js');
const { createPlainTypes } = require('./plain_types.js');

const KINDS = ['axiom', 'def', 'theorem', 'opaque', 'quot', 'inductive', 'constructor', 'recursor'];
const ORIGINAL_KINDS = ['def', 'theorem', 'axiom', 'opaque', 'quot', 'inductive', 'constructor', 'recursor'];
const CONSTANT_VAL = { name: 0, levelParams: 1, type: 2 };
const HEADER = { modules: 3, moduleData: 5 };
const MODULE_DATA = { constNames: 1, constants: 2 };

/** `given`: the names of the modules that are a project's and not the library's. */
function createEnvironment(heap, calls, names, messages, terms, goals, elaborator, given) {
  const { box, inc, dec, field, tag, isBox, readArray, readList } = heap;
  const { call, truth, makeRef } = calls;
  const { find, isImported } = createLookup(heap, calls);

  /** What an imported constant was where it was declared: theorems arrive here without proofs. */
  function originalKind(env, name) {
    const result = call('l_Lean_getOriginalConstKind_x3f', inc(env), inc(name));
    const kind = isBox(result) ? 'axiom' : ORIGINAL_KINDS[heap.unbox(field(result, 0))];
    dec(result);
    return kind;
  }

  /** The name of the module that declares a borrowed name, or null. */
  function moduleOf(env, name) {
    const result = call('l_Lean_Environment_getModuleIdxFor_x3f', inc(env), inc(name));
    const index = heap.option(result);
    const at = index === null ? -1 : heap.unbox(index);
    dec(result);
    if (at < 0) return null;
    const header = call('l_Lean_Environment_header', inc(env));
    const module = names.show(field(field(heap.arrayItem(field(header, HEADER.modules), at), 0), 0));
    dec(header);
    return module;
  }

  /** Whether a borrowed name comes from the library: neither from this text nor from its project. */
  function isLibrary(env, name) {
    return isImported(env, name) && (given.size === 0 || !given.has(moduleOf(env, name)));
  }

  /** Whether compiled code takes another definition for a (borrowed) name. */
  function isImplementedElsewhere(env, name) {
    const result = call('l_Lean_Compiler_getImplementedBy_x3f', inc(env), inc(name));
    const other = !isBox(result);
    dec(result);
    return other || truth('l_Lean_isExtern', inc(env), inc(name));
  }

  const constantVal = (info) => field(field(info, 0), 0);
  const typeOf = (info) => field(constantVal(info), CONSTANT_VAL.type);
  /** The value of a definition, theorem or opaque constant, borrowed, or 0. */
  const valueOf = (info) => ([1, 2, 3].includes(tag(info)) ? field(field(info, 0), 1) : 0);

  const isUnsafe = (info) => truth('l_Lean_ConstantInfo_isUnsafe', inc(info)) || truth('l_Lean_ConstantInfo_isPartial', inc(info));

  /** Everything a constant is made of: calls visit(name) for each constant it mentions. */
  function eachDependency(info, visit) {
    terms.eachConstant(typeOf(info), visit);
    const value = valueOf(info);
    if (value) terms.eachConstant(value, visit);
    const details = field(info, 0);
    switch (KINDS[tag(info)]) {
      case 'inductive': readList(field(details, 3)).forEach(visit); readList(field(details, 4)).forEach(visit); break;
      case 'constructor': visit(field(details, 1)); break;
      case 'recursor':
        readList(field(details, 1)).forEach(visit);
        for (const rule of readList(field(details, 6))) terms.eachConstant(field(rule, 2), visit);
        break;
      default: break;
    }
  }

  /** The name of a declaration as a caller writes it: as it is, or private to this text. */
  function resolve(env, text) {
    const plain = names.parse(text);
    for (const name of [plain, call('l_Lean_mkPrivateName', inc(env), inc(plain))]) {
      const info = find(env, name);
      if (info) return { name, info };
    }
    return null;
  }

  /**
   * What a declaration rests on. Constants of this session and of its project are followed; the
   * library's are leaves, and count as axioms unless they were theorems where they were declared.
   */
  function audit(env, text) {
    const target = resolve(env, text);
    return target && restingOn(env, target, isLibrary);
  }

  function restingOn(env, target, isLeaf) {
    const axioms = new Set();
    const local = [];
    const missing = [];
    const unsafe = [];
    const seen = new Set();
    const todo = [inc(target.name)];
    while (todo.length > 0) {
      const name = todo.pop();
      const shown = names.show(name);
      if (seen.has(shown)) {
        dec(name);
        continue;
      }
      seen.add(shown);
      const info = find(env, name);
      if (!info) {
        missing.push(shown);
        dec(name);
        continue;
      }
      const imported = isImported(env, name);
      if (tag(info) === 0 && (!imported || originalKind(env, name) === 'axiom')) axioms.add(shown);
      if (isUnsafe(info)) unsafe.push(shown);
      if (!imported) local.push(shown);
      if (!imported || !isLeaf(env, name)) {
        eachDependency(info, (n) => todo.push(inc(n)));
      }
      dec(info);
      dec(name);
    }
    return {
      name: names.show(target.name), kind: KINDS[tag(target.info)], axioms: [...axioms].sort(),
      local: local.sort(), missing, unsafe,
    };
  }

  /** Whether a declaration (its borrowed name) rests on an axiom, directly or not. */
  function restsOn(env, name, axiom, isLeaf = isImported) {
    const info = find(env, name);
    if (!info) return false;
    const { axioms } = restingOn(env, { name, info }, isLeaf);
    dec(info);
    return axioms.includes(axiom);
  }

  /**
   * The names of what a text leaves open: declarations that rest on a `sorry` of its own. Auxiliary ones only if
   * nothing else mentions them: then somebody wrote them under such a name.
   */
  function openNames(env) {
    const declared = declaredNames(env);
    const known = new Set();
    const open = declared.filter((name) => {
      const info = find(env, name);
      const { axioms, local } = restingOn(env, { name, info }, isImported);
      dec(info);
      local.forEach((shown) => known.add(shown));
      return axioms.includes('sorryAx');
    });
    const { found, release } = sessionConstants(env);
    const others = found.filter(([shown, , name]) => !known.has(shown) && restsOn(env, name, 'sorryAx')).map(([, , name]) => name);
    release();
    return [...open, ...others];
  }

  /** The constants of this session, as [shown name, info (borrowed)]. */
  function sessionConstants(env) {
    const map = call('l_Lean_Environment_constants', inc(env));
    const found = [];
    heap.eachOfPersistentMap(field(map, 1), (name, info) => found.push([names.show(name), info, name]));
    return { found, release: () => dec(map) };
  }

  /**
   * The names (borrowed from `env`) of what a text declares by itself: without auxiliary
   * declarations, and without those that Lean makes when somebody asks for them.
   */
  function declaredNames(env) {
    const { found, release } = sessionConstants(env);
    const result = found.map(([, , name]) => name)
      .filter((name) => !truth('l_Lean_Name_isInternalDetail', call('l_Lean_privateToUserName', inc(name)))
        && !truth('l_Lean_isReservedName', inc(env), inc(name)));
    release();
    return result;
  }

  // The last listing, since pages follow each other; it keeps its environment alive.
  let listing = { key: '', env: 0, local: 0, rows: [] };

  /** Rows { name, info (both borrowed), owner, text } sorted by name. */
  function list(header, session, prefix, module) {
    const rows = [];
    const seen = new Set(); // a few generated names are in more than one module
    const take = (name, info, owner) => {
      const text = names.show(name);
      if (text.startsWith(prefix) && !seen.has(text) && !truth('l_Lean_Name_isInternalDetail', inc(name))) {
        seen.add(text);
        rows.push({ name, info, owner, text });
      }
    };
    const modules = readArray(field(header, HEADER.modules));
    readArray(field(header, HEADER.moduleData)).forEach((data, i) => {
      const owner = names.show(field(field(modules[i], 0), 0));
      if (module && owner !== module && !owner.startsWith(`${module}.`)) return;
      const constants = readArray(field(data, MODULE_DATA.constants));
      readArray(field(data, MODULE_DATA.constNames)).forEach((name, j) => take(name, constants[j], owner));
    });
    if (!module) for (const [, info, name] of session.found) take(name, info, null);
    return rows.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  }

  /** Declarations of the imported modules and of this session: { items, total }; `plain`: types are not printed by Lean. */
  function declarations(commandState, env, { prefix, module, offset, limit, types, plain }) {
    const key = JSON.stringify([env, prefix, module]);
    const session = sessionConstants(env);
    const header = call('l_Lean_Environment_header', inc(env));
    if (listing.key !== key || listing.local !== session.found.length) {
      if (listing.env) dec(listing.env);
      listing = { key, env: inc(env), local: session.found.length, rows: list(header, session, prefix, module) };
    }
    const { rows: shown } = listing;
    const page = shown.slice(offset, offset + limit);
    const printer = !types ? null : plain ? { print: plainTypes(env), release: () => {} } : typePrinter(commandState);
    const items = page.map(({ name, info, owner, text }) => ({
      name: text,
      kind: tag(info) === 0 && owner !== null ? originalKind(env, name) : KINDS[tag(info)],
      module: owner,
      type: printer ? printer.print(typeOf(info)) : null,
    }));
    if (printer) printer.release();
    session.release();
    dec(header);
    return { items, total: shown.length };
  }

  /** Prints closed types of an environment from their terms alone. */
  const plainTypes = (env) => createPlainTypes(heap, names, terms, (shown, ask, otherwise) => {
    const name = names.parse(shown);
    const info = find(env, name);
    dec(name);
    if (!info) return otherwise;
    const answer = ask(typeOf(info));
    dec(info);
    return answer;
  });

  /** Prints closed types in an environment. */
  function typePrinter(commandState) {
    const monad = elaborator.inTermElab(commandState, (m) => ({
      meta: inc(m.meta), metaRef: makeRef(inc(heap.refValue(m.metaRef))),
      core: inc(m.core), coreRef: makeRef(inc(heap.refValue(m.coreRef))),
    }));
    return {
      print: (e) => goals.print(e, monad),
      release: () => { for (const key of ['meta', 'metaRef', 'core', 'coreRef']) dec(monad[key]); },
    };
  }

  return {
    find, resolve, typeOf, isImported, isLibrary, isImplementedElsewhere, moduleOf, restsOn, restingOn, isUnsafe, originalKind, eachDependency, audit,
    sessionConstants, declaredNames, openNames,
    declarations, KINDS,
  };
}

module.exports = { createEnvironment };
