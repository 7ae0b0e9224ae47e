'use strict';
/**
 * The two halves of judging, which are never one process. One reads originals, each on memory as it was
 * before any other, and says as data what they declare: code of the original and of its project runs
 * there. The other rules on data, and has read nothing.
 */
const { createArena } = require('./arena.js');
const { RequestError } = require('./proofs.js');
const { threadsStarted } = require('./sandbox.js');
const { createSnapshot } = require('./snapshot.js');

// Plain names only: what Lean makes a path of must lie in its own library.
const LIBRARY_MODULE = /^(Init|Std|Lean|Lake)(\.[A-Za-z_][A-Za-z0-9_]*)*$/;

function createReferences({ host, names, environment, data, judge, projects, environments, checkpoints, openHeader, envOf, elaborate }) {
  const snapshot = createSnapshot(host);
  // What is put back after every verdict: Lean's memory, and what we know of it.
  let before = new Map(); // environments
  let stale = false;
  let over = false; // what was asked has been answered
  let last = null; // the original that is in memory: { text, reply, concerning }

  function remember() {
    before = new Map(environments);
    snapshot.take();
  }

  /** Makes everything as it was before the last original was elaborated. */
  function putBack() {
    if (!stale) return;
    if (threadsStarted() > 0) throw new RequestError('another thread works on this memory: it cannot be put back');
    snapshot.restore();
    environments.clear();
    for (const [id, kept] of before) environments.set(id, kept);
    names.forget();
    checkpoints.forget();
    last = null;
    stale = false;
  }

  /** The same, after an answer and while nobody waits. */
  function settle() {
    if (over && threadsStarted() === 0) putBack();
    over = false;
  }

  /** Elaborates an original on memory as it was before any other, unless it is the one that is there: `last`. */
  function read(text) {
    if (last?.text === text) return;
    putBack();
    const header = openHeader(text);
    if (header.failed) {
      last = { reply: { messages: header.failed, stopped: 'header', env: null } };
      return;
    }
    const library = projects.libraryImports(envOf(header.id), header.imports.map((i) => i.module));
    if (!before.has(header.id)) remember();
    stale = true;
    let concerning = null;
    const reply = elaborate({ text, keep: true, fresh: true }, (_, found) => {
      concerning = found;
      return true; // for as long as it is the last
    });
    last = { text, reply: { ...reply, library, spent: threadsStarted() > 0 }, concerning };
  }

  /**
   * Reads an original. Says what it declares, and which of `targets` are there (if there are none, all that
   * rest on `sorry` and that no error concerns). `trouble`: an error that concerns one of them. `spent`: Lean
   * has started a thread for it, so that this is the last one.
   */
  function reference({ text, targets }) {
    read(text);
    const { reply, concerning } = last;
    if (reply.env === null) return reply;
    const env = envOf(reply.env);
    const own = (name) => {
      const found = environment.resolve(env, name);
      return found && !environment.isImported(env, found.name) ? found.name : null;
    };
    const asked = targets.length > 0 ? targets.map(own) : environment.openNames(env).filter((name) => !concerning(env, name));
    const known = asked.filter((name) => name !== null);
    return {
      ...reply,
      unknown: targets.filter((_, i) => asked[i] === null),
      targets: known.map(names.toData),
      stated: environment.declaredNames(env).map(names.toData),
      trouble: known.map((name) => concerning(env, name)).find((error) => error !== null) ?? null,
    };
  }

  /**
   * What an original says, as data without its proofs: of `names`, which are its own, and of `imported` ones
   * that a candidate rests on; and which of it has another implementation.
   */
  function meaning({ env: id, names: own, imported }) {
    const env = envOf(id);
    const arena = createArena();
    const others = imported.map(names.fromData).filter((name) => environment.isImported(env, name));
    const { declarations, release } = data.collect(env, arena, [], [...own.map(names.fromData), ...others]);
    const all = declarations.filter((d) => d.kind !== 'inductive').map((d) => arena.components(d.name));
    const reply = {
      original: arena.encode(declarations),
      implemented: all.filter((name) => environment.isImplementedElsewhere(env, names.fromData(name))),
    };
    release();
    return reply;
  }

  /** Rulings on exported data, in a process that has read no text; see judge.js. */
  function rule({ library, ...request }) {
    const odd = library.find((module) => !LIBRARY_MODULE.test(module));
    if (odd !== undefined) throw new RequestError(`${odd} is no module of the library`);
    const prelude = library.includes('Init') ? '' : 'prelude\n';
    const header = openHeader(prelude + library.map((module) => `import ${module}\n`).join(''));
    if (header.failed) throw new RequestError(header.failed[0].text);
    if (!before.has(header.id)) remember();
    stale = true;
    over = true;
    return { rulings: judge.judge(envOf(header.id), request) };
  }

  return { reference, meaning, judge: rule, settle };
}

module.exports = { createReferences };
