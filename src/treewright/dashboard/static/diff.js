// A unified diff with line kinds and a few syntax colours. Everything is text nodes.

import { el } from "./dom.js";

const KEYWORDS = new Set(("and as assert async await begin break by case catch class const continue def default defer del do elif else end enum " +
  "except export extends false finally fn for from func function global have if impl import in instance interface is lambda lemma let match " +
  "mut namespace new nil none not null of open or pass private pub public raise return self show static struct super switch theorem then this " +
  "throw trait true try type use var where while with yield None True False").split(" "));
const HASH_COMMENTS = /\.(py|sh|toml|ya?ml|rb|r|pl|cfg|ini|mk|txt)$|Makefile$/i;
const DASH_COMMENTS = /\.(lean|hs|lua|sql)$/i;
const MOST_LINES = 4000;

export function diff({ text, cut, problem }) {
  if (problem) return el("p", { class: "soft" }, `No diff: ${problem}.`);
  if (!text) return el("p", { class: "soft" }, "No difference.");
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const body = el("code");
  let file = "";
  for (const line of lines.slice(0, MOST_LINES)) {
    if (line.startsWith("+++ ")) file = line.slice(4);
    body.append(shown(line, file));
  }
  const left = lines.length - MOST_LINES;
  const note = cut || left > 0 ? el("p", { class: "soft" }, "The diff is longer than shown; use git to see all of it.") : null;
  return el("div", null, el("pre", { class: "diff", tabindex: "0", "aria-label": "Diff" }, body), note);
}

function shown(line, file) {
  const kind = kindOf(line);
  if (kind === "meta" || kind === "hunk") return el("span", { class: `line ${kind}` }, `${line}\n`);
  const mark = line.slice(0, 1) || " ";
  return el("span", { class: `line ${kind}` }, el("span", { class: "mark" }, mark), highlight(line.slice(1), file), "\n");
}

function kindOf(line) {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|rename |similarity |Binary |old mode|new mode)/.test(line)) return "meta";
  if (line.startsWith("@@")) return "hunk";
  return { "+": "added", "-": "removed" }[line[0]] ?? "same";
}

/** Spans of strings, comments, numbers and keywords. */
export function highlight(code, file) {
  const comment = HASH_COMMENTS.test(file) ? "#.*$" : DASH_COMMENTS.test(file) ? "--.*$" : "//.*$|/\\*.*?\\*/";
  const pattern = new RegExp(`(${comment})|("(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'|\`[^\`]*\`)|(\\b\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?\\b)|([A-Za-z_]\\w*)`, "g");
  const parts = [];
  let end = 0;
  for (const found of code.matchAll(pattern)) {
    const kind = found[1] ? "comment" : found[2] ? "string" : found[3] ? "numeral" : KEYWORDS.has(found[4]) ? "keyword" : null;
    if (!kind) continue;
    parts.push(code.slice(end, found.index), el("span", { class: kind }, found[0]));
    end = found.index + found[0].length;
  }
  parts.push(code.slice(end));
  return parts;
}
