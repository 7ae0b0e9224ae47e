'use strict';
/**
 * What targets rest on, and whether all of it may be rested on: no `sorry`, no axiom that is not
 * allowed, nothing unsafe, nothing that is implemented elsewhere, nothing that runs code. Imported
 * definitions are followed too, as far as the library shows them.
 */
const { Refusal } = require('./refusal.js');

// Constants with which the kernel runs compiled code, and what is believed because code was run.
const RUNS_CODE = ['Lean.reduceBool', 'Lean.reduceNat', 'Lean.ofReduceBool', 'Lean.ofReduceNat', 'Lean.trustCompiler'];

const nameOf = (d) => (d.kind === 'inductive' ? d.types[0].name : d.name);

const termsOf = (d) => (d.kind === 'inductive'
  ? d.types.flatMap((t) => [t.type, ...t.constructors.map((c) => c.type)])
  : [d.type, ...(d.value === null ? [] : [d.value])]);

function createAudit(heap, calls, names, environment) {
  const { inc, tag } = heap;
  const innocent = new Map(); // allowed axioms -> shown names of imported constants that lead to no others

  /** What the targets rest on: { declarations } in the order they were given, { imported } names. */
  function closure({ arena, candidate, imports, plain }, targets) {
    const needed = new Set();
    const imported = new Set();
    const seen = new Set();
    const stack = [...targets];
    while (stack.length > 0) {
      const name = stack.pop();
      if (seen.has(name)) continue;
      seen.add(name);
      if (imports.has(name)) {
        imported.add(name);
        continue;
      }
      const entry = candidate.get(name) || candidate.get(recursorParent(arena, name));
      if (!entry) throw new Refusal('missing', `it rests on ${plain(name)}, which is not declared`);
      const { declaration } = entry;
      if (needed.has(declaration)) continue;
      needed.add(declaration);
      if (declaration.kind === 'theorem' && declaration.value === null) throw new Refusal('data', `${plain(name)} came without its proof`);
      for (const constant of arena.constantsOf(termsOf(declaration))) stack.push(constant);
    }
    const inOrder = [...new Set([...candidate.values()].map((entry) => entry.declaration))].filter((d) => needed.has(d));
    return { declarations: inOrder, imported };
  }

  const recursorParent = (arena, name) => (name !== 0 && /^rec(_\d+)?$/.test(arena.names[name][1]) ? arena.names[name][0] : -1);

  /** The axioms that the targets rest on, all of them allowed; a Refusal otherwise. */
  function audit(matter, rests) {
    const { base, builder, original, elsewhere, comparison, allowed, plain } = matter;
    const permitted = new Set(allowed);
    const found = new Set();
    const outside = new Set();
    const shown = [...rests.imported].map((n) => names.show(builder.name(n)));
    if (shown.includes('sorryAx')) throw new Refusal('sorry', `it rests on ${whoseSorry(matter, rests)}`);
    for (const name of shown) if (RUNS_CODE.includes(name)) throw new Refusal('unsafe', `it rests on ${name}, which runs compiled code`);
    for (const declaration of rests.declarations) {
      const name = nameOf(declaration);
      if (declaration.unsafe) throw new Refusal('unsafe', `it rests on ${plain(name)}, which is unsafe`);
      if (declaration.kind === 'axiom') {
        const isPermitted = permitted.has(names.show(builder.name(name))) && original.has(name);
        (isPermitted ? found : outside).add(plain(name));
        if (isPermitted && !comparison.sameConstant(name, name)) throw new Refusal('statement', `${plain(name)} says something else now`);
      }
      if (declaration.kind === 'opaque' && !(original.has(name) && comparison.sameConstant(name, name))) {
        throw new Refusal('unsafe', `it rests on ${plain(name)}, which is opaque and not the original's`);
      }
      if (elsewhere.has(name)) {
        throw new Refusal('unsafe', `it rests on ${plain(name)}, which has another implementation`);
      }
    }
    if (outside.size > 0) {
      const list = [...outside].sort();
      throw new Refusal('axiom', `it rests on ${list.length > 1 ? 'the axioms' : 'the axiom'} ${list.join(', ')}`, list);
    }
    for (const axiom of reachableAxioms(base, rests.imported, builder, permitted)) found.add(axiom);
    return [...found].sort();
  }

  /** Whose it is: declarations of the text, or else one that it imports. */
  function whoseSorry({ arena, everything, plain }, { declarations }) {
    const sorryAx = arena.nameOf(['sorryAx']);
    const left = declarations.filter((d) => arena.constantsOf(termsOf(d)).has(sorryAx)).map(nameOf);
    const own = left.filter((name) => everything.has(name)).map(plain);
    if (own.length > 0) return `the sorry of ${own.join(', ')}`;
    return left.length === 0 ? 'sorry' : `the sorry of ${plain(left[0])}, which is not in this text`;
  }

  /**
   * The axioms among imported constants that a proof mentions. What those rest on in turn is
   * followed as far as the library shows it (theorems come without their proofs) and must be allowed.
   */
  function reachableAxioms(base, imported, builder, permitted) {
    const key = [...permitted].sort().join();
    if (!innocent.has(key)) innocent.set(key, new Set());
    const known = innocent.get(key);
    const direct = [...imported].map(builder.name);
    const axioms = new Set();
    const reached = new Set();
    const stack = direct.map((name) => [name, true]);
    while (stack.length > 0) {
      const [name, isDirect] = stack.pop();
      const shown = names.show(name);
      if (!isDirect && (known.has(shown) || reached.has(shown))) continue;
      const explored = known.has(shown) || reached.has(shown);
      reached.add(shown);
      if (RUNS_CODE.includes(shown)) throw new Refusal('unsafe', `it rests on ${shown}, which runs compiled code`);
      const info = environment.find(base, name);
      if (!info) throw new Refusal('missing', `it rests on ${shown}, which is not declared`);
      if (tag(info) === 0 && environment.originalKind(base, name) === 'axiom') {
        if (!permitted.has(shown)) throw new Refusal(shown === 'sorryAx' ? 'sorry' : 'axiom', `it rests on the axiom ${shown}`, [shown]);
        if (isDirect) axioms.add(shown);
      }
      if (environment.isUnsafe(info) && isDirect) throw new Refusal('unsafe', `it rests on ${shown}, which is unsafe`);
      if (!explored) environment.eachDependency(info, (n) => stack.push([n, false]));
    }
    for (const shown of reached) known.add(shown);
    return axioms;
  }

  return { closure, audit };
}

module.exports = { createAudit, nameOf, termsOf, RUNS_CODE };
