// The home page: every run with its state, progress, best, time left and spending.

import { el } from "./dom.js";
import { clip, cost, count, gain, moment, percent, seconds } from "./format.js";
import { bar, chip, top } from "./frame.js";
import { follow, load } from "./source.js";

const KINDS = { tree: "code", proof: "proof", experiment: "experiment", bank: "bank" };
const main = document.getElementById("main");
const connection = top("");
const picked = new Map(); // key -> kind, of the runs to compare

follow(null, async () => show(await load("/api/runs")), connection);

function show({ roots, runs }) {
  const order = { running: 0, stalled: 1, damaged: 1 };
  const sorted = [...runs].sort((a, b) => (order[a.liveness.state] ?? 2) - (order[b.liveness.state] ?? 2));
  const focused = document.activeElement?.getAttribute?.("href");
  main.replaceChildren(
    el("h1", null, "Runs"),
    ...(sorted.length ? [comparing(), list(sorted)] : [empty(roots)]),
    el("p", { class: "soft small" }, "Looking in ", roots.map((root, i) => [i ? ", " : "", el("code", null, root)])),
  );
  if (focused) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

function empty(roots) {
  return el("div", { class: "empty" },
    el("p", null, "There are no runs here yet."),
    el("p", { class: "soft" }, "Start one with ", el("code", null, "treewright tree"),
      " in ", el("code", null, roots[0]), "; it appears here by itself."));
}

/** Says what is missing for a comparison, or leads to it. */
function comparing() {
  const keys = [...picked.keys()];
  const kinds = new Set(picked.values());
  const query = new URLSearchParams(keys.map((key) => ["run", key]));
  const said = kinds.size > 1 ? "Runs of one kind can be compared; these are of two."
    : keys.length > 1 ? el("a", { href: `/compare?${query}` }, `Compare ${keys.length} runs`)
      : "Choose two or more runs of one kind to compare them.";
  return el("p", { class: "compare-bar small soft", "aria-live": "polite" }, said);
}

function pick(run) {
  if (!["tree", "proof"].includes(run.kind)) return null;
  const change = (event) => {
    if (event.currentTarget.checked) picked.set(run.key, run.kind);
    else picked.delete(run.key);
    main.querySelector(".compare-bar").replaceWith(comparing());
  };
  const box = el("input", { type: "checkbox", class: "pick", "aria-label": `Compare ${run.run_id}`, onchange: change });
  box.checked = picked.has(run.key);
  return box;
}

function list(runs) {
  const head = ["run", "state", "progress", "best so far", "time left", "spent", "started"];
  return el("div", { class: "runs", role: "table", "aria-label": "Runs" },
    el("div", { role: "row", class: "head" }, head.map((name) => el("span", { role: "columnheader" }, name))),
    runs.map(row));
}

function row(run) {
  const cell = (name, ...content) => el("span", { role: "cell", class: name }, ...content);
  return el("div", { role: "row", class: "run", "data-key": run.key },
    cell("name",
      pick(run),
      el("a", { href: `/${run.key}` }, run.run_id),
      el("span", { class: "kind" }, KINDS[run.kind]),
      run.dry_run ? el("span", { class: "kind" }, "dry run") : null),
    cell("state", chip(run.liveness), el("span", { class: "soft small why" }, run.liveness.detail)),
    cell("progress", ...progress(run)),
    cell("best", ...best(run)),
    cell("eta", run.eta_seconds === null ? "–" : `about ${seconds(run.eta_seconds)}`),
    cell("spent", spent(run)),
    cell("started", moment(run.created_at)));
}

const WHAT = { tree: "evaluations", proof: "goals", experiment: "runs", bank: "goals" };

function progress(run) {
  if (!run.progress) return ["–"];
  const { done, of } = run.progress;
  const more = { tree: () => `, depth ${run.progress.depth} of ${run.progress.max_depth}`, proof: () => `, ${count(run.iterations, "iteration")}`, experiment: () => "", bank: () => `, ${count(run.attempts, "attempt")}` }[run.kind]();
  if (of === null) return [el("span", { class: "small" }, `${count(done, "goal")} decided so far${more}`)];
  const what = WHAT[run.kind];
  return [bar(done, of, `${done} of ${of} ${what}`), el("span", { class: "small" }, `${done.toLocaleString("en")} of ${of.toLocaleString("en")} ${what}${more}`)];
}

function best(run) {
  if (run.kind === "tree" && run.best) {
    return [el("strong", null, percent(run.best.score)), el("span", { class: "soft small" },
      run.best_path.length > 1 ? ` ${run.best.node} · ${run.metric.name} ${gain(run.best.gain, run.best.low, run.best.high)}` : " nothing better than the root yet")];
  }
  if (run.kind === "proof") return [el("strong", null, `${run.progress.proved} proved`), el("span", { class: "soft small" }, ` ${clip(run.target ?? "", 60)}`)];
  if (run.kind === "experiment") return [el("strong", null, `${run.progress.proved} proved`)];
  if (run.kind === "bank") return [el("strong", null, `${run.progress.done} solved`)];
  return ["–"];
}

function spent(run) {
  if (!run.spent) return "–";
  const parts = [seconds(run.spent.seconds)];
  const price = cost(run.spent, 2);
  if (price) parts.push(price === "unknown" ? "cost unknown" : price);
  const tokens = run.spent.prompt_tokens + run.spent.completion_tokens;
  if (tokens) parts.push(`${tokens.toLocaleString("en")} tokens`);
  return parts.join(" · ");
}
