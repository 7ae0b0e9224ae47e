// Colours for canvases, taken from the style sheet, so that there is one palette.

const NAMES = ["ink", "soft", "faint", "line", "paper", "band", "good", "bad", "best", "other", "warn", "last", "neutral"];

/** The colours of the moment: they change with the system's light or dark. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** From bad over neutral to good, for a score relative to the largest. */
export function scoreColour(colours, score, largest) {
  const share = Math.max(-1, Math.min(1, score / largest));
  const part = Math.sqrt(Math.abs(share));
  return mix(colours.neutral, share < 0 ? colours.bad : colours.good, part);
}

const AGENTS = ["good", "best", "other", "last", "warn", "ink"];

export function agentColour(colours, agent) {
  return colours[AGENTS[((agent ?? 0) % AGENTS.length + AGENTS.length) % AGENTS.length]];
}

function mix(from, to, part) {
  const [a, b] = [channels(from), channels(to)];
  return `rgb(${a.map((value, i) => Math.round(value + (b[i] - value) * part)).join(" ")})`;
}

function channels(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}
