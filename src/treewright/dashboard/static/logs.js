// The logs of an evaluation, following what is still being written.

import { choice, el, put } from "./dom.js";
import { bytes } from "./format.js";
import { Latest, load } from "./source.js";

const FOLLOW_MILLISECONDS = 1000;
const MOST_CHARACTERS = 400_000;

/** The log of the latest phase that has written one. */
const BY_INTEREST = ["sweep.log", "tests.log"];

export class Logs {
  /** `path` is the API's address of the evaluation's logs; `refresh` gives its files anew. */
  constructor(path, files, refresh) {
    this.path = path;
    this.refresh = refresh;
    this.chosen = false;
    this.reading = new Latest();
    this.output = el("pre", { class: "log", tabindex: "0", "aria-label": "Log" });
    this.files = el("div");
    this.element = el("div", null, this.files, this.output);
    this.#list(files);
    if (refresh) this.#later(() => this.#follow());
  }

  #list(files) {
    this.listed = JSON.stringify(files);
    if (!files.length) {
      put(this.files, el("p", { class: "soft" }, "No logs yet."));
      return;
    }
    const written = (name) => files.some((file) => file.name === name && file.size);
    const best = BY_INTEREST.find(written) ?? files.find((file) => file.name.endsWith(".log") && file.size)?.name ?? files[0].name;
    const name = this.chosen ? this.name : best;
    const options = files.map((file) => [file.name, `${file.name} (${bytes(file.size)})`]);
    put(this.files, choice("Log file", options, name, (picked) => {
      this.chosen = true;
      this.open(picked);
    }));
    if (name !== this.name) this.open(name);
  }

  async #follow() {
    const files = await this.refresh().catch(() => null);
    const focused = this.files.contains(document.activeElement);
    if (files && !focused && JSON.stringify(files) !== this.listed) this.#list(files);
    this.#later(() => this.#follow());
  }

  /** Until the page shows something else; a page that is gone has no element in it. */
  #later(act) {
    setTimeout(() => this.element.isConnected && act(), FOLLOW_MILLISECONDS);
  }

  async open(name) {
    this.name = name;
    this.next = -1;
    this.output.textContent = "";
    await this.#more(name, this.reading.next());
  }

  /** Appends what is new, until something else, or the same anew, is opened. */
  async #more(name, signal) {
    const piece = await load(`${this.path}/${encodeURIComponent(name)}?offset=${this.next}`, signal).catch(() => undefined);
    if (signal.aborted) return;
    if (piece === null && !this.output.textContent) this.output.textContent = "This log does not exist.";
    if (piece) {
      if (this.next < 0 && piece.from > 0) this.output.append(`… (${bytes(piece.from)} before this)\n`);
      const atEnd = this.output.scrollTop + this.output.clientHeight >= this.output.scrollHeight - 8;
      this.output.append(piece.text);
      if (this.output.textContent.length > MOST_CHARACTERS) this.output.textContent = this.output.textContent.slice(-MOST_CHARACTERS / 2);
      if (atEnd) this.output.scrollTop = this.output.scrollHeight;
      this.next = piece.next;
      if (!piece.live && piece.next >= piece.size) {
        if (!this.output.textContent) this.output.textContent = "(empty)";
        return;
      }
    }
    this.#later(() => signal.aborted || this.#more(name, signal));
  }
}
