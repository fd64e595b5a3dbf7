// Making elements. Data goes into text nodes and attributes only, never into markup; `draw.js` begins with how.

import { called, drawing, drawnDown, el, pathInWords, percent, short, svg } from "./draw.js";
export { called, el, pathInWords, percent, short, svg };

/** An address within this page. Parameters without a value are left out. */
export function href(parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(name, value === true ? "1" : value);
  }
  return "?" + query;
}

/** A link within this page; `main.js` follows it without loading the page again. */
export const link = (parameters, text, attributes) =>
  el("a", { href: href(parameters), title: text.length > 90 ? short(text, 500) : undefined, ...attributes }, short(text));

/** Where links to entities lead. */
export const entityAddress = (run) => (id) => href({ run, view: "entity", id });

/** A link to an entity's own page. */
export const entityLink = (run, id, label) => link({ run, view: "entity", id }, label, { class: "name" });

/** A link to a relation's own page. */
export const relationLink = (run, id) => link({ run, view: "relation", id }, id);

/** How sure an answer is: its probability where there is one, else its score. */
export function sure(answer) {
  if (answer.probability === null || answer.probability === undefined) {
    return el("span", { class: "sure", title: "score; this run has no probabilities" }, "score " + answer.score.toPrecision(3));
  }
  const said = percent(answer.probability);
  return el("span", { class: "sure", title: "probability; score " + answer.score.toPrecision(4) },
    el("meter", { min: 0, max: 1, value: answer.probability, "aria-hidden": "true" }), el("span", { class: "share" }, said));
}

/** A mark for what is in the data and was put aside. */
export const aside = (fact) => fact.held_out && el("span", { class: "badge", title: "This fact is in your data, held out" },
  "held out: " + { train: "training", valid: "validation", test: "test" }[fact.held_out]);

/** Paths as a drawing whose entities are links. On a narrow screen one path is drawn downwards, several can be scrolled. */
export function picture(run, paths, goals) {
  if (paths.length === 0) return false;
  const down = paths.length === 1 && matchMedia("(max-width: 40rem)").matches, address = entityAddress(run);
  return el("div", { class: "wide" }, down ? drawnDown(paths[0], address) : drawing(paths, new Set(goals), address));
}

/** A message instead of an empty page. */
export const notice = (...children) => el("div", { class: "notice", role: "note" }, ...children);

/** A field of a TSV file: what would break the line is written as `\t`, `\n`, `\r`, `\\`. */
const field = (value) => String(value ?? "").replace(/[\\\t\n\r]/g, (c) => ({ "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" })[c]);

/** Rows as TSV. */
export const tsv = (rows) => rows.map((row) => row.map(field).join("\t") + "\n").join("");

/** Hands a file to the user. */
export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const anchor = el("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
