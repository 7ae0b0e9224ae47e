'use strict';
/**
 * Calling the compiled Lean functions that lean.wasm exports.
 *
 * `name___boxed` exists when a function has borrowed or unboxed parameters and takes every
 * argument owned and boxed; otherwise the plain export does. So `call` always takes ownership.
 * An IO function has one more parameter, the world token, which is added when it is missing.
 */

/** A Lean exception; whoever catches it owns `object`. */
class LeanException extends Error {
  constructor(object) {
    super('Lean exception');
    this.object = object;
  }
}

function createCalls(host, heap) {
  const { exports: wasm } = host;
  const resolved = new Map();

  function resolve(name) {
    let fn = resolved.get(name);
    if (!fn) {
      fn = wasm[`${name}___boxed`] || wasm[name];
      if (!fn) throw new Error(`the Lean runtime has no function ${name}`);
      resolved.set(name, fn);
    }
    return fn;
  }

  function call(name, ...args) {
    const fn = resolve(name);
    if (fn.length === args.length + 1) args.push(heap.box(0));
    if (fn.length !== args.length) {
      throw new Error(`${name} takes ${fn.length} arguments, given ${args.length}`);
    }
    return fn(...args) >>> 0;
  }

  /** Takes an IO result; returns its value or throws its LeanException. */
  function unwrap(result) {
    const value = heap.inc(heap.field(result, 0));
    const failed = heap.tag(result) !== 0;
    heap.dec(result);
    if (failed) throw new LeanException(value);
    return value;
  }

  const run = (name, ...args) => unwrap(call(name, ...args));

  const truth = (name, ...args) => heap.unbox(call(name, ...args)) !== 0;

  function makeRef(value) {
    const result = call('lean_st_mk_ref', value);
    return heap.tag(result) === heap.TAG.ref ? result : unwrap(result);
  }

  /** The plain export, for the few calls that pass machine integers. */
  const raw = (name) => wasm[name];

  return { call, run, raw, unwrap, truth, makeRef, LeanException };
}

module.exports = { createCalls, LeanException };
