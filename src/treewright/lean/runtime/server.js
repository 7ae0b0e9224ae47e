'use strict';
/**
 * The server inside Lean: JSON lines on stdin, replies on a pipe of their own, one reply per request, in order.
 *
 * request  { id, op, limit?: ms, … }
 * reply    { id, ok: true, … } | { id, ok: false, kind, error } and always { ms, heap }
 * kinds    statement, parse, tactic, exhausted, timeout, cancelled, request, fatal
 * After `fatal` (out of memory, a trap inside wasm) the session must be replaced.
 */
const { createHeap } = require('./heap.js');
const { createCalls, LeanException } = require('./calls.js');
const { createNames } = require('./names.js');
const { createMessages } = require('./messages.js');
const { createTerms } = require('./terms.js');
const { createSyntax } = require('./syntax.js');
const { createWatchdog } = require('./watchdog.js');
const { createCodegen } = require('./codegen.js');
const { createElaborator, COMMAND_STATE } = require('./elaborator.js');
const { createGoals } = require('./goals.js');
const { createProofs, RequestError } = require('./proofs.js');
const { createEnvironment } = require('./environment.js');
const { createSorries } = require('./sorries.js');
const { createGuard } = require('./guard.js');
const { createArena } = require('./arena.js');
const { createDeclarations } = require('./declarations.js');
const { createKernel } = require('./kernel.js');
const { createJudge } = require('./judge.js');
const { createSnapshot } = require('./snapshot.js');
const { createStackGuard } = require('./stack_guard.js');
const { threadsStarted } = require('./sandbox.js');
const { createReading } = require('./reading.js');
const { createUnproved } = require('./unproved.js');

function createServer(host) {
  const heap = createHeap(host);
  const calls = createCalls(host, heap);
  const names = createNames(heap, calls);
  const messages = createMessages(heap, calls, names);
  const terms = createTerms(heap, calls, names);
  const syntax = createSyntax(heap, calls, names);
  const watchdog = createWatchdog(host, heap, calls);
  const codegen = createCodegen(host, heap, calls, names);
  const elaborator = createElaborator(heap, calls, names, messages, syntax, watchdog, codegen);
  const goals = createGoals(heap, calls, names, terms);
  const proofs = createProofs(heap, calls, names, messages, terms, goals, elaborator, watchdog);
  const environment = createEnvironment(heap, calls, names, messages, terms, goals, elaborator);
  const sorries = createSorries(heap, calls, names, syntax);
  const guard = createGuard(heap, syntax);
  const data = createDeclarations(heap, environment, terms);
  const judge = createJudge(heap, calls, names, environment, data, createKernel(heap, calls, watchdog));
  const snapshot = createSnapshot(host);
  const stackGuard = createStackGuard(host);
  const { warnAlways, unproved } = createUnproved(heap, calls, names, terms, environment, syntax);

  const environments = new Map(); // id -> { state (command state), base (id of what it was imported as) }
  const imported = new Map(); // key of a header's imports -> id
  let nextEnvironment = 1;

  function keepEnvironment(state, base) {
    const id = nextEnvironment++;
    environments.set(id, { state, base: base ?? id });
    return id;
  }

  function findEnvironment(id) {
    const found = environments.get(id);
    if (!found) throw new RequestError(`there is no environment ${id}`);
    return found;
  }

  // What a judge puts back after every verdict: Lean's memory, and what we know of it.
  let before = new Map(); // environments
  let stale = false;
  let judged = false;

  function remember() {
    before = new Map(environments);
    snapshot.take();
  }

  /** Makes everything as it was before the last original was elaborated. Done while nobody waits. */
  function settle() {
    if (!stale) return;
    if (threadsStarted() > 0) throw new RequestError('another thread works on this memory: it cannot be put back');
    snapshot.restore();
    environments.clear();
    for (const [id, kept] of before) environments.set(id, kept);
    names.forget();
    stale = false;
  }

  const envOf = (id) => heap.field(findEnvironment(id).state, COMMAND_STATE.env);

  /** The environment of a text's header, imported once: { id, parsed } or { failed }. */
  function openHeader(text) {
    const parsed = elaborator.parseHeader(text);
    const key = [...new Set(parsed.imports.map((i) => JSON.stringify(i)))].sort().join();
    if (!imported.has(key)) {
      const result = elaborator.importHeader(parsed);
      if (!result.state) return { failed: result.messages, imports: parsed.imports };
      imported.set(key, keepEnvironment(result.state));
    }
    return { id: imported.get(key), parsed, imports: parsed.imports, notes: messages.read(parsed.log) };
  }

  const operations = {
    ...createReading(heap, elaborator, syntax, environment, openHeader, (id) => findEnvironment(id).state),

    ping: () => ({}),

    /** Imports what a header names. */
    open({ text }) {
      const { id, failed, imports } = openHeader(text);
      const modules = imports.map((i) => i.module);
      return failed ? { env: null, messages: failed, imports: modules } : { env: id, messages: [], imports: modules };
    },

    /**
     * Elaborates a text: a whole file with its header (`env` absent) or commands on top of an
     * environment. `keep` keeps the result; `sorries` collects them; `policy` guards; `audit` says what
     * rests on sorry.
     */
    elaborate({ text, env, keep, sorries: wantSorries, policy, audit }) {
      let base = env;
      let options = {};
      let notes = [];
      let imports = [];
      if (env === undefined) {
        const header = openHeader(text);
        if (header.failed) return { messages: header.failed, stopped: 'header', env: null, sorries: [] };
        imports = header.imports.map((i) => i.module);
        base = header.id;
        notes = header.notes;
        options = { input: header.parsed.input, parserState: header.parsed.parserState };
      }
      const start = findEnvironment(base);
      if (policy) Object.assign(options, guard.inspector(policy));
      else if (audit) options.inspect = warnAlways;
      const found = new Map(); // range -> { …, states }
      const result = wantSorries ? heap.inc(elaborator.withInfo(start.state, true)) : start.state;
      if (wantSorries) {
        options.after = (trees, before) => sorries.collect(trees, (hit) => {
          const key = `${hit.start}-${hit.end}`;
          const known = found.get(key);
          const entry = known || { start: hit.start, end: hit.end, tactic: hit.tactic, declaration: hit.declaration, states: [] };
          if (!hit.tactic) entry.states.splice(0).forEach(proofs.free); // a term may be elaborated again
          const quiet = elaborator.withInfo(before, false);
          entry.states.push(proofs.startAt(start.base, quiet, hit.place));
          heap.dec(quiet);
          found.set(key, entry);
        });
      }
      const { state, messages: more, stopped } = elaborator.commands(result, text, options);
      const reply = {
        messages: notes.concat(more), stopped, env: null, imports,
        sorries: [...found.values()].map((s) => ({ ...s, states: s.states.map((id) => proofs.report(id, [])) })),
      };
      if (audit) reply.unproved = unproved(heap.field(state, COMMAND_STATE.env));
      if (keep && !stopped) {
        reply.env = keepEnvironment(wantSorries ? elaborator.withInfo(state, false) : heap.inc(state), start.base);
      }
      heap.dec(state);
      return reply;
    },

    /** Opens a proof of a statement, or of what a declaration says. */
    start({ env, statement, declaration }) {
      const { state } = findEnvironment(env);
      if (declaration !== undefined) {
        const found = environment.resolve(envOf(env), declaration);
        if (!found) throw new RequestError(`there is no declaration ${declaration}`, 'statement');
        return proofs.report(proofs.startType(env, state, environment.typeOf(found.info)), []);
      }
      const opened = codegen.during(codegen.MODE.data, () => proofs.startStatement(env, state, envOf(env), statement));
      return proofs.report(opened, []);
    },

    tactic({ state, text }) {
      const result = codegen.during(codegen.MODE.data, () => proofs.runTactic(state, text));
      if (result.error !== undefined) return { ok: false, error: result.error, kind: result.kind, messages: result.messages };
      const reply = proofs.report(result.id, result.messages);
      return reply.goals.length === 0 ? { ...reply, ...proofs.completeness(result.id) } : reply;
    },

    focus: ({ state, goals: indices }) => proofs.report(proofs.focus(state, indices), []),

    free({ states = [], envs = [] }) {
      states.forEach(proofs.free);
      for (const id of envs) {
        const found = environments.get(id);
        if (found && found.base !== id) {
          heap.dec(found.state);
          environments.delete(id);
        }
      }
      return {};
    },

    /** Frees everything but what was imported and `env`. */
    reset({ env }) {
      [...proofs.states.keys()].forEach(proofs.free);
      operations.free({ envs: [...environments.keys()].filter((id) => id !== env) });
      return {};
    },

    audit({ env, name }) {
      const report = environment.audit(envOf(env), name);
      if (!report) throw new RequestError(`there is no declaration ${name}`);
      return report;
    },

    /** What a text declares, as data for a judge: `whole` with proofs, `stated` without. Names are data, or text. */
    export({ env, whole, stated }) {
      const arena = createArena();
      const named = (name) => (typeof name === 'string' ? environment.resolve(envOf(env), name)?.name : names.fromData(name));
      const own = (list) => list.map(named).filter((name) => name !== undefined);
      const { declarations, release } = data.collect(envOf(env), arena, own(whole), own(stated));
      const encoded = arena.encode(declarations);
      release();
      return { data: encoded };
    },

    /**
     * For a judge: elaborates the original, on memory as it was before any other. Says what it
     * declares, and which of `targets` (all that rest on `sorry`, if there are none) are there. `spent`:
     * Lean has started a thread for it, so that this is the last one.
     */
    reference({ text, targets }) {
      settle();
      const header = openHeader(text);
      if (header.failed) return { messages: header.failed, stopped: 'header', env: null };
      if (!before.has(header.id)) remember();
      stale = true;
      const reply = operations.elaborate({ text, keep: true });
      reply.spent = threadsStarted() > 0;
      if (reply.env === null) return reply;
      const env = envOf(reply.env);
      const declared = environment.declaredNames(env);
      const own = (name) => {
        const found = environment.resolve(env, name);
        return found && !environment.isImported(env, found.name) ? found.name : null;
      };
      const asked = targets.length > 0 ? targets.map(own) : environment.openNames(env);
      return {
        ...reply,
        unknown: targets.filter((_, i) => asked[i] === null),
        targets: asked.filter((name) => name !== null).map(names.toData),
        stated: declared.map(names.toData),
      };
    },

    /** Rulings on exported data; see judge.js. */
    judge({ env, ...request }) {
      judged = true;
      const rulings = judge.judge(envOf(env), envOf(findEnvironment(env).base), request);
      return { rulings };
    },

    declarations({ env, prefix, module, offset, limit: count, types }) {
      return environment.declarations(findEnvironment(env).state, envOf(env), {
        prefix, module, offset, limit: count, types,
      });
    },

    memory: () => ({ rss: process.memoryUsage().rss, states: proofs.states.size, envs: environments.size }),

    version: () => ({
      lean: heap.readString(heap.global('l_Lean_versionString')), commit: heap.readString(heap.global('l_Lean_githash')),
      node: process.version,
    }),

    quit() { process.exit(0); },
  };

  /** Answers one request; nothing it does can throw. */
  function answer(line) {
    const started = performance.now();
    const stack = host.stackSave();
    let request = {};
    let reply;
    let verdict = '';
    try {
      request = parseRequest(line);
      const operation = Object.hasOwn(operations, request.op) ? operations[request.op] : null;
      if (!operation) throw new RequestError(`there is no operation ${request.op}`);
      watchdog.begin(request.id, request.max_ms);
      reply = { ok: true, ...operation(request) };
      stackGuard.check();
      verdict = watchdog.end();
    } catch (error) {
      verdict = watchdog.end();
      host.stackRestore(stack);
      if (error instanceof RequestError) reply = { ok: false, kind: error.kind, error: error.message };
      else if (error instanceof LeanException) {
        reply = { ok: false, kind: 'request', error: messages.ofException(error.object) };
      } else reply = { ok: false, kind: 'fatal', error: host.describe(error) };
    }
    // A limit that struck after the work was done changes nothing; before, it is the reason.
    if (verdict && (!reply.ok ? reply.kind !== 'fatal' : reply.stopped === 'interrupted')) {
      reply = { ...reply, ok: false, kind: verdict, error: verdict };
    }
    reply.id = request.id ?? null;
    reply.ms = Math.round((performance.now() - started) * 1000) / 1000;
    reply.heap = host.memory.buffer.byteLength;
    return reply;
  }

  return { answer, settle: () => { if (judged && threadsStarted() === 0) settle(); judged = false; } };
}

function parseRequest(line) {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new RequestError(`not JSON: ${error.message}`);
  }
}

module.exports = { createServer };
