// Making elements. Text only ever becomes text: nothing here reads a string as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (`class`, `title`, …), listeners (`onclick`) and children. */
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...real(children));
  return element;
}

/** Replaces what is in an element; what is null or false is left out. */
export function put(element, ...children) {
  element.replaceChildren(...real(children));
}

function real(children) {
  return children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);
}

/** A heading, a list of terms with values; empty values are left out. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, shown.map(([term, value]) => [el("dt", null, term), el("dd", null, value)]));
}

/** A table from a header and rows of cells. `numeric` has the indices of columns of numbers. */
export function table(header, rows, numeric = [], caption = "") {
  const kind = (index) => (numeric.includes(index) ? { class: "number" } : null);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || header.join(", ") },
    el("table", null,
      caption ? el("caption", null, caption) : null,
      el("thead", null, el("tr", null, header.map((cell, i) => el("th", { scope: "col", ...kind(i) }, cell)))),
      el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, i) => el("td", kind(i), cell)))))));
}

/** A group of buttons of which one is pressed. */
export function choice(label, options, chosen, onChoose) {
  const buttons = options.map(([value, text]) =>
    el("button", {
      type: "button",
      "aria-pressed": String(value === chosen),
      onclick: (event) => {
        for (const button of event.currentTarget.parentElement.children) button.setAttribute("aria-pressed", "false");
        event.currentTarget.setAttribute("aria-pressed", "true");
        onChoose(value);
      },
    }, text));
  return el("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}
