// Numbers and times as people read them.

const MINUS = "\u2212";

export function percent(share, digits = 2) {
  if (share === null || share === undefined) return "–";
  const shown = (100 * share).toFixed(digits);
  return `${share > 0 ? "+" : ""}${shown} %`.replace("-", MINUS);
}

export function signed(number) {
  if (number === null || number === undefined) return "–";
  const shown = significant(number);
  return (number > 0 ? `+${shown}` : shown).replace("-", MINUS);
}

export function significant(number, digits = 4) {
  if (number === null || number === undefined) return "–";
  if (number === 0) return "0";
  const size = Math.abs(number);
  return size >= 1e6 || size < 1e-4 ? number.toExponential(2) : String(Number(number.toPrecision(digits)));
}

export function gain(centre, low, high) {
  if (centre === null || centre === undefined) return "–";
  const bounds = low === null || low === undefined ? "" : ` [${signed(low)}, ${signed(high)}]`;
  return signed(centre) + bounds;
}

// What has no known price is said to be unknown. Nothing spent is nothing to show.
export function cost(spent, digits) {
  const known = spent?.cost_usd ? `$${spent.cost_usd.toFixed(digits)}` : null;
  if (!spent?.unpriced_tokens) return known;
  return known ? `at least ${known}` : "unknown";
}

export function seconds(duration) {
  if (duration === null || duration === undefined) return "–";
  if (duration < 10) return `${duration.toFixed(duration < 1 ? 2 : 1)} s`;
  const whole = Math.round(duration);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function count(number, singular, plural = `${singular}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? singular : plural}`;
}

export function bytes(size) {
  if (size < 1000) return `${size} B`;
  return size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}

export function moment(at) {
  if (!at) return "–";
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString().slice(0, 16).replace("T", " ");
}

export function clip(text, length) {
  const line = String(text ?? "").replace(/\s+/g, " ").trim();
  return line.length <= length ? line : `${line.slice(0, length - 1).trimEnd()}…`;
}

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text from elsewhere in one line: what cannot be seen is shown as a code, what is long is cut. */
export function visible(text, length) {
  return clip(String(text ?? "").slice(0, 4 * length).replace(UNSEEN, escaped), length);
}

/** The same for text of several lines. */
export function visibleLines(text, length) {
  const whole = String(text ?? "");
  const shown = whole.slice(0, length).replace(UNSEEN, escaped);
  return whole.length <= length ? shown : `${shown}\n… ${(whole.length - length).toLocaleString("en")} more characters`;
}

function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
