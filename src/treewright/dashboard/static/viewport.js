// Looking at a large drawing through a canvas: pan, zoom, sharp on every screen.

const SMALLEST = 0.02;
const LARGEST = 4;
const CLICK_PIXELS = 5;

export class Viewport {
  /** `draw(context, viewport)` paints in the drawing's coordinates; `click(x, y)` gets them.
   * `moved` says whether the user has panned or zoomed. */
  constructor(canvas, { draw, click, hover, resized }) {
    this.canvas = canvas;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.draw = draw;
    this.click = click;
    this.hover = hover;
    this.resized = resized;
    this.pointers = new Map();
    this.pending = false;
    this.moved = false;
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    this.resize();
  }

  get width() {
    return this.canvas.clientWidth;
  }

  get height() {
    return this.canvas.clientHeight;
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.resized?.();
    this.redraw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      const context = this.canvas.getContext("2d");
      const ratio = devicePixelRatio || 1;
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.canvas.width, this.canvas.height);
      context.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, ratio * this.x, ratio * this.y);
      this.draw(context, this);
    });
  }

  /** What of the drawing is in sight. */
  get sight() {
    return { left: -this.x / this.scale, top: -this.y / this.scale, right: (this.width - this.x) / this.scale, bottom: (this.height - this.y) / this.scale };
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.scale * factor));
    this.x = px - ((px - this.x) * scale) / this.scale;
    this.y = py - ((py - this.y) * scale) / this.scale;
    this.scale = scale;
    this.moved = true;
    this.redraw();
  }

  /** Shows a rectangle of the drawing whole, between the given scales. */
  fit({ left, top, right, bottom }, smallest, largest) {
    const scale = Math.min(this.width / (right - left || 1), this.height / (bottom - top || 1));
    this.scale = Math.min(largest, Math.max(smallest, scale));
    const free = this.width - (right - left) * this.scale;
    this.x = (free > 0 ? free / 2 : 0) - left * this.scale;
    this.y = (this.height - (bottom + top) * this.scale) / 2;
    this.redraw();
  }

  /** Moves as little as needed to have a point in sight, with some room around it, most of it on
   * the right for its words. */
  reveal(x, y, room = 60) {
    const px = x * this.scale + this.x;
    const py = y * this.scale + this.y;
    this.x += Math.max(0, room - px) - Math.max(0, px - (this.width - Math.min(this.width / 2, 4 * room)));
    this.y += Math.max(0, room - py) - Math.max(0, py - (this.height - room));
    this.redraw();
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  #inDrawing([px, py]) {
    return [(px - this.x) / this.scale, (py - this.y) / this.scale];
  }

  #wheel(event) {
    event.preventDefault();
    const step = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
    this.zoom(Math.exp(-step * 0.0015), ...this.#place(event));
  }

  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    const at = this.#place(event);
    this.pointers.set(event.pointerId, { at, start: at, moved: false });
  }

  #move(event) {
    const at = this.#place(event);
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      this.hover?.(...this.#inDrawing(at), at);
      return;
    }
    if (this.pointers.size === 2) {
      const other = [...this.pointers.values()].find((one) => one !== pointer);
      const before = Math.hypot(pointer.at[0] - other.at[0], pointer.at[1] - other.at[1]);
      const after = Math.hypot(at[0] - other.at[0], at[1] - other.at[1]);
      this.zoom(after / Math.max(1, before), (at[0] + other.at[0]) / 2, (at[1] + other.at[1]) / 2);
      pointer.moved = true;
    } else {
      const [dx, dy] = [at[0] - pointer.start[0], at[1] - pointer.start[1]];
      pointer.moved ||= Math.hypot(dx, dy) > CLICK_PIXELS;
      if (pointer.moved) {
        this.moved = true;
        this.x += at[0] - pointer.at[0];
        this.y += at[1] - pointer.at[1];
        this.redraw();
      }
    }
    pointer.at = at;
  }

  #up(event) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (pointer && !pointer.moved) this.click(...this.#inDrawing(pointer.at));
  }
}
