'use strict';
/**
 * Every `sorry` that elaboration met, with its place in the text and its goal.
 *
 * Lean's info trees say what each piece of syntax was elaborated to, and in which context. A
 * `sorry` in a comment, a string or a quotation never gets there; one behind a macro does, at
 * the place of the macro. One piece of text may run more than once (`all_goals sorry`): then
 * it has several goals.
 */
const TREE = { context: 0, node: 1, hole: 2 };
const CONTEXT = { command: 0, parentDecl: 1 };
const COMMAND_CONTEXT = { env: 0, mctx: 3, ngen: 7 };
const INFO = { tactic: 0, term: 1, command: 3 };
const TACTIC_INFO = { elabInfo: 0, mctxBefore: 1, goalsBefore: 2 };
const TERM_INFO = { elabInfo: 0, lctx: 1, expectedType: 2, expr: 3 };
const STX = 1; // field of ElabInfo
const TACTICS = new Set(['Lean.Parser.Tactic.tacticSorry', 'Lean.Parser.Tactic.tacticAdmit']);
const TERM = 'Lean.Parser.Term.sorry';

function createSorries(heap, names, syntax, attributes) {
  const { field, tag, option, readList, readPersistentArray } = heap;

  /**
   * Calls found({ start, end, tactic, declaration, place }) for every sorry in a command's
   * info trees; everything in it is borrowed. `before` is the environment before the command.
   */
  function collect(trees, before, found) {
    let last = before; // the environment after the command that is over, of those inside `open … in …`
    const visit = (tree, context, declaration, end) => {
      switch (tag(tree)) {
        case TREE.context: {
          const part = field(tree, 0);
          const child = field(tree, 1);
          if (tag(part) === CONTEXT.parentDecl) declaration = names.showUser(field(part, 0));
          else if (tag(part) === CONTEXT.command) context = field(part, 0);
          const isCommand = tag(part) === CONTEXT.command && tag(child) === TREE.node && tag(field(child, 0)) === INFO.command;
          if (isCommand) end = field(context, COMMAND_CONTEXT.env);
          visit(child, context, declaration, end);
          if (isCommand) last = end;
          break;
        }
        case TREE.node: {
          const hit = match(field(tree, 0), context);
          if (hit) {
            const env = attributes.withheld(hit.place.env, last, end);
            found({ ...hit, declaration, place: { ...hit.place, env } });
            heap.dec(env);
          }
          if (hit && hit.tactic) break; // what a tactic expands to is the same sorry again
          for (const child of readPersistentArray(field(tree, 1))) visit(child, context, declaration, end);
          break;
        }
        default: break;
      }
    };
    for (const tree of trees) visit(tree, 0, '', before);
  }

  function match(info, context) {
    if (tag(info) !== INFO.tactic && tag(info) !== INFO.term) return null;
    const details = field(info, 0);
    const stx = field(field(details, 0), STX);
    const kind = syntax.kind(stx);
    const tactic = tag(info) === INFO.tactic && TACTICS.has(kind);
    if (!tactic && !(tag(info) === INFO.term && kind === TERM)) return null;
    const range = syntax.range(stx);
    if (range === null || !context) return null;
    const place = { env: field(context, COMMAND_CONTEXT.env), ngen: field(context, COMMAND_CONTEXT.ngen) };
    if (tactic) {
      const goals = readList(field(details, TACTIC_INFO.goalsBefore));
      if (goals.length === 0) return null;
      return { ...range, tactic, place: { ...place, mctx: field(details, TACTIC_INFO.mctxBefore), goal: goals[0] } };
    }
    const expected = option(field(details, TERM_INFO.expectedType));
    // `sorry` elaborates to sorryAx applied to its type (or a function that yields it): without
    // an expected type there is nothing a caller could prove.
    if (expected === null) return null;
    return {
      ...range, tactic,
      place: { ...place, mctx: field(context, COMMAND_CONTEXT.mctx), lctx: field(details, TERM_INFO.lctx), type: expected },
    };
  }

  return { collect };
}

module.exports = { createSorries };
