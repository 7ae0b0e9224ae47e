// The page of a proof run: the whole search, the way in it, a slider through time, the proof.

import { choice, el, facts, put, table } from "./dom.js";
import { cost, count, significant, visible, visibleLines } from "./format.js";
import { bar, chip, top } from "./frame.js";
import { agentColour, palette } from "./palette.js";
import { MOST_FAILED, goalDetail } from "./proof-detail.js";
import { ProofMap } from "./proof-map.js";
import { Outline, tally } from "./proof-outline.js";
import { timeTable } from "./proof-time.js";
import { findWays } from "./proof-ways.js";
import { Replay, goalLine } from "./replay.js";
import { follow, load, pageKey } from "./source.js";

const PLAY_MILLISECONDS = 120;
const SHARE_OF_TIME = 10; // drawing is followed by a pause so many times as long
const LONGEST_PROOF = 200_000;
const MOST_MARKS = 500;
const MOST_AGENTS = 64;
const HELP = "Arrow keys move, Right unfolds, Left folds, o shows the other tactics of a goal, Enter opens it, b goes to the end of the way, 0 folds all again.";

const replay = new Replay();
const connection = top(pageKey.split("/").at(-1), experiment());
const view = frame();
const outline = new Outline(view.outline, { onSelect: select, onOpen: (id) => open(id, true) });
const map = new ProofMap(view.map, { onPick: (id) => outline.goTo(id), onHover: hint });
let run = null;
let goal = null;
let now = 0;
let playing = null;
let way = new Set();
let drawing = null;
let rested = 0;

follow(pageKey, update, connection);

/** A run of an experiment leads back to it. */
function experiment() {
  const parts = pageKey.split("/");
  return parts[0] === "experiment" ? { name: parts[2], href: `/${parts.slice(0, 3).join("/")}` } : null;
}

async function update() {
  let more = true;
  while (more) {
    const answer = await load(`/api/${pageKey}?since=${encodeURIComponent(replay.version ?? "")}`);
    if (!answer) {
      put(view.head, el("h1", null, "There is no such run."));
      view.search.hidden = true;
      return;
    }
    run = answer.run;
    more = answer.trace.more;
    const changed = replay.apply(answer.trace);
    head();
    if (changed) grown();
  }
}

/** There is more of the search than before. */
function grown() {
  const atEnd = Number(view.slider.value) >= Number(view.slider.max);
  view.slider.max = replay.iterations.length;
  if (atEnd && !playing) now = replay.iterations.length;
  if (goal === null || !replay.goals.has(goal)) goal = replay.goals.keys().next().value ?? null;
  marks();
  goals();
  soon();
}

function frame() {
  const parts = {
    head: el("section", { class: "run-head", "aria-label": "The run" }),
    goals: el("div"),
    whole: el("p", { class: "soft whole" }),
    map: el("canvas", { class: "map", role: "img", "aria-label": "The whole search" }),
    hint: el("div", { class: "hint", hidden: true }),
    outline: el("div", { class: "outline", tabindex: "0", role: "tree", "aria-label": "Proof tree", "aria-describedby": "proof-help" }),
    detail: el("aside", { class: "detail", "aria-label": "Details", hidden: true }),
    said: el("p", { class: "hidden", "aria-live": "polite" }),
    slider: el("input", { type: "range", min: "0", max: "0", value: "0", id: "time", oninput: () => go(Number(parts.slider.value)) }),
    play: el("button", { type: "button", onclick: () => play() }, "Play"),
    moment: el("output", { for: "time" }),
    marks: el("div", { class: "marks", "aria-hidden": "true" }),
    agents: el("p", { class: "agents small" }),
    time: el("div"),
    verdict: el("div"),
    events: el("div"),
  };
  parts.split = el("div", { class: "split" }, el("div", { class: "stage" }, parts.outline), parts.detail);
  parts.search = el("div", null,
    parts.goals,
    el("div", { class: "time" }, parts.play, el("label", { for: "time" }, "iteration"), el("div", { class: "track" }, parts.slider, parts.marks), parts.moment),
    parts.whole, el("div", { class: "stage" }, parts.map, parts.hint), legend(),
    parts.agents, tools(), parts.split, parts.said,
    el("p", { class: "soft small", id: "proof-help" }, HELP),
    el("section", null, el("h2", null, "The proof"), parts.verdict),
    el("section", null, el("h2", null, "Where the time went"), parts.time),
    el("section", null, el("h2", null, "What happened"), parts.events));
  document.getElementById("main").replaceChildren(parts.head, parts.search);
  return parts;
}

function tools() {
  const button = (text, label, act) => el("button", { type: "button", title: label, onclick: act }, text);
  return el("div", { class: "outline-tools" }, el("h2", null, "The way"),
    button("end of the way", "Go to the end of the way", () => outline.goToEnd()), button("fold all", "Fold everything but the way", () => outline.foldAll()));
}

function legend() {
  const one = (kind, text) => el("span", null, el("i", { class: kind }), text);
  return el("p", { class: "key soft small", "aria-hidden": "true" }, one("solved", "solved"), one("open-goal", "open"), one("dead-goal", "dead end"), one("way-goal", "the way"),
    el("span", null, "a block is a goal, below it the goals that it led to"));
}

function head() {
  document.title = `${run.run_id} · Treewright`;
  const { counters, progress } = run;
  put(view.head,
    el("h1", null, run.run_id, " ", chip(run.liveness), run.mode ? el("span", { class: "kind" }, [run.mode, run.policy].filter(Boolean).join(", ")) : null),
    el("p", { class: "soft" }, run.liveness.detail),
    run.problem ? el("p", { class: "error" }, run.problem) : null,
    facts([
      ["target", visible(run.target, 300)],
      ["goals", progress.of === null ? `${progress.proved} proved, ${progress.done} decided so far`
        : [bar(progress.done, progress.of, "goals decided"), `${progress.proved} of ${progress.of} proved`]],
      ["iterations", run.iterations],
      ["nodes", counters.nodes], ["edges", counters.edges], ["attempts", counters.attempts],
      ["model", run.usage ? used(run.usage) : null],
    ]));
}

function used(usage) {
  const tokens = `${usage.prompt_tokens.toLocaleString("en")} tokens in, ${usage.completion_tokens.toLocaleString("en")} out`;
  const price = cost(usage, 4);
  return `${count(usage.answers, "answer")}: ${tokens}${price ? `; cost ${price}` : ""}`;
}

function goals() {
  const options = [...replay.goals.values()].slice(0, 200).map((record) => {
    const verdict = replay.verdicts.get(record.goal);
    return [record.goal, `${verdict ? (verdict.status === "proved" ? "✓ " : "✗ ") : ""}${visible(record.name, 80) || `goal ${record.goal}`}`];
  });
  put(view.goals, options.length > 1 ? choice("Goal", options, goal, (chosen) => {
    goal = chosen;
    outline.reset();
    view.detail.hidden = true;
    view.split.classList.remove("open");
    marks();
    soon();
  }) : null);
}

function go(n) {
  now = Math.max(0, Math.min(n, replay.iterations.length));
  soon();
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

/** Draws what is true then; however often it is asked, most of the time is left to the reader. */
function soon() {
  view.slider.value = now;
  view.moment.textContent = `${now} of ${replay.iterations.length}`;
  drawing ??= setTimeout(() => {
    drawing = null;
    const begun = performance.now();
    show();
    rested = performance.now() + SHARE_OF_TIME * (performance.now() - begun);
  }, Math.max(0, Math.min(2000, rested - performance.now())));
}

function show() {
  const tree = replay.at(now).trees.get(goal);
  if (!tree) return;
  way = findWays(tree);
  outline.show(tree, way);
  map.show(tree, way, outline.selected);
  whole(tree);
  agents(tree);
  verdict();
  put(view.time, timeTable(tree.tactics, tree.elapsed));
  events();
  if (!view.detail.hidden && outline.selected !== null) detail(outline.selected);
}

/** The search in a sentence. */
function whole(tree) {
  const root = tree.nodes.get(tree.root);
  const all = { ...root.below, goals: root.below.goals + 1, [root.state]: root.below[root.state] + 1 };
  const ends = [...way].filter((node) => node.state === "open" && !node.best).length;
  const words = root.state === "solved" ? `The way to the proof has ${count(way.size, "goal")}.`
    : root.state === "dead" ? "Every way is a dead end."
      : `The most promising way leaves ${count(ends, "open goal")}.`;
  put(view.whole, el("strong", null, tally(all)), all.dead && all.dead < all.goals ? `, ${count(all.dead, "dead end")}` : "", `. ${words}`);
  view.map.setAttribute("aria-label", `The whole search: ${tally(all)}. ${words}`);
}

/** Interventions as ticks over the slider. */
function marks() {
  const total = Math.max(1, replay.iterations.length);
  const found = replay.marked.filter((i) => replay.iterations[i].goal === goal).slice(-MOST_MARKS);
  put(view.marks, found.map((i) => {
    const kinds = replay.iterations[i].interventions.map((one) => one.kind);
    const mark = el("i", { class: kinds[0], title: `${i + 1}: ${kinds.join(", ")}` });
    mark.style.left = `${(100 * (i + 1)) / total}%`;
    return mark;
  }));
}

function agents(tree) {
  const colours = palette();
  const found = [...tree.agents].sort((a, b) => a[0] - b[0]);
  put(view.agents, found.slice(0, MOST_AGENTS).map(([agent, { node, algotype }]) => {
    const dot = el("i");
    dot.style.background = agentColour(colours, agent);
    return el("span", null, dot, `agent ${agent}${algotype ? ` (${algotype})` : ""} at `, el("button", { type: "button", class: "link", onclick: () => outline.goTo(node) }, node));
  }), found.length > MOST_AGENTS ? `and ${found.length - MOST_AGENTS} more` : null);
}

function verdict() {
  const found = replay.verdicts.get(goal);
  const statement = replay.goals.get(goal)?.statement;
  put(view.verdict,
    statement ? el("pre", { class: "proof" }, visibleLines(statement, LONGEST_PROOF)) : null,
    found ? el("p", { class: `verdict ${found.status}` }, found.status, found.detail ? `: ${visible(found.detail, 1000)}` : "", ` after ${count(found.iterations ?? 0, "iteration")}`,
      found.axioms?.length ? `, axioms: ${found.axioms.join(", ")}` : "") : el("p", { class: "soft" }, "Not decided yet."),
    found?.proof ? el("pre", { class: "proof script" }, visibleLines(found.proof, LONGEST_PROOF)) : null);
}

function events() {
  const last = replay.last(goal, now, 30);
  put(view.events, last.length ? table(["iteration", "agent", "goal", "tried", "reason", "value"], last.map((record) => [
    el("button", { type: "button", class: "link", onclick: () => go(record.iteration) }, record.iteration),
    record.agent ?? "–",
    record.node === null || record.node === undefined ? "–" : el("button", { type: "button", class: "link", onclick: () => outline.goTo(record.node) }, record.node),
    el("span", { class: "tried" }, (record.attempts ?? []).slice(0, 20).map((one) => el("code", { class: one.outcome, title: `${one.outcome} ${one.detail ?? ""}` }, visible(one.tactic, 40)))),
    record.interventions.length ? [record.reason, " ", record.interventions.map((one) => el("strong", { class: "kind" }, one.agent === undefined || one.agent === null ? one.kind : `${one.kind} agent ${one.agent}`))] : record.reason,
    record.value === undefined || record.value === null ? "–" : significant(record.value, 3),
  ]), [0, 2, 5], "The last 30 iterations up to the slider") : el("p", { class: "soft" }, "Nothing yet."));
}

function select(id, byKeyboard, spoken) {
  view.said.textContent = spoken;
  map.show(outline.tree, way, id);
  if (!byKeyboard || !view.detail.hidden) open(id, false);
}

function open(id, focus) {
  view.split.classList.add("open");
  view.detail.hidden = false;
  detail(id);
  if (focus) view.detail.querySelector("h2").focus();
}

function detail(id) {
  const found = outline.tree.nodes.get(id);
  if (found) goalDetail(view.detail, found, replay.failures(goal, id, now, MOST_FAILED), { go: (other) => outline.goTo(other), close });
}

function close() {
  view.detail.hidden = true;
  view.split.classList.remove("open");
  view.outline.focus();
}

view.detail.addEventListener("keydown", (event) => event.key === "Escape" && close());

function hint(node, place) {
  view.hint.hidden = !node;
  if (!node) return;
  view.hint.textContent = `goal ${node.id}: ${visible(goalLine(node), 200)}`;
  view.hint.style.left = `${Math.min(place[0] + 14, Math.max(0, view.map.clientWidth - 300))}px`;
  view.hint.style.top = `${place[1] + 14}px`;
}
