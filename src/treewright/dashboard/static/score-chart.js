// Score over evaluations: every measured candidate as a dot, the best so far as a line.

import { Chart, ticks } from "./chart.js";
import { percent } from "./format.js";

export function scoreChart(model, width) {
  const chart = new Chart({ width, height: 220, label: "Root-relative score over evaluations" });
  const finished = [...model.evals.values()].filter((one) => one.finished).sort((a, b) => a.finished - b.finished || (a.id < b.id ? -1 : 1));
  const measured = finished.map((one, i) => [i + 1, one]).filter(([, one]) => one.score !== null && one.score !== undefined && !one.error);
  if (!measured.length) return null;
  const scores = measured.map(([, one]) => one.score).sort((a, b) => a - b);
  // A few diverged candidates must not flatten everything else.
  const floor = scores[Math.floor(scores.length * 0.02)];
  const marks = ticks(Math.min(0, Math.max(floor, -2 * Math.max(0.01, scores.at(-1)))), Math.max(0.001, scores.at(-1)));
  chart.xScale(0, finished.length);
  chart.yScale(marks[0], marks.at(-1));
  chart.xAxis(ticks(0, finished.length, Math.min(8, width / 90)).filter((value) => value <= finished.length && Number.isInteger(value)), String);
  chart.yAxis(marks, (value) => percent(value, marks[1] - marks[0] < 0.01 ? 1 : 0));
  const within = (score) => Math.max(score, marks[0]);
  const dots = (chosen) => measured.filter(chosen).map(([at, one]) => `M${chart.x(at).toFixed(1)} ${chart.y(within(one.score)).toFixed(1)}h0`).join("");
  chart.add("path", { class: "dots", d: dots(([, one]) => !one.node) });
  chart.add("path", { class: "dots promoted", d: dots(([, one]) => one.node) });
  let best = 0;
  let line = `M${chart.x(0)} ${chart.y(0)}`;
  for (const [at, one] of measured) {
    if (one.score > best && (one.node || one.fate === null || one.fate === undefined)) {
      best = one.score;
      line += `H${chart.x(at).toFixed(1)}V${chart.y(best).toFixed(1)}`;
    }
  }
  chart.add("path", { class: "bestline", d: `${line}H${chart.x(finished.length)}` });
  return chart.root;
}
