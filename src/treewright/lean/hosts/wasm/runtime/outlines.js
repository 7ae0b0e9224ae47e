'use strict';
/** What propositions are by their outermost connective, and what would prove them. */

const OUTLINES = new Set(['Eq', 'HEq', 'And', 'Or', 'Iff', 'Exists', 'Not', 'False', 'True', '∀', 'Sort']);
const NO_CONSTANT = /^[#^?$=@λ∀."]|^(Sort|let)$/; // heads of terms that are no constants

const isVariable = (node) => node.head.startsWith('#');

function createOutlines(patterns) {
  /** Whether a type with this head may say something that shows only when it is unfolded. */
  const isUnfoldable = (head) => !OUTLINES.has(head) && !NO_CONSTANT.test(head) && !/^(Nat|Int)\.(le|lt)$/.test(head);

  /** `Exists`, `Exists =` where the last thing said is an equation for a variable, `And`, `Or`; '' for others. */
  function outline(node) {
    if (node.head === 'Exists' && node.args.length === 2) {
      let body = node.args[1];
      while (body.head === 'λ' || (body.head === 'Exists' && body.args.length === 2)) body = body.args[body.head === 'λ' ? 1 : 1];
      const sides = body.head === 'Eq' ? body.args.slice(1) : [];
      return sides.some((side) => isVariable(side)) ? 'Exists =' : 'Exists';
    }
    return node.head === 'And' || node.head === 'Or' ? node.head : '';
  }

  /** What would prove the target if it were proved: [{ node, wrap }], `%` in `wrap` being the proof. The target itself first. */
  function waysTo(unfolded, target) {
    const found = [{ node: target, wrap: '%' }];
    const add = (node, wrap, depth) => {
      if (depth > 0) found.push({ node, wrap });
      if (depth > 2 || found.length > 8) return;
      if (node.head === 'Or' && node.args.length === 2) {
        add(node.args[0], wrap.replace('%', 'Or.inl (%)'), depth + 1);
        add(node.args[1], wrap.replace('%', 'Or.inr (%)'), depth + 1);
      }
      if (node.head === 'Exists' && node.args.length === 2 && node.args[1].head === 'λ') {
        const hole = patterns.node(`?witness${depth}`, [], { hole: true });
        add(patterns.substitute(node.args[1].args[1], 0, hole), wrap.replace('%', '⟨_, %⟩'), depth + 1);
      }
    };
    add(unfolded ?? target, '%', 0);
    return found;
  }

  return { isUnfoldable, outline, waysTo };
}

module.exports = { createOutlines, isVariable, NO_CONSTANT };
