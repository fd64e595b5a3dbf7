// Making elements. Data goes into text nodes and attributes only, never into markup; `draw.js` begins with how.

import { called, drawn, el, likely, pathInWords, percent, short, svg } from "./draw.js";
export { called, el, likely, pathInWords, percent, short, svg };

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

/** How many answers of each probability were true when the run was checked, by run. */
const checked = new Map();
export const learnReliability = (runs) => runs.forEach((run) => checked.set(run.name, run.reliability ?? []));

/** What a probability has been worth, if enough answers like that were checked. */
function worth(probability) {
  const run = new URLSearchParams(location.search).get("run") ?? checked.keys().next().value;
  const bin = (checked.get(run) ?? []).find(({ from, to }) => probability >= from && (probability < to || to === 1));
  return bin?.answers > 0 ? `; of answers this sure, ${percent(bin.observed)} were true (${bin.answers.toLocaleString("en")} checked)` : "";
}

/** How sure an answer is: its probability where there is one, else its score. */
export function sure(answer) {
  if (answer.probability === null || answer.probability === undefined) {
    return el("span", { class: "sure", title: "A score; this run has no probabilities" }, typeof answer.score === "number" ? "score " + answer.score.toPrecision(3) : "–");
  }
  const rough = answer.probability_rough, said = likely(answer);
  const meaning = `Of 100 answers as sure as this one, about ${Math.round(100 * answer.probability)} turn out to be true`;
  return el("span", { class: "sure", title: `${meaning}${rough ? "; rough, since there was little to measure it on" : ""}${worth(answer.probability)}` },
    el("meter", { min: 0, max: 1, value: answer.probability, "aria-hidden": "true" }), el("span", { class: "share" }, said));
}

/** A mark for what is in the data and was held out. */
export const aside = (fact) => fact.held_out && el("span", { class: "badge", title: "This fact is in your data; it was hidden from the answers to check them" },
  "held out: " + { train: "training", valid: "validation", test: "test" }[fact.held_out]);

const redraws = new WeakMap();
const watching = new ResizeObserver((changed) => {
  for (const { target, contentRect } of changed) redraws.get(target)?.(Math.floor(contentRect.width));
});

/** An element that `draw(room)` fills once its width is known, and again when that changes. */
export function measured(draw, attributes) {
  const place = el("div", { class: "wide", ...attributes });
  let drawnFor = 0;
  redraws.set(place, (room) => {
    if (room === 0 || room === drawnFor) return;
    drawnFor = room;
    place.replaceChildren(draw(room));
  });
  watching.observe(place);
  return place;
}

/** Paths as a drawing whose entities are links, as the place has room for it; below it, where the facts of a single one come from. */
export function picture(run, paths, goals) {
  if (paths.length === 0) return false;
  const place = measured((room) => drawn(paths, new Set(goals), entityAddress(run), room));
  return paths.length === 1 && paths[0].some((step) => step.note) ? [place, sources(paths[0])] : place;
}

/** What the data say about the facts of a path. Addresses are links. */
const sources = (path) => el("ul", { class: "sources" }, path.flatMap(({ relation, inverse, label, note }, i) => {
  if (!note) return [];
  const ends = [path[i - 1].label, label].map((name) => short(name, 40)), [head, tail] = inverse ? ends.toReversed() : ends;
  const linked = note.split(/(https?:\/\/[^\s|,]+)/).map((part, at) => (at % 2 === 1 ? el("a", { href: part, rel: "noopener noreferrer" }, short(part, 60)) : part));
  return [el("li", {}, `${head} —${short(relation, 40)}→ ${tail}: `, linked)];
}));

// The members in plain words, by their colours.
const MEMBERS = { rules: "rules", embedding: "similar entities", propagator: "all paths together", universal: "all paths together", walker: "a path", graph: "popularity" };

/** What speaks for an answer, as a small bar: a segment for each member, as long as its share. */
export function shares(because = []) {
  const speaking = because.filter(({ share }) => share > 0), sum = speaking.reduce((all, { share }) => all + share, 0);
  if (because.length < 2 || sum === 0) return false;
  const said = "Its score came from " + speaking.map(({ member, share }) => `${MEMBERS[member] ?? member} ${percent(share / sum)}`).join(", ");
  let x = 0;
  const segment = ({ member, share }) => svg("rect", { class: `c${Math.abs(Object.keys(MEMBERS).indexOf(member))}`, x: (x += share / sum) - share / sum, width: share / sum, height: 1 });
  const [most] = speaking.toSorted((a, b) => b.share - a.share);
  return el("span", { class: "degree", title: said }, svg("svg", { class: "mix", viewBox: "0 0 1 1", preserveAspectRatio: "none", role: "img", "aria-label": said }, speaking.map(segment)), `mostly ${MEMBERS[most.member] ?? most.member}`);
}

/** `1 fact`, `2 facts`. */
export const counted = (count, one, several = one + "s") => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;

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
