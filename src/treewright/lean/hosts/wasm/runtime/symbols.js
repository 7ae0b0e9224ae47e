'use strict';
/**
 * The symbols of lean.wasm, which are not its exports: see symbols.py, which writes the file.
 */

/** `bytes` is the file's content. */
function readSymbols(bytes) {
  const [count] = new Uint32Array(bytes.buffer, bytes.byteOffset, 1);
  const ends = new Uint32Array(bytes.buffer, bytes.byteOffset + 4, count);
  const values = new Uint32Array(bytes.buffer, bytes.byteOffset + 4 + 4 * count, count);
  const names = bytes.subarray(4 + 8 * count);

  /** The number of a symbol, or -1. */
  function find(name) {
    const wanted = Buffer.from(name);
    let low = 0;
    let high = count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const order = names.compare(wanted, 0, wanted.length, middle === 0 ? 0 : ends[middle - 1], ends[middle]);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** What C's dlsym gives: a function's place in the table or a constant's address; 0 if there is none. */
  function address(name) {
    const number = find(name);
    return number < 0 ? 0 : values[number] >>> 1;
  }

  /**
   * The exports of an instance and, as if they were exports too, all symbols: functions, and constants
   * as { value }. Each is looked up once.
   */
  function exportsOf(instance, table) {
    const lookup = (name) => {
      const number = typeof name === 'string' ? find(name) : -1;
      if (number < 0) return undefined;
      const value = values[number];
      return value & 1 ? { value: value >>> 1 } : table.get(value >>> 1);
    };
    const found = Object.create(new Proxy({}, {
      get(_, name) {
        const symbol = lookup(name);
        if (symbol !== undefined) found[name] = symbol;
        return symbol;
      },
      set(_, name, value, receiver) {
        return Reflect.defineProperty(receiver, name, { value, configurable: true, enumerable: true, writable: true });
      },
    }));
    for (const name of Object.keys(instance)) found[name] = instance[name];
    return found;
  }

  return { address, exportsOf };
}

module.exports = { readSymbols };
