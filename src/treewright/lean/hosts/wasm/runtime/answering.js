'use strict';
/** From the line of a request to its reply: limits, errors and their kinds. */
const { LeanException } = require('./calls.js');
const { RequestError } = require('./proofs.js');

const READS_NOTHING = new Set(['ping', 'version', 'memory', 'judge', 'quit']);

/** Gives the function that answers one request; nothing that it does can throw. */
function createAnswering(host, messages, watchdog, stackGuard, operations) {
  return function answer(line) {
    const started = performance.now();
    const stack = host.stackSave();
    let request = {};
    let reply;
    let verdict = '';
    try {
      request = parseRequest(line);
      const operation = Object.hasOwn(operations, request.op) ? operations[request.op] : null;
      if (!operation) throw new RequestError(`there is no operation ${request.op}`);
      if (request.op === 'judge' && host.life.hasRead) throw new RequestError('this process has read texts: it does not judge');
      host.life.hasRead ||= !READS_NOTHING.has(request.op);
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
  };
}

function parseRequest(line) {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new RequestError(`not JSON: ${error.message}`);
  }
}

module.exports = { createAnswering };
