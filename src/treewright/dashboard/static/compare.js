// Runs side by side: what each had found by evaluations, time and cost, and how the best differ.

import { Chart, roomIn, ticks } from "./chart.js";
import { el, put, svg, table } from "./dom.js";
import { clip, count, gain, percent, seconds, significant } from "./format.js";
import { top } from "./frame.js";
import { follow, load } from "./source.js";

const COLOURS = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
const AXES = { evaluations: "evaluations", seconds: "time", cost_usd: "cost" };
const VERDICTS = {
  better: "better", worse: "worse", no_difference: "no difference beyond noise", unknown: "unknown: too few pairs",
};
const main = document.getElementById("main");
const connection = top("comparison");
const asked = new URLSearchParams(location.search).getAll("run");
let shown = "";

follow(null, update, connection);

async function update() {
  const query = new URLSearchParams(asked.map((key) => ["run", key]));
  const answer = asked.length ? await load(`/api/compare?${query}`) : null;
  const text = JSON.stringify(answer);
  if (text === shown) return;
  shown = text;
  if (!answer || answer.problem) {
    put(main, el("h1", null, "These runs cannot be compared"),
      el("p", null, `${answer?.problem || "One of them is not there"}. `, el("a", { href: "/" }, "Choose others")));
    return;
  }
  const names = answer.runs.map((run) => run.name);
  put(main,
    el("h1", null, "Comparison"),
    el("section", null, runs(answer, names)),
    el("section", null, el("h2", null, what(answer)), charts(answer, names)),
    answer.differences.length ? el("section", null, el("h2", null, answer.kind === "proof" ? "Differences, goal by goal" : "Paired differences of the best"), differences(answer.differences)) : null,
    answer.kind === "search" ? null : el("section", null, el("h2", null, answer.kind === "tree" ? "Ideas" : "Goals"), ideas(answer)),
    answer.notes.map((note) => el("p", { class: "soft" }, note)));
}

function what({ kind }) {
  return kind === "proof" ? "Goals proved" : "Best found";
}

function swatch(names, name) {
  return el("i", { class: `swatch ${COLOURS[names.indexOf(name) % COLOURS.length]}` });
}

function amount(axis, value, kind) {
  if (axis === "seconds") return seconds(value);
  if (axis === "cost_usd") return value === null ? "–" : `$${significant(value, 3)}`;
  return count(value, kind === "proof" ? "simulation" : "evaluation");
}

/** A tree run's score is a share of the root's metric. */
function value(kind, best) {
  return kind === "tree" ? percent(best) : significant(best);
}

function runs({ runs: found, at_equal: equal, kind }, names) {
  const head = ["run", what({ kind }).toLowerCase(), kind === "proof" ? "simulations" : "evaluations", "time", "cost",
    ...equal.map((one) => `after ${amount(one.axis, one.amount, kind)}`)];
  return table(head, found.map((run) => [
    el("span", null, swatch(names, run.name), el("a", { href: `/${run.key}` }, run.name), run.is_finished ? null : el("span", { class: "soft small" }, " not finished")),
    el("span", null, value(kind, run.best), run.best_id ? el("span", { class: "soft small" }, ` ${run.best_id}`) : null),
    run.evaluations.toLocaleString("en"), seconds(run.seconds), amount("cost_usd", run.cost_usd, kind),
    ...equal.map((one) => value(kind, one.best[run.name]))]), head.map((_, i) => i).slice(1), "Runs");
}

function charts(answer, names) {
  const width = roomIn(main, 385);
  const drawn = Object.keys(AXES).filter((axis) => answer.runs.every((run) => run.points.some((point) => point[axis])));
  if (!drawn.length) return el("p", { class: "soft" }, "Nothing has been evaluated yet.");
  return el("div", { class: "plots" }, drawn.map((axis) => {
    const title = `${what(answer)} by ${axis === "evaluations" && answer.kind === "proof" ? "simulations" : AXES[axis]}`;
    return el("figure", null, el("figcaption", { class: "small soft" }, title), lines(answer, names, axis, title, width));
  }));
}

function lines({ runs: found, kind }, names, axis, title, width) {
  const chart = new Chart({ width, height: 190, left: 58, label: title });
  const points = found.flatMap((run) => run.points);
  const bests = points.map((point) => point.best);
  const end = Math.max(...points.map((point) => point[axis] ?? 0));
  const marks = ticks(Math.min(0, ...bests), Math.max(...bests), 4);
  chart.xScale(0, end);
  chart.yScale(marks[0], marks.at(-1));
  chart.yAxis(marks, (mark) => (kind === "tree" ? percent(mark, marks[1] - marks[0] < 0.01 ? 1 : 0) : significant(mark, 3)));
  const short = (value) => (axis === "evaluations" ? String(value) : amount(axis, value, kind));
  chart.xAxis(ticks(0, end, 4).filter((value) => value <= end && (axis !== "evaluations" || Number.isInteger(value))), short);
  for (const run of found) {
    const own = run.points.filter((point) => point[axis] !== null);
    if (!own.length) continue;
    const place = (point) => [chart.x(point[axis]).toFixed(1), chart.y(point.best).toFixed(1)];
    const [x, y] = place(own[0]);
    const d = own.slice(1).reduce((line, point) => `${line}H${place(point)[0]}V${place(point)[1]}`, `M${x} ${y}`);
    chart.root.append(svg("path", { class: `series ${COLOURS[names.indexOf(run.name) % COLOURS.length]}`, d }, svg("title", null, run.name)));
  }
  return chart.root;
}

function differences(found) {
  return table(["", "of", "difference, positive is better", "pairs", ""], found.map((one) => [
    `${one.run} against ${one.against}`, one.what, gain(one.difference, one.low, one.high), one.pairs,
    el("span", { class: `verdict ${one.verdict === "better" ? "improved" : one.verdict === "worse" ? "regressed" : ""}` }, VERDICTS[one.verdict])]), [2, 3], "Differences");
}

function ideas({ shared, alone, disagreeing, disagreements }) {
  const only = Object.entries(alone).map(([name, number]) => `${number.toLocaleString("en")} only in ${name}`);
  const names = Object.keys(alone);
  return el("div", null,
    el("p", null, [`${shared.toLocaleString("en")} shared`, ...only].join(", ")),
    disagreements.length ? table(["with different outcomes", ...names], disagreements.map((one) => [clip(one.title, 120), ...names.map((name) => one.outcomes[name] ?? "–")]), [], "Shared, with different outcomes") : null,
    disagreeing > disagreements.length ? el("p", { class: "soft small" }, `${count(disagreeing - disagreements.length, "more")}; treewright compare --json has all`) : null);
}
