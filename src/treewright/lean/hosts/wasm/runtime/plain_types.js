'use strict';
/**
 * Types as text without Lean's printer, which takes two milliseconds for one: notation, binders and dots as Lean
 * would write them where that can be told from the term alone. For lists of many declarations; what is shown of a goal,
 * or read by Lean again, is printed by Lean.
 */
const { EXPR } = require('./terms.js');
const { BINDER_INFO } = require('./patterns.js');
const { createPlainLevels, MAX } = require('./plain_levels.js');
const { BRACKETS, INFIX, EXPORTED, COERCIONS } = require('./notation.js');

const LARGEST = 4000; // terms; what is larger ends with an ellipsis
const fits = (binds, least, open) => binds >= least || (open && binds === 0);

class TooLarge extends Error {}

function createPlainTypes(heap, names, terms, constants) {
  const { field, tag, scalar8 } = heap;
  const { sort } = createPlainLevels(heap, names);
  const known = new Map();
  const propositions = new Map(); // constant -> whether applying it gives a proposition

  const strip = (e) => {
    while (tag(e) === EXPR.mdata) e = field(e, 1);
    return e;
  };

  const headOf = (e) => {
    e = strip(e);
    while (tag(e) === EXPR.app) e = strip(field(e, 0));
    return tag(e) === EXPR.const ? names.show(field(e, 0)) : '';
  };

  const resultOf = (e) => {
    for (e = strip(e); tag(e) === EXPR.forall; e = strip(field(e, 2)));
    return e;
  };

  const isProp = (e) => tag(e) === EXPR.sort && tag(field(e, 0)) === 0;

  /** Whether applying a constant gives a proposition. */
  function isPredicate(name) {
    if (!propositions.has(name)) propositions.set(name, constants(name, (type) => isProp(resultOf(type)), false));
    return propositions.get(name);
  }

  const isProposition = (type) => isPredicate(headOf(resultOf(type)));

  /** The parameters of a constant, { explicit, optional, proof } each; whether the first explicit one can stand before a dot. */
  function describe(name) {
    let found = known.get(name);
    if (found) return found;
    const of = name.slice(0, name.lastIndexOf('.'));
    found = constants(name, (type) => {
      const parameters = [];
      let dot = false;
      for (let e = strip(type); tag(e) === EXPR.forall; e = strip(field(e, 2))) {
        const explicit = scalar8(e, BINDER_INFO) === 0;
        const head = headOf(field(e, 1));
        if (explicit && of !== '' && !parameters.some((p) => p.explicit)) dot = head === of;
        parameters.push({ explicit, optional: head === 'optParam', proof: isProposition(field(e, 1)) });
      }
      return { parameters, dot };
    }, { parameters: [], dot: false });
    known.set(name, found);
    return found;
  }

  /** A binder's name as its author wrote it, without what hygiene added. */
  function binderName(name) {
    const parts = names.components(name);
    const scope = parts.indexOf('_@');
    return scope < 0 ? names.show(name) : parts.slice(0, scope).join('.');
  }

  /** A borrowed closed type as text. */
  function print(root) {
    let budget = LARGEST;

    const uses = (e, depth) => {
      e = strip(e);
      switch (tag(e)) {
        case EXPR.bvar: return Number(terms.natural(field(e, 0))) === depth;
        case EXPR.app: return uses(field(e, 0), depth) || uses(field(e, 1), depth);
        case EXPR.lam: case EXPR.forall: return uses(field(e, 1), depth) || uses(field(e, 2), depth + 1);
        case EXPR.let: return uses(field(e, 1), depth) || uses(field(e, 2), depth) || uses(field(e, 3), depth + 1);
        case EXPR.proj: return uses(field(e, 2), depth);
        default: return false;
      }
    };

    /**
     * The text of `e`, in brackets if it binds less tightly than `least`. `bound` are the names around it. What is open to
     * the right (`∀ x, …`) needs brackets unless it stands last.
     */
    function show(e, bound, least, last = false) {
      const [text, binds, open] = visit(strip(e), bound);
      return fits(binds, least, open) && (last || !open) ? text : `(${text})`;
    }

    /** [text, how tightly it binds, whether it is open to the right] */
    function visit(e, bound) {
      if (budget-- <= 0) throw new TooLarge();
      switch (tag(e)) {
        case EXPR.bvar: return [bound[bound.length - 1 - Number(terms.natural(field(e, 0)))]?.name ?? '_', MAX];
        case EXPR.sort: return sort(field(e, 0));
        case EXPR.lit: {
          const literal = field(e, 0);
          return [tag(literal) === 0 ? terms.natural(field(literal, 0)) : JSON.stringify(heap.readString(field(literal, 0))), MAX];
        }
        case EXPR.proj: return [`${show(field(e, 2), bound, MAX)}.${Number(terms.natural(field(e, 1))) + 1}`, MAX];
        case EXPR.lam: return functionText(e, bound);
        case EXPR.forall: return piText(e, bound);
        case EXPR.let: {
          const name = fresh(field(e, 0), bound);
          const value = show(field(e, 2), bound, 0, true);
          return [`let ${name} := ${value}; ${show(field(e, 3), [...bound, variable(name, field(e, 1))], 0, true)}`, 0, true];
        }
        case EXPR.const: case EXPR.app: return application(e, bound);
        default: return ['_', MAX];
      }
    }

    /** A name for a bound variable that hides no other. */
    function fresh(name, bound) {
      const own = binderName(name) || 'x';
      const taken = new Set(bound.map((b) => b.name));
      let i = 0;
      while (taken.has(i ? `${own}_${i}` : own)) i++;
      return i ? `${own}_${i}` : own;
    }

    function functionText(e, bound) {
      const own = [];
      for (e = strip(e); tag(e) === EXPR.lam; e = strip(field(e, 2))) {
        const name = uses(field(e, 2), 0) ? fresh(field(e, 0), bound) : 'x';
        own.push(name);
        bound = [...bound, variable(name, field(e, 1))];
      }
      return [`fun ${own.join(' ')} => ${show(e, bound, 0, true)}`, 0, true];
    }

    const infixText = (left, sign, e, bound, least, binds) => {
      const [text, tightness, open] = visit(strip(e), bound);
      const bare = fits(tightness, least, open);
      return [`${left} ${sign} ${bare ? text : `(${text})`}`, binds, open && bare];
    };

    /** What is known of a bound variable: its name, and whether it makes propositions, such as `p : α → Prop`. */
    const variable = (name, type) => ({ name, makes: isProp(resultOf(type)) });

    /** Whether a borrowed type, or what it is a function to, is a proposition. */
    function proposes(e, bound) {
      for (e = strip(e); tag(e) === EXPR.forall; e = strip(field(e, 2))) bound = [...bound, variable('', field(e, 1))];
      while (tag(e) === EXPR.app) e = strip(field(e, 0));
      if (tag(e) === EXPR.bvar) return bound[bound.length - 1 - Number(terms.natural(field(e, 0)))]?.makes ?? false;
      return tag(e) === EXPR.const && isPredicate(names.show(field(e, 0)));
    }

    /** `∀ (a b : A) {c : C}, …`; `(a : A) → …` where data is made; arrows for what nothing depends on. */
    function piText(e, bound) {
      const saysSomething = proposes(e, bound);
      const isArrow = (pi, around) => scalar8(pi, BINDER_INFO) === 0 && !uses(field(pi, 2), 0)
        && (!saysSomething || proposes(field(pi, 1), around));
      if (isArrow(e, bound)) {
        return infixText(show(field(e, 1), bound, 26), '→', field(e, 2), [...bound, variable('', field(e, 1))], 25, 25);
      }
      const groups = [];
      while (tag(e) === EXPR.forall && !isArrow(e, bound)) {
        const kind = scalar8(e, BINDER_INFO);
        const used = uses(field(e, 2), 0);
        const name = used ? fresh(field(e, 0), bound) : binderName(field(e, 0));
        const type = show(field(e, 1), bound, 0, true);
        const last = groups.at(-1);
        if (last && last.kind === kind && last.type === type && kind !== 3) last.names.push(name);
        else groups.push({ kind, type, names: [name], used });
        bound = [...bound, variable(used ? name : '', field(e, 1))];
        e = strip(field(e, 2));
        if (!saysSomething) break;
      }
      const shown = groups.map(({ kind, type, names: own, used }) => {
        const [open, close] = BRACKETS[kind];
        return kind === 3 && !used ? `[${type}]` : `${open}${own.join(' ')} : ${type}${close}`;
      });
      if (!saysSomething) return infixText(shown[0], '→', e, bound, 25, 25);
      return [`∀ ${shown.join(' ')}, ${show(e, bound, 0, true)}`, 0, true];
    }

    function application(e, bound) {
      const args = [];
      while (tag(e) === EXPR.app) {
        args.push(field(e, 1));
        e = strip(field(e, 0));
      }
      args.reverse();
      if (tag(e) !== EXPR.const) return applied(show(e, bound, MAX), args.map((term) => ({ term })), bound);
      const name = names.show(field(e, 0));
      const { parameters, dot } = describe(name);
      const given = args.map((term, i) => ({ term, ...parameters[i] })).filter((a) => a.explicit ?? true);
      while (given.at(-1)?.optional) given.pop();
      const special = notation(name, args, given.map((a) => a.term), bound);
      if (special) return special;
      const last = name.slice(name.lastIndexOf('.') + 1);
      if (EXPORTED.has(name)) return applied(last, given, bound);
      if (dot && given.length > 0) return applied(`${show(given[0].term, bound, MAX)}.${last}`, given.slice(1), bound);
      return applied(names.userText(name), given, bound);
    }

    const isSmall = (e) => [EXPR.bvar, EXPR.const, EXPR.lit].includes(tag(strip(e)));

    function applied(head, given, bound) {
      if (given.length === 0) return [head, MAX];
      let open = false;
      const shown = given.map(({ term, proof }, i) => {
        if (proof && !isSmall(term)) return '⋯';
        const isLastFunction = i === given.length - 1 && tag(strip(term)) === EXPR.lam;
        open = isLastFunction;
        return show(term, bound, MAX, isLastFunction);
      });
      return [[head, ...shown].join(' '), open ? 0 : MAX - 1, open];
    }

    function notation(name, args, given, bound) {
      const infix = INFIX[name];
      const items = name === 'List.cons' ? listItems(args) : null;
      if (items) return [`[${items.map((item) => show(item, bound, 0, true)).join(', ')}]`, MAX];
      if (infix && given.length === 2) {
        const [sign, binds, left, right] = infix;
        return infixText(show(given[0], bound, left), sign, given[1], bound, right, binds);
      }
      const last = given.at(-1);
      switch (`${name} ${given.length}`) {
        case 'Not 1': return [`¬${show(last, bound, 40)}`, MAX - 1];
        case 'Neg.neg 1': return [`-${show(last, bound, 75)}`, 75];
        case 'Bool.not 1': return [`!${show(last, bound, 40)}`, 40];
        case 'Membership.mem 2': return infixText(show(given[1], bound, 51), '∈', given[0], bound, 51, 50);
        case 'Prod.mk 2': return [`(${show(given[0], bound, 0, true)}, ${show(given[1], bound, 0, true)})`, MAX];
        case 'Subtype.mk 2': return [`⟨${show(given[0], bound, 0, true)}, ${isSmall(given[1]) ? show(given[1], bound, 0) : '⋯'}⟩`, MAX];
        case 'List.nil 0': return ['[]', MAX];
        case 'ite 3': {
          const [condition, yes, no] = given.map((part) => show(part, bound, 0, true));
          return [`if ${condition} then ${yes} else ${no}`, 0, true];
        }
        case 'Exists 1': return existential(strip(last), bound);
        case 'Subtype 1': return subtype(strip(last), bound);
        case 'GetElem.getElem 3': return [`${show(given[0], bound, MAX)}[${show(given[1], bound, 0, true)}]`, MAX];
        case 'GetElem?.getElem? 2': return [`${show(given[0], bound, MAX)}[${show(given[1], bound, 0, true)}]?`, MAX];
        case 'GetElem?.getElem! 2': return [`${show(given[0], bound, MAX)}[${show(given[1], bound, 0, true)}]!`, MAX];
        case 'autoParam 2': case 'optParam 2': return visit(strip(args[0]), bound);
        default: break;
      }
      if (name === 'OfNat.ofNat' && args.length >= 2) return visit(strip(args[1]), bound);
      if (COERCIONS.has(name) && given.length === 1) return [`↑${show(last, bound, MAX)}`, MAX];
      return null;
    }

    /** The items of `a :: b :: []`, or null if it does not end so. */
    function listItems(args) {
      const items = [];
      while (args.length === 3) {
        items.push(args[1]);
        const rest = strip(args[2]);
        if (headOf(rest) === 'List.nil') return items;
        if (headOf(rest) !== 'List.cons') return null;
        args = argumentsOf(rest);
      }
      return null;
    }

    function argumentsOf(e) {
      const args = [];
      for (; tag(e) === EXPR.app; e = strip(field(e, 0))) args.unshift(field(e, 1));
      return args;
    }

    function existential(e, bound) {
      if (tag(e) !== EXPR.lam) return [`Exists ${show(e, bound, MAX)}`, MAX - 1];
      const own = [];
      for (;;) {
        const name = fresh(field(e, 0), bound);
        own.push(name);
        bound = [...bound, variable(name, field(e, 1))];
        e = strip(field(e, 2));
        const inner = headOf(e) === 'Exists' ? argumentsOf(e) : [];
        if (inner.length !== 2 || tag(strip(inner[1])) !== EXPR.lam) break;
        e = strip(inner[1]);
      }
      return [`∃ ${own.join(' ')}, ${show(e, bound, 0, true)}`, 0, true];
    }

    function subtype(e, bound) {
      if (tag(e) !== EXPR.lam) return [`Subtype ${show(e, bound, MAX)}`, MAX - 1];
      const name = fresh(field(e, 0), bound);
      return [`{ ${name} // ${show(field(e, 2), [...bound, variable(name, field(e, 1))], 0, true)} }`, MAX];
    }

    try {
      return show(root, [], 0, true);
    } catch (error) {
      if (error instanceof TooLarge) return '…';
      throw error;
    }
  }

  return print;
}

module.exports = { createPlainTypes };
