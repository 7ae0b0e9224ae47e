'use strict';
/**
 * The memory of Lean as it was: taken once, put back after every verdict, to the byte. What the
 * judge did for one candidate can so have no effect on the next. The part of the stack that is not in use,
 * more than a third of all, is made zero and not kept.
 */
const { clear } = require('./image.js');

function createSnapshot(host) {
  let parts = []; // [{ at, bytes }]
  let length = 0;
  let unused = [0, 0]; // of the stack

  function take() {
    const { HEAPU8 } = host.views();
    length = HEAPU8.length;
    unused = [globalThis.treewrightStackGuard.end, host.stackSave()];
    parts = []; // not both at once
    clear(HEAPU8, ...unused);
    const bounds = [[0, unused[0]], [unused[1], length]];
    parts = bounds.map(([start, end]) => ({ at: start, bytes: HEAPU8.slice(start, end) }));
  }

  function restore() {
    const { HEAPU8 } = host.views();
    for (const { at, bytes } of parts) HEAPU8.set(bytes, at);
    clear(HEAPU8, ...unused);
    HEAPU8.fill(0, length); // memory that has been added since is as new
  }

  return { take, restore };
}

module.exports = { createSnapshot };
