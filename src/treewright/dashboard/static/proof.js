// The page of a proof run: the tree at any moment, a slider through time, the proof.

import { choice, el, facts, put, table } from "./dom.js";
import { clip, count, significant } from "./format.js";
import { bar, chip, top } from "./frame.js";
import { agentColour, palette } from "./palette.js";
import { ProofCanvas } from "./proof-canvas.js";
import { Replay, goalLine, goalText } from "./replay.js";
import { follow, load, pageKey } from "./source.js";

const PLAY_MILLISECONDS = 120;
const replay = new Replay();
const connection = top(pageKey.split("/").at(-1));
const view = frame();
const picture = new ProofCanvas(view.canvas, { onSelect: select, onOpen: (id) => open(id, true), onHover: hint });
let run = null;
let goal = null;
let now = 0;
let playing = null;

follow(pageKey, update, connection);

async function update() {
  let changed = false;
  let more = true;
  while (more) {
    const answer = await load(`/api/${pageKey}?since=${encodeURIComponent(replay.version ?? "")}`);
    if (!answer) {
      put(view.head, el("h1", null, "There is no such run."));
      return;
    }
    run = answer.run;
    changed = replay.apply(answer.trace) || changed;
    more = answer.trace.more;
  }
  head();
  if (!changed) return;
  const atEnd = Number(view.slider.value) >= Number(view.slider.max);
  view.slider.max = replay.iterations.length;
  if (atEnd && !playing) now = replay.iterations.length;
  if (goal === null || !replay.goals.has(goal)) goal = replay.goals.keys().next().value ?? null;
  marks();
  goals();
  show();
}

function frame() {
  const parts = {
    head: el("section", { class: "run-head", "aria-label": "The run" }),
    goals: el("div"),
    canvas: el("canvas", { class: "drawing", tabindex: "0", role: "application", "aria-label": "Proof tree", "aria-describedby": "proof-help" }),
    hint: el("div", { class: "hint", hidden: true }),
    detail: el("aside", { class: "detail", "aria-label": "Details", hidden: true }),
    said: el("p", { class: "hidden", "aria-live": "polite" }),
    slider: el("input", { type: "range", min: "0", max: "0", value: "0", id: "time", oninput: () => go(Number(parts.slider.value)) }),
    play: el("button", { type: "button", onclick: () => play() }, "Play"),
    moment: el("output", { for: "time" }),
    marks: el("div", { class: "marks", "aria-hidden": "true" }),
    agents: el("p", { class: "agents small" }),
    verdict: el("div"),
    events: el("div"),
  };
  parts.split = el("div", { class: "split" }, el("div", { class: "stage" }, parts.canvas, parts.hint, tools(), legend()), parts.detail);
  document.getElementById("main").replaceChildren(
    parts.head, parts.goals,
    el("div", { class: "time" }, parts.play, el("label", { for: "time" }, "iteration"), el("div", { class: "track" }, parts.slider, parts.marks), parts.moment),
    parts.agents, parts.split, parts.said,
    el("p", { class: "soft small", id: "proof-help" }, "Arrow keys move, Enter opens the goal, Space folds, + and − zoom, 0 shows all."),
    el("section", null, el("h2", null, "The proof"), parts.verdict),
    el("section", null, el("h2", null, "What happened"), parts.events));
  return parts;
}

function tools() {
  const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  return el("div", { class: "tools" }, button("+", "Zoom in", () => picture.view.zoom(1.3)), button("−", "Zoom out", () => picture.view.zoom(1 / 1.3)), button("all", "Show all", () => picture.fit(true)));
}

function legend() {
  const one = (kind, text) => el("span", null, el("i", { class: kind }), text);
  return el("div", { class: "legend", "aria-hidden": "true" }, one("solved", "solved"), one("open", "open"), one("dead", "dead end"));
}

function head() {
  document.title = `${run.run_id} · Treewright`;
  const { counters, progress } = run;
  put(view.head,
    el("h1", null, run.run_id, " ", chip(run.liveness), run.mode ? el("span", { class: "kind" }, [run.mode, run.policy].filter(Boolean).join(", ")) : null),
    el("p", { class: "soft" }, run.liveness.detail),
    run.problem ? el("p", { class: "error" }, run.problem) : null,
    facts([
      ["target", run.target],
      ["goals", progress.of === null ? `${progress.proved} proved, ${progress.done} decided so far`
        : [bar(progress.done, progress.of, "goals decided"), `${progress.proved} of ${progress.of} proved`]],
      ["iterations", run.iterations],
      ["nodes", counters.nodes], ["edges", counters.edges], ["attempts", counters.attempts],
    ]));
}

function goals() {
  const options = [...replay.goals.values()].slice(0, 200).map((record) => {
    const verdict = replay.verdicts.get(record.goal);
    return [record.goal, `${verdict ? (verdict.status === "proved" ? "✓ " : "✗ ") : ""}${record.name || `goal ${record.goal}`}`];
  });
  put(view.goals, options.length > 1 ? choice("Goal", options, goal, (chosen) => {
    goal = chosen;
    picture.reset();
    view.detail.hidden = true;
    view.split.classList.remove("open");
    marks();
    show();
  }) : null);
}

function go(n) {
  now = Math.max(0, Math.min(n, replay.iterations.length));
  show();
}

function play() {
  if (playing) {
    clearInterval(playing);
    playing = null;
  } else {
    if (now >= replay.iterations.length) now = 0;
    const stride = Math.max(1, Math.round(replay.iterations.length / 300));
    playing = setInterval(() => (now >= replay.iterations.length ? play() : go(now + stride)), PLAY_MILLISECONDS);
  }
  view.play.textContent = playing ? "Pause" : "Play";
}

function show() {
  view.slider.value = now;
  view.moment.textContent = `${now} of ${replay.iterations.length}`;
  const state = replay.at(now);
  const tree = state.trees.get(goal);
  if (!tree) return;
  picture.show(tree);
  agents(tree);
  verdict();
  events();
  if (!view.detail.hidden && picture.selected !== null) detail(picture.selected);
}

/** Interventions as ticks over the slider. */
function marks() {
  const total = Math.max(1, replay.iterations.length);
  const found = replay.iterations.map((record, i) => [i, record]).filter(([, record]) => record.interventions.length && record.goal === goal);
  put(view.marks, found.slice(0, 500).map(([i, record]) => {
    const kinds = record.interventions.map((one) => one.kind);
    const mark = el("i", { class: kinds[0], title: `${i + 1}: ${kinds.join(", ")}` });
    mark.style.left = `${(100 * (i + 1)) / total}%`;
    return mark;
  }));
}

function agents(tree) {
  const colours = palette();
  put(view.agents, [...tree.agents].sort((a, b) => a[0] - b[0]).map(([agent, { node, algotype }]) => {
    const dot = el("i");
    dot.style.background = agentColour(colours, agent);
    return el("span", null, dot, `agent ${agent}${algotype ? ` (${algotype})` : ""} at ${node}`);
  }));
}

function verdict() {
  const found = replay.verdicts.get(goal);
  const statement = replay.goals.get(goal)?.statement;
  put(view.verdict,
    statement ? el("pre", { class: "proof" }, statement) : null,
    found ? el("p", { class: `verdict ${found.status}` }, found.status, found.detail ? `: ${found.detail}` : "", ` after ${count(found.iterations ?? 0, "iteration")}`,
      found.axioms?.length ? `, axioms: ${found.axioms.join(", ")}` : "") : el("p", { class: "soft" }, "Not decided yet."),
    found?.proof ? el("pre", { class: "proof script" }, found.proof) : null);
}

function events() {
  const last = replay.iterations.slice(0, now).filter((record) => record.goal === goal).slice(-30).reverse();
  put(view.events, last.length ? table(["iteration", "agent", "node", "tried", "reason", "value"], last.map((record) => [
    el("button", { type: "button", class: "link", onclick: () => go(record.iteration) }, record.iteration),
    record.agent ?? "–", record.node ?? "–",
    el("span", { class: "tried" }, (record.attempts ?? []).map((one) => el("code", { class: one.outcome, title: `${one.outcome} ${one.detail ?? ""}` }, clip(one.tactic, 40)))),
    record.interventions.length ? [record.reason, " ", record.interventions.map((one) => el("strong", { class: "kind" }, one.agent === undefined || one.agent === null ? one.kind : `${one.kind} agent ${one.agent}`))] : record.reason,
    record.value === undefined || record.value === null ? "–" : significant(record.value, 3),
  ]), [0, 2, 5], "The last 30 iterations up to the slider") : el("p", { class: "soft" }, "Nothing yet."));
}

function select(id, byKeyboard) {
  const found = picture.tree.nodes.get(id);
  view.said.textContent = `node ${id}, ${found.state}, ${goalLine(found)}`;
  if (!byKeyboard) open(id, false);
}

function open(id, focus) {
  view.split.classList.add("open");
  view.detail.hidden = false;
  detail(id);
  if (focus) view.detail.querySelector("h2").focus();
}

function detail(id) {
  const found = picture.tree.nodes.get(id);
  if (!found) return;
  put(view.detail,
    el("div", { class: "detail-head" }, el("h2", { tabindex: "-1" }, `Node ${id}`), el("span", { class: `verdict ${found.state}` }, found.state),
      el("button", { type: "button", class: "close", "aria-label": "Close details", onclick: close }, "×")),
    facts([["visits", found.visits], ["value", found.value === null ? null : significant(found.value, 3)], ["failed tactics", found.failures], ["parents", [...new Set(found.parents)].join(", ")]]),
    found.goals.map((one) => el("pre", { class: "proof goal" }, goalText(one))),
    found.edges.length ? table(["tactic", "leaves"], found.edges.map((edge) => [el("code", null, edge.tactic), edge.children.length ? edge.children.join(", ") : "nothing ✓"])) : el("p", { class: "soft" }, "No tactic has led on from here."));
}

function close() {
  view.detail.hidden = true;
  view.split.classList.remove("open");
  view.canvas.focus();
}

view.detail.addEventListener("keydown", (event) => event.key === "Escape" && close());

function hint(item, place) {
  view.hint.hidden = !item;
  if (!item) return;
  view.hint.textContent = `${item.id}: ${clip(goalLine(item.of), 200)}`;
  view.hint.style.left = `${Math.min(place[0] + 14, Math.max(0, view.canvas.clientWidth - 300))}px`;
  view.hint.style.top = `${place[1] + 14}px`;
}
