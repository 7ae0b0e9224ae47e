'use strict';
/**
 * Which declarations get code that the interpreter could run. The patched `Lean.compileDecls` asks
 * here first.
 *
 * A proof needs no compiled code. The library's modules come without the code that its compiler
 * would inline, so much of what is right cannot be compiled here: that is no error of the
 * declaration, and is said where somebody wants to run it.
 *
 * Code of generated declarations is run by whoever writes `Lean.reduceNat` or has a constant
 * evaluated. So while generated text is elaborated all but plain data is passed over as if it had
 * been compiled. Plain data has to be: tactics evaluate their configurations.
 */
const { createLookup } = require('./lookup.js');

const MODE = {
  all: 0, // compile what can be
  data: 1, // compile plain data only
};
const EXPR = { bvar: 0, sort: 3, const: 4, app: 5, let: 8, lit: 9, mdata: 10, proj: 11 };
const INFO = { def: 1, inductive: 5, constructor: 6 };
const CORE_STATE_ENV = 0;
const AXIOM = 0; // tag of ConstantInfo

// What Lean says of something without code, and what the names of code end in.
const LACKING = [/^Unknown constant `(.+)`$/, /depends on declaration '(.+)', which has no executable code/];
const CODE_NAMES = /(\._(redArg|boxed|lam_\d+|closed_\d+|lambda_\d+|unsafe_rec|spec_\d+))+$/;
// What commands like `#eval` and `run_cmd` run, and what `elab` and its like define, is in declarations of such names.
const RUN = /(^|\.)_eval(\.|$)/;
const DEFINES_ELABORATOR = /(^|\.)«?_aux_/;
const MAX_NODES = 20000; // a configuration has some dozens, a quoted tactic some hundreds

// Functions that may be applied in data: arithmetic of natural numbers, as in `2 ^ 20`, and what
// quoted syntax is put together with (a tactic given as the default of a parameter).
const FUNCTIONS = new Set([
  'Inhabited.default', 'OfNat.ofNat', 'instOfNatNat', 'instOfNat', 'HAdd.hAdd', 'HSub.hSub', 'HMul.hMul', 'HPow.hPow',
  'instHAdd', 'instHSub', 'instHMul', 'instHPow', 'instPowNat', 'instNatPowNat',
  'Array.empty', 'Array.push', 'Lean.mkAtom', 'String.toRawSubstring', 'Lean.Name.mkStr', 'Lean.Name.mkNum',
  ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `Lean.Name.mkStr${n}`),
]);

function createCodegen(host, heap, { call, truth }, names, messages) {
  const { box, isBox, inc, dec, field, tag, readArray } = heap;
  const { find, isImported } = createLookup(heap, { call, truth });
  let mode = MODE.all;
  let compiling = false;
  let lacking = []; // of the command that is elaborated: { name, why } of what has no code
  const lackedBy = new Map(); // of all that was elaborated: what of the library a name was not compiled for

  /** What kind of ConstantInfo a borrowed name has, or -1. */
  function kindOf(env, name) {
    const info = find(env, name);
    if (!info) return -1;
    const kind = tag(info);
    dec(info);
    return kind;
  }

  /** Whether a name is a field of a structure; methods of classes are functions in disguise. */
  function isField(env, name) {
    const result = call('l_Lean_Environment_getProjectionFnInfo_x3f', inc(env), inc(name));
    const found = !isBox(result) && heap.scalar8(field(result, 0), 0) === 0;
    dec(result);
    return found;
  }

  /** May this constant stand in data? If it is not applied, it may be anything imported. */
  function mayStand(env, name, applied) {
    const kind = kindOf(env, name);
    if (kind === INFO.constructor || kind === INFO.inductive) return true;
    return isImported(env, name) && (!applied || FUNCTIONS.has(names.show(name)) || isField(env, name));
  }

  /** Whether a borrowed expression is made of constructors, literals and types. */
  function isData(env, root) {
    const pending = [[root, false]];
    for (let count = 0; pending.length > 0; count += 1) {
      if (count > MAX_NODES) return false;
      const [e, applied] = pending.pop();
      switch (tag(e)) {
        case EXPR.lit: case EXPR.sort: break;
        case EXPR.bvar: // only `let` binds here, so it stands for data
          if (applied) return false;
          break;
        case EXPR.let: pending.push([field(e, 2), false], [field(e, 3), applied]); break;
        case EXPR.mdata: pending.push([field(e, 1), applied]); break;
        case EXPR.proj: pending.push([field(e, 2), false]); break;
        case EXPR.app: pending.push([field(e, 0), true], [field(e, 1), false]); break;
        case EXPR.const:
          if (!mayStand(env, field(e, 0), applied)) return false;
          break;
        default: return false;
      }
    }
    return true;
  }

  function declaresData(env, name) {
    const info = find(env, name);
    if (!info) return false;
    const plain = tag(info) === INFO.def && isData(env, field(field(info, 0), 1));
    dec(info);
    return plain;
  }

  /**
   * Called by `Lean.compileDecls` with its arguments: gives whether errors are to be logged, and
   * it goes on, or an owned result that it returns at once (then the arguments are ours).
   */
  function decide(declarations, logErrors, context, coreRef) {
    if (compiling) return logErrors;
    if (mode === MODE.all) return attempt(declarations, context, coreRef);
    const env = field(heap.refValue(coreRef), CORE_STATE_ENV);
    if (readArray(declarations).every((name) => declaresData(env, name))) return logErrors;
    for (const argument of [declarations, context, coreRef]) dec(argument);
    return heap.constructor(0, [box(0)]);
  }

  /** Compiles, and remembers what cannot be. Only an interruption goes on to the caller. */
  function attempt(declarations, context, coreRef) {
    const shown = readArray(declarations).map(names.show);
    const env = () => field(heap.refValue(coreRef), CORE_STATE_ENV);
    inc(coreRef);
    compiling = true;
    let result;
    try {
      result = call('l_Lean_compileDecls', declarations, box(1), context, coreRef);
    } finally {
      compiling = false;
    }
    const failed = tag(result) !== 0;
    if (failed) {
      const why = reason(env(), field(result, 0));
      for (const name of shown) {
        lacking.push({ name, why });
        lackedBy.set(name, why.missing); // of a name defined anew the last word counts
      }
    } else {
      for (const name of shown) lackedBy.delete(name);
    }
    dec(coreRef);
    if (!failed || messages.isInternal(field(result, 0))) return result;
    dec(result);
    return heap.constructor(0, [box(0)]);
  }

  /** Why a borrowed exception says that there is no code: { missing } if it is for want of code in the library, or { error }. */
  function reason(env, exception) {
    const error = messages.ofException(exception);
    const missing = LACKING.map((pattern) => error.match(pattern)?.[1]).find((name) => name !== undefined);
    if (missing === undefined) return { error };
    const name = names.parse(missing);
    const info = find(env, name);
    // Without code anywhere: Lean's own words are right.
    const nowhere = info && (tag(info) === AXIOM || truth('l_Lean_isNoncomputable', inc(env), inc(name)));
    if (info) dec(info);
    dec(name);
    if (nowhere) return { error };
    const shown = names.userText(missing).replace(CODE_NAMES, '');
    return { missing: lackedBy.get(shown) ?? shown };
  }

  /** What is to be said of a command, now that it is elaborated: { severity, text }. */
  function remarks() {
    const found = lacking;
    lacking = [];
    const told = found.filter(({ name }) => RUN.test(name) || DEFINES_ELABORATOR.test(name));
    return told.slice(0, 1).map(({ name, why }) => {
      if (why.error !== undefined) return { severity: 'error', text: why.error };
      const what = RUN.test(name) ? 'this is not run' : 'what this defines cannot be run';
      return { severity: 'warning', text: `${what}: the bundled Lean has no code for ${why.missing}` };
    });
  }

  host.exports.treewright_gate_code_generation(host.addFunction(decide, 'iiiii'));

  /** Runs body in a mode. */
  function during(wanted, body) {
    const before = mode;
    mode = wanted;
    try {
      return body();
    } finally {
      mode = before;
    }
  }

  return { during, remarks, MODE };
}

module.exports = { createCodegen };
