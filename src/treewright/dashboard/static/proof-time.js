// Where the time went: what Lean was busy with, by the first word of the tactic.

import { el, table } from "./dom.js";
import { count, seconds, visible } from "./format.js";

const MOST_ROWS = 12;
const NAME = /^[\p{L}_][\p{L}\p{N}_.'!?]*/u;

/** Adds an attempt to the sums of a tree. */
export function spend(sums, attempt) {
  const name = NAME.exec(attempt.tactic)?.[0].slice(0, 60) ?? "other";
  let sum = sums.get(name);
  if (!sum) sums.set(name, (sum = { name, tried: 0, led: 0, closed: 0, slow: 0, ms: 0 }));
  sum.tried += 1;
  sum.ms += attempt.ms ?? 0;
  if (attempt.outcome === "goals") sum.led += 1;
  if (attempt.outcome === "closed") sum.closed += 1;
  if (attempt.outcome === "timeout") sum.slow += 1;
}

export function timeTable(sums, elapsed) {
  const found = [...sums.values()].sort((a, b) => b.ms - a.ms || b.tried - a.tried);
  if (!found.length) return el("p", { class: "soft" }, "No tactic has been tried yet.");
  const total = found.reduce((sum, one) => sum + one.ms, 0);
  const shown = found.slice(0, MOST_ROWS);
  const rest = found.slice(MOST_ROWS);
  if (rest.length) shown.push(rest.reduce((sum, one) => ({ ...sum, tried: sum.tried + one.tried, led: sum.led + one.led, closed: sum.closed + one.closed, slow: sum.slow + one.slow, ms: sum.ms + one.ms }),
    { name: `${rest.length} others`, tried: 0, led: 0, closed: 0, slow: 0, ms: 0, summed: true }));
  const most = Math.max(1e-9, ...shown.map((one) => one.ms));
  const words = total ? `${seconds(total / 1000)} in Lean${elapsed ? `, of ${seconds(elapsed)} since the search began` : ""}` : `${count(found.length, "tactic")}; the trace has no times`;
  return table(["tactic", "time in Lean", "share", "tried", "led on", "closed", "timed out", "each"], shown.map((one) => [
    one.summed ? one.name : el("code", null, visible(one.name, 40)), line(one.ms / most, seconds(one.ms / 1000)),
    total ? `${((100 * one.ms) / total).toFixed(one.ms / total < 0.1 ? 1 : 0)} %` : "–",
    one.tried.toLocaleString("en"), one.led.toLocaleString("en"), one.closed.toLocaleString("en"), one.slow || "–", total ? each(one.ms / one.tried) : "–",
  ]), [2, 3, 4, 5, 6, 7], words);
}

function each(ms) {
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : seconds(ms / 1000);
}

function line(share, text) {
  const made = el("span", { class: "spent-line" }, el("i"), el("span", null, text));
  made.firstChild.style.width = `${Math.max(0.5, 100 * share)}%`;
  return made;
}
