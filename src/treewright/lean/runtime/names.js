'use strict';
/** Lean names: made from text, read as text. */

function createNames(heap, { call }) {
  const persistent = new Map(); // address -> text, for names that live for ever

  /** A name from its components; a number is a numeric component. */
  function make(components) {
    let name = heap.box(0);
    for (const part of components) {
      name = typeof part === 'number'
        ? call('l_Lean_Name_num___override', name, heap.box(part))
        : call('l_Lean_Name_str___override', name, heap.string(part));
    }
    return name;
  }

  /** A name from dotted text; «…» keeps dots inside a component. */
  function parse(text) {
    const parts = text.match(/«[^»]*»|[^.]+/g) || [];
    return make(parts.map((p) => (p.startsWith('«') ? p.slice(1, -1) : /^\d+$/.test(p) ? Number(p) : p)));
  }

  /** The components of a borrowed name, outermost first. */
  function components(name) {
    const parts = [];
    for (; !heap.isBox(name); name = heap.field(name, 0)) {
      const last = heap.field(name, 1);
      parts.push(heap.tag(name) === 1 ? heap.readString(last) : heap.isBox(last) ? heap.unbox(last) : -1);
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

  /** A borrowed name as its author wrote it: a private one without its prefix. */
  const showUser = (name) => show(name).replace(/^_private\.(?:.*?)\.0\./, '');

  const keyOf = (parts) => parts.map((p) => (typeof p === 'number' ? `#${p}` : `${p.length}:${p}`)).join('');

  /** An unambiguous key of a borrowed name: all of it. */
  const key = (name) => keyOf(components(name));

  /** The same for a bound variable, without what hygiene added to its name. */
  function binderKey(name) {
    const parts = components(name);
    const scope = parts.indexOf('_@');
    return keyOf(scope < 0 ? parts : parts.slice(0, scope));
  }

  /** A borrowed name as data: its components, numbers as { num: digits }. */
  const toData = (name) => components(name).map((p) => (typeof p === 'number' ? { num: String(p) } : p));

  /** The name (owned) that `toData` gave. */
  const fromData = (parts) => make(parts.map((p) => (typeof p === 'string' ? p : Number(p.num))));

  /** Forgets what was remembered of names, for when the memory they are in is put back. */
  const forget = () => persistent.clear();

  /** Whether hygiene made the name, so that no text can refer to it. */
  const isInaccessible = (name) => components(name).includes('_@');

  return { make, parse, components, show, showUser, key, binderKey, toData, fromData, forget, isInaccessible };
}

module.exports = { createNames };
