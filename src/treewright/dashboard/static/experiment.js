// The page of an experiment: the plan's grid, each run in it, and what they show together.

import { el, facts, put, table } from "./dom.js";
import { count, seconds, significant, visible } from "./format.js";
import { bar, chip, top } from "./frame.js";
import { interval, pictured, share } from "./intervals.js";
import { exported, follow, load, pageKey } from "./source.js";

const MOST_BOXES = 4000;
const MOST_ROWS = 200;
const STATES = {
  proved: "proved", unproved: "not proved", partial: "proved in part", false: "false", rejected: "rejected", ill_typed: "ill typed",
  running: "running", interrupted: "interrupted", waiting: "waiting",
};
const SIGNS = { proved: "✓", unproved: "–", partial: "½", false: "≠", rejected: "!", ill_typed: "!", running: "▸", interrupted: "‖", waiting: "" };
const DAMAGE = "Each arm against the undamaged runs of the same goal, seed and number of agents. Retained is the share of what the undamaged search solved that this one solved too; ratios are geometric means over pairs that both solved; p is McNemar's exact test. Intervals are of 95 %.";
const CENTRAL = "The undamaged distributed runs (after) against the centralized ones (before), paired by goal and seed.";

const main = document.getElementById("main");
const connection = top(pageKey.split("/").at(-1));
let shown = "";

follow(pageKey, update, connection);

async function update() {
  const answer = await load(`/api/${pageKey}`);
  if (!answer) {
    put(main, el("h1", null, "There is no such experiment."));
    return;
  }
  const text = JSON.stringify(answer, (name, value) => (name === "heartbeat_age" ? undefined : value));
  if (text === shown) return;
  shown = text;
  document.title = `${answer.run.run_id} · Treewright`;
  const focused = document.activeElement?.getAttribute?.("href");
  put(main, head(answer), answer.plan ? body(answer) : null);
  if (focused) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function body({ plan, cells, groups, damage, central, curves }) {
  return [
    section("The grid", grid(plan, cells), legend(cells)),
    section("Measures", groups.length ? measures(groups, plan) : el("p", { class: "soft" }, "No run is finished yet.")),
    damage.length ? section("Under damage", el("p", { class: "soft small" }, DAMAGE), compared(damage)) : null,
    central.length ? section("Distributed against centralized", el("p", { class: "soft small" }, CENTRAL), compared(central)) : null,
    curves.length ? section("Dose and response", curves.map(curve)) : null,
    section("Runs", runs(cells)),
  ];
}

function section(title, ...content) {
  return el("section", null, el("h2", null, title), content);
}

function head({ run, plan }) {
  const { done, of, proved } = run.progress;
  return el("section", { class: "run-head", "aria-label": "The experiment" },
    el("h1", null, run.run_id, " ", chip(run.liveness), el("span", { class: "kind" }, "experiment")),
    el("p", { class: run.problem ? "error" : "soft" }, run.liveness.detail),
    plan ? facts([
      ["runs", [bar(done, of, "runs finished"), `${done.toLocaleString("en")} of ${of.toLocaleString("en")} finished`]],
      ["proved", proved.toLocaleString("en")],
      ["modes", plan.modes.join(", ")],
      ["agents", plan.agents.join(", ") || null],
      ["seeds", plan.seeds.length > 8 ? count(plan.seeds.length, "seed") : plan.seeds.join(", ")],
      ["goals", plan.goals.length],
      ["simulations", plan.simulations],
      ["time in searches", seconds(run.seconds)],
    ]) : null);
}

/** Goals down, setups across, a box for each seed. */
function grid(plan, cells) {
  const setups = [...new Map(cells.map((cell) => [setupOf(cell), cell])).values()];
  const places = new Map();
  for (const cell of cells) {
    const key = JSON.stringify([cell.goal, setupOf(cell)]);
    if (!places.has(key)) places.set(key, []);
    places.get(key).push(cell);
  }
  const fit = Math.max(1, Math.floor(MOST_BOXES / Math.max(1, cells.length / plan.goals.length)));
  const rows = plan.goals.slice(0, fit).map((goal) => [
    el("span", { title: visible(goal.statement, 300) }, visible(goal.name, 40)),
    ...setups.map((of) => el("span", { class: "boxes" }, (places.get(JSON.stringify([goal.name, setupOf(of)])) ?? []).map(box))),
  ]);
  const left = plan.goals.length - rows.length;
  return table(["goal", ...setups.map((of) => el("span", { class: "setup" }, of.setup, el("br"), el("span", { class: "soft" }, visible(of.arm === "none" ? "undamaged" : of.arm, 40))))], rows, [],
    `A box is a run, one for each seed; ${left ? `the first ${rows.length} of ${count(plan.goals.length, "goal")}` : "follow it to its proof page"}`);
}

const setupOf = ({ setup, arm }) => JSON.stringify([setup, arm]);

function box(cell) {
  const words = `${cell.goal}, ${cell.setup}, ${cell.arm}, seed ${cell.seed}: ${STATES[cell.state] ?? cell.state}${cell.steps === undefined ? "" : ` after ${count(cell.steps, "step")}`}`;
  const given = { class: `box ${cell.state}`, title: visible(words, 300), "aria-label": visible(words, 300) };
  return linked(cell) ? el("a", { ...given, href: addressOf(cell) }, SIGNS[cell.state] ?? "?") : el("span", { ...given, role: "img" }, SIGNS[cell.state] ?? "?");
}

const linked = (cell) => cell.opens && !exported;
const addressOf = (cell) => `/${pageKey}/${encodeURIComponent(cell.id)}`;

/** Only states that occur. */
function legend(cells) {
  const found = new Set(cells.map((cell) => cell.state));
  return el("p", { class: "key soft small" }, Object.keys(STATES).filter((state) => found.has(state)).map((state) => el("span", null, el("span", { class: `box ${state}`, "aria-hidden": "true" }, SIGNS[state]), ` ${STATES[state]}`)));
}

function measures(groups, plan) {
  return table(["setup", "intervention", "runs", "solve rate", "steps", "attempts", "gain over dip", "alike − chance"], groups.map((one) => [
    line(one.setup), line(visible(one.arm, 40)), one.runs,
    pictured(one.solved, 1, share), pictured(one.steps, plan.simulations, interval),
    line(interval(one.attempts)), line(interval(one.gain_over_dip)), line(interval(one.alike)),
  ]), [2], "Means over goals and seeds with intervals of 95 %; unsolved runs count with the limit of steps");
}

function compared(found) {
  return table(["setup", "intervention", "pairs", "solve rate before", "after", "difference", "retained", "steps ratio", "attempts ratio", "lost / won", "p"], found.map(({ setup, arm, placebo, found: of }) => [
    line(setup), line(`${visible(arm, 40)}${placebo ? " (no damage)" : ""}`), of.pairs, line(share(of.undamaged)), line(share(of.damaged)), line(interval(of.difference)),
    line(share(of.retained)), line(interval(of.steps_ratio)), line(interval(of.attempts_ratio)), `${of.lost} / ${of.won}`, of.p === null ? "–" : of.p.toFixed(3),
  ]), [2, 9, 10]);
}

function curve({ agents, label, found }) {
  const most = Math.max(0, ...found.levels.map((level) => level.steps?.high ?? level.steps?.value ?? 0));
  const trend = (name, of) => el("li", null, `${name}: `, of.undefined ?? `slope ${significant(of.slope, 3)} per unit of dose, p = ${of.p.toFixed(3)} (${count(of.blocks, "block")})`);
  const { control } = found;
  return el("div", null, el("h3", null, `${visible(label, 60)}, ${agents} agents`),
    table(["block fraction", "runs", "solve rate", "steps"], found.levels.map((level) => [significant(level.dose, 3), level.trials, pictured(level.solved, 1, share), pictured(level.steps, most, interval)]), [0, 1]),
    el("ul", { class: "small" }, trend("solve rate", found.solve_trend), trend("steps", found.steps_trend),
      el("li", null, "null control: ", control.undefined ?? `undamaged runs with made-up doses gave p ≤ 0.05 in ${(100 * (control.false_positives ?? 0)).toFixed(1)} % of ${control.repetitions} repetitions`)));
}

const line = (content) => el("span", { class: "line" }, content);

function runs(cells) {
  const rows = cells.slice(0, MOST_ROWS).map((cell) => [
    line(linked(cell) ? el("a", { href: addressOf(cell) }, cell.id) : cell.id),
    el("span", { class: `outcome line ${cell.state}` }, STATES[cell.state] ?? cell.state),
    line(visible(cell.goal, 40)), line(cell.setup), line(visible(cell.arm, 40)), cell.seed, cell.steps ?? "–", cell.attempts ?? "–", cell.seconds === undefined ? "–" : seconds(cell.seconds), visible(cell.detail ?? "", 120),
  ]);
  return table(["run", "state", "goal", "setup", "intervention", "seed", "steps", "attempts", "time", ""], rows, [5, 6, 7, 8], cells.length > rows.length ? `The first ${rows.length} of ${count(cells.length, "run")}, in the order of the plan` : "In the order of the plan");
}
