'use strict';
/** Tests of the runtime's parts without Lean: run with `node --test`. */
const assert = require('node:assert/strict');
const path = require('node:path');
const { test } = require('node:test');

const RUNTIME = path.join(__dirname, '..', '..', 'src', 'treewright', 'lean', 'hosts', 'wasm', 'runtime');
const { createHeap } = require(path.join(RUNTIME, 'heap.js'));
const { createNames } = require(path.join(RUNTIME, 'names.js'));
const { createTerms } = require(path.join(RUNTIME, 'terms.js'));
const { createCalls, LeanException } = require(path.join(RUNTIME, 'calls.js'));
const { createArena, DataError } = require(path.join(RUNTIME, 'arena.js'));
const { createComparison, indexOf } = require(path.join(RUNTIME, 'meaning.js'));
const { createStackGuard } = require(path.join(RUNTIME, 'stack_guard.js'));
const { createSnapshot } = require(path.join(RUNTIME, 'snapshot.js'));
const { restrictImports, lockFileSystem } = require(path.join(RUNTIME, 'sandbox.js'));

/** A heap of plain memory with the few functions of Lean's runtime that heap.js calls. */
function fakeHost() {
  const memory = new ArrayBuffer(1 << 20);
  const views = {
    HEAPU8: new Uint8Array(memory), HEAPU16: new Uint16Array(memory),
    HEAP32: new Int32Array(memory), HEAPU32: new Uint32Array(memory),
  };
  let next = 64;
  const freed = [];
  const allocate = (size) => {
    const at = next;
    next += (size + 15) & ~15;
    return at;
  };
  const exports = {
    lean_alloc_object: allocate,
    malloc: allocate,
    free() {},
    lean_dec_ref_cold(o) { freed.push(o); },
    lean_mk_string_from_bytes(buffer, length) {
      const o = allocate(20 + length + 1);
      views.HEAP32[o >> 2] = 1;
      views.HEAPU8[o + 7] = 249;
      views.HEAPU32[(o + 8) >> 2] = length + 1;
      views.HEAPU8.copyWithin(o + 20, buffer, buffer + length + 1);
      return o;
    },
  };
  return { exports, views: () => views, freed, addFunction: () => 7, removeFunction() {} };
}

function fakeLean() {
  const host = fakeHost();
  const heap = createHeap(host);
  const call = (name, ...args) => {
    assert.equal(name, 'l_Lean_Name_toString');
    const parts = [];
    for (let n = args[0]; !heap.isBox(n); n = heap.field(n, 0)) parts.unshift(heap.readString(heap.field(n, 1)));
    return heap.string(parts.join('.'));
  };
  const names = createNames(heap, { call });
  return { host, heap, names, terms: createTerms(heap, { call }, names) };
}

test('boxed scalars are not touched by reference counting', () => {
  const { heap } = fakeLean();
  assert.equal(heap.unbox(heap.box(1234)), 1234);
  assert.equal(heap.inc(heap.box(3)), heap.box(3));
  heap.dec(heap.box(3));
});

test('an object is freed when its last owner lets go', () => {
  const { host, heap } = fakeLean();
  const o = heap.constructor(0, [heap.box(1)]);
  heap.inc(o);
  heap.dec(o);
  assert.deepEqual(host.freed, []);
  heap.dec(o);
  assert.deepEqual(host.freed, [o]);
});

test('what lives for ever is never counted', () => {
  const { host, heap } = fakeLean();
  const o = heap.constructor(0, []);
  host.views().HEAP32[o >> 2] = 0;
  heap.dec(heap.inc(o));
  heap.dec(o);
  assert.deepEqual(host.freed, []);
  assert.ok(heap.isPersistent(o));
});

test('a copy shares the fields that do not change', () => {
  const { host, heap } = fakeLean();
  const shared = heap.constructor(0, []);
  const original = heap.constructor(2, [shared, heap.box(5)], 4);
  const copy = heap.copyWith(original, { 1: heap.box(6) }, { 2: 9 });
  assert.equal(heap.tag(copy), 2);
  assert.equal(heap.field(copy, 0), shared);
  assert.equal(host.views().HEAP32[shared >> 2], 2);
  assert.equal(heap.unbox(heap.field(copy, 1)), 6);
  assert.equal(heap.scalar8(copy, 2), 9);
  assert.equal(heap.scalar8(original, 2), 0);
});

test('text survives the way into the heap and back', () => {
  const { heap } = fakeLean();
  for (const text of ['', 'plain', '∀ α, 🦀', 'a\u0000b', 'x'.repeat(5000)]) {
    assert.equal(heap.takeString(heap.string(text)), text);
  }
});

test('lists and arrays', () => {
  const { heap } = fakeLean();
  const items = [1, 2, 3].map(heap.box);
  assert.deepEqual(heap.readList(heap.list(items)), items);
  assert.deepEqual(heap.readList(heap.list([])), []);
  assert.deepEqual(heap.readArray(heap.array(items)), items);
  assert.deepEqual(heap.readArray(heap.array([])), []);
});

test('a persistent array is its tree and then its tail', () => {
  const { heap } = fakeLean();
  const leaf = (...xs) => heap.constructor(1, [heap.array(xs.map(heap.box))]);
  const root = heap.constructor(0, [heap.array([leaf(1, 2), leaf(3)])]);
  const array = heap.constructor(0, [root, heap.array([heap.box(4)])]);
  assert.deepEqual(heap.readPersistentArray(array).map(heap.unbox), [1, 2, 3, 4]);
});

test('a persistent map is visited once per entry, collisions too', () => {
  const { heap } = fakeLean();
  const entry = (k, v) => heap.constructor(0, [heap.box(k), heap.box(v)]);
  const collision = heap.constructor(1, [heap.array([heap.box(5), heap.box(6)]), heap.array([heap.box(50), heap.box(60)])]);
  const root = heap.constructor(0, [heap.array([entry(1, 10), heap.box(2), heap.constructor(1, [collision])])]);
  const seen = [];
  heap.eachOfPersistentMap(root, (k, v) => seen.push([heap.unbox(k), heap.unbox(v)]));
  assert.deepEqual(seen, [[1, 10], [5, 50], [6, 60]]);
});

test('a call adds the world token only where one is missing, and checks the rest', () => {
  const host = fakeHost();
  const heap = createHeap(host);
  host.exports.two = (a, b) => (a << 8) | b;
  host.exports.bad___boxed = (_a) => 42;
  host.exports.bad = (_a, _b, _c) => 0;
  const { call } = createCalls(host, heap);
  assert.equal(call('two', 3), (3 << 8) | 1);
  assert.equal(call('two', 3, 5), (3 << 8) | 5);
  assert.equal(call('bad', 1), 42, 'the boxed form is preferred');
  assert.throws(() => call('two', 1, 2, 3), /takes 2 arguments, given 3/);
  assert.throws(() => call('nothing'), /no function nothing/);
});

test('a failed IO result is thrown with its object', () => {
  const host = fakeHost();
  const heap = createHeap(host);
  const { unwrap } = createCalls(host, heap);
  assert.equal(unwrap(heap.constructor(0, [heap.box(4)])), heap.box(4));
  assert.throws(() => unwrap(heap.constructor(1, [heap.box(9)])), (e) => e instanceof LeanException && e.object === heap.box(9));
});

/** Expr constructors over the fake heap; 8 bytes of cached data follow the fields. */
function builder({ heap }) {
  const name = (text) => text.split('.').reduce((n, p) => heap.constructor(1, [n, heap.string(p)]), heap.box(0));
  return {
    name,
    constant: (text) => heap.constructor(4, [name(text), heap.box(0)], 8),
    app: (f, a) => heap.constructor(5, [f, a], 8),
    forall: (binder, type, body) => heap.constructor(7, [name(binder), type, body], 9),
    bvar: (n) => heap.constructor(0, [heap.box(n)], 8),
    fvar: (text) => heap.constructor(1, [name(text)], 8),
    mvar: (text) => heap.constructor(2, [name(text)], 8),
    mdata: (e) => heap.constructor(10, [heap.box(0), e], 8),
  };
}

test('equal terms have equal canonical texts, however they are shared in memory', () => {
  const lean = fakeLean();
  const b = builder(lean);
  const options = { fvar: (n) => lean.names.show(n) };
  const text = (e) => lean.terms.canonical(e, options).text;
  const shared = b.app(b.constant('f'), b.constant('a'));
  const twice = b.app(shared, shared);
  const apart = b.app(b.app(b.constant('f'), b.constant('a')), b.app(b.constant('f'), b.constant('a')));
  assert.equal(text(twice), text(apart));
  assert.notEqual(text(twice), text(shared));
  assert.equal(text(b.mdata(shared)), text(shared));
  const forall = (binder) => b.forall(binder, b.constant('Nat'), b.bvar(0));
  assert.notEqual(text(forall('x')), text(forall('y')));
  assert.notEqual(text(b.constant('a.b')), text(b.constant('ab')));
});

test('metavariables are numbered by first occurrence', () => {
  const lean = fakeLean();
  const b = builder(lean);
  const read = (e) => lean.terms.canonical(e, { fvar: () => '' });
  const one = read(b.app(b.mvar('m'), b.mvar('n')));
  const other = read(b.app(b.mvar('p'), b.mvar('q')));
  const same = read(b.app(b.mvar('m'), b.mvar('m')));
  assert.equal(one.text, other.text);
  assert.notEqual(one.text, same.text);
  assert.deepEqual(one.mvars.map(lean.names.show), ['m', 'n']);
});

test('every constant of a term is visited', () => {
  const lean = fakeLean();
  const b = builder(lean);
  const seen = new Set();
  const term = b.forall('x', b.constant('Nat'), b.app(b.constant('f'), b.mdata(b.constant('c'))));
  lean.terms.eachConstant(term, (n) => seen.add(lean.names.show(n)));
  assert.deepEqual([...seen].sort(), ['Nat', 'c', 'f']);
});

test('a name counts whole; of a bound variable what hygiene added does not', () => {
  const lean = fakeLean();
  const b = builder(lean);
  assert.notEqual(lean.names.key(b.name('x')), lean.names.key(b.name('x._@.Main._hyg')));
  assert.equal(lean.names.binderKey(b.name('x')), lean.names.binderKey(b.name('x._@.Main._hyg')));
  assert.ok(lean.names.isInaccessible(b.name('x._@.Main')));
});

test('imports that are not on the list throw when they are called', () => {
  const imports = { fd_read: () => 1, invoke_vi: () => 2, emscripten_run_script: () => 3, memory: {} };
  restrictImports(imports);
  assert.equal(imports.fd_read(), 1);
  assert.equal(imports.invoke_vi(), 2);
  assert.throws(() => imports.emscripten_run_script(), /sandbox has no emscripten_run_script/);
  assert.deepEqual(imports.memory, {});
});

test('a locked file system opens for reading only', () => {
  class ErrnoError extends Error { constructor(errno) { super(); this.errno = errno; } }
  const FS = { ErrnoError, open: () => 'stream', write: () => 5, mkdir() {}, unlink() {}, rename() {} };
  lockFileSystem(FS);
  assert.equal(FS.open('/x', 0), 'stream');
  for (const flags of [1, 2, 64, 512, 1024, 'w', 'a', 'r+']) {
    assert.throws(() => FS.open('/x', flags), (e) => e.errno === 69, `flags ${flags}`);
  }
  for (const operation of ['mkdir', 'unlink', 'rename']) {
    assert.throws(() => FS[operation]('/x'), (e) => e.errno === 69);
  }
  assert.equal(FS.write({ tty: {} }, new Uint8Array(1), 0, 1), 5);
  assert.throws(() => FS.write({}, new Uint8Array(1), 0, 1), (e) => e.errno === 69);
});

const LIMITS = { items: 1000, digits: 50, text: 50, levels: 10, levelSize: 20, declarations: 10, depth: 50 };

/** A definition `name : type := value` in an arena. */
const define = (arena, name, type, value) => ({
  kind: 'def', name: arena.nameOf([name]), params: [], type, value, hints: 0, unsafe: false,
});

test('data survives the way out of one arena and into another', () => {
  const from = createArena();
  const nat = from.expr(2, from.nameOf(['Nat', { num: '7' }]), [from.level(1, from.level(0))]);
  const term = from.expr(4, 1, nat, from.expr(3, from.expr(7, '12345678901234567890'), from.expr(0, '0')));
  const sent = JSON.parse(JSON.stringify(from.encode([define(from, 'f', nat, term)])));
  const to = createArena();
  const [declaration] = to.decode(sent, LIMITS);
  assert.deepEqual(to.components(declaration.name), ['f']);
  assert.deepEqual(to.encode([declaration]), sent);
});

test('equal terms have equal numbers, and names count whole', () => {
  const arena = createArena();
  const constant = (...parts) => arena.expr(2, arena.nameOf(parts), []);
  assert.equal(constant('a', 'b'), constant('a', 'b'));
  assert.notEqual(constant('a', 'b'), constant('a.b'));
  assert.notEqual(constant('a', { num: '1' }), constant('a', '1'));
  assert.notEqual(constant('x', '_@', 'y'), constant('x'));
});

test('what refers ahead, is too deep, too long or loose is refused', () => {
  const refused = (data) => assert.throws(() => createArena().decode(data, LIMITS), DataError);
  const empty = { names: [], levels: [], exprs: [], declarations: [] };
  refused({ ...empty, exprs: [[3, 1, 1], [0, '0']] });
  refused({ ...empty, exprs: [[0, '0'], ...Array.from({ length: 60 }, (_, i) => [3, i, i])] });
  refused({ ...empty, exprs: [[7, '9'.repeat(51)]] });
  refused({ ...empty, levels: [[0], ...Array.from({ length: 8 }, (_, i) => [2, i, i])] });
  refused({ ...empty, names: [[0, '_nested'], [1, 'List_1']] });
  refused({ ...empty, exprs: [[8, '\ud800']] });
  const loose = { kind: 'def', name: 1, params: [], type: 0, value: 0, hints: 0, unsafe: false };
  refused({ ...empty, names: [[0, 'f']], exprs: [[0, '0']], declarations: [loose] });
});

test('something found equal by assuming what turns out different is not remembered', () => {
  const arena = createArena();
  const type = arena.expr(1, arena.level(0));
  const name = (text) => arena.nameOf([text]);
  const inductive = (constructors) => ({
    kind: 'inductive', params: [], count: '0', unsafe: false, types: [{ name: name('_A'), type, constructors }],
  });
  const own = arena.expr(2, name('_A'), []);
  const one = { name: name('a'), type: own };
  const original = indexOf([inductive([one])]);
  const candidate = indexOf([inductive([one, { name: name('b'), type: own }])]);
  const nobody = () => false;
  const { sameConstant } = createComparison(arena, original, candidate, { isImported: nobody, isOwn: nobody, isProof: nobody });
  assert.equal(sameConstant(name('_A'), name('_A')), false);
  assert.equal(sameConstant(name('a'), name('a')), false);
});

test('a stack that ran over its end is noticed', () => {
  const host = fakeHost();
  globalThis.treewrightStackGuard = { start: 4096, end: 8192, byte: 0xa5 };
  host.views().HEAPU8.fill(0xa5, 4096, 8192);
  const guard = createStackGuard(host);
  guard.check();
  host.views().HEAPU8[8191] = 0;
  assert.throws(guard.check, /ran over its end/);
});

test('a snapshot puts every byte back, and clears memory that came later and the unused stack', () => {
  let bytes = new Uint8Array([1, 2, 8, 8, 3, 4]);
  globalThis.treewrightStackGuard = { start: 1, end: 2, byte: 2 };
  const snapshot = createSnapshot({ views: () => ({ HEAPU8: bytes }), stackSave: () => 4 });
  snapshot.take();
  assert.deepEqual([...bytes], [1, 2, 0, 0, 3, 4]);
  bytes = new Uint8Array([9, 2, 6, 0, 9, 4, 7, 7]);
  snapshot.restore();
  assert.deepEqual([...bytes], [1, 2, 0, 0, 3, 4, 0, 0]);
});

test('an auxiliary name stands for one other, and for none that was open or that somebody gave', () => {
  const arena = createArena();
  const nat = arena.expr(2, arena.nameOf(['Nat']), []);
  const hole = arena.expr(3, arena.expr(2, arena.nameOf(['sorryAx']), []), nat);
  const one = arena.expr(7, '1');
  const name = (text) => arena.nameOf([text]);
  const compare = (original, candidate, isOwn = () => false) => createComparison(
    arena, indexOf(original), indexOf(candidate), { isImported: (n) => n === name('Nat'), isOwn, isProof: () => false },
  ).sameConstant;
  const values = (list) => Object.entries(list).map(([key, value]) => define(arena, key, nat, value));
  const moved = compare(values({ match_1: one }), values({ match_2: one }));
  assert.equal(moved(name('match_1'), name('match_2')), true);
  const open = compare(values({ _a: hole }), values({ _b: one }));
  assert.equal(open(name('_a'), name('_b')), false);
  const shared = compare(values({ _a: one, _b: one }), values({ _c: one }));
  assert.equal(shared(name('_a'), name('_c')), true);
  assert.equal(shared(name('_b'), name('_c')), false);
  const given = compare(values({ _a: one }), values({ _b: one }), (n) => n === name('_a'));
  assert.equal(given(name('_a'), name('_b')), false);
});
