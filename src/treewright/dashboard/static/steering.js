// The user's changes of a run, on its timeline and as a list.

import { el, svg, table } from "./dom.js";
import { visible } from "./format.js";

const SIGNS = { pause: "‖", resume: "▸", stop: "■", inject: "+", ban: "×", boost: "↑", reopen: "↺", budget: "$", extend: "→" };
const NEAR = 18;
const RADIUS = 8;

/** How much room the marks need above the bars. */
export const LANE = 26;

/** The changes of a depth: while it was worked on, and between the depths beside it. */
export function changesOf(model, depth, changes, zero, last) {
  const of = (wanted) => [...model.evals.values()].filter((one) => one.depth === wanted && one.started);
  const ends = of(depth - 1).map((one) => one.finished ?? one.started);
  const starts = of(depth + 1).map((one) => one.started);
  const [from, to] = [ends.length ? Math.max(...ends) : -Infinity, starts.length ? Math.min(...starts) : Infinity];
  return changes.filter(({ at }) => (at >= zero && at <= last) || (at > from && at <= to)).sort((a, b) => a.at - b.at);
}

/** Marks over a chart: what is close together is one mark with a number; pauses are shaded. */
export function drawChanges(chart, changes, { zero, last, height, onPick }) {
  const x = (at) => chart.x((Math.max(zero, Math.min(last, at)) - zero) / 1000);
  for (const [from, to] of pauses(changes, last)) chart.add("rect", { class: "pause", x: x(from), y: LANE, width: Math.max(1, x(to) - x(from)), height });
  const marks = [];
  for (const change of changes) {
    const at = x(change.at);
    if (marks.length && at - marks.at(-1).x < NEAR) marks.at(-1).of.push(change);
    else marks.push({ x: at, of: [change] });
  }
  for (const mark of marks) draw(chart, mark, height, onPick);
}

function draw(chart, { x, of }, height, onPick) {
  const refused = of.every((one) => one.refused);
  const words = of.map(said).join("\n");
  const group = chart.add("g", { class: `change${refused ? " refused" : ""}`, tabindex: "0", role: "button", "aria-label": words.replaceAll("\n", "; ") },
    svg("title", null, words),
    svg("line", { x1: x, x2: x, y1: LANE - 4, y2: LANE + height }),
    svg("circle", { cx: x, cy: LANE - 4 - RADIUS, r: RADIUS }),
    svg("text", { x, y: LANE - RADIUS, "text-anchor": "middle" }, of.length > 1 ? String(of.length) : sign(of[0])));
  group.addEventListener("click", () => onPick(of[0]));
  group.addEventListener("keydown", (event) => event.key === "Enter" && onPick(of[0]));
}

/** From each pause that held to what ended it. */
function pauses(changes, last) {
  const found = [];
  let since = null;
  for (const { action, at, refused } of changes) {
    if (refused) continue;
    if (action === "pause") since ??= at;
    else if (since !== null && ["resume", "stop", "extend"].includes(action)) {
      found.push([since, at]);
      since = null;
    }
  }
  if (since !== null) found.push([since, last]);
  return found;
}

const sign = (change) => SIGNS[change.action] ?? "•";
const when = (at) => (at === null ? "–" : new Date(at).toLocaleString());

function said(change) {
  const end = change.refused ? `, refused: ${visible(change.why, 200)}` : "";
  return `${when(change.at)}: ${change.action} ${visible(change.what, 120)}, by ${visible(change.by, 80)}${end}`;
}

/** Time, user, change and result; the latest first. `rows` gets the elements by change. */
export function changeTable(changes, { rows, has, go }) {
  if (!changes.length) return null;
  const named = (node) => (has(node) ? el("button", { type: "button", class: "link", onclick: () => go(node) }, node) : visible(node, 40));
  return table(["", "when", "who", "what", "node", "applied"], changes.map((change) => {
    const first = el("span", { class: `sign${change.refused ? " refused" : ""}`, tabindex: "-1", "aria-hidden": "true" }, sign(change));
    rows.set(change, first);
    return [
      first, el("span", { class: "line" }, when(change.at)), visible(change.by, 80),
      [el("strong", null, change.action), " ", visible(change.what, 300)],
      change.node ? named(change.node) : "–",
      change.refused ? el("span", { class: "error" }, `refused: ${visible(change.why, 300)}`) : "yes",
    ];
  }), [], "Changes by users, the latest first");
}
