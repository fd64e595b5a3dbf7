// Paths as a drawing: one column a hop, an entity once in each column. Pages, the report and notebooks draw with this
// file; it needs no other. Data goes into text nodes and attributes only, never into markup.

const SVG = "http://www.w3.org/2000/svg";

const ROW = 34, BOX = 24, GAP = 56, SHOWN = 40;
const FONT = "13px system-ui, sans-serif", HOP_FONT = "12px system-ui, sans-serif";
// How wide a name may be: the widest at which the drawing has room.
const LIMITS = [Infinity, ...Array.from({ length: 13 }, (_, i) => 360 - 20 * i)];

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

let ruler;

/** How wide `text` is as it is drawn. */
export function textWidth(text, font = FONT) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = font;
  return ruler.measureText(text).width;
}

/** As much of `text` as `room` has place for. */
export function fitted(text, room, font = FONT) {
  if (textWidth(text.slice(0, 500), font) <= room && text.length <= 500) return text;
  const characters = [...text.slice(0, 500)];
  let [low, high] = [1, characters.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(characters.slice(0, middle).join("") + "…", font) <= room) low = middle; else high = middle - 1;
  }
  return characters.slice(0, low).join("") + "…";
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

/** A probability for people: `41 %`, or `~40 %` if it is rough: then one digit counts. */
export const likely = ({ probability, probability_rough }) => (!probability_rough || probability < 0.005 ? percent(probability)
  : probability < 0.95 ? `~${Number((100 * probability).toPrecision(1))} %` : "> 90 %");

/** What the data say about the fact of a step: `2021-03, from a report, confidence 0.9`. */
export const noted = ({ note }) => (note ? [note.time, note.source && `from ${short(note.source, 200)}`, note.confidence !== undefined && `confidence ${Number(note.confidence.toPrecision(2))}`] : []).filter(Boolean).join(", ");

/** `Ada —parent_of→ Ben ←sibling_of— Cleo`. */
export function pathInWords(from, path) {
  const step = (one) => (one.inverse ? ` ←${called(one)}— ` : ` —${called(one)}→ `) + short(one.label, 60);
  return path.length ? short(from, 60) + path.map(step).join("") : "";
}

/**
 * Draws `paths`, each `[{id, label}, {relation, inverse, id, label}, …]`, all along the same relations: side by side if
 * `room` is wide enough, else one path downwards, or several as lines of text.
 * `goals` are the ids to stand out in the last column; `address` says where the link of an entity leads, if anywhere.
 */
export function drawn(paths, goals, address, room) {
  const shown = paths.slice(0, SHOWN);
  const fits = LIMITS.map((limit) => layout(shown, limit)).find(({ width }) => width <= room);
  if (fits) return sideBySide(shown, fits, goals, address);
  return shown.length === 1 ? drawnDown(shown[0], address, room, goals) : el("ul", { class: "ways" }, shown.map((path) => el("li", {}, pathLine(path, address))));
}

/** The same side by side, whatever the room is. */
export function drawing(paths, goals = new Set(), address = () => undefined, room = Infinity) {
  const shown = paths.slice(0, SHOWN), all = LIMITS.map((limit) => layout(shown, limit));
  return sideBySide(shown, all.find(({ width }) => width <= room) ?? all.at(-1), goals, address);
}

/** Where everything is if no name is wider than `limit`. */
function layout(paths, limit) {
  const first = paths[0] ?? [];
  const columns = first.map((_, i) => column(paths.map((path) => path[i]), limit));
  const height = 26 + ROW * Math.max(...columns.map((nodes) => nodes.size), 1);
  let left = 4;
  columns.forEach((nodes, i) => {
    const width = Math.max(...[...nodes.values()].map((node) => node.width));
    if (i > 0) left += gap(first[i], limit);
    let top = 24 + (height - 26 - ROW * nodes.size) / 2;
    for (const node of nodes.values()) {
      Object.assign(node, { x: left, y: top, column: width });
      top += ROW;
    }
    left += width;
  });
  return { columns, width: Math.ceil(left + 6), height, limit };
}

function sideBySide(paths, { columns, width, height, limit }, goals, address) {
  const picture = frame(paths, width, height, columns.some((nodes) => [...nodes.keys()].some((id) => address(id))));
  picture.append(...hops(paths[0] ?? [], columns, limit), ...edges(paths, columns));
  columns.forEach((nodes, i) => nodes.forEach((node) =>
    picture.append(box(address(node.id), node, i === columns.length - 1 && goals.has(node.id)))));
  return picture;
}

/** The drawing without its parts. What has links is a group: the parts of an image cannot be reached. */
const frame = (paths, width, height, linked, more = "") => svg("svg", { class: "paths" + more, width, height, viewBox: `0 0 ${width} ${height}`,
  role: linked ? "group" : "img", "aria-label": paths.slice(0, 5).map(inWords).join("; ") });

function column(steps, limit) {
  const nodes = new Map();
  for (const { id, label } of steps) {
    if (nodes.has(id)) continue;
    const text = fitted(label, limit === Infinity ? 520 : limit);
    nodes.set(id, { id, label, text, width: 24 + textWidth(text) });
  }
  return nodes;
}

/** The relation of a hop as it stands above its gap. */
function hopText({ relation, inverse }, limit) {
  const text = fitted(relation, Math.min(limit, 240), HOP_FONT);
  return inverse ? `← ${text}` : `${text} →`;
}

/** A relation in full, with what the data say about the fact. */
const hopTitle = ({ relation, note }) => short(relation, 500) + (note ? `: ${note}` : "");

/** The gap before a step: as wide as its relation. */
const gap = (step, limit) => Math.max(GAP, 18 + textWidth(hopText(step, limit), HOP_FONT));

/** The relation of each hop, once above the gap between two columns. */
function hops(path, columns, limit) {
  return path.slice(1).map((step, i) => {
    const node = columns[i].values().next().value;
    return svg("text", { class: "hop", x: node.x + node.column + gap(step, limit) / 2, y: 14, "text-anchor": "middle" },
      svg("title", {}, hopTitle(step)), hopText(step, limit));
  });
}

/** A path as a line of text with its links. */
const pathLine = (path, address) => path.map((step) => {
  const href = address(step.id), name = short(step.label, 90);
  return [step.relation && el("span", { class: "hop" }, step.inverse ? ` ←${step.relation}— ` : ` —${step.relation}→ `), href ? el("a", { href }, name) : name];
});

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
      drawn.push(svg("path", { d: `M${x1} ${y1} C${x1 + 40} ${y1} ${x2 - 40} ${y2} ${x2} ${y2} M${tip + back} ${y - 4} L${tip} ${y} L${tip + back} ${y + 4}` },
        path[i].note && svg("title", {}, hopTitle(path[i]))));
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
  [{ id: from_id, label: from }, ...path.map((step) => ({ relation: called(step), inverse: step.inverse, id: step.entity, label: step.label, note: noted(step) }))];

const DOWN = { width: 340, left: 4, line: 16 };

/** `text` in lines of at most `room`, broken after spaces and marks; at most `lines` of them. */
function wrapped(text, room, lines, font) {
  const found = [""];
  for (const part of text.slice(0, 1000).match(/[^\s/_.,-]*[\s/_.,-]*/g) ?? []) {
    const last = found[found.length - 1];
    if (last && textWidth((last + part).trimEnd(), font) > room) found.push(part);
    else found[found.length - 1] = last + part;
  }
  const kept = found.slice(0, lines - 1), rest = found.slice(lines - 1).join("");
  return [...kept, rest].filter(Boolean).map((line) => fitted(line.trimEnd(), room, font));
}

const linesOf = (lines, x, y, attributes, title) =>
  svg("text", attributes, title && svg("title", {}, title), ...lines.map((line, i) => svg("tspan", { x, y: y + i * DOWN.line }, line)));

/**
 * Draws one path downwards, with every name in full where a few lines can hold it: for reading, on a narrow screen too.
 * `address` says where the link of an entity leads, if anywhere. The last entity stands out, with `goals` only if it is one.
 */
export function drawnDown(path, address = () => undefined, room = DOWN.width, goals = undefined) {
  const { left } = DOWN, width = Math.max(Math.min(room, DOWN.width), 160), parts = [];
  let top = 4;
  path.forEach((step, i) => {
    if (step.relation) {
      const lines = wrapped(step.relation, width - left - 36, 3, HOP_FONT), height = 14 + DOWN.line * lines.length, x = left + 18;
      const [tip, back] = step.inverse ? [top + 1, 6] : [top + height - 1, -6];
      parts.push(svg("path", { d: `M${x} ${top} L${x} ${top + height} M${x - 4} ${tip + back} L${x} ${tip} L${x + 4} ${tip + back}` }),
        linesOf(lines, x + 12, top + 17, { class: "hop" }, step.note && hopTitle(step)));
      top += height;
    }
    const lines = wrapped(step.label, width - 2 * left - 26, 2, FONT), height = 8 + DOWN.line * lines.length;
    const wide = Math.min(width - 2 * left, 26 + Math.max(...lines.map((line) => textWidth(line))));
    const href = address(step.id), stands = i === path.length - 1 && (goals?.has(step.id) ?? true);
    parts.push(svg(href ? "a" : "g", { href, class: stands ? "goal" : "node" }, svg("title", {}, short(step.label, 500)),
      svg("rect", { x: left, y: top, width: wide, height, rx: 12 }), linesOf(lines, left + 12, top + 17, {})));
    top += height;
  });
  const picture = frame([path], width, top + 4, path.some((step) => address(step.id)), " down");
  picture.append(...parts);
  return picture;
}

/** How often a rule is right. */
const cases = ({ correct, predicted }) => `true in ${correct.toLocaleString("en")} of ${predicted.toLocaleString("en")} cases`;

/** What a rule says, and how often it is right. */
export const ruleHeading = (rule) => [rule.sentence ? el("span", { title: rule.label }, short(rule.sentence, 300)) : el("span", { class: "rule-text" }, short(rule.label, 300)),
  " ", el("span", { class: "counts" }, cases(rule)), clause(rule)];

/** The clause of a rule that is shown as a sentence; hidden unless clauses are wanted. */
export const clause = (rule) => rule.sentence
  && el("span", { class: "clause rule-text", hidden: !document.documentElement.classList.contains("clauses") }, " ", short(rule.label, 300));

/** The same beside the path that the rule follows: the path says what the rule is, unless the rule is about constants. */
export const ruleBesidePath = (rule, relation) => (rule.sentence || rule.constants ? ruleHeading(rule)
  : [el("span", { title: rule.label }, `Where such a path leads, “${short(relation, 60)}” is ${cases(rule)}.`)]);

/** What a group is called. */
export function heading({ rule, path, entity, from_id }, relation) {
  if (rule) return relation && path.length > 0 ? ruleBesidePath(rule, relation) : ruleHeading(rule);
  if (path.length === 0) return [entity === from_id ? "Itself: many facts of this relation lead from an entity to itself" : "By the embedding model alone"];
  return [el("span", { class: "rule-text" }, path.map((step) => (step.inverse ? `←${called(step)}—` : `—${called(step)}→`)).join(" ")), " ",
    el("span", { class: "counts" }, "a learnt path, not a rule")];
}

/** One sentence about where the fact stands. */
export function verdict({ known, rank, rules, answers }) {
  if (known) return "A fact of the graph.";
  if (rank) {
    const probability = answers[0]?.probability;
    return `Predicted at rank ${rank}` + (probability === null || probability === undefined ? "." : `, with a probability of ${likely(answers[0])}.`);
  }
  return rules.length > 0 ? "Not predicted: there are too many better answers." : "Not predicted: no learnt path or rule leads there.";
}

/** The ways of an explanation that are not those of its rules. What only members without a path support has no way. */
export const otherWays = ({ answers, rules }) =>
  answers.filter((way) => way.path.length > 0 || way.rule || way.entity === way.from_id).filter((way) => !rules.some((rule) => JSON.stringify(rule.path) === JSON.stringify(way.path)));
