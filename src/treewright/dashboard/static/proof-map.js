// The whole search in one picture: a goal is a block, below it the goals that it led to.
//
// A block is as wide as the number of goals below it, so that the picture shows where the
// search went. What would be narrower than a part of a pixel is drawn as one with what is below
// it: the work is bounded by the picture's size, not by the search's.

import { palette } from "./palette.js";

const TALLEST_ROW = 16;
const HEIGHT = 112;
const THINNEST = 0.4;

export class ProofMap {
  constructor(canvas, { onPick, onHover }) {
    this.canvas = canvas;
    this.tree = null;
    this.way = new Set();
    this.chosen = null;
    this.blocks = [];
    new ResizeObserver(() => this.#draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    canvas.addEventListener("click", (event) => {
      const found = this.#find(event);
      if (found) onPick(found.id);
    });
    canvas.addEventListener("pointermove", (event) => onHover(this.#find(event), [event.offsetX, event.offsetY]));
    canvas.addEventListener("pointerleave", () => onHover(null));
  }

  show(tree, way, chosen) {
    Object.assign(this, { tree, way, chosen });
    this.#draw();
  }

  /** The goal under the pointer: of blocks drawn over each other the last. */
  #find({ offsetX: x, offsetY: y }) {
    return this.blocks.findLast((one) => x >= one.x && x < one.x + Math.max(1, one.width) && y >= one.y && y < one.y + one.height)?.node ?? null;
  }

  #draw() {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    if (!this.tree || !width) return;
    this.blocks = layOut(this.tree, width);
    const height = this.blocks.reduce((most, one) => Math.max(most, one.y + one.height), TALLEST_ROW) + 2;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = palette();
    const fill = { solved: colours.other, open: colours.good, dead: colours.neutral };
    for (const { node, x, y, width: w, height: h } of this.blocks) {
      context.globalAlpha = node.state === "open" ? 0.55 : 1;
      context.fillStyle = fill[node.state];
      context.fillRect(x, y, w > 4 ? w - 1 : w, h > 4 ? h - 1 : h);
    }
    context.globalAlpha = 1;
    context.fillStyle = colours.best;
    for (const { node, x, y, width: w, height: h } of this.blocks) if (this.way.has(node)) context.fillRect(x, y, w > 4 ? w - 1 : Math.max(1, w), Math.min(3, h));
    const chosen = this.blocks.find((one) => one.node.id === this.chosen);
    if (!chosen) return;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(chosen.x, chosen.y + 0.5, Math.max(3, chosen.width), chosen.height);
  }
}

/** {node, x, y, width, height}; rows are lower in deeper searches. */
function layOut(tree, width) {
  const root = tree.nodes.get(tree.root);
  const blocks = [];
  const all = 1 + root.below.goals;
  const stack = [{ node: root, x: 0, width, row: 0 }];
  let rows = 1;
  while (stack.length) {
    const one = stack.pop();
    blocks.push(one);
    rows = Math.max(rows, one.row + 1);
    if (one.width < THINNEST) continue;
    // Its own goal counts as one: without children a goal is as wide as any.
    const kids = one.node.kids;
    const below = kids.reduce((sum, kid) => sum + 1 + kid.below.goals, 0);
    let x = one.x;
    for (const kid of kids) {
      const share = (one.width * (1 + kid.below.goals)) / below;
      stack.push({ node: kid, x, width: share, row: one.row + 1 });
      x += share;
    }
  }
  const height = all > 1 ? Math.min(TALLEST_ROW, HEIGHT / rows) : TALLEST_ROW;
  for (const one of blocks) Object.assign(one, { y: one.row * height, height });
  return blocks;
}
