// Paths as a drawing: one column a hop, an entity once in each column. The report and the page of `serve` draw with this
// same file, so it stands alone. Data goes into text nodes and attributes only, never into markup.

const ROW = 34, BOX = 24, GAP = 118, LETTER = 7.3, MOST = 27, SHOWN = 40;

/** A text of at most `most` characters; a character is never cut in two. */
export function short(text, most = 90) {
  const characters = [...text.slice(0, 4 * most)];
  return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : text;
}

/** What the relation of a step is called. */
export const called = (step) => step.relation_label ?? step.relation;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Draws `paths`, each `[{id, label}, {relation, inverse, id, label}, …]`, all along the same relations.
 * `goals` are the ids to stand out in the last column; `address` gives the page of an entity by its id, where it has one.
 */
export function drawing(paths, { goals = new Set(), address = () => undefined } = {}) {
  const shown = paths.slice(0, SHOWN);
  const columns = (shown[0] ?? []).map((_, i) => column(shown.map((path) => path[i])));
  const height = 26 + ROW * Math.max(...columns.map((nodes) => nodes.size), 1);
  let left = 4;
  for (const nodes of columns) {
    const width = Math.max(...[...nodes.values()].map((node) => node.width));
    let top = 24 + (height - 26 - ROW * nodes.size) / 2;
    for (const node of nodes.values()) {
      Object.assign(node, { x: left, y: top, column: width });
      top += ROW;
    }
    left += width + GAP;
  }
  const width = left - GAP + 8;
  const picture = svg("svg", { class: "paths", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": shown.slice(0, 5).map(inWords).join("; ") });
  picture.append(...hops(shown[0] ?? [], columns), ...edges(shown, columns));
  columns.forEach((nodes, i) => nodes.forEach((node) =>
    picture.append(box(node, address(node.id), i === columns.length - 1 && goals.has(node.id)))));
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

/** The relation of each hop, once above the gap between two columns. */
function hops(path, columns) {
  return path.slice(1).map(({ relation, inverse }, i) => {
    const node = columns[i].values().next().value;
    const text = short(relation, 16);
    return svg("text", { class: "hop", x: node.x + node.column + GAP / 2, y: 14, "text-anchor": "middle" },
      svg("title", {}, relation), inverse ? `← ${text}` : `${text} →`);
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

function box(node, address, goal) {
  return svg(address ? "a" : "g", { href: address, class: goal ? "goal" : undefined },
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

/** Draws one path downwards, with every name in full where a few lines can hold it: for reading, on a narrow screen too. */
export function drawnDown(path) {
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
    parts.push(svg("g", { class: i === path.length - 1 ? "goal" : "node" }, svg("title", {}, short(step.label, 500)),
      svg("rect", { x: left, y: top, width: wide, height, rx: 12 }), linesOf(lines, left + 12, top + 17, {})));
    top += height;
  });
  const height = top + 4;
  const picture = svg("svg", { class: "paths down", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": inWords(path) });
  picture.append(...parts);
  return picture;
}
