// Axes and scales for the small charts.

import { svg } from "./dom.js";

/** Round values that cover a range: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(low, high, wanted = 5) {
  const span = high - low > 1e-9 * Math.max(1, Math.abs(low), Math.abs(high)) ? high - low : Math.max(1, Math.abs(low));
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let i = Math.floor(low / step); i <= Math.ceil((low + span) / step); i += 1) found.push(i * step);
  return found;
}

/** A picture with margins, and scales from values to places in it. */
export class Chart {
  constructor({ width, height, left = 52, right = 14, top = 12, bottom = 28, label }) {
    Object.assign(this, { width, height, left, right, top, bottom });
    this.root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" });
    this.root.setAttribute("width", width);
    this.root.setAttribute("height", height);
  }

  xScale(low, high) {
    const span = high - low || 1;
    this.x = (value) => this.left + ((value - low) / span) * (this.width - this.left - this.right);
  }

  yScale(low, high) {
    const span = high - low || 1;
    this.y = (value) => this.height - this.bottom - ((value - low) / span) * (this.height - this.top - this.bottom);
  }

  xAxis(values, text) {
    const bottom = this.height - this.bottom;
    for (const value of values) {
      this.add("line", { class: "grid", x1: this.x(value), x2: this.x(value), y1: this.top, y2: bottom });
      this.text(this.x(value), bottom + 15, text(value), "middle");
    }
  }

  yAxis(values, text) {
    for (const value of values) {
      this.add("line", { class: value === 0 ? "zero" : "grid", x1: this.left, x2: this.width - this.right, y1: this.y(value), y2: this.y(value) });
      this.text(this.left - 6, this.y(value) + 3.5, text(value), "end");
    }
  }

  add(name, attributes, ...children) {
    const made = svg(name, attributes, ...children);
    this.root.append(made);
    return made;
  }

  text(x, y, content, anchor = "start", kind = "axis") {
    return this.add("text", { x, y, "text-anchor": anchor, class: kind }, content);
  }
}

/** How wide a chart in this element may be. */
export function roomIn(element, most = 1100) {
  return Math.max(280, Math.min(most, element.clientWidth || 600));
}
