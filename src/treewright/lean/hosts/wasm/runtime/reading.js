'use strict';
/** Operations that say what Lean's parser makes of a text, and run nothing of it. */
const { COMMAND_STATE } = require('./elaborator.js');

const OUTLINE_DEPTH = 5; // as deep as the binders of a theorem are

function createReading(heap, elaborator, syntax, environment, openHeader, stateOf) {
  /** Elaborates a file up to where `inspect` stops it: { problem } or { state (owned), messages, stopped }. */
  function elaborated(text, inspect) {
    const header = openHeader(text);
    if (header.failed) return { problem: header.failed[0].text };
    const { input, parserState } = header.parsed;
    return elaborator.commands(stateOf(header.id), text, { input, parserState, inspect });
  }

  /**
   * A whole text of one syntax category behind the text `after`, which has to be whole by itself;
   * and whether a name is declared there.
   */
  function parse({ text, category, after, name }) {
    const { problem, state, messages, stopped } = elaborated(after);
    if (problem) return { problem };
    try {
      const wrong = stopped || messages.find((m) => m.severity === 'error')?.text;
      if (wrong) return { stopped, problem: `the text in front of it does not elaborate: ${wrong}` };
      const env = heap.field(state, COMMAND_STATE.env);
      const parsed = elaborator.parse(env, category, text);
      if (parsed.error) return { problem: parsed.error };
      const root = syntax.outline(parsed.syntax, OUTLINE_DEPTH);
      heap.dec(parsed.syntax);
      return { root, known: name !== '' && environment.resolve(env, name) !== null };
    } finally {
      heap.dec(state);
    }
  }

  /** Says in `problem` which command of a file begins in its bytes [start, end); none from there on is run. */
  function begins({ text, start, end }) {
    let inside = '';
    const { problem, state } = elaborated(text, (command) => {
      const at = syntax.range(command)?.start ?? end;
      if (at >= start && at < end) inside = syntax.kind(command);
      return at >= start ? 'seen' : '';
    });
    if (problem) return { problem };
    heap.dec(state);
    return { problem: inside };
  }

  return { parse, begins };
}

module.exports = { createReading };
