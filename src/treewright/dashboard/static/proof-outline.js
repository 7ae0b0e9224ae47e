// The outline of a proof search on the page: only the lines in sight are elements.

import { el } from "./dom.js";
import { count, visible } from "./format.js";
import { agentColour, palette } from "./palette.js";
import { Folds, goalKey, rowsOf } from "./proof-rows.js";
import { goalLine } from "./replay.js";

const SPARE_ROWS = 8;
const DEEPEST = 14;
const LONGEST = 400;
const STATES = { solved: "solved", open: "open", dead: "dead end" };

export class Outline {
  /** `onSelect(id, byKeyboard, words)` and `onOpen(id)` get the goal of a line. */
  constructor(element, { onSelect, onOpen }) {
    this.element = element;
    this.onSelect = onSelect;
    this.onOpen = onOpen;
    this.folds = new Folds();
    this.rows = [];
    this.at = new Map();
    this.tree = null;
    this.way = new Set();
    this.key = null;
    this.body = el("div", { class: "rows", role: "presentation" });
    element.append(this.body);
    element.addEventListener("scroll", () => this.#paint());
    element.addEventListener("keydown", (event) => this.#press(event));
    new ResizeObserver(() => this.#paint()).observe(element);
  }

  /** The goal of the line that was chosen. */
  get selected() {
    return this.rows[this.at.get(this.key)]?.node.id ?? null;
  }

  /** Shows a state of the replay; the chosen line stays, also if the way no longer leads there. */
  show(tree, way) {
    const chosen = this.selected;
    this.tree = tree;
    this.way = way;
    this.#rebuild(chosen);
  }

  /** Another goal of the run: another tree. */
  reset() {
    this.folds.clear();
    this.key = null;
    this.element.scrollTop = 0;
  }

  /** As it began: the way, and the rest folded. */
  foldAll() {
    this.folds.clear();
    this.#rebuild();
    this.#choose(this.rows[0], true);
  }

  /** Goes to a goal wherever it is. */
  goTo(id, byKeyboard = false) {
    const node = this.tree?.nodes.get(id);
    if (!node) return;
    this.folds.reveal(this.tree, id);
    this.#rebuild();
    this.#choose(this.rows[this.at.get(goalKey(node))], byKeyboard);
  }

  /** The end of the way: where the search is, or the first step that closed a goal. */
  goToEnd() {
    const last = this.rows.findLast((row) => row.kind === "goal" && this.way.has(row.node) && (row.node.state === "open" || !row.node.kids.length));
    if (last) this.#choose(last, true);
  }

  #rebuild(wanted = null) {
    const height = this.#height();
    const first = this.element.scrollTop > 0 ? this.rows[Math.floor(this.element.scrollTop / height)] : null;
    const anchor = this.rows[this.at.get(this.key)] && this.#inSight(this.at.get(this.key)) ? this.key : first?.key;
    const before = this.at.get(anchor);
    this.#lines();
    if (wanted !== null && !this.at.has(this.key)) {
      this.folds.reveal(this.tree, wanted);
      this.#lines();
    }
    this.body.style.height = `calc(var(--row) * ${this.rows.length})`;
    if (anchor && this.at.has(anchor)) this.element.scrollTop += (this.at.get(anchor) - before) * height;
    this.#paint();
  }

  #lines() {
    this.rows = rowsOf(this.tree, this.folds);
    this.at = new Map(this.rows.map((row, i) => [row.key, i]));
  }

  #height() {
    return Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 26;
  }

  #inSight(i) {
    const height = this.#height();
    return (i + 1) * height > this.element.scrollTop && i * height < this.element.scrollTop + this.element.clientHeight;
  }

  #paint() {
    const height = this.#height();
    const from = Math.max(0, Math.floor(this.element.scrollTop / height) - SPARE_ROWS);
    const to = Math.min(this.rows.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / height) + SPARE_ROWS);
    const agents = this.#agents();
    this.body.replaceChildren(...this.rows.slice(from, to).map((row, i) => this.#line(row, from + i, agents)));
    const chosen = this.at.get(this.key);
    if (chosen >= from && chosen < to) this.element.setAttribute("aria-activedescendant", `row-${this.key}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Agents by the line that they are at, or that hides where they are. */
  #agents() {
    const places = new Map();
    for (const [agent, { node }] of this.tree?.agents ?? []) {
      let here = this.tree.nodes.get(node);
      while (here?.home && !this.at.has(goalKey(here))) here = this.tree.nodes.get(here.home.from);
      if (here) places.set(goalKey(here), [...(places.get(goalKey(here)) ?? []), agent]);
    }
    return places;
  }

  #line(row, i, agents) {
    const { node, edge, kind } = row;
    const made = el("div", {
      class: `row is-${kind}${this.way.has(node) && onWay(row) ? " way" : ""}`,
      id: `row-${row.key}`, role: "treeitem", "aria-level": row.level + 1, "aria-label": spoken(row),
      "aria-expanded": row.foldable ? String(row.open) : null, "aria-selected": String(row.key === this.key),
      onclick: (event) => this.#click(event, row), ondblclick: () => this.#toggle(row),
    },
    el("span", { class: "twist" }, row.foldable ? (row.open ? "▾" : "▸") : ""),
    el("i", { class: `mark ${stateOf(row)}` }),
    el("span", { class: "main" },
      edge && kind !== "more" ? el("code", { class: "tactic" }, cut(edge.tactic)) : null,
      el("span", { class: `what ${kind === "goal" ? node.state : ""}` }, words(row)),
      row.closing ? el("code", { class: "closing" }, `${cut(node.best.tactic)} ✓`) : null),
    el("span", { class: "side" },
      (agents.get(row.key) ?? []).slice(0, 6).map((agent) => badge(agent)),
      row.hidden ? el("span", { class: "folded" }, folded(row)) : row.shown ? el("span", { class: "folded" }, "▾ other tactics") : null,
      kind === "goal" ? el("span", { class: "number" }, `#${node.id}`) : null));
    made.style.setProperty("--level", Math.min(row.level, DEEPEST));
    made.style.top = `calc(var(--row) * ${i})`;
    return made;
  }

  #click(event, row) {
    this.element.focus({ preventScroll: true });
    if (event.target.closest(".twist") || row.kind === "more") this.#toggle(row);
    else if (event.target.closest(".folded")) this.#unfold(row);
    else if (row.kind === "same") this.goTo(row.node.id);
    else this.#choose(row, false);
  }

  #choose(row, byKeyboard) {
    if (!row) return;
    this.key = row.key;
    const [height, i] = [this.#height(), this.at.get(row.key)];
    const [top, room] = [this.element.scrollTop, this.element.clientHeight];
    if (i * height < top) this.element.scrollTop = i * height;
    else if ((i + 1) * height > top + room) this.element.scrollTop = (i + 1) * height - room;
    this.#paint();
    document.getElementById(`row-${row.key}`)?.scrollIntoView({ block: "nearest" });
    this.onSelect(row.node.id, byKeyboard, spoken(row));
  }

  #toggle(row) {
    if (!row?.foldable) return;
    if (row.kind === "more") this.folds.more(row.node.id);
    else this.folds.set(row.key, !row.open);
    this.#rebuild();
  }

  /** What the count at the end of a line stands for. */
  #unfold(row) {
    if (row.kind === "goal" && row.open) this.#others(row);
    else this.#toggle(row);
  }

  #others(row) {
    if (row?.kind !== "goal" || !row.open || !row.node.others.length) return;
    this.folds.toggleOthers(row.node.id, row.shown);
    this.#rebuild();
  }

  #press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.rows.length) return;
    const i = this.at.get(this.key) ?? -1;
    const row = this.rows[i];
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.#height()) - 1);
    const go = (to) => this.#choose(this.rows[Math.max(0, Math.min(this.rows.length - 1, to))], true);
    const acts = {
      ArrowDown: () => go(i + 1), ArrowUp: () => go(i - 1), Home: () => go(0), End: () => go(this.rows.length - 1),
      PageDown: () => go(i + page), PageUp: () => go(i - page),
      ArrowRight: () => (row?.foldable && !row.open ? this.#toggle(row) : go(i + 1)),
      ArrowLeft: () => (row?.foldable && row.open && row.kind !== "more" ? this.#toggle(row) : go(this.at.get(row?.parent) ?? 0)),
      Enter: () => (row?.kind === "same" ? this.goTo(row.node.id, true) : row?.kind === "more" ? this.#toggle(row) : row && this.onOpen(row.node.id)),
      " ": () => this.#toggle(row), o: () => this.#others(row), b: () => this.goToEnd(), 0: () => this.foldAll(),
    };
    if (!(event.key in acts)) return;
    acts[event.key]();
    event.preventDefault();
  }
}

/** Whether the line is the best step of its goal, not one of the others. */
function onWay({ kind, edge, node }) {
  return kind === "goal" || (node.best === edge && kind !== "same");
}

function stateOf({ kind, node, edge }) {
  return kind === "goal" || kind === "same" ? node.state : kind === "closed" ? "solved" : kind === "split" ? edge.state : "other";
}

function words({ kind, node, goals, left }) {
  if (kind === "goal") return cut(goalLine(node));
  if (kind === "split") return `leaves ${count(goals, "goal")}, all needed`;
  if (kind === "closed") return "closes the goal";
  if (kind === "same") return [`goal ${node.id}, shown elsewhere: `, cut(goalLine(node))];
  return `▸ ${count(left, "more tactic")}`;
}

function folded({ kind, node, open, hidden }) {
  const what = kind === "goal" && open ? `▸ ${count(node.others.length, "other tactic")}: ` : "";
  return `${what}${tally(hidden)}`;
}

/** Goals by state; dead ends are the rest. */
export function tally({ goals, solved, open }) {
  const kinds = [["solved", solved], ["open", open], ["dead ends", goals - solved - open]].filter(([, n]) => n);
  if (goals > 1 && kinds.length === 1) return `${count(goals, "goal")}, all ${kinds[0][0]}`;
  const some = kinds.filter(([state]) => state !== "dead ends").map(([state, n]) => `${n.toLocaleString("en")} ${state}`);
  return [count(goals, "goal"), ...some].join(", ");
}

function badge(agent) {
  const made = el("span", { class: "agent", title: `agent ${agent}` }, `▲${agent}`);
  made.style.color = agentColour(palette(), agent);
  return made;
}

function spoken(row) {
  const { kind, node, edge, hidden } = row;
  const text = [
    kind === "goal" ? `goal ${node.id}, ${STATES[node.state]}, ` : "",
    edge && kind !== "more" ? `${cut(edge.tactic)}: ` : "",
    words(row),
    row.closing ? `, closed by ${cut(node.best.tactic)}` : "",
    hidden ? `. Folded: ${folded(row).replace("▸ ", "")}` : "",
  ];
  return text.flat().join("");
}

const cut = (text) => visible(text, LONGEST);
