'use strict';
/**
 * The worker half of watchdog.js. While a request runs it looks every few milliseconds at the
 * clock and at the cancel pipe (lines that hold a request id); otherwise it sleeps. The longer a request
 * has run the less often it looks: to find nothing in a pipe is an exception, which costs more than all else here.
 */
const fs = require('node:fs');
const { workerData } = require('node:worker_threads');

const { memory, control, slots, cancelFd } = workerData;
const TICK_MS = 8;
const LONGEST_MS = 32;
const PART = 16; // of the time that a request has run
const IDLE_TICKS = 10;
const TRUE = 3;
const buffer = Buffer.alloc(4096);
let pending = '';
let lastCancelled = -1;

function readCancellations() {
  for (;;) {
    let count;
    try {
      count = fs.readSync(cancelFd, buffer, 0, buffer.length, null);
    } catch (error) {
      if (error.code === 'EAGAIN') return;
      throw error;
    }
    if (count === 0) return;
    pending += buffer.toString('latin1', 0, count);
    const lines = pending.split('\n');
    pending = lines.pop();
    for (const line of lines) lastCancelled = Number(line);
  }
}

/** Until there is a request, another one, or the time is over. Whoever begins a request says so to one asleep. */
function sleep(phase, ms = Infinity) {
  Atomics.store(control, slots.asleep, 1);
  if (phase === 0 || Atomics.load(control, slots.request) === current) Atomics.wait(control, slots.phase, phase, ms);
  Atomics.store(control, slots.asleep, 0);
}

let started = 0;
let current = -1;
let idle = 0;
for (;;) {
  if (Atomics.load(control, slots.phase) === 0) {
    idle += 1;
    current = -1;
    if (idle < IDLE_TICKS) {
      Atomics.wait(control, slots.phase, 0, TICK_MS);
    } else {
      sleep(0);
    }
    continue;
  }
  idle = 0;
  if (control[slots.request] !== current) {
    current = control[slots.request];
    started = performance.now();
  }
  readCancellations();
  const limit = control[slots.limit];
  const elapsed = performance.now() - started;
  const late = limit > 0 && elapsed >= limit;
  if (late || lastCancelled === current) {
    // `writing` lets the main thread wait out a write that would otherwise hit its next request.
    Atomics.store(control, slots.writing, 1);
    if (Atomics.load(control, slots.phase) === 1 && Atomics.load(control, slots.request) === current) {
      Atomics.compareExchange(control, slots.verdict, 0, late ? 1 : 2);
      Atomics.store(new Int32Array(memory.buffer), control[slots.token] >> 2, TRUE);
    }
    Atomics.store(control, slots.writing, 0);
  }
  const left = limit > 0 && !late ? limit - elapsed : LONGEST_MS;
  const pause = Math.min(elapsed / PART, LONGEST_MS, left);
  if (pause > TICK_MS) sleep(1, pause);
  else Atomics.wait(control, slots.phase, 1, Math.min(TICK_MS, left));
}
