'use strict';
/**
 * Whether the stack of compiled code has run over its end. It grows downwards in the same memory as
 * the heap, and nothing stops it there: what lies below its end is only ever written by an overflow.
 */
function createStackGuard(host) {
  const { start, end, byte } = globalThis.treewrightStackGuard;
  const unwritten = Buffer.alloc(end - start, byte);

  /** Throws if anything was written there; the process cannot be trusted any more then. */
  function check() {
    const { buffer, byteOffset } = host.views().HEAPU8;
    const below = Buffer.from(buffer, byteOffset + start, end - start);
    if (below.compare(unwritten) !== 0) throw new Error('the stack ran over its end');
  }

  return { check };
}

module.exports = { createStackGuard };
