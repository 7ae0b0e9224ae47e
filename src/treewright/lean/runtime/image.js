'use strict';
/**
 * The memory of Lean after `import Init`, kept in a file: a start is then to instantiate the module and
 * to load that memory, instead of Lean's own initialisation and the import.
 *
 * Made when Lean is installed, by a process in which nothing depends on the machine (reproducible.js),
 * so that it is the same to the byte wherever it is made: its hash is part of the digest that the program
 * knows (manifest.py). What the module keeps outside of its memory is either the same after every start
 * (its table, up to what the server adds) or saved here (the stack pointer).
 *
 * The file: the length of a description (32 bits); the description, as JSON: { size, stack, table,
 * roots, chunks: [[address, length], …] }; the bytes of the chunks, in order. All other bytes are zero.
 */
const fs = require('node:fs');

const CHUNK = 64 * 1024;
const PAGE = 64 * 1024;

/** Whether words are all zero from index `start` up to `end`. */
function isZero(words, start, end) {
  for (let i = start; i < end; i++) if (words[i] !== 0) return false;
  return true;
}

/**
 * Writes the memory as it is, and `roots`: addresses of what the server needs to find in it again. `table`:
 * how large the table was before the server added functions of its own.
 */
function saveImage(host, roots, table, fd) {
  const { HEAPU8, HEAPU32 } = host.views();
  const stack = host.stackSave();
  HEAPU8.fill(0, globalThis.treewrightStackGuard.end, stack); // the stack's unused part: remains of calls
  const chunks = [];
  for (let at = 0; at < HEAPU8.length; at += CHUNK) {
    if (isZero(HEAPU32, at >> 2, (at + CHUNK) >> 2)) continue;
    const last = chunks.at(-1);
    if (last && last[0] + last[1] === at) last[1] += CHUNK;
    else chunks.push([at, CHUNK]);
  }
  const description = Buffer.from(JSON.stringify({
    size: HEAPU8.length, stack, table, roots, chunks,
  }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(description.length);
  for (const part of [length, description]) writeAll(fd, part);
  for (const [at, size] of chunks) writeAll(fd, Buffer.from(HEAPU8.slice(at, at + size)));
}

function writeAll(fd, bytes) {
  for (let done = 0; done < bytes.length;) done += fs.writeSync(fd, bytes, done, bytes.length - done);
}

/** Puts a saved memory in the place of the present one, which nothing has been done with; its roots. */
function loadImage(host, path) {
  const fd = fs.openSync(path, 'r');
  const length = Buffer.alloc(4);
  readAll(fd, length);
  const text = Buffer.alloc(length.readUInt32LE());
  readAll(fd, text);
  const { size, stack, table, roots, chunks } = JSON.parse(text.toString());
  if (table !== host.tableSize()) throw new Error('the image belongs to another module');
  const used = host.memory.buffer.byteLength; // what is behind it will be zero
  host.memory.grow((size - used) / PAGE);
  const { HEAPU8 } = host.views();
  let clean = 0;
  for (const [at, count] of chunks) {
    clear(HEAPU8, clean, Math.min(at, used));
    readAll(fd, HEAPU8.subarray(at, at + count));
    clean = at + count;
  }
  clear(HEAPU8, clean, used);
  fs.closeSync(fd);
  host.stackRestore(stack);
  return roots;
}

/** Makes bytes zero. Those that are get no memory, as they would if zeros were written: most of the stack. */
function clear(bytes, start, end) {
  const zeros = Buffer.alloc(CHUNK);
  for (let at = start; at < end; at += CHUNK) {
    const length = Math.min(CHUNK, end - at);
    const part = Buffer.from(bytes.buffer, bytes.byteOffset + at, length);
    if (part.compare(zeros, 0, length) !== 0) part.fill(0);
  }
}

function readAll(fd, bytes) {
  for (let done = 0; done < bytes.length;) {
    const count = fs.readSync(fd, bytes, done, bytes.length - done, null);
    if (count === 0) throw new Error('the image ends early');
    done += count;
  }
}

module.exports = { saveImage, loadImage };
