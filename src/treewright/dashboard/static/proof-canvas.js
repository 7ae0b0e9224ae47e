// An AND/OR tree on a canvas: goals, tactics, where the agents are.

import { clip } from "./format.js";
import { agentColour, palette } from "./palette.js";
import { COLUMN, layOutProof } from "./proof-layout.js";
import { goalLine } from "./replay.js";
import { Viewport } from "./viewport.js";

const FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Open Sans', sans-serif";
const MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
const REACH = 16;

export class ProofCanvas {
  constructor(canvas, { onSelect, onOpen, onHover }) {
    this.canvas = canvas;
    this.onSelect = onSelect;
    this.onOpen = onOpen;
    this.collapsed = new Set();
    this.selected = null;
    this.tree = null;
    this.layout = null;
    this.view = new Viewport(canvas, {
      draw: (context, view) => this.layout && this.#draw(context, view),
      click: (x, y) => this.#click(x, y),
      hover: (x, y, at) => onHover(this.#near(x, y), at),
      resized: () => this.view && !this.view.moved && this.fit(),
    });
    canvas.addEventListener("pointerleave", () => onHover(null));
    canvas.addEventListener("dblclick", () => this.toggle(this.selected));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Shows a state of the replay. */
  show(tree) {
    const first = this.tree === null;
    this.tree = tree;
    this.layout = layOutProof(tree, this.collapsed);
    if (first || !this.view.moved) this.fit();
    this.view.redraw();
  }

  /** Another goal of the run: another tree. */
  reset() {
    this.tree = null;
    this.selected = null;
    this.collapsed.clear();
    this.view.moved = false;
  }

  /** Shows all of it; unless `whole` is asked for, of a small tree as much as can be read. */
  fit(whole = false) {
    if (!this.layout) return;
    const { columns, top, bottom, items } = this.layout;
    const smallest = whole ? 0.03 : items.length < 600 ? 0.5 : 0.05;
    this.view.fit({ left: -30, top: top - 40, right: columns * COLUMN + 20, bottom: bottom + 50 }, smallest, 1.15);
    this.view.moved = whole;
  }

  select(id, byKeyboard = false) {
    const item = this.layout.byId.get(id);
    if (!item) return;
    this.selected = id;
    this.view.reveal(item.x, item.y);
    this.onSelect(id, byKeyboard);
  }

  toggle(id) {
    if (!this.tree?.nodes.get(id)?.edges.length) return;
    if (!this.collapsed.delete(id)) this.collapsed.add(id);
    this.layout = layOutProof(this.tree, this.collapsed);
    this.view.redraw();
  }

  #near(x, y) {
    if (!this.layout) return null;
    const reach = Math.max(REACH, REACH / this.view.scale);
    let [best, least] = [null, reach];
    for (const item of this.layout.items) {
      if (item.kind !== "node") continue;
      const far = x > item.x && x < item.x + COLUMN * 0.5 ? Math.abs(item.y - y) : Math.hypot(item.x - x, item.y - y);
      if (far < least) [best, least] = [item, far];
    }
    return best;
  }

  #click(x, y) {
    this.canvas.focus({ preventScroll: true });
    const item = this.#near(x, y);
    if (item) this.select(item.id);
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.layout) return;
    const moves = { ArrowLeft: "parent", ArrowRight: "child", ArrowUp: -1, ArrowDown: 1, Home: "root" };
    const acts = {
      Enter: () => this.selected !== null && this.onOpen(this.selected),
      " ": () => this.toggle(this.selected),
      "+": () => this.view.zoom(1.25), "=": () => this.view.zoom(1.25), "-": () => this.view.zoom(0.8), 0: () => this.fit(true),
    };
    if (event.key in moves) {
      const target = this.#neighbour(moves[event.key]);
      if (target) this.select(target.id, true);
    } else if (event.key in acts) acts[event.key]();
    else return;
    event.preventDefault();
  }

  #neighbour(where) {
    const { items, byId } = this.layout;
    const here = byId.get(this.selected);
    if (!here || where === "root") return byId.get(this.tree.root);
    if (where === "parent") return byId.get(here.of.parents[0]);
    if (where === "child") return here.of.edges.flatMap((edge) => edge.children).map((id) => byId.get(id)).find(Boolean);
    const column = items.filter((item) => item.kind === "node" && item.x === here.x).sort((a, b) => a.y - b.y);
    return column[column.indexOf(here) + where];
  }

  #draw(context, view) {
    const colours = palette();
    const { left, top, right, bottom } = view.sight;
    const inSight = (item) => item.x > left - COLUMN && item.x < right + 40 && item.y > top - 30 && item.y < bottom + 30;
    const stateColour = { solved: colours.other, dead: colours.faint, open: colours.soft };
    const thinnest = 0.7 / view.scale;
    for (const [from, to] of this.layout.links) {
      const solved = to.kind === "node" ? to.of.state === "solved" : to.edge.children.every((id) => this.tree.nodes.get(id)?.state === "solved");
      context.strokeStyle = solved ? colours.other : colours.faint;
      context.lineWidth = Math.max(solved ? 2 : 1.2, thinnest);
      context.beginPath();
      context.moveTo(from.x + (from.kind === "node" ? 8 : 0), from.y);
      context.bezierCurveTo(from.x + 50, from.y, to.x - 50, to.y, to.x - (to.kind === "node" ? 8 : 0), to.y);
      context.stroke();
    }
    for (const item of this.layout.items) {
      if (!inSight(item)) continue;
      if (item.kind === "tactic") this.#tactic(context, item, colours, view);
      else this.#node(context, item, colours, stateColour[item.of.state], view);
    }
    this.#agents(context, colours);
  }

  #tactic(context, item, colours, view) {
    const several = item.edge.children.length > 1;
    context.fillStyle = colours.paper;
    context.strokeStyle = item.edge.children.length ? colours.soft : colours.other;
    context.lineWidth = 1.2;
    context.beginPath();
    if (item.edge.children.length) context.rect(item.x - 3, item.y - 3, 6, 6);
    else context.arc(item.x, item.y, 5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    if (several) {
      // The bar says "all of these".
      context.beginPath();
      context.arc(item.x, item.y, 12, -0.7, 0.7);
      context.stroke();
    }
    if (view.scale < 0.45) return;
    context.fillStyle = item.edge.children.length ? colours.soft : colours.other;
    context.font = `11px ${MONO}`;
    context.textAlign = "center";
    context.fillText(clip(item.edge.tactic, 22) + (item.edge.children.length ? "" : " ✓"), item.x, item.y - 8);
    context.textAlign = "start";
  }

  #node(context, item, colours, colour, view) {
    const { of } = item;
    const r = Math.max(5 + Math.min(6, Math.sqrt(of.visits)), 2.5 / view.scale);
    context.fillStyle = of.state === "open" ? colours.paper : colour;
    context.strokeStyle = colour;
    context.lineWidth = 1.6;
    context.beginPath();
    context.arc(item.x, item.y, r, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    if (item.id === this.selected) {
      context.strokeStyle = colours.ink;
      context.beginPath();
      context.arc(item.x, item.y, r + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    if (view.scale < 0.45) return;
    context.globalAlpha = of.state === "dead" ? 0.55 : 1;
    context.fillStyle = colours.ink;
    context.font = `11.5px ${FONT}`;
    const folded = this.collapsed.has(item.id) ? " ▸" : "";
    context.fillText(clip(goalLine(of), 36) + folded, item.x - 4, item.y + r + 12);
    context.globalAlpha = 1;
  }

  #agents(context, colours) {
    const places = new Map();
    for (const [agent, { node }] of this.tree.agents) {
      const item = this.layout.byId.get(node);
      if (!item) continue;
      const nth = places.get(node) ?? 0;
      places.set(node, nth + 1);
      context.fillStyle = agentColour(colours, agent);
      context.beginPath();
      const [x, y] = [item.x - 14 - 12 * nth, item.y - 12];
      context.moveTo(x, y - 6);
      context.lineTo(x + 6, y + 4);
      context.lineTo(x - 6, y + 4);
      context.fill();
      context.fillStyle = colours.paper;
      context.font = `700 7px ${FONT}`;
      context.textAlign = "center";
      context.fillText(String(agent), x, y + 3);
      context.textAlign = "start";
    }
  }
}
