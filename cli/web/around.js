// An entity's neighbourhood: a tree that grows to the right. Facts are drawn with whole lines, predicted ones with dashed
// lines; what is clicked grows its own neighbours.

import { ask } from "./api.js";
import { counted, el, entityLink, likely, link, measured, notice, short, svg } from "./dom.js";
import { factOf, verdictButtons } from "./review.js";
import { fitted, textWidth } from "./draw.js";

const ROW = 32, BOX = 24, GAP = 34, RELATIONS = 6, FACTS = 5, GUESSES = 3, UNLIKELY = 0.01, HOP = "12px system-ui, sans-serif";

/** A node of the tree: an entity, a relation of it, or what is left to show of a relation. */
const node = (kind, text, more = {}) => ({ kind, text, children: [], open: false, ...more });

/** The relations of an entity as nodes, each with a few facts and what is predicted. */
async function grown(run, parent, signal) {
  const { links } = await ask(run, "entity", { id: parent.id, limit: 1 }, signal);
  const largest = [...links].sort((a, b) => b.facts - a.facts).slice(0, RELATIONS);
  return Promise.all(largest.map(async ({ relation, inverse, facts }) => {
    const name = short(relation, 60), group = node("relation", inverse ? `← ${name}` : `${name} →`, { relation, inverse, subject: parent.id, of: parent.text, open: true });
    const [known, { answers }] = await Promise.all([factsOf(run, group, 0, signal),
      ask(run, "predict", { subject: parent.id, relation, inverse: inverse ? "true" : undefined, top: GUESSES }, signal)]);
    const guesses = answers.filter(({ probability }) => probability === null || probability >= UNLIKELY).map((answer) => node("entity", answer.label, { id: answer.entity, guess: answer, sure: answer.probability === null ? undefined : likely(answer) }));
    group.children = [...known, ...guesses];
    group.facts = facts;
    return group;
  }));
}

/** The facts of a relation after the first `after`, and a node for those that are left. */
async function factsOf(run, group, after, signal) {
  const { relation, inverse, subject } = group;
  const { facts } = await ask(run, "entity", { id: subject, relation, inverse: inverse ? "true" : undefined, after, limit: after === 0 ? FACTS : 4 * FACTS }, signal);
  const found = facts.items.map(({ entity, label }) => node("entity", label, { id: entity }));
  if (facts.next !== null) found.push(node("more", `${(facts.total - facts.next).toLocaleString("en")} more`, { after: facts.next }));
  return found;
}

/** Gives every visible node its place; the height and width of all. */
function placed(root, room) {
  const limit = Math.max(140, Math.min(340, room / 3.4)), columns = [], gap = room < 480 ? GAP / 2 : GAP;
  let rows = 0, all = [];
  (function walk(at, depth, parent) {
    const font = at.kind === "relation" ? HOP : undefined;
    const sure = at.sure === undefined ? "" : ` · ${at.sure}`;
    const shown = fitted(at.text, limit - textWidth(sure), font) + sure;
    Object.assign(at, { shown, depth, parent, gap, width: textWidth(shown, font) + (at.kind === "relation" ? 8 : 26) });
    columns[depth] = Math.max(columns[depth] ?? 0, at.width);
    all.push(at);
    const children = at.open ? at.children : [];
    children.forEach((child) => walk(child, depth + 1, at));
    at.y = children.length > 0 ? (children[0].y + children.at(-1).y) / 2 : rows++ * ROW + 4;
  })(root, 0);
  const lefts = columns.map((_, i) => 4 + columns.slice(0, i).reduce((sum, width) => sum + width + gap, 0));
  for (const one of all) one.x = lefts[one.depth];
  return { all, height: rows * ROW + 8, width: lefts.at(-1) + columns.at(-1) + 6 };
}

const line = ({ parent, ...to }) => parent && svg("path", { class: to.guess ? "guess" : undefined,
  d: `M${parent.x + parent.width} ${parent.y + BOX / 2} C${parent.x + parent.width + to.gap / 2} ${parent.y + BOX / 2} ${to.x - to.gap / 2} ${to.y + BOX / 2} ${to.x} ${to.y + BOX / 2}` });

function drawnNode(one, grow) {
  const { kind, x, y, width, shown, text, guess, open } = one;
  if (kind === "relation") return svg("text", { class: "hop", x: x + 4, y: y + 16 }, svg("title", {}, `${text} (${counted(one.facts, "fact")})`), shown);
  const act = (event) => { if (event.type === "click" || event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); grow(one); } };
  const label = text + (guess ? `, predicted${one.sure ? " with " + one.sure : ""}` : "");
  return svg("g", { class: ["grows", guess && "guess", kind, !one.parent && "goal"].filter(Boolean).join(" "), role: "button", tabindex: "0",
    "aria-expanded": kind === "entity" && String(open), onclick: act, onkeydown: act },
    svg("title", {}, label), svg("rect", { x, y, width, height: BOX, rx: 12 }), svg("text", { x: x + 13, y: y + 16.5 }, shown));
}

/** What can be done about a predicted fact. */
function decided(run, { parent: { relation, inverse, subject, of }, guess }) {
  return [guess.probability === null ? "Predicted: " : `Predicted with ${likely(guess)}: `, verdictButtons(run, factOf({ relation, inverse }, { id: subject, label: of }, guess)), " ",
    link({ run, view: "why", subject, relation, inverse, object: guess.entity }, "why?")];
}

/** Shows the neighbourhood of the entity `question.id` in `view`. */
export async function aroundView(view, { run, id }, { signal, status }) {
  const entity = await ask(run, "entity", { id, limit: 1 }, signal);
  const root = node("entity", entity.label, { id: entity.id, open: true });
  root.children = await grown(run, root, signal);
  root.grown = true;
  const about = el("p", { class: "note fact", role: "status" });
  let draw = () => {};
  async function grow(one) {
    if (one.kind === "more") {
      const { children } = one.parent, at = children.indexOf(one);
      children.splice(at, 1, ...await factsOf(run, one.parent, one.after));
    } else {
      if (!one.grown) one.children = await grown(run, one);
      one.grown = true;
      one.open = one.parent ? !one.open : true;
    }
    const facts = one.children.length > 0 || one.kind === "more" ? "" : " It has no facts.";
    about.replaceChildren(...(one.kind === "entity" ? [entityLink(run, one.id, one.text), ` (open its page).${facts} `, ...(one.guess ? decided(run, one) : [])] : []));
    draw(one);
  }
  const failed = (problem) => about.replaceChildren(notice(problem.message));
  const tree = measured((room) => {
    const holder = el("div", {});
    draw = (focused) => {
      const { all, height, width } = placed(root, room);
      const picture = svg("svg", { class: "paths tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `The neighbourhood of ${short(entity.label, 100)}` });
      const nodes = all.map((one) => drawnNode(one, (chosen) => grow(chosen).catch(failed)));
      picture.append(...all.map(line).filter(Boolean), ...nodes);
      holder.replaceChildren(picture);
      const at = all.indexOf(focused);
      if (at >= 0) {
        nodes[at].focus();
        // What has grown is to the right of it.
        tree.scrollLeft = Math.max(0, focused.x - 20);
      }
    };
    draw();
    return holder;
  }, { tabindex: "0", role: "region", "aria-label": "Neighbourhood" });
  view.replaceChildren(
    el("h1", {}, entityLink(run, entity.id, entity.label)),
    el("p", { class: "note" }, "Whole lines are facts of the graph, dashed ones are predicted. Click an entity to see its own neighbours. ",
      link({ run, view: "entity", id: entity.id }, "All facts and questions")),
    root.children.length > 0 ? tree : notice("The graph has no fact about this entity."), about);
  status(`${counted(root.children.length, "relation")} of ${entity.links.length}`);
  return { title: `around ${entity.label}` };
}
