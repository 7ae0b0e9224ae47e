// The orchestrator's page: strategies over time, runs, recent attempts, tickets.

import { Chart, roomIn, ticks } from "./chart.js";
import { el, facts, put, svg, table } from "./dom.js";
import { clip, count, moment, percent, seconds, significant } from "./format.js";
import { chip, top } from "./frame.js";
import { follow, load, pageKey } from "./source.js";

const COLOURS = ["p0", "p1", "p2", "p3", "p4", "p5"];
const main = document.getElementById("main");
const connection = top("orchestrator");
let shown = "";

follow(pageKey, update, connection);

async function update() {
  const answer = await load(`/api/${pageKey}`);
  if (!answer) {
    put(main, el("h1", null, "There is no ledger in this project."));
    return;
  }
  const text = JSON.stringify(answer);
  if (text === shown) return;
  shown = text;
  const names = Object.keys(answer.stats.strategies);
  put(main,
    head(answer),
    el("section", null, el("h2", null, "Strategies"), strategies(answer.stats.strategies), answer.series.length ? series(answer.series, names) : null),
    el("section", null, el("h2", null, "Runs"), runs(answer.runs)),
    el("section", null, el("h2", null, "Lanes and throttle"), lanes(answer)),
    el("section", null, el("h2", null, "Recent attempts"), recent(answer.recent)),
    el("section", null, el("h2", null, "Lemma tickets"), tickets(answer.marketplace)));
}

function head({ run, stats }) {
  return el("section", { class: "run-head" },
    el("h1", null, run.run_id, " ", chip(run.liveness)),
    el("p", { class: "soft" }, run.liveness.detail),
    facts([
      ["goals solved", el("strong", null, `${stats.goals.solved} of ${stats.goals.tried}`)],
      ["attempts", stats.attempts],
      ["succeeded", stats.successes],
      ["time", seconds(run.spent.seconds)],
      ["CPU", seconds(run.spent.cpu_seconds)],
      ["cached tactics", `${stats.tactic_cache.entries} (${count(stats.tactic_cache.uses, "use")})`],
      ["last attempt", moment(run.created_at)],
    ]));
}

function swatch(names, name) {
  return el("i", { class: `swatch ${COLOURS[names.indexOf(name) % COLOURS.length]}` });
}

function strategies(found) {
  const names = Object.keys(found);
  if (!names.length) return el("p", { class: "soft" }, "There are no attempts yet.");
  return table(["strategy", "attempts", "succeeded", "success", "mean time", "UCB score", "trials", "wasted CPU"],
    names.map((name) => {
      const one = found[name];
      return [el("span", null, swatch(names, name), name), one.attempts, one.successes, percent(one.success_rate, 0).replace("+", ""), seconds(one.avg_time),
        one.ucb === null || one.ucb === undefined ? "–" : significant(one.ucb, 3), one.trials ?? "–", seconds(one.wasted_cpu_seconds)];
    }), [1, 2, 3, 4, 5, 6, 7]);
}

/** Three small charts over the attempts in order: success, UCB score and CPU wasted so far. */
function series(points, names) {
  const width = roomIn(main, 385);
  const plot = (title, field, label) => el("figure", null, el("figcaption", { class: "small soft" }, title), lines(points, names, field, label, width));
  return el("div", { class: "plots" },
    plot("Success rate so far", "rate", (value) => percent(value, 0).replace("+", "")),
    plot("UCB score", "ucb", (value) => significant(value, 3)),
    plot("CPU wasted so far", "wasted", (value) => seconds(value)));
}

function lines(points, names, field, label, width) {
  const chart = new Chart({ width, height: 170, left: 56, label: field });
  const values = points.map((point) => point[field] ?? 0);
  const marks = ticks(0, Math.max(...values, 1e-9), 4);
  chart.xScale(0, Math.max(1, ...points.map((point) => point.attempts)));
  chart.yScale(0, marks.at(-1));
  chart.yAxis(marks, label);
  chart.xAxis(ticks(0, Math.max(1, ...points.map((point) => point.attempts)), 4).filter((value) => Number.isInteger(value)), String);
  for (const name of names) {
    const own = points.filter((point) => point.strategy === name && point[field] !== null);
    const d = own.map((point, i) => `${i ? "L" : "M"}${chart.x(point.attempts).toFixed(1)} ${chart.y(point[field]).toFixed(1)}`).join("");
    chart.root.append(svg("path", { class: `series ${COLOURS[names.indexOf(name) % COLOURS.length]}`, d }, svg("title", null, name)));
  }
  return chart.root;
}

function runs(found) {
  if (!found.length) return el("p", { class: "soft" }, "No run is recorded.");
  return table(["run", "kind", "subject", "started", "ended"], found.map((one) => [
    one.run_id, one.kind, clip(one.subject, 60), moment(one.started_at), one.finished_at ? moment(one.finished_at) : el("strong", null, "open")]));
}

/** Slots as configured, the machine's load against the throttle's target, and what ran. */
function lanes({ runs: all, machine_load: load, minutes }) {
  const config = all.find((one) => one.finished_at === null)?.config ?? all[0]?.config;
  const target = config?.cpu_target;
  return el("div", null,
    facts([
      ["slots, light lane", config?.max_light], ["slots, heavy lane", config?.max_heavy],
      ["machine load per core", load],
      ["throttle", target === undefined ? null : load > target ? `above its target of ${target}: new goals wait` : `below its target of ${target}`],
    ]),
    minutes.length ? table(["minute", "attempts ended", "at once", "CPU seconds"],
      minutes.map((one) => [moment(one.minute + "Z"), one.attempts, significant(one.at_once, 2), significant(one.cpu_seconds, 3)]), [1, 2, 3]) : null);
}

function recent(found) {
  if (!found.length) return el("p", { class: "soft" }, "No attempts yet.");
  return table(["when", "strategy", "outcome", "took", "goal", "tactics"], found.map((one) => [
    moment(one.timestamp), one.strategy, el("span", { class: `outcome ${one.status}`, title: one.error ?? "" }, one.status ?? (one.success ? "proved" : "failed")), seconds(one.time_seconds),
    el("code", null, clip(one.goal_text, 90)), el("code", null, clip((one.tactics ?? []).join("; ") || one.error || "", 70))]), [3], "The latest first");
}

function tickets(found) {
  if (!found.total) return el("p", { class: "soft" }, "There are no tickets yet.");
  return table(["ticket", "status", "priority", "goal", "asked for by", "claimed by"], found.tickets.slice(0, 100).map((one) => [
    one.suggested_name || one.ticket_id, el("span", { class: `outcome ${one.status}` }, one.status), significant(one.priority, 2), el("code", null, clip(one.goal, 90)), one.requested_by, one.claimed_by ?? one.completed_by ?? "–"]), [2],
  Object.entries(found.by_status).map(([status, number]) => `${number} ${status}`).join(", "));
}
