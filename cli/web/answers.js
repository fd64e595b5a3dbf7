// The answers to a question, grouped by what supports them.

import { address, ask } from "./api.js";
import { aside, el, entityLink, href, link, notice, pathInWords, picture, relationLink, save, short, sure, tsv } from "./dom.js";
import { grouped, heading, pathOf } from "./draw.js";

function item(question, answer) {
  const { run, relation, inverse } = question;
  const why = { run, view: "why", subject: question.subject, relation, inverse, object: answer.entity };
  return el("li", { tabindex: "-1", class: "answer", "data-why": href(why) },
    el("span", { class: "place" }, answer.place),
    el("span", {}, entityLink(run, answer.entity, answer.label), answer.label !== answer.entity && el("span", { class: "degree" }, " " + short(answer.entity, 40)), aside(answer)),
    sure(answer),
    link(why, "why?", { class: "acts", "aria-label": "Why " + short(answer.label, 60) + "?" }));
}

function group(question, answers) {
  const drawn = answers.filter((answer) => answer.path.length > 0);
  return el("section", { class: "group" },
    el("h2", {}, heading(answers[0])),
    el("ol", { class: "list" }, answers.map((answer) => item(question, answer))),
    picture(question.run, drawn.map(pathOf), drawn.map((answer) => answer.entity)));
}

/** The filters, which are part of the address. */
function tools(question, shown, go) {
  const change = (name, value) => go({ ...question, view: "ask", [name]: value });
  return el("div", { class: "tools" },
    el("label", {}, "at least", el("input", { type: "number", min: 0, max: 100, step: 5, value: Math.round(100 * (question.min ?? 0)), "aria-label": "minimum probability in per cent",
      onchange: (event) => change("min", event.target.value / 100 || undefined) }), "%"),
    el("label", {}, "hops", el("select", { onchange: (event) => change("hops", event.target.value) },
      ["", "1", "2", "3"].map((hops) => el("option", { value: hops, selected: hops === String(question.hops ?? "") }, hops ? "≤ " + hops : "any")))),
    el("label", {}, el("input", { type: "checkbox", checked: question.hide === "1", onchange: (event) => change("hide", event.target.checked ? "1" : undefined) }), "hide held-out facts"),
    el("label", {}, "show", el("select", { onchange: (event) => change("top", event.target.value) },
      ["10", "50", "200", "1000"].map((top) => el("option", { value: top, selected: top === String(question.top ?? 10) }, top)))),
    el("span", { class: "right" },
      el("button", { type: "button", class: "small", onclick: () => save("answers.json", "application/json", JSON.stringify(shown, null, 2)) }, "JSON"),
      el("button", { type: "button", class: "small", onclick: () => save("answers.tsv", "text/tab-separated-values", asTsv(question, shown)) }, "TSV"),
      el("a", { href: address(question.run, "predict", { subject: question.subject, relation: question.relation, inverse: question.inverse ? "true" : undefined, top: question.top }) }, "API")));
}

const asTsv = ({ subject, relation, inverse }, answers) => tsv([
  ["place", "head", "relation", "tail", "probability", "score", "put_aside", "rule", "path"],
  ...answers.map((answer) => {
    const [head, tail] = inverse ? [answer.entity, subject] : [subject, answer.entity];
    return [answer.place, head, relation, tail, answer.probability, answer.score, answer.held_out, answer.rule?.text, pathInWords(answer.from, answer.path)];
  })]);

/** What to say where there is nothing to show. */
function empty(question, prediction, entity) {
  const { run, subject, relation, inverse } = question;
  if (prediction.answers.length > 0) return notice("Every answer is filtered out. ", link({ run, view: "ask", subject, relation, inverse }, "Show all of them"));
  const turned = entity.links.find((one) => one.relation === prediction.relation && one.inverse !== prediction.inverse);
  const same = entity.links.find((one) => one.relation === prediction.relation && one.inverse === prediction.inverse);
  return notice(
    entity.links.length === 0 ? "Nothing is predicted: the graph has no fact about this entity." : "Nothing is predicted: no learnt path or rule leads from here.",
    turned && !same && el("p", {}, "It is at the other end of this relation: ",
      link({ run, view: "ask", subject, relation: prediction.relation, inverse: !prediction.inverse }, "ask in the other direction"), "."));
}

/** Shows the answers to `question` in `view`. */
export async function answersView(view, question, { go, signal, status }) {
  const { run, subject, relation } = question;
  const parameters = { subject, relation, inverse: question.inverse ? "true" : undefined, top: question.top };
  const prediction = await ask(run, "predict", parameters, signal);
  const entity = await ask(run, "entity", { id: prediction.subject, limit: 1 }, signal);
  const asked = { ...question, subject: prediction.subject, relation: prediction.relation, inverse: prediction.inverse };
  prediction.answers.forEach((answer, i) => { answer.place = i + 1; });
  const shown = prediction.answers.filter((answer) =>
    (answer.probability ?? 1) >= (question.min ?? 0) && (!question.hops || answer.path.length <= question.hops) && !(question.hide === "1" && answer.held_out));
  const name = entityLink(run, entity.id, entity.label), unknown = el("strong", {}, "?");
  const [head, tail] = asked.inverse ? [unknown, name] : [name, unknown];
  const known = prediction.known.map((label, i) => [i > 0 && ", ", entityLink(run, prediction.known_ids[i], label)]);
  view.replaceChildren(
    el("h1", {}, head, " —", relationLink(run, asked.relation), "→ ", tail),
    known.length > 0 && el("details", { open: known.length <= 6 }, el("summary", {}, `${known.length} known already`), el("p", { class: "name" }, known.slice(0, 200))) || "",
    tools(asked, shown, go),
    ...(shown.length > 0 ? grouped(shown, asked.subject).map((answers) => group(asked, answers)) : [empty(asked, prediction, entity)]));
  status(`${shown.length} answer${shown.length === 1 ? "" : "s"}, ${known.length} known already`);
  return { subject: [entity.id, entity.label], relation: [asked.relation], inverse: asked.inverse, title: `${entity.label} ${asked.relation}` };
}
