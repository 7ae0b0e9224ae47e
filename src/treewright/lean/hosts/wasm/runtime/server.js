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
const { createCalls } = require('./calls.js');
const { createNames } = require('./names.js');
const { createMessages } = require('./messages.js');
const { createTerms } = require('./terms.js');
const { createSyntax } = require('./syntax.js');
const { createWatchdog } = require('./watchdog.js');
const { createCodegen } = require('./codegen.js');
const { createElaborator, COMMAND_STATE, CORE_STATE } = require('./elaborator.js');
const { createGoals } = require('./goals.js');
const { createProofs, RequestError } = require('./proofs.js');
const { createEnvironment } = require('./environment.js');
const { createAttributes } = require('./attributes.js');
const { createBodies } = require('./bodies.js');
const { createSorries } = require('./sorries.js');
const { createGuard } = require('./guard.js');
const { createArena } = require('./arena.js');
const { createDeclarations } = require('./declarations.js');
const { createKernel } = require('./kernel.js');
const { createJudge } = require('./judge.js');
const { createReferences } = require('./references.js');
const { createStackGuard } = require('./stack_guard.js');
const { createAnswering } = require('./answering.js');
const { createReading } = require('./reading.js');
const { createTexts } = require('./texts.js');
const { createTroubles } = require('./troubles.js');
const { createCheckpoints } = require('./checkpoints.js');
const { createUnproved } = require('./unproved.js');
const { createPrintAxioms } = require('./print_axioms.js');
const { createProjects } = require('./projects.js');
const { createSurvey } = require('./survey.js');
const { createTester } = require('./tester.js');
const { createExplorer } = require('./explorer.js');
const { threadsStarted } = require('./sandbox.js');

/** `roots`: what `imported` gave in the process whose memory this one has, if it has another's (image.js). */
function createServer(host, roots = null) {
  const heap = createHeap(host);
  const calls = createCalls(host, heap);
  const names = createNames(heap, calls);
  const messages = createMessages(heap, calls, names);
  const terms = createTerms(heap, calls, names);
  const syntax = createSyntax(heap, calls, names);
  const watchdog = createWatchdog(host, heap, calls);
  const codegen = createCodegen(host, heap, calls, names, messages);
  const elaborator = createElaborator(heap, calls, names, messages, syntax, watchdog, codegen);
  const goals = createGoals(heap, calls, names, terms);
  const proofs = createProofs(heap, calls, names, messages, terms, goals, elaborator, watchdog);
  const given = new Set(); // modules of a project that were handed over
  const environment = createEnvironment(heap, calls, names, messages, terms, goals, elaborator, given);
  const projects = createProjects(host, heap, calls, names, elaborator, given, importedAtStart);
  const sorries = createSorries(heap, names, syntax, createAttributes(heap, calls));
  const bodies = createBodies(heap, names, syntax, environment);
  const guard = createGuard(heap, syntax);
  const data = createDeclarations(heap, environment, terms);
  const judge = createJudge(heap, calls, names, environment, data, createKernel(heap, calls, watchdog));
  const checkpoints = createCheckpoints(heap);
  const troubles = createTroubles(heap, names, environment, syntax);
  const stackGuard = createStackGuard(host);
  createPrintAxioms(heap, calls, names, environment);
  const survey = createSurvey(heap, calls, names, terms, environment, goals, given);
  const tester = createTester(heap, calls, names, terms, environment, goals);
  const explorer = createExplorer(heap, calls, names, terms, environment, goals);
  const unproved = createUnproved(heap, calls, names, terms, environment, syntax);

  /** The environment that was there when the process started (borrowed), if a header imports just that, or 0. */
  function importedAtStart(parsed) {
    return roots && keyOf(parsed, '[]') === roots.key ? heap.field(roots.state, COMMAND_STATE.env) : 0;
  }

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

  /** What a header imports, under options that were given. */
  const keyOf = ({ isModule, imports }, options) => (
    [isModule, options, ...[...new Set(imports.map((i) => JSON.stringify(i)))].sort()].join()
  );

  /** The environment of a text's header, imported once: { id, parsed } or { failed }. */
  function openHeader(text) {
    const parsed = elaborator.parseHeader(text);
    const key = keyOf(parsed, elaborator.givenOptions());
    if (!imported.has(key)) {
      projects.lookThere();
      const result = elaborator.importHeader(parsed);
      if (!result.state) return { failed: result.messages, imports: parsed.imports };
      imported.set(key, keepEnvironment(result.state));
    }
    return { id: imported.get(key), parsed, imports: parsed.imports, notes: messages.read(parsed.log) };
  }

  if (roots) {
    elaborator.adopt(roots);
    imported.set(roots.key, keepEnvironment(roots.state));
  }

  /** Imports what a text without a header does; what another server needs to have it without importing. */
  function importedByDefault() {
    const { id, failed } = openHeader('');
    if (failed) throw new Error(`Lean cannot import its library: ${failed[0]?.text}`);
    const [[key]] = imported;
    return { key, state: findEnvironment(id).state, ...elaborator.roots() };
  }

  const references = createReferences({
    host, names, environment, data, judge, projects, environments, checkpoints, openHeader, envOf,
    elaborate: (request, look) => operations.elaborate(request, look),
  });

  const operations = {
    ...createReading(heap, elaborator, syntax, environment, openHeader, (id) => findEnvironment(id).state),
    ...createTexts(heap, elaborator, environment, proofs, sorries, guard, unproved, troubles, checkpoints, bodies, {
      openHeader, findEnvironment, keepEnvironment,
    }),

    headers: projects.headers,
    provide: projects.provide,
    compile: projects.compile, // in processes that never read a candidate

    /** Before the next request the process is as it was when it started; see renewal.js. */
    renew() {
      if (threadsStarted() > 0) throw new RequestError('another thread works on this memory: it cannot be as new');
      host.life.renew = true;
      return {};
    },

    ping: () => ({}),

    /** Imports what a header names. */
    open({ text }) {
      const { id, failed, imports } = openHeader(text);
      const modules = imports.map((i) => i.module);
      return failed ? { env: null, messages: failed, imports: modules } : { env: id, messages: [], imports: modules };
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

    tactic({ state, text, heartbeats, without }) {
      const result = codegen.during(codegen.MODE.data, () => proofs.runTactic(state, text, { heartbeats, without }));
      if (result.error !== undefined) return { ok: false, error: result.error, kind: result.kind, messages: result.messages };
      const reply = proofs.report(result.id, result.messages);
      return reply.goals.length === 0 ? { ...reply, ...proofs.completeness(result.id) } : reply;
    },

    focus: ({ state, goals: indices }) => proofs.report(proofs.focus(state, indices), []),

    /** What is known that may help with the first goal of a state. */
    survey({ state: id, library }) {
      const state = proofs.find(id);
      if (heap.readList(state.goals).length === 0) throw new RequestError(`state ${id} has no goal`);
      return { survey: survey(state, heap.field(state.core, CORE_STATE.env), findEnvironment(state.environment).base, library) };
    },

    /** Tries the first goal of a state on random values. */
    test({ state: id, samples, seed, ms }) {
      const state = proofs.find(id);
      if (heap.readList(state.goals).length === 0) throw new RequestError(`state ${id} has no goal`);
      return { test: tester.test(state, { samples, seed, ms }) };
    },

    /** Equations over the functions of the first goal of a state that hold on random values. */
    explore({ state: id, ...limits }) {
      const state = proofs.find(id);
      if (heap.readList(state.goals).length === 0) throw new RequestError(`state ${id} has no goal`);
      return { explored: explorer.explore(state, limits) };
    },

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
      const all = declarations.flatMap((d) => (d.kind === 'inductive' ? d.types : [d])).map((d) => arena.components(d.name));
      release();
      return { data: encoded, imported: all.filter((name) => environment.isImported(envOf(env), names.fromData(name))) };
    },

    reference: references.reference,
    meaning: references.meaning,
    judge: references.judge,

    declarations({ env, prefix, module, offset, limit: count, types, plain }) {
      return environment.declarations(findEnvironment(env).state, envOf(env), {
        prefix, module, offset, limit: count, types, plain,
      });
    },

    memory: () => ({ rss: process.memoryUsage().rss, states: proofs.states.size, envs: environments.size }),

    version: () => ({
      lean: heap.readString(heap.global('l_Lean_versionString')), commit: heap.readString(heap.global('l_Lean_githash')),
      node: process.version,
    }),

    quit() { process.exit(0); },
  };

  const answer = createAnswering(host, messages, watchdog, stackGuard, operations);

  return { answer, imported: importedByDefault, settle: references.settle };
}

module.exports = { createServer };
