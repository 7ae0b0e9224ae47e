'use strict';
/**
 * Rulings on data that other processes hand over: of one that has read a candidate, and of one that has
 * read the original. This process has read no text at all, so that no code of anybody's has run in its
 * memory; it has imported the library. Nothing of the data is run. It is decoded, compared, audited, and
 * given to the kernel on the bare library. What a project's modules declare is part of the data, like the
 * text's own.
 */
const { createArena, DataError, EXPR, LEVEL } = require('./arena.js');
const { createAudit, nameOf, termsOf, RUNS_CODE } = require('./audit.js');
const { createBuilder } = require('./building.js');
const { createComparison, indexOf } = require('./meaning.js');
const { KernelRefusal } = require('./kernel.js');
const { createHardening, Suspicion } = require('./hardening.js');
const { Refusal } = require('./refusal.js');

const LIMITS = {
  items: 4e6, digits: 1e6, text: 1e6, levels: 1000, levelSize: 2000, declarations: 1e5, depth: 20000,
};

// The kernel computes with these by name. What an original does not import, a candidate could declare.
const KERNEL_NAMES = [
  'Nat', 'Nat.zero', 'Nat.succ', 'Nat.rec', 'Nat.add', 'Nat.sub', 'Nat.mul', 'Nat.div', 'Nat.mod', 'Nat.gcd', 'Nat.beq', 'Nat.ble',
  'Nat.land', 'Nat.lor', 'Nat.xor', 'Nat.shiftLeft', 'Nat.shiftRight', 'Nat.pow', 'Nat.log2', 'Bool', 'Bool.true', 'Bool.false',
  'String', 'String.ofList', 'Char', 'Char.ofNat', 'List', 'List.nil', 'List.cons', 'Eq', 'Eq.refl', 'Quot', 'Quot.mk', 'Quot.lift',
  'Quot.ind', 'sorryAx', 'eagerReduce', ...RUNS_CODE,
];

function createJudge(heap, calls, names, environment, declarations, kernel) {
  const { inc, dec } = heap;
  const auditor = createAudit(heap, calls, names, environment);

  /**
   *   base          the environment of the library that the original imports (borrowed)
   *   original      what the original declares, as data; `implemented`: which of it has another implementation
   *   targets       what is to be proved: names as lists of components, or as text if nothing is compared
   *   stated        what the candidate must declare as the original does, besides the targets; null if
   *                 there is nothing to compare with
   *   allowed       the axioms a proof may rest on
   *   separately    whether each target gets a ruling of its own
   * Returns rulings { reason, detail, names, axioms, filled, constants }.
   */
  function judge(base, { targets, separately, stated, ...request }) {
    let matter = null;
    const early = ruling(() => {
      matter = prepare(base, { ...request, compared: stated === null ? [] : [...targets, ...stated] });
      return {};
    });
    const groups = separately ? targets.map((target) => [target]) : [targets];
    return groups.map((group) => (matter === null ? early : ruling(() => decide(matter, group))));
  }

  function ruling(work) {
    const nothing = { detail: '', names: [], axioms: [], filled: [], constants: 0 };
    try {
      return { ...nothing, reason: 'proved', ...work() };
    } catch (error) {
      const refused = (reason) => ({ ...nothing, reason, detail: error.message, axioms: error.axioms || [] });
      if (error instanceof Refusal) return refused(error.reason);
      if (error instanceof DataError) return refused('data');
      if (error instanceof KernelRefusal) return refused(error.fault || 'kernel');
      if (error instanceof Suspicion) return refused('kernel');
      throw error;
    }
  }

  /** Decodes the data and compares it with the original. */
  function prepare(base, { data, original: stated, implemented, compared, allowed }) {
    const arena = createArena();
    const builder = createBuilder(heap, calls, arena);
    const bareBase = kernel.bare(base);
    const everything = new Set(compared.map(arena.nameOf));
    const imports = createImports(builder, bareBase);
    refuseFewImports(arena, imports);
    const given = arena.decode(data, LIMITS);
    refuseComputedUniverses(arena, given);
    const candidate = indexOf(given);
    const meant = arena.decode(stated, LIMITS);
    const original = indexOf(meant);
    const environmentOf = (list) => () => kernel.wrap(list.reduce((soFar, d) => addIfPossible(soFar, d, builder), inc(bareBase)));
    const isProof = createProofTest(arena, builder, { original: environmentOf(meant), candidate: environmentOf(given) });
    const comparison = createComparison(arena, original, candidate, {
      isImported: imports.has, isOwn: (name) => everything.has(name), isProof,
    });
    const plain = (name) => comparison.userComponents(name).map((p) => (typeof p === 'string' ? p : p.num)).join('.');
    const elsewhere = new Set(implemented.map(arena.nameOf));
    const matter = { base, bareBase, arena, builder, candidate, original, elsewhere, everything, imports, comparison, allowed, plain };
    for (const name of everything) compareOne(name, matter);
    return matter;
  }

  function decide(matter, targets) {
    const { arena, bareBase, builder, comparison, plain } = matter;
    const asked = targets.map((name) => (typeof name === 'string' ? declared(name, matter) : arena.nameOf(name)));
    const rests = auditor.closure(matter, asked);
    const axioms = auditor.audit(matter, rests);
    const checked = rests.declarations.reduce((soFar, declaration) => naming(
      plain(nameOf(declaration)), () => kernel.add(soFar, builder.declaration(declaration)),
    ), inc(bareBase));
    harden(matter, rests.declarations, checked);
    for (const name of asked) {
      if (!kernel.find(checked, builder.name(name))) throw new Refusal('kernel', `the kernel has no ${plain(name)}`);
    }
    return {
      names: asked.map(plain), axioms, filled: [...comparison.filled].map(plain).sort(), constants: rests.declarations.length,
    };
  }

  /** The name that a text gives, or that name private to the candidate. */
  function declared(text, { base, arena, candidate }) {
    const plain = names.parse(text);
    const forms = [plain, calls.call('l_Lean_mkPrivateName', inc(base), inc(plain))].map((name) => arena.nameOf(names.toData(name)));
    const found = forms.find((name) => candidate.has(name));
    if (found === undefined) throw new Refusal('missing', `${text} is not declared`);
    return found;
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
  function harden({ arena, builder, plain }, list, checked) {
    const whole = kernel.wrap(checked);
    const isProof = createProofTest(arena, builder, { whole: () => whole });
    const typeIn = (kernelEnv, name) => {
      const info = kernel.find(kernelEnv, builder.name(name));
      return info ? declarations.readTerm(arena, environment.typeOf(info)) : -1;
    };
    const sortOf = (name) => {
      const type = typeIn(checked, name);
      return type < 0 ? null : universe(arena, type);
    };
    const checkInductive = ({ types }) => {
      for (const { name, type } of types.flatMap((t) => [t, ...t.constructors])) {
        if (typeIn(checked, name) !== type) throw new Suspicion(`the kernel has another ${plain(name)}`);
        dec(kernel.check(whole, builder.expr(type)));
      }
    };
    const { checkProjections } = createHardening(arena, sortOf, (binders, e) => isProof('whole', binders, e));
    for (const declaration of list) {
      naming(plain(nameOf(declaration)), () => {
        if (declaration.kind === 'inductive') checkInductive(declaration);
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
  function createImports(builder, bareBase) {
    const known = new Map();
    const has = (name) => {
      if (!known.has(name)) known.set(name, kernel.find(bareBase, builder.name(name)) !== 0);
      return known.get(name);
    };
    return { has };
  }

  function refuseFewImports(arena, imports) {
    const missing = KERNEL_NAMES.find((name) => !imports.has(arena.nameOf(name.split('.'))));
    if (missing) throw new Refusal('original', `the original imports less than Init: ${missing} is missing, with which the kernel computes`);
  }

  /** The universe an inductive type is in, as it is written: a level, or null if it would have to be computed. */
  function universe(arena, type) {
    let at = type;
    while (arena.exprs[at][0] === EXPR.forall) [, , , at] = arena.exprs[at];
    return arena.exprs[at][0] === EXPR.sort ? arena.exprs[at][1] : null;
  }

  /** See hardening.js. */
  function refuseComputedUniverses(arena, given) {
    for (const { name, type } of given.flatMap((d) => (d.kind === 'inductive' ? d.types : []))) {
      if (universe(arena, type) === null) throw new Refusal('kernel', `${arena.showName(name)} is in a universe that is not written down`);
    }
  }

  function compareOne(name, { candidate, comparison, plain }) {
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

  return { judge };
}

module.exports = { createJudge };
