'use strict';
/** The operation that elaborates texts: whole files, or commands on top of an environment. */
const { COMMAND_STATE } = require('./elaborator.js');

/** `environments` is { openHeader, findEnvironment, keepEnvironment } of the server. */
function createTexts(heap, elaborator, environment, proofs, sorries, guard, unproved, troubles, checkpoints, bodies, environments) {
  const { openHeader, findEnvironment, keepEnvironment } = environments;

  /**
   * Elaborates a text: a whole file with its header (`env` absent) or commands on top of an
   * environment. `keep` keeps the result; `sorries` collects them; `policy` guards; `audit` says what
   * rests on sorry; `until` ends behind the declaration of that name, if it has a `sorry`. What an
   * earlier file began with is not elaborated again, unless it is to be `fresh`. `statements`: proofs of theorems
   * are left out where only a goal behind them is wanted; see bodies.js.
   * `look(env, concerning)` may look at the result, and go on doing so if it returns true: see troubles.js.
   */
  function elaborate({ text, env, keep, sorries: wantSorries, policy, audit, until, statements, fresh }, look = () => {}) {
    let base = env;
    let options = {};
    let notes = [];
    let imports = [];
    let trail = { steps: [], add: () => {}, finish: () => {} };
    if (env === undefined) {
      const header = openHeader(text);
      if (header.failed) return { messages: header.failed, stopped: 'header', env: null, sorries: [] };
      imports = header.imports.map((i) => i.module);
      base = header.id;
      notes = [...header.notes];
      options = { input: header.parsed.input, parserState: header.parsed.parserState };
      const firstGenerated = Math.min(Infinity, ...(policy?.ranges ?? []).map(([start]) => start));
      if (!fresh) trail = checkpoints.begin(JSON.stringify([base, Boolean(audit), Boolean(statements)]), text, firstGenerated);
    }
    const start = findEnvironment(base);
    if (policy) Object.assign(options, guard.inspector(policy));
    else if (audit) options.inspect = unproved.warnAlways;
    const found = new Map(); // range -> { …, states }
    let hits = 0; // in this command
    const collect = (trees, before) => sorries.collect(trees, heap.field(before, COMMAND_STATE.env), (hit) => {
      const key = `${hit.start}-${hit.end}`;
      const known = found.get(key);
      const entry = known || { start: hit.start, end: hit.end, tactic: hit.tactic, declaration: hit.declaration, states: [] };
      if (!hit.tactic) entry.states.splice(0).forEach(proofs.free); // a term may be elaborated again
      const quiet = elaborator.withInfo(before, false);
      entry.states.push(proofs.startAt(start.base, quiet, hit.place, originOf(hit)));
      heap.dec(quiet);
      found.set(key, entry);
      hits += 1;
    });
    const trouble = troubles.create();
    const isLast = (end) => until !== undefined && isBehind(until, found, text, end);

    // What is taken over from an earlier text, and what is to be looked at again in it.
    let last = { state: start.state, parser: options.parserState };
    let isOver = false;
    for (const step of trail.steps) {
      notes.push(...step.notes);
      if (step.error) trouble.failed(step.command, last.state, step.state, step.error);
      if (wantSorries && mayHaveSorry(step, audit)) {
        const loud = elaborator.withInfo(last.state, true);
        const { state } = elaborator.commands(loud, text, {
          ...options, input: heap.inc(options.input), parserState: heap.inc(last.parser), after: collect, passed: () => true,
        });
        [loud, state].forEach(heap.dec);
      }
      last = step;
      isOver = isLast(step.end);
      if (isOver) break;
    }
    if (last.parser !== options.parserState) {
      heap.dec(options.parserState);
      options.parserState = heap.inc(last.parser);
    }

    let isGeneratedSince = false;
    options.passed = ({ command, before, state, parser, notes: said, error, generated }) => {
      if (error) trouble.failed(command, before, state, error);
      isGeneratedSince ||= generated;
      const end = heap.unbox(heap.field(parser, 0));
      if (!isGeneratedSince) {
        const quiet = elaborator.withInfo(state, false);
        trail.add({ end, parser, state: quiet, notes: said, command, error, hits: wantSorries ? hits : null });
        heap.dec(quiet);
      }
      hits = 0;
      return isLast(end);
    };
    if (wantSorries) options.after = collect;
    if (statements) options.shorten = bodies.withoutBody;
    const first = wantSorries ? elaborator.withInfo(last.state, true) : heap.inc(last.state);
    hits = 0;
    let outcome = { state: first, messages: [], stopped: '' };
    if (isOver) [options.input, options.parserState].forEach(heap.dec);
    else {
      outcome = elaborator.commands(first, text, options);
      heap.dec(first);
    }
    trail.finish();
    const { state, messages: more, stopped } = outcome;
    const after = heap.field(state, COMMAND_STATE.env);
    const reply = {
      messages: notes.concat(more), stopped, env: null, imports,
      sorries: [...found.values()].map((s) => ({
        ...s, states: s.states.map((id) => proofs.report(id, [])), trouble: troubleOf(after, s.declaration, trouble),
      })),
    };
    if (audit) reply.unproved = unproved.unproved(after);
    if (look(after, trouble.concerning) !== true) trouble.release();
    if (keep && !stopped) {
      reply.env = keepEnvironment(wantSorries ? elaborator.withInfo(state, false) : heap.inc(state), start.base);
    }
    heap.dec(state);
    return reply;
  }

  /** Whether a command that was elaborated before may have a `sorry` in it, so that it has to be looked for again. */
  function mayHaveSorry({ hits, notes, error }, audit) {
    if (hits !== null) return hits > 0;
    return !audit || error !== undefined || notes.some((note) => note.text.includes('sorry'));
  }

  /** Whether a declaration of this name, or that ends in it, had a `sorry`, and the text behind `end` has none of the name. */
  function isBehind(name, found, text, end) {
    const isNamed = (declaration) => declaration === name || declaration.endsWith(`.${name}`);
    if (![...found.values()].some(({ declaration }) => isNamed(declaration))) return false;
    const word = name.split('.').at(-1).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return !new RegExp(`(theorem|lemma|def|instance|abbrev)\\s+\\S*${word}(?![\\w'])`).test(
      Buffer.from(text.replaceAll('\r\n', '\n')).subarray(end).toString(),
    );
  }

  /** The declaration around a `sorry`, as proofs.js knows it. */
  function originOf({ declaration, place }) {
    const found = declaration === '' ? null : environment.resolve(place.env, declaration);
    const isTheorem = found !== null && environment.KINDS[heap.tag(found.info)] === 'theorem';
    if (found) heap.dec(found.info);
    return { declaration, isTheorem };
  }

  /** The error that concerns a declaration with a `sorry`, or null. */
  function troubleOf(env, declaration, { concerning }) {
    const found = declaration === '' ? null : environment.resolve(env, declaration);
    const error = found && concerning(env, found.name);
    if (found) heap.dec(found.info);
    return error;
  }

  return { elaborate };
}

module.exports = { createTexts };
