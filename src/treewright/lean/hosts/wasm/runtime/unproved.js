'use strict';
/**
 * Which declarations of a text rest on `sorry`, by what they are made of and not by warnings.
 *
 * An `example` leaves no constant behind: of it there is only Lean's warning. So a text that turns
 * that off is read as one that turns it on.
 */
const { OPTION_KINDS } = require('./guard.js');

const SYNTAX = { atom: 2, ident: 3 };
const SORRY = 'sorryAx';
const OPTION = 'warn.sorry';
const VALUED = new Set([1, 2, 3]); // tags of ConstantInfo with a value: def, theorem, opaque

function createUnproved(heap, { call, truth }, names, terms, environment, syntax) {
  const { field, tag, inc, readArray } = heap;

  /** Changes a command that was just parsed, before it runs. */
  function warnAlways(command) {
    syntax.walk(command, ({ kind, stx }) => {
      if (!OPTION_KINDS.has(kind)) return;
      const parts = readArray(field(stx, 2)).filter((part) => !heap.isBox(part));
      const isOurs = parts.some((part) => tag(part) === SYNTAX.ident && names.show(field(part, 2)) === OPTION);
      if (isOurs) parts.filter((part) => tag(part) === SYNTAX.atom && heap.readString(field(part, 1)) === 'false')
        .forEach((part) => heap.setField(part, 1, heap.string('true')));
    });
  }

  /** The names of this session's constants that rest on sorry, their project's included. */
  function unproved(env) {
    const { found, release } = environment.sessionConstants(env);
    const users = new Map(); // shown name -> shown names of those that mention it
    const own = new Set(found.map(([shown]) => shown));
    const imported = new Map(); // shown name -> name, of what is not this session's
    for (const [shown, info] of found) {
      const visit = (name) => {
        const used = names.show(name);
        if (!users.has(used)) users.set(used, new Set());
        if (!own.has(used)) imported.set(used, name);
        users.get(used).add(shown);
      };
      terms.eachConstant(environment.typeOf(info), visit);
      if (VALUED.has(tag(info))) terms.eachConstant(field(field(info, 0), 1), visit);
    }
    const resting = new Set([SORRY]);
    for (const [used, name] of imported) {
      if (!environment.isLibrary(env, name) && environment.restsOn(env, name, SORRY, environment.isLibrary)) resting.add(used);
    }
    for (const name of resting) users.get(name)?.forEach((user) => resting.add(user));
    const open = found.filter(([shown]) => resting.has(shown));
    const plain = open.filter(([, , name]) => !truth('l_Lean_Name_isInternalDetail', call('l_Lean_privateToUserName', inc(name))));
    const list = (plain.length > 0 ? plain : open).map(([, , name]) => names.showUser(name));
    release();
    return [...new Set(list)].sort();
  }

  return { warnAlways, unproved };
}

module.exports = { createUnproved };
