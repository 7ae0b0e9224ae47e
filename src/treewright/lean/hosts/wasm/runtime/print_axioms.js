'use strict';
/**
 * `#print axioms`, as far as this Lean can tell. The library's theorems are here without their proofs,
 * and Lean's own command would call each of them an axiom. This one stands in front of it: what a
 * declaration rests on is followed to the library's theorems, and that they end it is said.
 */
const { COMMAND_STATE, SCOPE } = require('./elaborator.js');

const KIND = ['Lean', 'Parser', 'Command', 'printAxioms'];
const PRINT_KIND = ['Lean', 'Parser', 'Command', 'print'];
const NODE = { info: 0, kind: 1, args: 2 };
const TAG = { node: 1, atom: 2 };
const IDENTIFIER_NAME = 2; // field of an identifier
const UNSEEN = 'those of the library\'s theorems, which the bundled Lean has without their proofs';

function createPrintAxioms(heap, calls, names, environment) {
  const { inc, dec, field, readArray, readList, constructor } = heap;
  const { call } = calls;

  /** What a borrowed name rests on: the axioms' shown names, and whether library theorems are among it. */
  function axiomsOf(env, root) {
    const axioms = new Set();
    let unseen = false;
    const seen = new Set();
    const pending = [inc(root)];
    while (pending.length > 0) {
      const name = pending.pop();
      const shown = names.show(name);
      const info = seen.has(shown) ? 0 : environment.find(env, name);
      seen.add(shown);
      if (info) {
        const kind = environment.KINDS[heap.tag(info)];
        const declared = kind === 'axiom' && environment.isImported(env, name) ? environment.originalKind(env, name) : kind;
        if (declared === 'axiom') axioms.add(shown);
        else if (kind === 'axiom') unseen = true;
        environment.eachDependency(info, (n) => pending.push(inc(n)));
        dec(info);
      }
      dec(name);
    }
    return { axioms: [...axioms].sort(), unseen };
  }

  function sentence(env, name) {
    const { axioms, unseen } = axiomsOf(env, name);
    const listed = `depends on axioms: [${axioms.map(names.userText).join(', ')}]`;
    const said = axioms.length > 0
      ? `${listed}${unseen ? ` and on ${UNSEEN}` : ''}`
      : unseen ? `depends on no axioms but ${UNSEEN}` : 'does not depend on any axioms';
    return `'${names.showUser(name)}' ${said}`;
  }

  /** The names (borrowed from `resolved`) that an identifier may stand for. */
  function candidates(state, identifier) {
    const scope = field(field(state, COMMAND_STATE.scopes), 0);
    const resolved = call(
      'l_Lean_ResolveName_resolveGlobalName', inc(field(state, COMMAND_STATE.env)), inc(field(scope, SCOPE.opts)),
      inc(field(scope, SCOPE.currNamespace)), inc(field(scope, SCOPE.openDecls)), inc(field(identifier, IDENTIFIER_NAME)),
    );
    const found = readList(resolved).filter((pair) => heap.isBox(field(pair, 1))).map((pair) => field(pair, 0));
    return { found, resolved };
  }

  /** `#print "text"` where `#print axioms …` stands. */
  function printed(command, text) {
    const [token] = readArray(field(command, NODE.args));
    const node = (kind, args) => constructor(TAG.node, [inc(field(command, NODE.info)), names.make(kind), heap.array(args)]);
    const atom = constructor(TAG.atom, [inc(field(token, 0)), heap.string(JSON.stringify(text))]);
    return node(PRINT_KIND, [inc(token), node(['str'], [atom])]);
  }

  const elaborate = heap.closure((command, context, ref, world) => {
    const state = inc(heap.refValue(ref >>> 0));
    const env = field(state, COMMAND_STATE.env);
    const identifier = readArray(field(command, NODE.args))[2];
    const { found, resolved } = candidates(state, identifier);
    const text = found.map((name) => sentence(env, name)).join('\n');
    dec(resolved);
    dec(state);
    const own = (name, stx) => calls.raw(name)(stx, context, ref, world) >>> 0;
    if (text === '') return own('l_Lean_Elab_Command_elabPrintAxioms', command);
    const instead = printed(command, text);
    dec(command);
    return own('l_Lean_Elab_Command_elabCommand', instead);
  }, 4);

  calls.run(
    'l_Lean_KeyedDeclsAttribute_addBuiltin___redArg', inc(heap.global('l_Lean_Elab_Command_commandElabAttribute')),
    names.make(KIND), names.make(['treewright', 'printAxioms']), elaborate.object,
  );
}

module.exports = { createPrintAxioms };
