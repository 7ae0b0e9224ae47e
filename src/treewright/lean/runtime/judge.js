'use strict';
/**
 * The verdict on data that another process hands over, one that has read a candidate. This process
 * has not: it has imported the libraries and elaborated the original. Nothing of the data is run. It
 * is decoded, compared with the original, audited, and given to the kernel on the bare imports.
 */
const { createArena, DataError, EXPR, LEVEL } = require('./arena.js');
const { createBuilder } = require('./building.js');
const { createComparison, indexOf } = require('./meaning.js');
const { KernelRefusal } = require('./kernel.js');
const { createHardening, Suspicion } = require('./hardening.js');

const LIMITS = { items: 4e6, digits: 1e6, text: 1e6, levels: 1000, declarations: 1e5, depth: 20000 };

// Constants with which the kernel runs compiled code, and what is believed because code was run.
const RUNS_CODE = ['Lean.reduceBool', 'Lean.reduceNat', 'Lean.ofReduceBool', 'Lean.ofReduceNat', 'Lean.trustCompiler'];
// The kernel computes with these by name: a text may not declare them, nor anything below them, itself.
const KERNEL_TYPES = ['Nat', 'String', 'Char', 'List', 'Eq', 'Quot', 'Bool', 'Lean', 'Array', 'Int', 'sorryAx'];

class Refusal extends Error {
  constructor(reason, detail, axioms = []) {
    super(detail);
    this.reason = reason;
    this.axioms = axioms;
  }
}

function createJudge(heap, calls, names, environment, declarations, kernel) {
  const { inc, dec, tag } = heap;
  const innocent = new Map(); // allowed axioms -> shown names of imported constants that lead to no others

  /**
   *   env, base    the original's environment and that of its imports (borrowed)
   *   targets      what is to be proved: names as lists of components, or as text if nothing is compared
   *   stated       what the candidate must declare as the original does
   *   allowed      the axioms a proof may rest on
   * Returns { reason, detail, names, axioms, filled, constants }.
   */
  function judge(env, base, request) {
    const nothing = { detail: '', names: [], axioms: [], filled: [], constants: 0 };
    try {
      return { ...nothing, reason: 'proved', ...decide(env, base, request) };
    } catch (error) {
      if (error instanceof Refusal) return { ...nothing, reason: error.reason, detail: error.message, axioms: error.axioms };
      if (error instanceof Suspicion) return { ...nothing, reason: 'kernel', detail: error.message };
      if (error instanceof DataError) return { ...nothing, reason: 'data', detail: error.message };
      if (error instanceof KernelRefusal) return { ...nothing, reason: error.fault || 'kernel', detail: error.message };
      throw error;
    }
  }

  function decide(env, base, { data, targets, stated, allowed }) {
    const arena = createArena();
    const builder = createBuilder(heap, calls, arena);
    const bareBase = kernel.bare(base);
    const everything = stated.map(arena.nameOf);
    const given = arena.decode(data, LIMITS);
    const candidate = indexOf(given);
    const asked = targets.map((name) => (typeof name === 'string' ? declared(name, base, arena, candidate) : arena.nameOf(name)));
    const original = indexOf(declarations.collect(env, arena, [], everything.map(builder.name)).declarations);
    const imports = createImports(arena, builder, bareBase);
    refuseKernelNames(arena, candidate, imports);

    const isProof = createProofTest(arena, builder, {
      original: () => env,
      candidate: () => kernel.wrap(given.reduce((soFar, d) => addIfPossible(soFar, d, builder), inc(bareBase))),
    });
    const comparison = createComparison(arena, original, candidate, imports.has, isProof);
    const plain = (name) => comparison.userComponents(name).map((p) => (typeof p === 'string' ? p : p.num)).join('.');
    for (const name of everything) compareOne(name, candidate, comparison, plain);

    const rests = closure(arena, candidate, imports, asked, plain);
    const axioms = audit(env, base, rests, { arena, builder, original, comparison, allowed, plain });
    const checked = addAll(rests.declarations, inc(bareBase), builder, plain);
    harden(arena, builder, rests.declarations, candidate, bareBase, checked, plain);
    for (const name of asked) {
      if (!kernel.find(checked, builder.name(name))) throw new Refusal('kernel', `the kernel has no ${plain(name)}`);
    }
    return {
      names: asked.map(plain), axioms, filled: [...comparison.filled].map(plain).sort(), constants: rests.declarations.length,
    };
  }

  /** The name that a text gives, or that name private to the candidate. */
  function declared(text, base, arena, candidate) {
    const plain = names.parse(text);
    const forms = [plain, calls.call('l_Lean_mkPrivateName', inc(base), inc(plain))].map((name) => arena.nameOf(names.toData(name)));
    const found = forms.find((name) => candidate.has(name));
    if (found === undefined) throw new Refusal('missing', `${text} is not declared`);
    return found;
  }

  const nameOf = (d) => (d.kind === 'inductive' ? d.types[0].name : d.name);

  /** Everything the targets rest on, through the kernel, on a kernel environment (taken). */
  function addAll(list, environmentSoFar, builder, plain) {
    return list.reduce((soFar, declaration) => naming(
      plain(nameOf(declaration)), () => kernel.add(soFar, builder.declaration(declaration)),
    ), environmentSoFar);
  }

  /** Runs work; what is refused then says which declaration it is about. */
  function naming(name, work) {
    try {
      return work();
    } catch (error) {
      if (error instanceof KernelRefusal || error instanceof Suspicion) error.message = `${name}: ${error.message}`;
      throw error;
    }
  }

  /** See hardening.js. `checked` has everything that `list` declares. */
  function harden(arena, builder, list, candidate, bareBase, checked, plain) {
    const whole = kernel.wrap(checked);
    const isProof = createProofTest(arena, builder, { whole: () => whole });
    const resultSort = (e) => {
      let at = e;
      while (arena.exprs[at][0] === EXPR.forall) [, , , at] = arena.exprs[at];
      return arena.exprs[at][0] === EXPR.sort ? arena.exprs[at][1] : null;
    };
    const sortOf = (name) => {
      const own = candidate.get(name);
      if (own) return own.part === 'type' ? resultSort(own.declaration.types.find((t) => t.name === name).type) : null;
      const info = kernel.find(bareBase, builder.name(name));
      return info ? resultSort(declarations.readTerm(arena, environment.typeOf(info))) : null;
    };
    const { checkProjections } = createHardening(arena, sortOf, (binders, e) => isProof('whole', binders, e));
    for (const declaration of list) {
      naming(plain(nameOf(declaration)), () => {
        if (declaration.kind === 'inductive') for (const e of termsOf(declaration)) dec(kernel.check(whole, builder.expr(e)));
        checkProjections(termsOf(declaration));
      });
    }
  }

  /** Adds what the kernel takes; the rest is not part of what is being proved. */
  function addIfPossible(soFar, declaration, builder) {
    try {
      return kernel.add(inc(soFar), builder.declaration(declaration));
    } catch (error) {
      if (error instanceof KernelRefusal && !error.fault) return soFar;
      throw error;
    }
  }

  /** Which constants the original and the candidate have from the imports. */
  function createImports(arena, builder, bareBase) {
    const known = new Map();
    const has = (name) => {
      if (!known.has(name)) known.set(name, kernel.find(bareBase, builder.name(name)) !== 0);
      return known.get(name);
    };
    return { has };
  }

  function refuseKernelNames(arena, candidate, imports) {
    const missing = new Set(KERNEL_TYPES.filter((root) => !imports.has(arena.nameOf([root]))));
    for (const name of candidate.keys()) {
      const [root] = arena.components(name);
      if (missing.has(root)) throw new Refusal('kernel', `${arena.showName(name)} may be declared by the library only`);
    }
  }

  function compareOne(name, candidate, comparison, plain) {
    if (comparison.sameConstant(name, name)) return;
    if (!candidate.has(name)) throw new Refusal('missing', `${plain(name)} is not declared any more`);
    const cause = comparison.different();
    const why = cause === name ? '' : `: ${plain(cause)}, which it mentions, is not the original's`;
    throw new Refusal('statement', `${plain(name)} says something else now${why}`);
  }

  /** Whether a term, inside binders, proves a proposition: the kernel says so about the closed term. */
  function createProofTest(arena, builder, environments) {
    const prop = arena.expr(EXPR.sort, arena.level(LEVEL.zero));
    const made = {};
    return (side, binders, e) => {
      made[side] ??= environments[side]();
      const closed = binders.reduceRight((body, { type, value }) => (value === undefined
        ? arena.expr(EXPR.lam, 0, type, body) : arena.expr(EXPR.let, type, value, body)), e);
      if (arena.loose[closed] > 0) return false;
      try {
        const type = kernel.check(made[side], builder.expr(closed));
        return kernel.isDefEq(made[side], kernel.check(made[side], type), builder.expr(prop));
      } catch (error) {
        if (error instanceof KernelRefusal && !error.fault) return false;
        throw error;
      }
    };
  }

  /** What the targets rest on: { declarations } in the order they were given, { imported } names. */
  function closure(arena, candidate, imports, targets, plain) {
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

  const termsOf = (d) => (d.kind === 'inductive'
    ? d.types.flatMap((t) => [t.type, ...t.constructors.map((c) => c.type)])
    : [d.type, ...(d.value === null ? [] : [d.value])]);

  /** The axioms that the targets rest on, all of them allowed; a Refusal otherwise. */
  function audit(env, base, rests, { arena, builder, original, comparison, allowed, plain }) {
    const permitted = new Set(allowed);
    const found = new Set();
    const shown = [...rests.imported].map((n) => names.show(builder.name(n)));
    if (shown.includes('sorryAx')) throw new Refusal('sorry', 'it rests on sorry');
    for (const name of shown) if (RUNS_CODE.includes(name)) throw new Refusal('unsafe', `it rests on ${name}, which runs compiled code`);
    for (const declaration of rests.declarations) {
      const name = nameOf(declaration);
      if (declaration.unsafe) throw new Refusal('unsafe', `it rests on ${plain(name)}, which is unsafe`);
      if (declaration.kind === 'axiom') {
        if (!permitted.has(names.show(builder.name(name))) || !original.has(name)) throw new Refusal('axiom', `it rests on the axiom ${plain(name)}`, [plain(name)]);
        if (!comparison.sameConstant(name, name)) throw new Refusal('statement', `${plain(name)} says something else now`);
        found.add(plain(name));
      }
      if (declaration.kind === 'opaque' && !(original.has(name) && comparison.sameConstant(name, name))) {
        throw new Refusal('unsafe', `it rests on ${plain(name)}, which is opaque and not the original's`);
      }
      if (original.has(name) && isImplementedElsewhere(env, builder.name(name))) {
        throw new Refusal('unsafe', `it rests on ${plain(name)}, which has another implementation`);
      }
    }
    for (const axiom of reachableAxioms(base, rests.imported, builder, permitted)) found.add(axiom);
    return [...found].sort();
  }

  function isImplementedElsewhere(env, name) {
    const result = calls.call('l_Lean_Compiler_getImplementedBy_x3f', inc(env), inc(name));
    return !heap.isBox(result) || calls.truth('l_Lean_isExtern', inc(env), inc(name));
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

  return { judge };
}

module.exports = { createJudge };
