// Everything about one goal of a proof search, beside the outline.

import { el, facts, put, table } from "./dom.js";
import { seconds, significant, visible, visibleLines } from "./format.js";
import { goalText } from "./replay.js";

const LONGEST_GOAL = 20_000;
const LONGEST_TACTIC = 300;
const MOST_GOALS = 20;
const MOST_TACTICS = 60;
export const MOST_FAILED = 30;

/** `node` as it is now; `failed` are attempts that did not lead on; `go(id)` goes to another goal. */
export function goalDetail(element, node, failed, { go, close }) {
  put(element,
    el("div", { class: "detail-head" }, el("h2", { tabindex: "-1" }, `Goal ${node.id}`), el("span", { class: `verdict ${node.state}` }, node.state === "dead" ? "dead end" : node.state),
      el("button", { type: "button", class: "close", "aria-label": "Close details", onclick: close }, "×")),
    facts([
      ["visits", node.visits], ["value", node.value === null ? null : significant(node.value, 3)],
      ["time in Lean", node.ms ? seconds(node.ms / 1000) : null],
      ["reached from", node.home ? [number(node.home.from, go), " by ", el("code", null, visible(node.home.tactic, LONGEST_TACTIC))] : null],
      ["goals below", node.below?.goals || null],
    ]),
    node.goals.slice(0, MOST_GOALS).map((one) => el("pre", { class: "proof goal", tabindex: "0", "aria-label": "Goal" }, visibleLines(goalText(one), LONGEST_GOAL))),
    ways(node, go),
    failures(failed, node.failures));
}

function number(id, go) {
  return el("button", { type: "button", class: "link", onclick: () => go(id) }, `goal ${id}`);
}

function ways(node, go) {
  const found = node.best ? [node.best, ...node.others] : node.edges;
  if (!found.length) return el("p", { class: "soft" }, "No tactic has led on from here.");
  const rows = found.slice(0, MOST_TACTICS).map((edge) => [
    el("code", null, visible(edge.tactic, LONGEST_TACTIC)),
    edge.children.length ? edge.children.slice(0, MOST_GOALS).map((id, i) => [i ? ", " : "", number(id, go)]) : "nothing ✓",
  ]);
  return table(["tactic", "leaves"], rows, [], found.length > MOST_TACTICS ? `The most promising ${MOST_TACTICS} of ${found.length} tactics` : "");
}

function failures(failed, all) {
  if (!failed.length) return null;
  const rows = failed.slice(0, MOST_FAILED).map((one) => [el("code", null, visible(one.tactic, LONGEST_TACTIC)), one.outcome, visible(one.detail, LONGEST_TACTIC)]);
  return el("section", null, el("h3", null, "Did not lead on"), table(["tactic", "outcome", "Lean says"], rows, [], all > MOST_FAILED ? `The first ${MOST_FAILED} of ${all}` : ""));
}
