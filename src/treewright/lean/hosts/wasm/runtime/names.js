'use strict';
/** Lean names: made from text, read as text. */

const SMALL_DIGITS = 9; // so many fit into a scalar

function createNames(heap, { call, raw }) {
  const persistent = new Map(); // address -> text, for names that live for ever

  const natural = (digits) => heap.withCString(digits, (address) => raw('lean_cstr_to_nat')(address) >>> 0);

  /** A name from its components; a number, a BigInt if it is large, is a numeric component. */
  function make(components) {
    let name = heap.box(0);
    for (const part of components) {
      name = typeof part === 'string'
        ? call('l_Lean_Name_str___override', name, heap.string(part))
        : call('l_Lean_Name_num___override', name, natural(String(part)));
    }
    return name;
  }

  /** A name from dotted text; «…» keeps dots inside a component. */
  function parse(text) {
    const parts = text.match(/«[^»]*»|[^.]+/g) || [];
    return make(parts.map((p) => (p.startsWith('«') ? p.slice(1, -1) : /^\d+$/.test(p) ? numeric(p) : p)));
  }

  /** A number in the form that `components` has: exact, whatever its size. */
  const numeric = (digits) => (digits.length <= SMALL_DIGITS ? Number(digits) : BigInt(digits));
  const numberOf = (o) => (heap.isBox(o) ? numeric(String(heap.unbox(o))) : numeric(heap.takeString(call('l_Nat_reprFast', heap.inc(o)))));

  /** The components of a borrowed name, outermost first. */
  function components(name) {
    const parts = [];
    for (; !heap.isBox(name); name = heap.field(name, 0)) {
      const last = heap.field(name, 1);
      parts.push(heap.tag(name) === 1 ? heap.readString(last) : numberOf(last));
    }
    return parts.reverse();
  }

  /** A borrowed name as Lean shows it. */
  function show(name) {
    if (heap.isBox(name)) return '';
    const known = persistent.get(name);
    if (known !== undefined) return known;
    const text = heap.takeString(call('l_Lean_Name_toString', heap.inc(name), heap.box(1)));
    if (heap.isPersistent(name)) persistent.set(name, text);
    return text;
  }

  /** A shown name without the prefix of a private one. */
  const userText = (shown) => shown.replace(/^_private\.(?:.*?)\.0\./, '');

  /** A borrowed name as its author wrote it. */
  const showUser = (name) => userText(show(name));

  const keyOf = (parts) => parts.map((p) => (typeof p === 'string' ? `${p.length}:${p}` : `#${p}`)).join('');

  /** An unambiguous key of a borrowed name: all of it. */
  const key = (name) => keyOf(components(name));

  /** The same for a bound variable, without what hygiene added to its name. */
  function binderKey(name) {
    const parts = components(name);
    const scope = parts.indexOf('_@');
    return keyOf(scope < 0 ? parts : parts.slice(0, scope));
  }

  /** A borrowed name as data: its components, numbers as { num: digits }. */
  const toData = (name) => components(name).map((p) => (typeof p === 'string' ? p : { num: String(p) }));

  /** The name (owned) that `toData` gave. */
  const fromData = (parts) => make(parts.map((p) => (typeof p === 'string' ? p : numeric(p.num))));

  /** Forgets what was remembered of names, for when the memory they are in is put back. */
  const forget = () => persistent.clear();

  /** Whether hygiene made the name, so that no text can refer to it. */
  const isInaccessible = (name) => components(name).includes('_@');

  return { make, parse, components, show, userText, showUser, key, binderKey, toData, fromData, forget, isInaccessible };
}

module.exports = { createNames };
