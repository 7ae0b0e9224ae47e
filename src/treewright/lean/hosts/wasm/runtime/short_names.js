'use strict';
/** Names as one may write them where namespaces are open. */

function createShortNames(environment, names, heap, { truth }) {
  const { inc, dec } = heap;

  /** Gives the function that shortens names in an open `namespace`, unless another thing, or one `taken`, has the shorter name. */
  return function createShortener(env, namespace, taken) {
    const open = namespace === '' ? [] : namespace.split('.').map((_, i, parts) => parts.slice(0, parts.length - i).join('.'));
    const isThere = (text) => {
      const name = names.parse(text);
      const info = environment.find(env, name);
      dec(name);
      if (info) dec(info);
      return info !== 0;
    };
    return (text) => {
      for (const [i, prefix] of open.entries()) {
        if (!text.startsWith(`${prefix}.`)) continue;
        const rest = text.slice(prefix.length + 1);
        const isHidden = taken.has(rest.split('.')[0]) || open.slice(0, i).some((longer) => isThere(`${longer}.${rest}`));
        const name = names.parse(text);
        const isProtected = truth('l_Lean_isProtected', inc(env), name);
        return isHidden || isProtected ? text : rest;
      }
      return text;
    };
  };
}

module.exports = { createShortNames };
