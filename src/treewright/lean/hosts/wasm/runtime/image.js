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
const DEEPEST = 1 << 20; // how much of the stack is used before Lean does anything

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

/** What is said at the beginning of an image that is open. */
function readDescription(fd) {
  const length = Buffer.alloc(4);
  readAll(fd, length);
  const text = Buffer.alloc(length.readUInt32LE());
  readAll(fd, text);
  return JSON.parse(text.toString());
}

/**
 * Compiles the module. If its memory is to be that of an image, the file is read into that memory, which
 * is needed a moment later anyway, and not into as much again: to be given new memory is what reading costs most.
 */
function compileModule(memory, path, image) {
  if (!image) return new WebAssembly.Module(fs.readFileSync(path));
  const described = fs.openSync(image, 'r');
  const { size } = readDescription(described);
  fs.closeSync(described);
  const fd = fs.openSync(path, 'r');
  const { size: length } = fs.fstatSync(fd);
  memory.grow(Math.ceil((Math.max(size, length) - memory.buffer.byteLength) / PAGE));
  const bytes = new Uint8Array(memory.buffer, memory.buffer.byteLength - length, length);
  readAll(fd, bytes);
  fs.closeSync(fd);
  const module = new WebAssembly.Module(bytes);
  bytes.fill(0);
  return module;
}

/**
 * Puts a saved memory in the place of the present one; its roots. Unless it was `used`, Lean has done
 * nothing with it yet.
 */
function loadImage(host, path, { used } = { used: false }) {
  const fd = fs.openSync(path, 'r');
  const { size, stack, table, roots, chunks } = readDescription(fd);
  if (!used && table !== host.tableSize()) throw new Error('the image belongs to another module');
  host.memory.grow(Math.max(0, size - host.memory.buffer.byteLength) / PAGE);
  const { HEAPU8 } = host.views();
  // The part of the stack that no call has come down to.
  const lowest = used ? 0 : globalThis.treewrightStackGuard.end;
  const deepest = used ? 0 : Math.min(stack, host.stackSave()) - DEEPEST;
  let clean = 0;
  for (const [at, count] of chunks) {
    clear(HEAPU8, clean, Math.min(at, lowest));
    clear(HEAPU8, Math.max(clean, deepest), at);
    readAll(fd, HEAPU8.subarray(at, at + count));
    clean = at + count;
  }
  clear(HEAPU8, clean, HEAPU8.length);
  fs.closeSync(fd);
  host.stackRestore(stack);
  return roots;
}

/** Makes bytes zero. Those that are get no memory, as they would if zeros were written. */
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

module.exports = { saveImage, compileModule, loadImage, clear };
