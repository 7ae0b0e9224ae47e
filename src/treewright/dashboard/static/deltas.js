// Paired differences, config by config, with the mean's interval. Right of zero is better.

import { Chart, ticks } from "./chart.js";
import { el, svg } from "./dom.js";
import { gain, significant } from "./format.js";

export function deltas(metric, width) {
  const { of, pairs } = metric;
  const words = of ? `${gain(of.gain, of.gain_low, of.gain_high)} · ${of.verdict}` : "not measured";
  const head = el("p", { class: "metric" },
    el("strong", null, metric.name), metric.primary ? el("span", { class: "kind" }, "primary") : null,
    el("span", { class: `verdict ${of?.verdict ?? ""}` }, words),
    el("span", { class: "soft small" }, metric.direction === "minimize" ? "lower is better" : "higher is better"));
  return el("div", { class: "deltas" }, head, pairs.length ? picture(metric, width) : null);
}

function picture({ name, of, pairs }, width) {
  const values = pairs.map(([, value]) => value);
  if (of?.gain_low !== null && of?.gain_low !== undefined) values.push(of.gain_low, of.gain_high);
  const marks = ticks(Math.min(0, ...values), Math.max(0, ...values), Math.max(3, width / 90));
  const chart = new Chart({ width, height: 92, left: 24, right: 24, top: 6, bottom: 24, label: `Gain of ${name} for ${pairs.length} configs` });
  chart.xScale(marks[0], marks.at(-1));
  chart.xAxis(marks, (value) => significant(value, 3).replace("-", "−"));
  chart.add("line", { class: "zero", x1: chart.x(0), x2: chart.x(0), y1: 4, y2: 70 });
  if (of?.gain_low !== null && of?.gain_low !== undefined) {
    const [low, high] = [chart.x(of.gain_low), chart.x(of.gain_high)];
    chart.add("rect", { class: "interval", x: low, y: 6, width: Math.max(1, high - low), height: 62 });
    chart.add("line", { class: "mean", x1: chart.x(of.gain), x2: chart.x(of.gain), y1: 6, y2: 68 });
  }
  pairs.forEach(([config, value], i) => {
    const y = 12 + ((i * 29) % 50);
    chart.add("circle", { class: value < 0 ? "point worse" : "point", cx: chart.x(value), cy: y, r: pairs.length > 200 ? 1.8 : 3 },
      svg("title", null, `config ${config}: ${gain(value)}`));
  });
  return chart.root;
}
