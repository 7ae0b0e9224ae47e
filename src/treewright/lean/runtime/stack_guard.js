'use strict';
/**
 * Whether the stack of compiled code has run over its end. It grows downwards in the same memory as
 * the heap, and nothing stops it there: what lies below its end is only ever written by an overflow.
 */
function createStackGuard(host) {
  const { start, end, byte } = globalThis.treewrightStackGuard;

  /** Throws if anything was written there; the process cannot be trusted any more then. */
  function check() {
    const { HEAPU8 } = host.views();
    for (let at = start; at < end; at++) {
      if (HEAPU8[at] !== byte) throw new Error('the stack ran over its end');
    }
  }

  return { check };
}

module.exports = { createStackGuard };
