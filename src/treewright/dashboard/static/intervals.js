// Numbers with their intervals: as text, and as a dot on a line.

import { el, svg } from "./dom.js";
import { significant } from "./format.js";

const WIDTH = 120;
const HEIGHT = 16;

const short = (number) => significant(number, 3).replace("-", "\u2212");

/** `of` is {value, low, high, count}; null is a dash. */
export function interval(of) {
  if (!of) return "–";
  return of.low === null ? short(of.value) : `${short(of.value)} [${short(of.low)}, ${short(of.high)}]`;
}

export function share(of) {
  if (!of) return "–";
  const percent = (number) => (100 * number).toFixed(0);
  return of.low === null ? `${percent(of.value)} %` : `${percent(of.value)} % [${percent(of.low)}, ${percent(of.high)}]`;
}

/** The same with a picture before it, on a scale from 0 to `most`. */
export function pictured(of, most, text) {
  if (!of) return "–";
  const x = (number) => 4 + (WIDTH - 8) * Math.max(0, Math.min(1, number / (most || 1)));
  const picture = svg("svg", { class: "whisker", width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    svg("line", { class: "grid", x1: 4, x2: WIDTH - 4, y1: 8, y2: 8 }),
    of.low === null ? null : svg("path", { class: "range", d: `M${x(of.low)} 8H${x(of.high)}M${x(of.low)} 4v8M${x(of.high)} 4v8` }),
    svg("circle", { class: "point", cx: x(of.value), cy: 8, r: 4 }));
  return el("span", { class: "pictured" }, picture, el("span", null, text(of)));
}
