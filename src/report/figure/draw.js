// Paths as a drawing: one column a hop, an entity once in each column. Pages, the report and notebooks draw with this
// file; it needs no other. Data goes into text nodes and attributes only, never into markup.

const SVG = "http://www.w3.org/2000/svg";

const ROW = 34, BOX = 24, GAP = 56, LETTER = 7.3, SMALL = 6.8, MOST = 27, SHOWN = 40;

/** Gives an element its attributes and children; those without a value are left out. */
export function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: `el("p", {class: "note"}, "text", other)`. */
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** The same for SVG. */
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A text of at most `most` characters; a character is never cut in two. */
export function short(text, most = 90) {
  const characters = [...text.slice(0, 4 * most)];
  return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : text;
}

/** What the relation of a step is called. */
export const called = (step) => step.relation_label ?? step.relation;

/** `0.873` as `87 %`; whole per cent, but never 0 or 100 for what is neither. */
export function percent(share) {
  const whole = Math.round(100 * share);
  if (whole === 0 && share > 0) return "< 1 %";
  if (whole === 100 && share < 1) return "> 99 %";
  return whole + " %";
}

/** `Ada —parent_of→ Ben ←sibling_of— Cleo`. */
export function pathInWords(from, path) {
  const step = (one) => (one.inverse ? ` ←${called(one)}— ` : ` —${called(one)}→ `) + short(one.label, 60);
  return path.length ? short(from, 60) + path.map(step).join("") : "";
}

/**
 * Draws `paths`, each `[{id, label}, {relation, inverse, id, label}, …]`, all along the same relations.
 * `goals` are the ids to stand out in the last column; `address` says where the link of an entity leads, if anywhere.
 */
export function drawing(paths, goals = new Set(), address = () => undefined) {
  const shown = paths.slice(0, SHOWN);
  const first = shown[0] ?? [];
  const columns = first.map((_, i) => column(shown.map((path) => path[i])));
  const height = 26 + ROW * Math.max(...columns.map((nodes) => nodes.size), 1);
  let left = 4;
  columns.forEach((nodes, i) => {
    const width = Math.max(...[...nodes.values()].map((node) => node.width));
    if (i > 0) left += gap(first[i]);
    let top = 24 + (height - 26 - ROW * nodes.size) / 2;
    for (const node of nodes.values()) {
      Object.assign(node, { x: left, y: top, column: width });
      top += ROW;
    }
    left += width;
  });
  const width = left + 8;
  const picture = svg("svg", { class: "paths", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": shown.slice(0, 5).map(inWords).join("; ") });
  // A little smaller where that is enough to fit; otherwise it is scrolled.
  picture.style.minWidth = `${0.85 * width}px`;
  picture.append(...hops(first, columns), ...edges(shown, columns));
  columns.forEach((nodes, i) => nodes.forEach((node) =>
    picture.append(box(address(node.id), node, i === columns.length - 1 && goals.has(node.id)))));
  return picture;
}

function column(steps) {
  const nodes = new Map();
  for (const { id, label } of steps) {
    const text = short(label, MOST);
    if (!nodes.has(id)) nodes.set(id, { id, label, text, width: 20 + LETTER * [...text].length });
  }
  return nodes;
}

/** The relation of a hop as it stands above its gap. */
const hopText = ({ relation, inverse }) => inverse ? `← ${short(relation, 16)}` : `${short(relation, 16)} →`;

/** The gap before a step: as wide as its relation. */
const gap = (step) => Math.max(GAP, 18 + SMALL * [...hopText(step)].length);

/** The relation of each hop, once above the gap between two columns. */
function hops(path, columns) {
  return path.slice(1).map((step, i) => {
    const node = columns[i].values().next().value;
    return svg("text", { class: "hop", x: node.x + node.column + gap(step) / 2, y: 14, "text-anchor": "middle" },
      svg("title", {}, step.relation), hopText(step));
  });
}

function edges(paths, columns) {
  const seen = new Set(), drawn = [];
  for (const path of paths) {
    for (let i = 1; i < path.length; i++) {
      const from = columns[i - 1].get(path[i - 1].id), to = columns[i].get(path[i].id);
      const key = JSON.stringify([i, from.id, to.id]);
      if (seen.has(key)) continue;
      seen.add(key);
      const [x1, y1, x2, y2] = [from.x + from.width, from.y + BOX / 2, to.x, to.y + BOX / 2];
      const [tip, back] = path[i].inverse ? [x1, 6] : [x2, -6];
      const y = path[i].inverse ? y1 : y2;
      drawn.push(svg("path", { d: `M${x1} ${y1} C${x1 + 40} ${y1} ${x2 - 40} ${y2} ${x2} ${y2} M${tip + back} ${y - 4} L${tip} ${y} L${tip + back} ${y + 4}` }));
    }
  }
  return drawn;
}

function box(href, node, goal) {
  return svg(href ? "a" : "g", { href, class: goal ? "goal" : undefined },
    svg("title", {}, short(node.label, 500)),
    svg("rect", { x: node.x, y: node.y, width: node.width, height: BOX, rx: 12 }),
    svg("text", { x: node.x + node.width / 2, y: node.y + 16.5, "text-anchor": "middle" }, node.text));
}

function inWords(path) {
  return path.map(({ relation, inverse, label }) => (relation ? (inverse ? ` from, by ${relation}, ` : ` by ${relation} to `) : "") + short(label, 60)).join("");
}

/** A path of an answer or rule with the entity where it begins. */
export const pathOf = ({ from, from_id, path }) =>
  [{ id: from_id, label: from }, ...path.map((step) => ({ relation: called(step), inverse: step.inverse, id: step.entity, label: step.label }))];

const DOWN = { width: 340, left: 4, text: 13, hop: 12, line: 16, letters: 44 };

/** `text` in lines of at most `most` characters, broken after spaces and marks; at most `lines` of them. */
function wrapped(text, most, lines) {
  const found = [""];
  for (const part of text.match(/[^\s/_.,-]*[\s/_.,-]*/g) ?? []) {
    const last = found[found.length - 1];
    if (last && [...(last + part).trimEnd()].length > most) found.push(part);
    else found[found.length - 1] = last + part;
  }
  const kept = found.slice(0, lines - 1), rest = found.slice(lines - 1).join("");
  return [...kept, short(rest, most)].filter(Boolean);
}

const linesOf = (lines, x, y, attributes) =>
  svg("text", attributes, ...lines.map((line, i) => svg("tspan", { x, y: y + i * DOWN.line }, line.trimEnd())));

/**
 * Draws one path downwards, with every name in full where a few lines can hold it: for reading, on a narrow screen too.
 * `address` says where the link of an entity leads, if anywhere.
 */
export function drawnDown(path, address = () => undefined) {
  const { width, left, letters } = DOWN, parts = [];
  let top = 4;
  path.forEach((step, i) => {
    if (step.relation) {
      const lines = wrapped(step.relation, letters, 3), height = 14 + DOWN.line * lines.length, x = left + 18;
      const [tip, back] = step.inverse ? [top + 1, 6] : [top + height - 1, -6];
      parts.push(svg("path", { d: `M${x} ${top} L${x} ${top + height} M${x - 4} ${tip + back} L${x} ${tip} L${x + 4} ${tip + back}` }),
        linesOf(lines, x + 12, top + 11 + DOWN.hop / 2, { class: "hop" }));
      top += height;
    }
    const lines = wrapped(step.label, letters, 2), height = 8 + DOWN.line * lines.length;
    const wide = Math.min(width - 2 * left, 26 + LETTER * 1.12 * Math.max(...lines.map((line) => [...line].length)));
    const href = address(step.id);
    parts.push(svg(href ? "a" : "g", { href, class: i === path.length - 1 ? "goal" : "node" }, svg("title", {}, short(step.label, 500)),
      svg("rect", { x: left, y: top, width: wide, height, rx: 12 }), linesOf(lines, left + 12, top + 17, {})));
    top += height;
  });
  const height = top + 4;
  const picture = svg("svg", { class: "paths down", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": inWords(path) });
  picture.append(...parts);
  return picture;
}

/** The pattern of a reason: its rule, else the relations of its path. Answers with the same one stand together. */
function pattern({ rule, path, from_id }, subject) {
  const walked = path.map((step) => (step.inverse ? "~" : "") + step.relation).join(" · ");
  return JSON.stringify([rule?.text ?? null, walked, rule?.constants || from_id !== subject ? "" : "s"]);
}

/** Groups in the order of their best answers. */
export function grouped(answers, subject) {
  const groups = new Map();
  for (const answer of answers) {
    const key = pattern(answer, subject);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(answer);
  }
  return [...groups.values()];
}

/** What a rule says, and how often it is right. */
export const ruleHeading = (rule) => [el("span", { class: "rule-text" }, short(rule.label, 300)), " ",
  el("span", { class: "counts" }, `confidence ${rule.confidence.toFixed(2)}, ${rule.correct.toLocaleString("en")} of ${rule.predicted.toLocaleString("en")} true`)];

/** What a group is called. */
export function heading({ rule, path, entity, from_id }) {
  if (rule) return ruleHeading(rule);
  if (path.length === 0) return [entity === from_id ? "Itself: many facts of this relation lead from an entity to itself" : "By the embedding model alone"];
  return [el("span", { class: "rule-text" }, path.map((step) => (step.inverse ? `←${called(step)}—` : `—${called(step)}→`)).join(" ")), " ",
    el("span", { class: "counts" }, "a learnt path, not a rule")];
}

/** One sentence about where the fact stands. */
export function verdict({ known, rank, rules, answers }) {
  if (known) return "A fact of the graph.";
  if (rank) {
    const probability = answers[0]?.probability;
    return `Predicted at rank ${rank}` + (probability === null || probability === undefined ? "." : `, with a probability of ${percent(probability)}.`);
  }
  return rules.length > 0 ? "Not predicted: there are too many better answers." : "Not predicted: no learnt path or rule leads there.";
}

/** The ways of an explanation that are not those of its rules. */
export const otherWays = ({ answers, rules }) =>
  answers.filter((way) => !rules.some((rule) => JSON.stringify(rule.path) === JSON.stringify(way.path)));
