'use strict';
/**
 * Called from the patched lean.js when Lean's own main opens the file it was told to compile:
 * the runtime, the search path and the task manager are up by then. Never returns.
 */
const { createServer } = require('./server.js');
const { createReader, write } = require('./pipes.js');
const { lockFileSystem } = require('./sandbox.js');

function serve(host) {
  lockFileSystem(host.FS);
  const server = createServer(host);
  // Not stdout: whatever Lean's C++ prints there by itself must never look like a reply.
  const replies = Number(process.env.TREEWRIGHT_REPLY_FD);
  write(replies, `${JSON.stringify({ ready: true, ms: Math.round(performance.now()) })}\n`);
  const read = createReader(0);
  for (let line = read(); line !== null; line = read()) {
    if (line.trim() === '') continue;
    write(replies, `${JSON.stringify(server.answer(line))}\n`);
    server.settle();
  }
  process.exit(0);
}

module.exports = { serve };
