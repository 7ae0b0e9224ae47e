'use strict';
/**
 * The server inside Lean: JSON lines on stdin, replies on a pipe of their own, one reply per request, in order.
 *
 * request  { id, op, limit?: ms, … }
 * reply    { id, ok: true, … } | { id, ok: false, kind, error } and always { ms, heap }
 * kinds    statement, parse, tactic, exhausted, timeout, cancelled, request, fatal
 * After `fatal` (out of memory, a trap inside wasm) the session must be replaced.
 */
const fs = require('node:fs');
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
    ping: () => ({}),

    /** Imports what a header names. */
    open({ text }) {
      const { id, failed, imports } = openHeader(text);
      const modules = imports.map((i) => i.module);
      return failed ? { env: null, messages: failed, imports: modules } : { env: id, messages: [], imports: modules };
    },

    /**
     * Elaborates a text: a whole file with its header (`env` absent) or commands on top of an
     * environment. `keep` keeps the result; `sorries` collects them; `policy` guards.
     */
    elaborate({ text, env, keep, sorries: wantSorries, policy }) {
      let base = env;
      let options = {};
      let notes = [];
      if (env === undefined) {
        const header = openHeader(text);
        if (header.failed) return { messages: header.failed, stopped: 'header', env: null, sorries: [] };
        base = header.id;
        notes = header.notes;
        options = { input: header.parsed.input, parserState: header.parsed.parserState };
      }
      const start = findEnvironment(base);
      if (policy) Object.assign(options, guard.inspector(policy));
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
        messages: notes.concat(more), stopped, env: null,
        sorries: [...found.values()].map((s) => ({ ...s, states: s.states.map((id) => proofs.report(id, [])) })),
      };
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

    statement: ({ env, name }) => ({ statement: environment.statement(envOf(env), name) }),

    /** Digests of everything a text declared. */
    statements({ env }) {
      const { found, release } = environment.sessionConstants(envOf(env));
      const list = found.filter(([, , name]) => !/(^|\.)_/.test(names.showUser(name))).map(([shown]) => shown);
      release();
      return { statements: list.map((name) => environment.statement(envOf(env), name)).filter(Boolean) };
    },

    recheck: ({ env, name }) => ({
      verdict: environment.recheck(envOf(env), envOf(findEnvironment(env).base), name),
    }),

    declarations({ env, prefix, module, offset, limit: count, types }) {
      return environment.declarations(findEnvironment(env).state, envOf(env), {
        prefix, module, offset, limit: count, types,
      });
    },

    memory: () => ({ rss: process.memoryUsage().rss, states: proofs.states.size, envs: environments.size }),

    version: () => ({ lean: heap.readString(heap.global('l_Lean_versionString')), node: process.version }),

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

  return { answer };
}

function parseRequest(line) {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new RequestError(`not JSON: ${error.message}`);
  }
}

/** Blocking reads of lines; `null` at the end. */
function createReader(fd) {
  const chunk = Buffer.alloc(1 << 16);
  const parts = [];
  let rest = Buffer.alloc(0);
  return () => {
    for (;;) {
      const at = rest.indexOf(10);
      if (at >= 0) {
        parts.push(rest.subarray(0, at));
        const line = Buffer.concat(parts).toString('utf8');
        parts.length = 0;
        rest = rest.subarray(at + 1);
        return line;
      }
      parts.push(rest);
      const count = patiently(() => fs.readSync(fd, chunk, 0, chunk.length, null));
      if (count === 0) return null;
      rest = Buffer.from(chunk.subarray(0, count));
    }
  };
}

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Does it again while the pipe is full or empty: Node may have made it non-blocking. */
function patiently(operation) {
  for (;;) {
    try {
      return operation();
    } catch (error) {
      if (error.code === 'EOF') return 0;
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(nap, 0, 0, 1);
    }
  }
}

function write(fd, text) {
  const bytes = Buffer.from(text, 'utf8');
  for (let sent = 0; sent < bytes.length;) sent += patiently(() => fs.writeSync(fd, bytes, sent));
}

module.exports = { createServer, createReader, write };
