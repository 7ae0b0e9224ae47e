// Where the data come from: the server, or what an exported page carries with it.

const carried = document.getElementById("carried");
const POLL_MILLISECONDS = 3000;
const HELLO_MILLISECONDS = 5000;

/** An exported page: {key, made_at, answers: {path: JSON}}; null on a served one. */
export const exported = carried ? JSON.parse(carried.textContent) : null;

/** `tree/0/name` of the page that is open. */
export const pageKey = exported ? exported.key : decodeURIComponent(location.pathname).slice(1);

/** The JSON at a path of the API. A missing thing is null. A signal can cancel it. */
export async function load(path, signal = undefined) {
  if (exported) return exported.answers[path.replace(/([?&])since=[^&]*&?/, "$1").replace(/[?&]$/, "")] ?? null;
  const response = await fetch(path, { credentials: "same-origin", signal });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}

/** Loads into one place, of which only the latest counts. */
export class Latest {
  #last = null;

  /** The signal of a new load; that of the one before is cancelled. */
  next() {
    this.#last?.abort();
    this.#last = new AbortController();
    return this.#last.signal;
  }
}

/**
 * Calls `onChange` now and whenever the run (or, with null, any run) may have changed.
 * Server-sent events where they work; polling while they do not. `onState` gets
 * "live", "polling", "offline" or "exported".
 */
export function follow(key, onChange, onState) {
  if (exported) {
    onState("exported");
    onChange();
    return;
  }
  new Follower(key, onChange, onState).start();
}

class Follower {
  constructor(key, onChange, onState) {
    this.path = "/api/changes" + (key ? `?run=${encodeURIComponent(key)}` : "");
    this.onChange = onChange;
    this.onState = onState;
    this.stream = null;
    this.live = false;
    this.busy = false;
    this.again = false;
  }

  start() {
    // A hidden page gives its connection back: browsers allow few to one server.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    setInterval(() => {
      if (!this.live && !document.hidden) this.update();
    }, POLL_MILLISECONDS);
    this.update();
    if (!document.hidden) this.open();
  }

  open() {
    if (this.stream || typeof EventSource === "undefined") return;
    this.stream = new EventSource(this.path);
    this.stream.addEventListener("hello", () => {
      this.live = true;
      this.update();
    });
    this.stream.addEventListener("change", () => this.update());
    this.stream.addEventListener("error", () => {
      this.live = false;
      this.close();
      setTimeout(() => !document.hidden && this.open(), HELLO_MILLISECONDS / 4);
    });
  }

  close() {
    this.stream?.close();
    this.stream = null;
    this.live = false;
  }

  async update() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      await this.onChange();
      this.onState(this.live ? "live" : "polling");
    } catch (error) {
      this.onState("offline");
      if (!(error instanceof TypeError)) console.error(error);
    } finally {
      this.busy = false;
    }
    if (this.again) {
      this.again = false;
      this.update();
    }
  }
}
