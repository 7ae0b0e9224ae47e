'use strict';
/**
 * Called from the patched lean.js, and never returns: when Lean's own main opens the file it was told to
 * compile (the runtime, the search path and the task manager are up by then), or before that main, with
 * the image of what it would have done.
 */
const { createServer } = require('./server.js');
const { createReader, write } = require('./pipes.js');
const { lockFileSystem } = require('./sandbox.js');
const { saveImage, loadImage } = require('./image.js');
const { createRenewal } = require('./renewal.js');

function serve(bare, image) {
  const files = lockFileSystem(bare.FS);
  const renewal = createRenewal(bare, files);
  // `life`: of the process, whatever its memory has been. `hasRead`: a text, a module or a tactic, so that code
  // which is not the library's may have run; `renew`: it was asked to be as new.
  const host = { ...bare, files, addFunction: renewal.addFunction, life: { hasRead: false, renew: false } };
  const roots = image === '' ? null : loadImage(host, image);
  if (process.env.TREEWRIGHT_IMAGE_FD) {
    const table = host.tableSize(); // before the server adds its functions
    saveImage(host, createServer(host).imported(), table, Number(process.env.TREEWRIGHT_IMAGE_FD));
    process.exit(0);
  }
  renewal.remember();
  let server = createServer(host, roots);
  // Not stdout: whatever Lean's C++ prints there by itself must never look like a reply.
  const replies = Number(process.env.TREEWRIGHT_REPLY_FD);
  write(replies, `${JSON.stringify({ ready: true, ms: Math.round(performance.now()) })}\n`);
  const read = createReader(0);
  for (let line = read(); line !== null; line = read()) {
    if (line.trim() === '') continue;
    const reply = server.answer(line);
    if (host.life.renew) {
      renewal.putBack();
      host.life.renew = false;
      server = createServer(host, loadImage(host, image, { used: true }));
    }
    write(replies, `${JSON.stringify(reply)}\n`);
    server.settle();
  }
  process.exit(0);
}

module.exports = { serve };
