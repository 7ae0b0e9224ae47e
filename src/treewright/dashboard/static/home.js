// The home page: every run with its state, progress, best, time left and spending.

import { el } from "./dom.js";
import { clip, cost, count, gain, moment, percent, seconds } from "./format.js";
import { bar, chip, top } from "./frame.js";
import { follow, load } from "./source.js";

const KINDS = { tree: "code", proof: "proof", bank: "bank" };
const main = document.getElementById("main");
const connection = top("");

follow(null, async () => show(await load("/api/runs")), connection);

function show({ roots, runs }) {
  const order = { running: 0, stalled: 1, damaged: 1 };
  const sorted = [...runs].sort((a, b) => (order[a.liveness.state] ?? 2) - (order[b.liveness.state] ?? 2));
  const focused = document.activeElement?.getAttribute?.("href");
  main.replaceChildren(
    el("h1", null, "Runs"),
    sorted.length ? list(sorted) : empty(roots),
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

function progress(run) {
  if (!run.progress) return ["–"];
  const { done, of } = run.progress;
  const what = run.kind === "tree" ? "evaluations" : "goals";
  const more = run.kind === "tree" ? `depth ${run.progress.depth} of ${run.progress.max_depth}`
    : run.kind === "proof" ? count(run.iterations, "iteration") : count(run.attempts, "attempt");
  if (of === null) return [el("span", { class: "small" }, `${count(done, "goal")} decided so far, ${more}`)];
  return [bar(done, of, `${done} of ${of} ${what}`), el("span", { class: "small" }, `${done.toLocaleString("en")} of ${of.toLocaleString("en")} ${what}, ${more}`)];
}

function best(run) {
  if (run.kind === "tree" && run.best) {
    return [el("strong", null, percent(run.best.score)), el("span", { class: "soft small" },
      run.best_path.length > 1 ? ` ${run.best.node} · ${run.metric.name} ${gain(run.best.gain, run.best.low, run.best.high)}` : " nothing better than the root yet")];
  }
  if (run.kind === "proof") return [el("strong", null, `${run.progress.proved} proved`), el("span", { class: "soft small" }, ` ${clip(run.target ?? "", 60)}`)];
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
