'use strict';
/**
 * The memory of Lean as it was: taken once, put back after every verdict, to the byte. What the
 * judge did for one candidate can so have no effect on the next. Only the part of the stack that is not in
 * use is left as it is, more than a third of all: whoever uses it writes there first.
 */
function createSnapshot(host) {
  const { end: lowest } = globalThis.treewrightStackGuard;
  let parts = []; // [{ at, bytes }]
  let length = 0;

  function take() {
    const { HEAPU8 } = host.views();
    length = HEAPU8.length;
    parts = []; // not both at once
    const bounds = [[0, lowest], [host.stackSave(), length]];
    parts = bounds.map(([start, end]) => ({ at: start, bytes: HEAPU8.slice(start, end) }));
  }

  function restore() {
    const { HEAPU8 } = host.views();
    for (const { at, bytes } of parts) HEAPU8.set(bytes, at);
    HEAPU8.fill(0, length); // memory that has been added since is as new
  }

  return { take, restore };
}

module.exports = { createSnapshot };
