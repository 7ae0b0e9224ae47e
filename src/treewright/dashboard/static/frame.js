// What every page has: the line on top, the state of a run, the connection.

import { el } from "./dom.js";
import { moment } from "./format.js";
import { exported } from "./source.js";

const STATES = {
  running: "running", stalled: "stalled", paused: "paused",
  stopped: "finished", damaged: "damaged", ledger: "ledger",
};
const CONNECTIONS = {
  live: "live", polling: "polling", offline: "offline: trying to reconnect", exported: "exported",
};

/** Fills the top line; returns a function that shows the connection's state. `above` is the page
 * that this one belongs to, as {name, href}. */
export function top(name, above = null) {
  const connection = el("span", { class: "connection", role: "status" }, "…");
  const home = exported ? el("span", { class: "brand" }, "Treewright") : el("a", { class: "brand", href: "/" }, "Treewright");
  const where = el("span", { class: "where" }, above ? [exported ? above.name : el("a", { href: above.href }, above.name), " / "] : null, name);
  document.getElementById("top").replaceChildren(home, where, connection);
  return (state) => {
    connection.textContent = exported ? `exported ${moment(exported.made_at)}` : CONNECTIONS[state];
    connection.dataset.state = state;
  };
}

/** A run's state as a coloured word, with the whole of it as a tooltip. */
export function chip(liveness) {
  return el("span", { class: `chip ${liveness.state}`, title: liveness.detail }, STATES[liveness.state] ?? liveness.state);
}

/** A bar for "done of all", readable without colours. */
export function bar(done, of, label) {
  const meter = el("span", {
    class: "bar", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": of, "aria-valuenow": done, "aria-label": label,
  }, el("span"));
  meter.firstChild.style.width = `${of ? Math.min(100, (100 * done) / of) : 0}%`;
  return meter;
}
