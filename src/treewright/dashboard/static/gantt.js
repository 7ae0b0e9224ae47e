// When each evaluation of a depth waited and ran, and in which phase.

import { Chart, ticks } from "./chart.js";
import { svg } from "./dom.js";
import { clip, seconds } from "./format.js";
import { LANE, changesOf, drawChanges } from "./steering.js";

export const PHASES = ["implement", "tests", "sweep", "score"];
const MOST_ROWS = 60;
const TALLEST_ROW = 16;
const TALLEST = 1000;

/** `changes` are the user's changes in this time; `onChange` gets the chosen one. */
export function gantt(model, depth, width, onSelect, changes = [], onChange = () => {}) {
  const now = Date.now();
  const shown = [...model.evals.values()].filter((one) => one.depth === depth && one.started);
  if (!shown.length) return null;
  const running = (one) => one.status === "running";
  const spans = shown.map((one) => ({ one, from: Math.min(one.queued ?? one.started, one.started), start: one.started, end: one.finished ?? (running(one) ? now : one.started) }));
  const zero = Math.min(...spans.map((span) => span.start));
  const last = Math.max(...spans.map((span) => span.end));
  const rows = placed(spans);
  const row = Math.min(TALLEST_ROW, TALLEST / rows);
  const left = width < 500 ? 70 : 110;
  const marked = changesOf(model, depth, changes, zero, last);
  const above = marked.length ? LANE : 8;
  const chart = new Chart({ width, height: rows * row + above + 36, left, top: above, bottom: 32, label: `When the evaluations of depth ${depth} ran` });
  chart.xScale(0, (last - zero) / 1000);
  chart.xAxis(ticks(0, (last - zero) / 1000, Math.min(8, width / 110)).filter((value) => value <= (last - zero) / 1000), (value) => seconds(value));
  for (const span of spans) bar(chart, span, zero, row, onSelect);
  drawChanges(chart, marked, { zero, last, height: rows * row, onPick: onChange });
  for (const [at, label] of labels(spans)) chart.text(left - 6, above + at * row + 12, clip(label, width < 500 ? 9 : 15), "end");
  return chart.root;
}

/** Gives every span its row: its own while they are few, else a free slot of its worker. */
function placed(spans) {
  if (spans.length <= MOST_ROWS) {
    spans.forEach((span, i) => Object.assign(span, { row: i, label: span.one.id }));
    return spans.length;
  }
  const workers = new Map();
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    const name = span.one.worker ?? "";
    const slots = workers.get(name) ?? workers.set(name, []).get(name);
    let slot = slots.findIndex((end) => end <= span.start);
    if (slot < 0) slot = slots.length;
    slots[slot] = span.end;
    Object.assign(span, { worker: name, slot });
  }
  let base = 0;
  const bases = new Map();
  for (const name of [...workers.keys()].sort()) {
    bases.set(name, base);
    base += workers.get(name).length;
  }
  for (const span of spans) Object.assign(span, { row: bases.get(span.worker) + span.slot, label: span.slot ? "" : span.worker });
  return base;
}

function labels(spans) {
  return new Map(spans.filter((span) => span.label).map((span) => [span.row, span.label]));
}

function bar(chart, span, zero, row, onSelect) {
  const at = (moment) => chart.x((moment - zero) / 1000);
  const y = chart.top + (span.row + 0.2) * row;
  const { one } = span;
  const group = chart.add("g", { class: "bar-of", tabindex: span.label === one.id ? "0" : null, role: "button", "aria-label": `${one.id} ${one.title}` },
    svg("title", null, `${one.id} ${one.title}: ${one.fate ?? one.status}, ${seconds((span.end - span.start) / 1000)}`));
  group.addEventListener("click", () => onSelect(one.id));
  group.addEventListener("keydown", (event) => event.key === "Enter" && onSelect(one.id));
  const rect = (from, to, kind) => group.append(svg("rect", { class: kind, x: from, y, width: Math.max(0.8, to - from), height: 0.65 * row }));
  let from = span.start;
  const total = PHASES.reduce((sum, phase) => sum + (one.phases[phase] ?? 0), 0);
  if (!total) rect(at(span.start), at(span.end), one.status === "running" ? "running" : "p4");
  // Phases are measured by the worker; what the queue adds around them is drawn as it is.
  const share = total ? Math.min(1, (span.end - span.start) / (1000 * total)) : 0;
  PHASES.forEach((phase, i) => {
    const length = 1000 * share * (one.phases[phase] ?? 0);
    if (length) rect(at(from), at(from + length), `p${i}`);
    from += length;
  });
}
