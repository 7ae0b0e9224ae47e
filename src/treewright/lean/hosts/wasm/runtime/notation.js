'use strict';
/** Notation of Lean's library, for who prints terms without Lean (plain_types.js). */

const BRACKETS = [['(', ')'], ['{', '}'], ['⦃', '⦄'], ['[', ']']]; // by BinderInfo
/** name -> [sign, level, level of the left, level of the right]; the last two explicit arguments are the sides. */
const INFIX = Object.fromEntries([
  ['Eq', '=', 50], ['Ne', '≠', 50], ['HEq', '≍', 50], ['LE.le', '≤', 50], ['LT.lt', '<', 50], ['GE.ge', '≥', 50],
  ['GT.gt', '>', 50], ['Iff', '↔', 20], ['Dvd.dvd', '∣', 50], ['HAdd.hAdd', '+', 65, 'left'], ['HSub.hSub', '-', 65, 'left'],
  ['HMul.hMul', '*', 70, 'left'], ['HDiv.hDiv', '/', 70, 'left'], ['HMod.hMod', '%', 70, 'left'], ['HPow.hPow', '^', 75, 'right'],
  ['HAppend.hAppend', '++', 65, 'left'], ['List.cons', '::', 67, 'right'], ['And', '∧', 35, 'right'], ['Or', '∨', 30, 'right'],
  ['Prod', '×', 35, 'right'], ['PProd', "×'", 35, 'right'], ['Sum', '⊕', 30, 'right'], ['Bool.and', '&&', 35, 'left'],
  ['Bool.or', '||', 30, 'left'], ['Bool.xor', '^^', 33, 'left'], ['BEq.beq', '==', 50], ['bne', '!=', 50], ['Function.comp', '∘', 90, 'right'],
  ['HAnd.hAnd', '&&&', 60, 'left'], ['HXor.hXor', '^^^', 58, 'left'], ['HOr.hOr', '|||', 55, 'left'],
  ['HShiftLeft.hShiftLeft', '<<<', 75, 'left'], ['HShiftRight.hShiftRight', '>>>', 75, 'left'],
  ['HasSubset.Subset', '⊆', 50], ['Union.union', '∪', 65, 'left'], ['Inter.inter', '∩', 70, 'left'],
  ['SDiff.sdiff', '\\', 70, 'left'], ['HasEquiv.Equiv', '≈', 50], ['Functor.map', '<$>', 100, 'right'],
  ['Bind.bind', '>>=', 55, 'left'], ['List.Perm', '~', 50], ['List.Sublist', '<+', 50], ['List.IsPrefix', '<+:', 50],
  ['List.IsSuffix', '<:+', 50], ['List.IsInfix', '<:+:', 50], ['HSMul.hSMul', '•', 73, 'right'],
].map(([name, sign, level, side]) => [name, [sign, level, side === 'left' ? level : level + 1, side === 'right' ? level : level + 1]]));
/** Names that stand open everywhere. */
const EXPORTED = new Set(['Option.some', 'Option.none', 'Bool.true', 'Bool.false', 'Except.error', 'Except.ok', 'Pure.pure', 'Bind.bind']);
const COERCIONS = new Set(['Fin.val', 'Nat.cast', 'Int.cast', 'NatCast.natCast', 'IntCast.intCast']);

module.exports = { BRACKETS, INFIX, EXPORTED, COERCIONS };
