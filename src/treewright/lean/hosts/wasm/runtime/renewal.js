'use strict';
/**
 * Makes a process as it was when it started. Then its next text finds what a new process would give it, to
 * the byte, except that Lean's functions are compiled already, which is most of what a new one costs.
 *
 * Lean's memory is loaded from the image again (image.js). Here is what the module has outside of its
 * memory: globals, files, and its table, to which nothing of it can write. Threads would go on: who has
 * started one is not made new.
 */
function createRenewal(bare, files) {
  const places = new Map(); // signature -> [{ slot, fn }]: functions of the server, in the order it adds them
  const taken = new Map(); // signature -> how many of them
  let values = [];

  /** A place in the table for a function; the same ones again for the server that takes another's place. */
  function addFunction(fn, signature) {
    if (!places.has(signature)) places.set(signature, []);
    const own = places.get(signature);
    const number = taken.get(signature) ?? 0;
    taken.set(signature, number + 1);
    if (number === own.length) {
      const place = { fn };
      place.slot = bare.addFunction((...args) => place.fn(...args), signature);
      own.push(place);
    }
    own[number].fn = fn;
    return own[number].slot;
  }

  function remember() {
    values = bare.globals.map((global) => global.value);
    files.remember();
  }

  function putBack() {
    bare.globals.forEach((global, i) => { global.value = values[i]; });
    files.putBack();
    taken.clear();
    globalThis.treewrightLastOutput = '';
  }

  return { addFunction, remember, putBack };
}

module.exports = { createRenewal };
