// The page of a tree run.

import { roomIn } from "./chart.js";
import { Detail } from "./detail.js";
import { choice, el, facts, put, table } from "./dom.js";
import { clip, cost, count, gain, percent, seconds } from "./format.js";
import { bar, chip, top } from "./frame.js";
import { PHASES, gantt } from "./gantt.js";
import { scoreChart } from "./score-chart.js";
import { changeTable } from "./steering.js";
import { exported, follow, load, pageKey } from "./source.js";
import { TreeCanvas } from "./tree-canvas.js";
import { TreeModel } from "./tree-model.js";

const HELP = "Arrow keys move, Enter opens the details, Space folds, + and − zoom, 0 shows all, b goes to the best.";
const MOST_ROWS = 200;
const model = new TreeModel();
const connection = top(pageKey.split("/").at(-1));
let toBest; // a button, of use once there is a best node
const view = frame();
const detail = new Detail(view.detail, pageKey, () => {
  view.split.classList.remove("open");
  history.replaceState(null, "", location.pathname);
  view.canvas.focus();
});
const tree = new TreeCanvas(view.canvas, model, { onSelect: select, onOpen: (id) => open(id, true), onHover: hint });
let depth = null;
let drawnWidth = 0;

follow(pageKey, update, connection);
addEventListener("hashchange", openFromAddress);
new ResizeObserver(() => model.run && roomIn(view.score) !== drawnWidth && charts()).observe(view.score);

async function update() {
  const answer = await load(`/api/${pageKey}?since=${encodeURIComponent(model.version ?? "")}`);
  if (!answer) {
    put(view.head, el("h1", null, "There is no such run."));
    return;
  }
  const changed = model.apply(answer);
  head();
  if (!changed) return;
  tree.update();
  toBest.disabled = !model.run.best;
  // The tree is seen first; what is below it can wait for the next turn.
  setTimeout(charts);
  // What the address names may be queued only later.
  if (detail.id) await detail.show(detail.id);
  else openFromAddress();
}

function frame() {
  const parts = {
    head: el("section", { class: "run-head", "aria-label": "The run" }),
    canvas: el("canvas", { class: "drawing", tabindex: "0", role: "application", "aria-label": "Search tree", "aria-describedby": "tree-help" }),
    hint: el("div", { class: "hint", hidden: true }),
    detail: el("aside", { class: "detail", "aria-label": "Details", hidden: true }),
    said: el("p", { class: "hidden", "aria-live": "polite" }),
    score: el("div"),
    gantt: el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Gantt" }),
    depths: el("div"),
    changes: el("div"),
    nodes: el("div"),
  };
  parts.split = el("div", { class: "split" },
    el("div", { class: "stage" }, parts.canvas, parts.hint, tools(), legend()), parts.detail);
  document.getElementById("main").replaceChildren(
    parts.head, parts.split, parts.said,
    el("p", { class: "soft small", id: "tree-help" }, HELP),
    el("section", null, el("h2", null, "Score over evaluations"), parts.score),
    el("section", null, el("h2", null, "When each evaluation ran"), parts.depths, parts.gantt, phases(), parts.changes),
    el("section", null, el("h2", null, "Nodes"), parts.nodes));
  return parts;
}

function tools() {
  const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  toBest = button("best", "Go to the best node", () => tree.select(model.run.best.node));
  toBest.disabled = true;
  return el("div", { class: "tools" },
    button("+", "Zoom in", () => tree.view.zoom(1.3)),
    button("−", "Zoom out", () => tree.view.zoom(1 / 1.3)),
    button("all", "Show all", () => tree.fit(true)),
    toBest);
}

function legend() {
  const one = (kind, text) => el("span", null, el("i", { class: kind }), text);
  return el("div", { class: "legend", "aria-hidden": "true" },
    one("on-path", "best path"), one("better", "better"), one("worse", "worse than the root"), one("faint", "not promoted"), one("failed", "failed"));
}

function phases() {
  return el("p", { class: "phases soft small" }, PHASES.map((phase, i) => el("span", null, el("i", { class: `p${i}` }), phase)));
}

function head() {
  const { run } = model;
  document.title = `${run.run_id} · Treewright`;
  if (!run.progress) {
    put(view.head, el("h1", null, run.run_id, " ", chip(run.liveness)), el("p", { class: "error" }, run.problem));
    return;
  }
  const { progress, best, spent, metric } = run;
  put(view.head,
    el("h1", null, run.run_id, " ", chip(run.liveness), run.dry_run ? el("span", { class: "kind" }, "dry run: made-up numbers") : null),
    el("p", { class: "soft state-detail" }, run.liveness.detail),
    run.stale_baseline ? el("p", { class: "error" }, `Stale baseline: ${run.stale_baseline}`) : null,
    facts([
      ["progress", [bar(progress.done, progress.of, "progress"), `${progress.done} of ${progress.of}`]],
      ["depth", `${progress.depth} of ${progress.max_depth}`],
      ["policy", run.policy],
      ["best", [el("strong", null, percent(best.score)), ` ${best.node}`]],
      [metric.name, gain(best.gain, best.low, best.high)],
      ["running", progress.running || null],
      ["failed", progress.failed || null],
      ["time left", run.eta_seconds === null || exported ? null : `about ${seconds(run.eta_seconds)}`],
      ["evaluating", seconds(spent.seconds)],
      ["cost", cost(spent, 2)],
      ["tokens", spent.prompt_tokens + spent.completion_tokens ? (spent.prompt_tokens + spent.completion_tokens).toLocaleString("en") : null],
      ["branch", best.ref ? el("code", null, best.ref) : null],
    ]));
}

function charts() {
  drawnWidth = roomIn(view.score);
  view.score.replaceChildren(scoreChart(model, roomIn(view.score)) ?? el("p", { class: "soft" }, "Nothing has been measured yet."));
  const depths = [...new Set([...model.evals.values()].filter((one) => one.started).map((one) => one.depth))].sort((a, b) => a - b);
  if (!depths.includes(depth)) depth = depths.at(-1) ?? null;
  view.depths.replaceChildren(depths.length ? choice("Depth", depths.map((d) => [d, `depth ${d}`]), depth, (chosen) => {
    depth = chosen;
    drawGantt();
  }) : "");
  drawGantt();
  view.nodes.replaceChildren(nodeTable());
}

function drawGantt() {
  const changes = model.run?.changes ?? [];
  const rows = new Map();
  const pick = (change) => point(rows.get(change));
  put(view.changes, changeTable(changes, { rows, has: (id) => model.get(id) !== null, go: (id) => tree.select(id) }));
  view.gantt.replaceChildren((depth !== null && gantt(model, depth, roomIn(view.score), (id) => tree.select(id), changes, pick)) || el("p", { class: "soft" }, "Nothing has run yet."));
}

/** Shows which line of the list a mark stands for. */
function point(sign) {
  for (const one of view.changes.querySelectorAll("tr.pointed")) one.classList.remove("pointed");
  sign?.closest("tr").classList.add("pointed");
  sign?.focus();
}

function nodeTable() {
  const rows = [...model.nodes.values()].sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, MOST_ROWS).map((node) => [
    el("button", { type: "button", class: "link", onclick: () => tree.select(node.id) }, node.id),
    node.depth, node.parent ? percent(node.score) : "–", gain(node.gain, node.low, node.high), node.evals,
    el("span", { class: model.onPath.has(node.id) ? "best-path" : null }, clip(node.title, 90)),
  ]);
  return table(["node", "depth", "score", "primary gain over the root", "evaluations", "idea"], rows, [1, 2, 3, 4], `${count(model.nodes.size, "node")}, the best first`);
}

function select(id, byKeyboard) {
  const item = model.get(id);
  view.said.textContent = `${id}, depth ${item.depth}, ${item.score === undefined || item.score === null ? item.status : percent(item.score)}, ${item.title}`;
  if (!byKeyboard) open(id, false);
}

function open(id, focus) {
  view.split.classList.add("open");
  history.replaceState(null, "", `#${id}`);
  detail.show(id, focus);
}

function openFromAddress() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (model.get(id) && id !== detail.id) tree.select(id);
}

function hint(item, place) {
  view.hint.hidden = !item;
  if (!item) return;
  const { of } = item;
  const score = of.score === undefined || of.score === null ? of.error ?? of.status : percent(of.score);
  view.hint.textContent = `${of.id} · ${score} · ${clip(of.title || "", 80)}`;
  view.hint.style.left = `${Math.min(place[0] + 14, Math.max(0, view.canvas.clientWidth - 300))}px`;
  view.hint.style.top = `${place[1] + 14}px`;
}
