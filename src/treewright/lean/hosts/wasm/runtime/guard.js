'use strict';
/**
 * A policy over syntax: what a piece of generated text may contain, judged on what Lean's own
 * parser makes of it. The policy itself comes with the request (escapes.py holds it):
 *   { ranges, commands, kinds, atoms, options, attributes }
 * where `ranges` are the generated parts in bytes ([start, end)), `commands` the kinds of command that may
 * begin there, `kinds` and `atoms` what must not occur, and the rest what is allowed.
 */
const OPTION_KINDS = new Set([
  'Lean.Parser.Command.set_option', 'Lean.Parser.Term.set_option', 'Lean.Parser.Tactic.set_option',
]);
const ATTRIBUTE_KIND = 'Lean.Parser.Term.attrInstance';

// A tactic's configuration is compiled and run, even if it is unsafe: only plain values may be
// in it. These are the kinds of syntax that make one up.
const CONFIG_KINDS = new Set(['Lean.Parser.Tactic.valConfigItem', 'Lean.Parser.Tactic.config']);
const FLAG_KIND = 'Lean.Parser.Tactic.posConfigItem';
const PLAIN_KINDS = new Set([
  ...CONFIG_KINDS, 'null', 'num', 'str', 'group', 'hygieneInfo', 'Lean.Parser.Term.structInst', 'Lean.Parser.Term.structInstFields',
  'Lean.Parser.Term.structInstField', 'Lean.Parser.Term.structInstFieldDef', 'Lean.Parser.Term.structInstLVal',
  'Lean.Parser.Term.optEllipsis', 'Lean.Parser.Term.dotIdent', 'Lean.Parser.Term.paren',
]);

function createGuard(heap, syntax) {
  const { field, readArray } = heap;

  const children = (stx) => readArray(field(stx, 2));

  function firstWord(stx) {
    let word = '';
    syntax.walk(stx, ({ atom, ident }) => { word = word || ident || atom || ''; });
    return word;
  }

  /** What is not plain in a configuration, or ''. */
  function impureConfig(stx) {
    let problem = '';
    syntax.walk(stx, ({ kind, ident }) => {
      if (kind !== undefined && !PLAIN_KINDS.has(kind)) problem = problem || kind;
      if (ident === 'native') problem = problem || ident;
    });
    return problem;
  }

  /**
   * For `commands`: { inspect(command), a string if it breaks the policy, isGenerated(command) }.
   */
  function inspector(policy) {
    const lists = Object.fromEntries(
      ['commands', 'kinds', 'atoms', 'options', 'attributes'].map((key) => [key, new Set(policy[key])]),
    );
    const generated = (range) => range !== null
      && policy.ranges.some(([start, end]) => range.start < end && range.end > start);
    const begins = (range) => policy.ranges.some(([start, end]) => range.start >= start && range.start < end);

    const isGenerated = (command) => generated(syntax.range(command));

    function inspect(command) {
      const whole = syntax.range(command);
      if (!generated(whole)) return '';
      const kind = syntax.kind(command);
      if (begins(whole) && !lists.commands.has(kind)) return `escape: command ${kind}`;
      let violation = '';
      syntax.walk(command, ({ kind: nodeKind, atom, stx }) => {
        if (violation) return;
        if (nodeKind !== undefined) {
          const configures = CONFIG_KINDS.has(nodeKind) || nodeKind === FLAG_KIND;
          const interesting = configures || lists.kinds.has(nodeKind) || OPTION_KINDS.has(nodeKind)
            || nodeKind === ATTRIBUTE_KIND;
          if (!interesting || !generated(syntax.range(stx))) return;
          if (lists.kinds.has(nodeKind)) violation = `escape: ${nodeKind}`;
          else if (configures) {
            const problem = nodeKind === FLAG_KIND ? '' : impureConfig(stx);
            const native = nodeKind === FLAG_KIND && children(stx).some((c) => firstWord(c) === 'native');
            if (problem || native) violation = `escape: ${problem || 'native'} in a configuration`;
          }
          else if (OPTION_KINDS.has(nodeKind)) {
            const option = firstWord(children(stx)[1]);
            if (!lists.options.has(option)) violation = `escape: option ${option}`;
          } else {
            const attribute = firstWord(children(stx)[1]);
            if (!lists.attributes.has(attribute)) violation = `escape: attribute ${attribute}`;
          }
        } else if (atom !== undefined && lists.atoms.has(atom) && generated(syntax.range(stx))) {
          violation = `escape: ${atom}`;
        }
      });
      return violation;
    }

    return { inspect, isGenerated };
  }

  return { inspector };
}

module.exports = { createGuard, OPTION_KINDS };
