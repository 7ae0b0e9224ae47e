// The tree drawn on a canvas: only what is in sight, labels only where they can be read.

import { clip, percent } from "./format.js";
import { palette, scoreColour } from "./palette.js";
import { COLUMN, layOut } from "./tree-layout.js";
import { Viewport } from "./viewport.js";

const LABEL_SCALE = 0.5;
const FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Open Sans', sans-serif";
const REACH = 14;

export class TreeCanvas {
  /** `onSelect(id, byKeyboard)` and `onHover(item, place)` are called with what was met. */
  constructor(canvas, model, { onSelect, onOpen, onHover }) {
    this.canvas = canvas;
    this.model = model;
    this.onSelect = onSelect;
    this.onOpen = onOpen;
    this.collapsed = new Set();
    this.selected = null;
    this.layout = layOut(model, this.collapsed);
    this.view = new Viewport(canvas, {
      draw: (context, view) => this.#draw(context, view),
      click: (x, y) => this.#click(x, y),
      hover: (x, y, place) => onHover(this.#near(x, y), place),
      resized: () => this.view && this.#settle(),
    });
    canvas.addEventListener("pointerleave", () => onHover(null));
    canvas.addEventListener("dblclick", () => this.toggle(this.selected));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** The model has changed. */
  update() {
    const first = this.layout.items.length <= 1;
    this.layout = layOut(this.model, this.collapsed);
    if (first) this.fit();
    this.view.redraw();
  }

  /** Shows all of it; unless `whole` is asked for, of a small tree as much as can be read. */
  fit(whole = false) {
    const { columns, top, bottom, items } = this.layout;
    const smallest = whole ? 0.03 : items.length < 200 ? (this.view.width < 600 ? 0.6 : 0.72) : 0.05;
    this.view.fit({ left: -30, top: top - 50, right: columns * COLUMN, bottom: bottom + 30 }, smallest, 1.15);
    this.view.moved = whole;
  }

  #settle() {
    if (!this.view.moved) this.fit();
    const item = this.layout.byId.get(this.selected);
    if (item) this.view.reveal(item.x, item.y);
  }

  /** An evaluation that became a node is shown as that node. */
  select(id, byKeyboard = false) {
    const item = this.layout.byId.get(this.model.evals.get(id)?.node ?? id);
    if (!item) return;
    this.selected = item.id;
    this.view.reveal(item.x, item.y);
    this.onSelect(item.id, byKeyboard);
  }

  toggle(id) {
    const node = this.model.nodes.get(id);
    if (!node || !this.model.evalsOf.has(id)) return;
    if (!this.collapsed.delete(id)) this.collapsed.add(id);
    this.layout = layOut(this.model, this.collapsed);
    this.view.redraw();
  }

  #near(x, y) {
    const reach = REACH / this.view.scale;
    let best = null;
    let least = Math.max(REACH, reach);
    for (const item of this.layout.items) {
      const far = Math.hypot(item.x - x, item.y - y) - item.r;
      if (far < least) [best, least] = [item, far];
    }
    return best ?? this.#labelAt(x, y);
  }

  #labelAt(x, y) {
    if (this.view.scale < LABEL_SCALE) return null;
    return this.layout.items.find((item) => item.labelled && x > item.x && x < item.x + COLUMN - 50 && Math.abs(y - item.y) < (item.kind === "node" ? 16 : 9)) ?? null;
  }

  #click(x, y) {
    this.canvas.focus({ preventScroll: true });
    const item = this.#near(x, y);
    if (item) this.select(item.id);
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = { ArrowLeft: "parent", ArrowRight: "child", ArrowUp: -1, ArrowDown: 1, Home: "root" };
    const acts = {
      Enter: () => this.selected && this.onOpen(this.selected),
      " ": () => this.toggle(this.selected),
      "+": () => this.view.zoom(1.25), "=": () => this.view.zoom(1.25), "-": () => this.view.zoom(0.8),
      0: () => this.fit(true), b: () => this.select(this.model.run.best?.node, true),
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
    if (!here || where === "root") return byId.get(this.model.root?.id);
    if (where === "parent") return byId.get(here.parent);
    if (where === "child") {
      const children = items.filter((item) => item.parent === here.id);
      return children.find((item) => this.model.onPath.has(item.id)) ?? children.find((item) => item.kind === "node") ?? children[0];
    }
    const before = (a, b) => a.y - b.y || a.x - b.x;
    const column = items.filter((item) => depthOf(item) === depthOf(here)).sort(before);
    return column[column.indexOf(here) + where];
  }

  #draw(context, view) {
    const colours = palette();
    const { left, top, right, bottom } = view.sight;
    const inSight = (item) => item.x > left - COLUMN && item.x < right + COLUMN && item.y > top - 60 && item.y < bottom + 60;
    const visible = this.layout.items.filter(inSight);
    const labels = view.scale >= LABEL_SCALE;
    this.#columns(context, view, colours);
    this.#edges(context, colours, view);
    for (const item of visible) if (item.kind === "eval") this.#eval(context, item, colours, labels);
    for (const item of visible) if (item.kind === "node") this.#node(context, item, colours, labels);
    this.#ring(context, colours, view);
  }

  #columns(context, view, colours) {
    const { top, bottom } = view.sight;
    for (let depth = 0; depth < this.layout.columns; depth += 1) {
      if (depth % 2) {
        context.fillStyle = colours.band;
        context.fillRect(depth * COLUMN - 24, top, COLUMN, bottom - top);
      }
      context.fillStyle = colours.soft;
      context.font = `600 ${12 / Math.max(0.35, view.scale)}px ${FONT}`;
      if (view.scale > 0.12) context.fillText(depth ? `depth ${depth}` : "root", depth * COLUMN - 8, top + 20 / view.scale);
    }
  }

  #edges(context, colours, view) {
    const { top, bottom } = view.sight;
    const best = [];
    for (const kind of ["eval", "node"]) {
      context.strokeStyle = kind === "eval" ? colours.faint : colours.soft;
      context.lineWidth = kind === "eval" ? 1 : 1.5;
      context.beginPath();
      for (const item of this.layout.items) {
        if (item.kind !== kind || item.parent === null || (kind === "eval" && !item.labelled && !item.first)) continue;
        const parent = this.layout.byId.get(item.parent);
        if (!parent || Math.max(item.y, parent.y) < top || Math.min(item.y, parent.y) > bottom) continue;
        if (kind === "node" && this.model.onPath.has(item.id)) best.push([parent, item]);
        else curve(context, parent, item);
      }
      context.stroke();
    }
    context.strokeStyle = colours.best;
    context.lineWidth = Math.max(2.6, 1.6 / view.scale);
    context.beginPath();
    for (const [parent, item] of best) curve(context, parent, item);
    context.stroke();
  }

  #eval(context, item, colours, labels) {
    const one = item.of;
    const running = one.status === "running";
    context.globalAlpha = running ? 1 : 0.55;
    context.strokeStyle = one.error ? colours.warn : running ? colours.best : colours.soft;
    context.lineWidth = 1.3;
    context.beginPath();
    if (one.error) cross(context, item);
    else context.arc(item.x, item.y, item.r, 0, 2 * Math.PI);
    if (!one.error && one.score !== undefined && one.score !== null) {
      context.fillStyle = scoreColour(colours, one.score, this.model.largestScore);
      context.fill();
    } else if (one.status === "pending") context.setLineDash([2, 2]);
    context.stroke();
    context.setLineDash([]);
    if (labels && item.labelled) {
      context.globalAlpha = running ? 1 : 0.75;
      context.fillStyle = colours.soft;
      context.font = `11px ${FONT}`;
      context.fillText(clip(one.title || one.id, 40), item.x + 10, item.y + 4);
    }
    context.globalAlpha = 1;
  }

  #node(context, item, colours, labels) {
    const node = item.of;
    const onPath = this.model.onPath.has(node.id);
    context.fillStyle = node.parent ? scoreColour(colours, node.score, this.model.largestScore) : colours.paper;
    context.strokeStyle = onPath ? colours.best : colours.soft;
    context.lineWidth = onPath ? 2.6 : 1.2;
    context.beginPath();
    context.arc(item.x, item.y, item.r, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    if (!labels) return;
    const x = item.x + item.r + 6;
    context.fillStyle = colours.ink;
    context.font = `600 12px ${FONT}`;
    const folded = this.collapsed.has(node.id) ? `  ▸ ${node.evals}` : "";
    context.fillText(`${node.id}  ${node.parent ? percent(node.score) : "root"}${folded}`, x, item.y - 2);
    context.fillStyle = colours.soft;
    context.font = `11px ${FONT}`;
    context.fillText(clip(node.parent ? node.title : node.commit, 38), x, item.y + 12);
  }

  #ring(context, colours, view) {
    const item = this.layout.byId.get(this.selected);
    if (!item) return;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2 / Math.min(1, view.scale);
    context.beginPath();
    context.arc(item.x, item.y, item.r + 4 / Math.min(1, view.scale), 0, 2 * Math.PI);
    context.stroke();
  }
}

function depthOf(item) {
  return item.of.depth;
}

function curve(context, from, to) {
  const start = Math.max(from.x + from.r, to.x - 110);
  context.moveTo(from.x + from.r, from.y);
  context.lineTo(start, from.y);
  context.bezierCurveTo(start + 50, from.y, to.x - 55, to.y, to.x - to.r, to.y);
}

function cross(context, { x, y, r }) {
  const d = r * 0.85;
  context.moveTo(x - d, y - d);
  context.lineTo(x + d, y + d);
  context.moveTo(x + d, y - d);
  context.lineTo(x - d, y + d);
}
