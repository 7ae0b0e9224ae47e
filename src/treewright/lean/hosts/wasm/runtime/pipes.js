'use strict';
/** Lines in and out of the process, one after the other: there is no event loop to wait in. */
const fs = require('node:fs');

/** Blocking reads of lines; `null` at the end. */
function createReader(fd) {
  const chunk = Buffer.alloc(1 << 16);
  const parts = [];
  let rest = Buffer.alloc(0);
  return () => {
    for (;;) {
      const at = rest.indexOf(10);
      if (at >= 0) {
        parts.push(rest.subarray(0, at));
        const line = Buffer.concat(parts).toString('utf8');
        parts.length = 0;
        rest = rest.subarray(at + 1);
        return line;
      }
      parts.push(rest);
      const count = patiently(() => fs.readSync(fd, chunk, 0, chunk.length, null));
      if (count === 0) return null;
      rest = Buffer.from(chunk.subarray(0, count));
    }
  };
}

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Does it again while the pipe is full or empty: Node may have made it non-blocking. */
function patiently(operation) {
  for (;;) {
    try {
      return operation();
    } catch (error) {
      if (error.code === 'EOF') return 0;
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(nap, 0, 0, 1);
    }
  }
}

function write(fd, text) {
  const bytes = Buffer.from(text, 'utf8');
  for (let sent = 0; sent < bytes.length;) sent += patiently(() => fs.writeSync(fd, bytes, sent));
}

module.exports = { createReader, write };
