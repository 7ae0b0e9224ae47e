'use strict';
/**
 * Loaded before everything else in the process that makes the image (image.js): clocks stand still,
 * chance is none, the machine has two cores, and files differ in nothing but their type and size.
 */
const crypto = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');

const EPOCH = new Date(0);

Date.now = () => 0;
Object.defineProperty(performance, 'now', { value: () => 0 });
Object.defineProperty(performance, 'timeOrigin', { value: 0 });
Object.defineProperty(globalThis, 'navigator', { value: { language: 'C' } });
os.cpus = () => [{}, {}];

const sameBytes = (view) => {
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).fill(0x5a);
  return view;
};
crypto.randomFillSync = sameBytes;
Object.defineProperty(globalThis.crypto, 'getRandomValues', { value: sameBytes });

for (const name of ['statSync', 'lstatSync', 'fstatSync']) {
  const original = fs[name];
  fs[name] = (...args) => {
    const found = original(...args);
    if (!found || typeof found.size !== 'number') return found;
    return Object.assign(found, {
      dev: 1, ino: 1, nlink: 1, uid: 0, gid: 0, rdev: 0, blksize: 4096, blocks: 0,
      mode: (found.mode & fs.constants.S_IFMT) | (found.isDirectory() ? 0o755 : 0o644),
      size: found.isDirectory() ? 4096 : found.size,
      atimeMs: 0, mtimeMs: 0, ctimeMs: 0, birthtimeMs: 0, atime: EPOCH, mtime: EPOCH, ctime: EPOCH, birthtime: EPOCH,
    });
  };
}
