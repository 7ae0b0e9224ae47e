'use strict';
/**
 * Wall-clock limits and cancellation for a thread that is busy inside Lean.
 *
 * Lean looks at a cancel token (an IO.Ref Bool) while it works. The main thread cannot set it,
 * because it is the one working; a worker thread shares the wasm memory and writes it.
 * The shared control block:
 */
const SLOT = {
  phase: 0, // 0 idle, 1 a request runs
  request: 1, // its id
  limit: 2, // its limit in ms, 0 for none
  token: 3, // address of the token's value
  verdict: 4, // 0 none, 1 out of time, 2 cancelled
  asleep: 5, // the worker sleeps for long: it is to be told of a request
  writing: 6, // the worker is about to set the token
};
const FALSE = 1; // boxed 0

function createWatchdog(host, heap, { makeRef }) {
  const token = makeRef(heap.box(0));
  host.exports.lean_mark_mt(token);
  const valueAddress = token + 8;
  host.life.watch ??= startWorker(host);
  const control = host.life.watch;
  control[SLOT.token] = valueAddress;

  const setToken = (value) => Atomics.store(host.views().HEAP32, valueAddress >> 2, value);

  /** From here on the token is set when `limitMs` is over or request `id` is cancelled. */
  function begin(id, limitMs) {
    setToken(FALSE);
    Atomics.store(control, SLOT.request, id);
    control[SLOT.limit] = Math.min(limitMs || 0, 2 ** 31 - 1);
    control[SLOT.verdict] = 0;
    Atomics.store(control, SLOT.phase, 1);
    if (Atomics.load(control, SLOT.asleep)) Atomics.notify(control, SLOT.phase);
  }

  /** Ends the watch; says whether the request ran into its limit or was cancelled. */
  function end() {
    Atomics.store(control, SLOT.phase, 0);
    while (Atomics.load(control, SLOT.writing)) ; // a few instructions of the worker
    setToken(FALSE);
    return ['', 'timeout', 'cancelled'][Atomics.load(control, SLOT.verdict)];
  }

  const isSet = () => Atomics.load(control, SLOT.verdict) !== 0;

  return { begin, end, isSet, token };
}

/** One for the life of the process; the control block. */
function startWorker(host) {
  const { Worker } = require('node:worker_threads');
  const path = require('node:path');
  const control = new Int32Array(new SharedArrayBuffer(4 * 8));
  const worker = new Worker(path.join(__dirname, 'watchdog-worker.js'), {
    workerData: { memory: host.memory, control, slots: SLOT, cancelFd: host.cancelFd },
  });
  worker.unref();
  return control;
}

module.exports = { createWatchdog };
