'use strict';
/**
 * Lean objects in the wasm heap, as JavaScript sees them.
 *
 * Layout (lean.h, 32-bit): an 8-byte header { int32 rc; uint16 size; uint8 other; uint8 tag }
 * and then the fields. `other` is the number of object fields of a constructor. A scalar is
 * "boxed": (n << 1) | 1. rc > 0: owned by one thread; rc < 0: shared between threads (atomic);
 * rc = 0: lives for ever (everything read from an .olean).
 *
 * Every function that returns an object returns it owned unless its comment says borrowed.
 */

const TAG = { closure: 245, array: 246, string: 249, mpz: 250, ref: 253 };
const HEADER = 8;
const ARRAY_HEADER = 16; // header, size, capacity
const STRING_HEADER = 20; // header, size with NUL, capacity, length in characters

function createHeap(host) {
  const { exports: wasm, views } = host;

  const box = (n) => ((n << 1) | 1) >>> 0;
  const isBox = (o) => (o & 1) === 1;
  const unbox = (o) => o >>> 1;

  function inc(o) {
    if (isBox(o)) return o;
    const words = views().HEAP32;
    const i = o >> 2;
    const rc = words[i];
    if (rc > 0) words[i] = rc + 1;
    else if (rc < 0) Atomics.sub(words, i, 1);
    return o;
  }

  function dec(o) {
    if (isBox(o)) return;
    const words = views().HEAP32;
    const i = o >> 2;
    const rc = words[i];
    if (rc > 1) words[i] = rc - 1;
    else if (rc !== 0) wasm.lean_dec_ref_cold(o);
  }

  const isPersistent = (o) => views().HEAP32[o >> 2] === 0;
  const tag = (o) => (isBox(o) ? unbox(o) : views().HEAPU8[o + 7]);
  const fieldCount = (o) => views().HEAPU8[o + 6];
  /** Borrowed. */
  const field = (o, i) => views().HEAPU32[(o + HEADER + 4 * i) >> 2];
  /** A byte of the scalar area that follows the object fields. */
  const scalar8 = (o, offset) => views().HEAPU8[o + HEADER + 4 * fieldCount(o) + offset];

  /** A 32-bit number of the scalar area that follows the object fields. */
  const scalar32 = (o, offset) => views().HEAPU32[(o + HEADER + 4 * fieldCount(o) + offset) >> 2];

  const setScalar8 = (o, offset, value) => { views().HEAPU8[o + HEADER + 4 * fieldCount(o) + offset] = value; };
  const setScalar32 = (o, offset, value) => { views().HEAPU32[(o + HEADER + 4 * fieldCount(o) + offset) >> 2] = value; };

  function writeHeader(o, size, other, tagValue) {
    views().HEAP32[o >> 2] = 1;
    views().HEAPU16[(o + 4) >> 1] = size;
    views().HEAPU8[o + 6] = other;
    views().HEAPU8[o + 7] = tagValue;
  }

  const allocate = (size) => wasm.lean_alloc_object(size) >>> 0;

  /** A constructor object; takes ownership of `fields`; its scalar area is zero. */
  function constructor(tagValue, fields, scalarBytes = 0) {
    const size = (HEADER + 4 * fields.length + scalarBytes + 7) & ~7;
    const o = allocate(size);
    writeHeader(o, size, fields.length, tagValue);
    views().HEAPU8.fill(0, o + HEADER + 4 * fields.length, o + size);
    fields.forEach((f, i) => { views().HEAPU32[(o + HEADER + 4 * i) >> 2] = f; });
    return o;
  }

  /** A fresh copy of a borrowed constructor object, with some fields (owned) replaced. */
  function copyWith(o, changes = {}, scalars = {}) {
    const size = views().HEAPU16[(o + 4) >> 1];
    const copy = allocate(size);
    views().HEAPU8.copyWithin(copy, o, o + size);
    views().HEAP32[copy >> 2] = 1;
    const count = fieldCount(copy);
    for (let i = 0; i < count; i++) {
      if (i in changes) views().HEAPU32[(copy + HEADER + 4 * i) >> 2] = changes[i];
      else inc(field(copy, i));
    }
    for (const offset in scalars) {
      views().HEAPU8[copy + HEADER + 4 * count + Number(offset)] = scalars[offset];
    }
    return copy;
  }

  /** Calls use(address, length) with a copy of a text as C sees it. */
  function withCString(text, use) {
    const bytes = Buffer.from(text, 'utf8');
    const buffer = wasm.malloc(bytes.length + 1) >>> 0;
    views().HEAPU8.set(bytes, buffer);
    views().HEAPU8[buffer + bytes.length] = 0;
    const result = use(buffer, bytes.length);
    wasm.free(buffer);
    return result;
  }

  const string = (text) => withCString(text, (address, length) => wasm.lean_mk_string_from_bytes(address, length) >>> 0);

  /** The text of a borrowed string. */
  function readString(o) {
    const size = views().HEAPU32[(o + HEADER) >> 2];
    return Buffer.from(views().HEAPU8.slice(o + STRING_HEADER, o + STRING_HEADER + size - 1)).toString('utf8');
  }

  function takeString(o) {
    const text = readString(o);
    dec(o);
    return text;
  }

  function array(items) {
    const capacity = Math.max(1, items.length);
    const o = allocate(ARRAY_HEADER + 4 * capacity);
    writeHeader(o, 0, 0, TAG.array);
    views().HEAPU32[(o + 8) >> 2] = items.length;
    views().HEAPU32[(o + 12) >> 2] = capacity;
    items.forEach((item, i) => { views().HEAPU32[(o + ARRAY_HEADER + 4 * i) >> 2] = item; });
    return o;
  }

  const arraySize = (o) => views().HEAPU32[(o + 8) >> 2];
  /** Borrowed. */
  const arrayItem = (o, i) => views().HEAPU32[(o + ARRAY_HEADER + 4 * i) >> 2];
  /** Borrowed items. */
  const readArray = (o) => Array.from({ length: arraySize(o) }, (_, i) => arrayItem(o, i));

  function list(items) {
    let result = box(0);
    for (let i = items.length - 1; i >= 0; i--) result = constructor(1, [items[i], result]);
    return result;
  }

  /** Borrowed items. */
  function readList(o) {
    const items = [];
    for (; !isBox(o); o = field(o, 1)) items.push(field(o, 0));
    return items;
  }

  /** Borrowed items of a Lean.PersistentArray { root, tail, size, (shift), tailOff }. */
  function readPersistentArray(o) {
    const items = [];
    const walk = (node) => {
      const children = readArray(field(node, 0));
      if (tag(node) === 0) children.forEach(walk);
      else for (const child of children) items.push(child);
    };
    walk(field(o, 0));
    for (const item of readArray(field(o, 1))) items.push(item);
    return items;
  }

  /** Calls visit(key, value), both borrowed, for a Lean.PersistentHashMap (its root node). */
  function eachOfPersistentMap(node, visit) {
    if (tag(node) === 1) {
      const keys = readArray(field(node, 0));
      const values = readArray(field(node, 1));
      keys.forEach((key, i) => visit(key, values[i]));
      return;
    }
    for (const entry of readArray(field(node, 0))) {
      if (isBox(entry)) continue;
      if (tag(entry) === 0) visit(field(entry, 0), field(entry, 1));
      else eachOfPersistentMap(field(entry, 0), visit);
    }
  }

  /** The value of an Option, borrowed, or null. */
  const option = (o) => (isBox(o) ? null : field(o, 0));
  const some = (o) => constructor(1, [o]);

  /** The content of an IO.Ref, borrowed. */
  const refValue = (ref) => views().HEAPU32[(ref + HEADER) >> 2];

  /** A closure around a JavaScript function; `release` gives its table slot back. */
  function closure(fn, arity) {
    const slot = host.addFunction(fn, 'i'.repeat(arity + 1));
    const o = allocate(16);
    writeHeader(o, 16, 0, TAG.closure);
    views().HEAPU32[(o + 8) >> 2] = slot;
    views().HEAPU16[(o + 12) >> 1] = arity;
    views().HEAPU16[(o + 14) >> 1] = 0;
    return { object: o, release: () => host.removeFunction(slot) };
  }

  /** A module-level Lean constant, borrowed. */
  function global(name) {
    const symbol = wasm[name];
    if (!symbol) throw new Error(`the Lean runtime has no constant ${name}`);
    return views().HEAPU32[symbol.value >> 2];
  }

  /** Puts an owned object into a field of a borrowed one, for those that nobody else has seen yet. */
  function setField(o, i, value) {
    const before = field(o, i);
    views().HEAPU32[(o + HEADER + 4 * i) >> 2] = value;
    dec(before);
  }

  return {
    TAG, box, isBox, unbox, inc, dec, isPersistent, tag, fieldCount, field, scalar8, scalar32, setScalar8, setScalar32,
    setField, constructor, copyWith, withCString, string, readString, takeString, array, arraySize, arrayItem, readArray,
    list, readList, readPersistentArray, eachOfPersistentMap, option, some, refValue, closure, global,
  };
}

module.exports = { createHeap, TAG };
