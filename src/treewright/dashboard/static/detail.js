// Everything about one node or evaluation, beside the tree.

import { choice, el, facts, put } from "./dom.js";
import { deltas } from "./deltas.js";
import { diff } from "./diff.js";
import { cost, moment, seconds } from "./format.js";
import { Logs } from "./logs.js";
import { Latest, load } from "./source.js";

export class Detail {
  constructor(element, key, onClose) {
    this.element = element;
    this.api = `/api/${key}`;
    this.onClose = onClose;
    this.id = null;
    this.shown = "";
    element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  close() {
    this.id = null;
    this.shown = "";
    this.element.hidden = true;
    this.onClose();
  }

  /** Shows an item; asked again for the same one it is redrawn only if it is different. */
  async show(id, focus = false) {
    const changed = id !== this.id;
    this.id = id;
    const item = await load(`${this.api}/item/${id}`);
    if (this.id !== id) return;
    const text = JSON.stringify(item, (name, value) => (name === "logs" ? undefined : value));
    if (changed || text !== this.shown) {
      this.shown = text;
      this.element.hidden = false;
      put(this.element, ...(item ? this.#parts(item) : this.#absent(id)));
      if (changed) this.element.scrollTop = 0;
    }
    if (focus) this.element.querySelector("h2").focus();
  }

  #head(title, ...more) {
    return el("div", { class: "detail-head" },
      el("h2", { tabindex: "-1" }, title), ...more,
      el("button", { type: "button", class: "close", "aria-label": "Close details", onclick: () => this.close() }, "×"));
  }

  #absent(id) {
    return [this.#head(id), el("p", { class: "soft" }, "This file has no details of this item.")];
  }

  #parts(item) {
    const { node, eval: one } = item;
    return [
      this.#head(item.title),
      el("p", { class: "ids" }, el("code", null, item.id), one && one.id !== item.id ? ["from ", el("code", null, one.id)] : null,
        item.fate ? el("span", { class: `fate ${one?.decision?.fate ?? one?.status}` }, item.fate) : null),
      el("div", { class: "words" }, item.words.map((sentence) => el("p", null, sentence))),
      one?.error ? el("p", { class: "error" }, `${one.error.code}: ${one.error.message}`) : null,
      facts([
        ["commit", (node?.commit ?? one?.commit) ? el("code", null, (node?.commit ?? one.commit).slice(0, 12)) : null],
        ["branch", node?.ref ? el("code", null, node.ref) : null],
        ["parent", node?.parent ?? one?.parent],
        ["took", one?.started_at && one.finished_at ? seconds((new Date(one.finished_at) - new Date(one.started_at)) / 1000) : null],
        ["finished", one?.finished_at ? moment(one.finished_at) : null],
        ["worker", one?.worker],
        ["attempts", one && one.attempt > 1 ? one.attempt : null],
        ["review", one?.approved === null || one?.approved === undefined ? null : `${one.approved ? "approved" : "not approved"} after ${one.review_rounds}`],
        ["cost", cost(one?.usage, 4)],
      ]),
      item.comparisons ? this.#comparisons(item) : null,
      one || node ? this.#diff(item) : null,
      item.idea?.text ? section("Idea", el("pre", { class: "idea", tabindex: "0", "aria-label": "Idea" }, item.idea.text), item.idea.cut ? "The idea is longer than shown." : null) : null,
      item.logs ? section("Logs", this.#logs(item)) : null,
    ];
  }

  /** Files of a running evaluation come and grow without a record of it. */
  #logs(item) {
    const running = ["pending", "running"].includes(item.eval.status);
    const refresh = running ? async () => (await load(`${this.api}/item/${item.id}`))?.logs : null;
    return new Logs(`${this.api}/log/${item.eval.id}`, item.logs, refresh).element;
  }

  #comparisons(item) {
    const body = el("div");
    const show = (against) => {
      const width = Math.max(260, Math.min(560, this.element.clientWidth - 40));
      body.replaceChildren(...item.comparisons[against].map((metric) => deltas(metric, width)));
    };
    const made = section("Paired differences", choice("Compared with", [["parent", "against the parent"], ["root", "against the root"]], "parent", show), body,
      el("p", { class: "soft small" }, "A dot is one config; right of zero is better. The band is the 95 % interval of the mean."));
    show("parent");
    return made;
  }

  #diff(item) {
    const body = el("div", null, el("p", { class: "soft" }, "…"));
    const asked = new Latest();
    const show = async (against) => {
      const signal = asked.next();
      const found = await load(`${this.api}/diff/${item.id}?against=${against}`, signal).catch(() => ({ problem: "the server does not answer" }));
      if (signal.aborted) return;
      body.replaceChildren(diff(found ?? { problem: "it is not in this file" }));
    };
    show("parent");
    return section("Changes", choice("Changes since", [["parent", "since the parent"], ["root", "since the root"]], "parent", show), body);
  }
}

function section(title, ...content) {
  return el("section", null, el("h3", null, title), ...content);
}
