// The logs of an evaluation, following what is still being written.

import { choice, el } from "./dom.js";
import { bytes } from "./format.js";
import { load } from "./source.js";

const FOLLOW_MILLISECONDS = 1000;
const MOST_CHARACTERS = 400_000;

export class Logs {
  /** `path` is the API's address of the evaluation's logs. */
  constructor(path, files) {
    this.path = path;
    this.output = el("pre", { class: "log", tabindex: "0", "aria-label": "Log" });
    const options = files.map((file) => [file.name, `${file.name} (${bytes(file.size)})`]);
    const first = (files.find((file) => file.name.endsWith(".log") && file.size) ?? files[0])?.name;
    this.element = files.length
      ? el("div", null, choice("Log file", options, first, (name) => this.open(name)), this.output)
      : el("p", { class: "soft" }, "No logs yet.");
    if (first) this.open(first);
  }

  async open(name) {
    this.name = name;
    this.next = -1;
    this.output.textContent = "";
    await this.#more(name);
  }

  async #more(name) {
    const piece = await load(`${this.path}/${encodeURIComponent(name)}?offset=${this.next}`).catch(() => undefined);
    if (this.name !== name) return;
    if (piece === null && !this.output.textContent) this.output.textContent = "This log is not there.";
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
    // Until the page shows something else; a page that is gone has no element in it.
    setTimeout(() => this.output.isConnected && this.name === name && this.#more(name), FOLLOW_MILLISECONDS);
  }
}
