'use strict';
/** Lean's kernel: adding declarations to a bare environment, and two questions about closed terms. */

// Lean.Kernel.Exception, in order; the last four say nothing about the declaration.
const REFUSALS = [
  'it mentions an unknown constant', 'its name is taken', 'its value has another type', 'it has metavariables',
  'it has free variables', 'what is applied is no function', 'a type is no type', 'a `let` has another type',
  'a term has another type than expected', 'an argument has another type', 'a projection is not valid',
  'a theorem must prove a proposition', 'other', 'a limit of the kernel was reached', 'it needs too much memory',
  'it is too deep', 'interrupted',
];
const OTHER = 12;
const FAULTS = { 13: 'timeout', 14: 'lost', 15: 'lost', 16: 'timeout' };

class KernelRefusal extends Error {
  constructor(message, fault) {
    super(message);
    this.fault = fault; // '' if it is a verdict
  }
}

function createKernel(heap, { call, raw }, watchdog) {
  const { inc, dec, field, tag, isBox } = heap;

  /** The bare kernel environment below a borrowed Lean.Environment. */
  const bare = (env) => call('lean_elab_environment_to_kernel_env', inc(env));

  /** A Lean.Environment around a borrowed kernel environment. */
  const wrap = (kernelEnv) => call('lean_elab_environment_of_kernel_env', inc(kernelEnv));

  /** The value of an Except Kernel.Exception (taken), or the exception as a KernelRefusal. */
  function unwrap(result) {
    const value = inc(field(result, 0));
    const failed = tag(result) === 0;
    dec(result);
    if (!failed) return value;
    const kind = isBox(value) ? heap.unbox(value) : tag(value);
    const text = kind === OTHER ? heap.readString(field(value, 0)).split('\n')[0].slice(0, 200) : REFUSALS[kind];
    dec(value);
    throw new KernelRefusal(text || 'refused', FAULTS[kind] || '');
  }

  /** Adds a declaration (taken) to a kernel environment (taken); the new one, or a KernelRefusal. */
  function add(kernelEnv, declaration) {
    const token = heap.some(inc(watchdog.token));
    const result = raw('lean_add_decl')(kernelEnv, 0, declaration, token) >>> 0;
    dec(declaration);
    dec(token);
    return unwrap(result);
  }

  const emptyContext = () => call('lean_mk_empty_local_ctx', heap.box(0));

  /** The type of a borrowed closed term in a borrowed Lean.Environment, checked. */
  const check = (env, e) => unwrap(raw('lean_kernel_check')(inc(env), emptyContext(), inc(e)) >>> 0);

  /** Whether two borrowed closed terms are definitionally equal. */
  function isDefEq(env, first, second) {
    const answer = unwrap(raw('lean_kernel_is_def_eq')(inc(env), emptyContext(), inc(first), inc(second)) >>> 0);
    return heap.unbox(answer) === 1;
  }

  /** A constant of a borrowed kernel environment: its ConstantInfo (owned), or 0. */
  function find(kernelEnv, name) {
    const result = call('lean_environment_find', inc(kernelEnv), inc(name));
    if (isBox(result)) return 0;
    const info = inc(field(result, 0));
    dec(result);
    return info;
  }

  return { bare, wrap, add, check, isDefEq, find };
}

module.exports = { createKernel, KernelRefusal };
