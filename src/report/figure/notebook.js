// What a notebook shows of a result, drawn as on the page.

import { drawing, el, heading, likely, otherWays, pathInWords, pathOf, ruleHeading, short, verdict } from "./draw.js";

/** The pattern of a reason: its rule, else the relations of its path. Answers with the same one stand together. */
function pattern({ rule, path, from_id }, subject) {
  const walked = path.map((step) => (step.inverse ? "~" : "") + step.relation).join(" · ");
  return JSON.stringify([rule?.text ?? null, walked, rule?.constants || from_id !== subject ? "" : "s"]);
}

/** Groups in the order of their best answers. */
function grouped(answers, subject) {
  const groups = new Map();
  for (const answer of answers) {
    const key = pattern(answer, subject);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(answer);
  }
  return [...groups.values()];
}

const picture = (paths, goals) => paths.length > 0 && el("div", { class: "wide" }, drawing(paths, new Set(goals), undefined, 900));

const group = (title, ...children) => el("section", { class: "group" }, el("h4", {}, title), ...children);

const sure = (answer) =>
  el("span", { class: "sure" }, answer.probability === null || answer.probability === undefined ? "score " + answer.score.toPrecision(3) : likely(answer));

const held = (fact) => fact.held_out && el("span", { class: "badge" }, "held out: " + { train: "training", valid: "validation", test: "test" }[fact.held_out]);

/** `Ada —uncle_of→ ?`, or with the answer instead of the question mark. */
function question({ subject, relation, inverse }, label, object = "?") {
  const [head, tail] = inverse ? [object, label ?? subject] : [label ?? subject, object];
  return el("h3", {}, `${short(head, 60)} —${short(relation, 60)}→ ${short(tail, 60)}`);
}

function predictionView(prediction) {
  const { answers, known, subject } = prediction;
  const place = new Map(answers.map((answer, i) => [answer, i + 1]));
  const item = (answer) => el("li", { value: place.get(answer) }, short(answer.label), " ", sure(answer), held(answer));
  return [question(prediction),
    known.length > 0 && el("p", { class: "note" }, "known already: " + short(known.slice(0, 20).join(", "), 400)),
    answers.length === 0 && el("p", {}, "Nothing is predicted."),
    grouped(answers, subject).map((some) => group(heading(some[0]), el("ol", {}, some.map(item)),
      picture(some.filter((answer) => answer.path.length > 0).map(pathOf), some.map((answer) => answer.entity))))];
}

function explanationView(why) {
  const drawn = (reason, goal) => reason.path.length > 0 && picture([pathOf(reason)], [goal]);
  const { rules, embedding, instead, object } = why;
  return [question(why, undefined, object), el("p", {}, verdict(why), held(why)),
    rules.map((rule) => group(ruleHeading(rule), drawn(rule, object))),
    otherWays(why).map((way) => group([short(pathInWords(way.from, way.path), 300) || "No path", " ", sure(way)], drawn(way, object))),
    embedding && !(why.because?.length > 0) && el("p", {}, `The embedding model: plausibility ${embedding.plausibility.toPrecision(2)}, rank ${embedding.rank.toLocaleString("en")} among all entities.`),
    instead && group(["The best answer instead: " + short(instead.label, 60), " ", sure(instead)], drawn(instead, instead.entity))];
}

function rulesView({ rules, total }) {
  return [el("h3", {}, `${total.toLocaleString("en")} rule${total === 1 ? "" : "s"}`),
    rules.map((rule) => group(ruleHeading(rule), rule.path.length > 0 && picture([pathOf(rule)], [rule.goal]))),
    total > rules.length && el("p", { class: "note" }, `and ${(total - rules.length).toLocaleString("en")} more`)];
}

function factsView({ facts, total }) {
  const item = (fact) => el("li", {}, `${short(fact.head_label, 60)} —${short(fact.relation, 60)}→ ${short(fact.tail_label, 60)} `, sure(fact), held(fact));
  return [el("h3", {}, `${total.toLocaleString("en")} missing fact${total === 1 ? "" : "s"}`),
    grouped(facts).map((some) => group(heading(some[0]), el("ul", {}, some.map(item)),
      picture(some.filter((fact) => fact.path.length > 0).map(pathOf), []))),
    total > facts.length && el("p", { class: "note" }, `and ${(total - facts.length).toLocaleString("en")} more`)];
}

function graphView({ figures, relations }) {
  const row = ([name, count]) => el("div", {}, el("dt", {}, name), el("dd", {}, count.toLocaleString("en")));
  return [el("dl", { class: "figures" }, figures.map(row)),
    relations.map(({ relation, facts, paths }) => group(`${short(relation)}: ${facts.toLocaleString("en")} fact${facts === 1 ? "" : "s"}`, picture(paths.map(pathOf), [])))];
}

/** Shows `data` in `place`, instead of the plain text that is there. */
export function show(place, view, data) {
  place.replaceChildren(...view(data).flat(Infinity).filter(Boolean));
}
