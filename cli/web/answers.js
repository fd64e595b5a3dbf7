// The answers to a question, best first, each with its reason beside it.

import { address, ask } from "./api.js";
import { aside, counted, el, entityLink, href, link, notice, pathInWords, picture, relationLink, save, shares, short, sure, tsv } from "./dom.js";
import { heading, pathOf } from "./draw.js";
import { factOf, verdictButtons } from "./review.js";

const UNLIKELY = 0.01; // answers below this probability are folded
const BEST = 3; // unless there are no others: then this many are shown

/** A place in a ranked list: what it is called, how sure it is, what can be done, and the reason beside it. */
export function rankedItem(question, entity, answer, called) {
  const { run, subject, relation, inverse } = question;
  const why = { run, view: "why", subject, relation, inverse, object: answer.entity };
  return el("li", { tabindex: "-1", class: "answer", "data-why": href(why) },
    el("span", { class: "place" }, answer.place),
    el("div", { class: "who" },
      el("div", {}, called, aside(answer)),
      el("div", {}, sure(answer), shares(answer.because)),
      el("div", { class: "acts" }, link(why, "why?", { class: "why", "aria-label": `Why ${short(relation, 60)} ${short(answer.label, 60)}?` }), " ", verdictButtons(run, factOf(question, entity, answer)))),
    el("div", { class: "because" }, el("p", {}, answer.sentence || heading(answer, relation)), answer.path.length > 0 && picture(run, [pathOf(answer)], [answer.entity])));
}

/** The answers in their order; those that are hardly likely are folded. */
function ranked(question, entity, shown) {
  const likely = shown.findIndex((answer) => answer.probability !== null && answer.probability < UNLIKELY);
  const open = likely === -1 ? shown.length : Math.max(likely, Math.min(BEST, shown.length));
  const list = (answers) => el("ol", { class: "list ranked" }, answers.map((answer) => rankedItem(question, entity, answer,
    [entityLink(question.run, answer.entity, answer.label), answer.label !== answer.entity && el("span", { class: "degree" }, " " + short(answer.entity, 40))])));
  const folded = shown.slice(open);
  return [
    likely === 0 && notice("No answer is likely: all of them are below 1 %."),
    list(shown.slice(0, open)),
    folded.length > 0 && el("details", { class: "fold" }, el("summary", {}, `${counted(folded.length, "answer")} below 1 %`), list(folded)),
  ];
}

/** The filters, which are part of the address. */
function tools(question, shown, go) {
  const change = (name, value) => go({ ...question, view: "ask", [name]: value });
  const choice = (id, name, options, now) => el("select", { id, onchange: (event) => change(name, event.target.value) },
    options.map(([value, text]) => el("option", { value, selected: value === String(now) }, text)));
  return el("div", { class: "tools" },
    el("label", {}, "show", choice("filter-top", "top", ["10", "50", "200", "1000"].map((top) => [top, top]), question.top ?? 10)),
    el("label", {}, "at least", el("input", { id: "filter-min", type: "number", min: 0, max: 100, step: 5, value: Math.round(100 * (question.min ?? 0)), "aria-label": "minimum probability in per cent",
      onchange: (event) => change("min", event.target.value / 100 || undefined) }), "%"),
    el("label", {}, "hops", choice("filter-hops", "hops", [["", "any"], ...["1", "2", "3"].map((hops) => [hops, "≤ " + hops])], question.hops ?? "")),
    el("label", {}, el("input", { id: "filter-hide", type: "checkbox", checked: question.hide === "1", onchange: (event) => change("hide", event.target.checked ? "1" : undefined) }), "hide held-out facts"),
    el("span", { class: "right" },
      el("button", { type: "button", class: "small", onclick: () => save("answers.json", "application/json", JSON.stringify(shown, null, 2)) }, "JSON"),
      el("button", { type: "button", class: "small", onclick: () => save("answers.tsv", "text/tab-separated-values", asTsv(question, shown)) }, "TSV"),
      el("a", { href: address(question.run, "predict", { subject: question.subject, relation: question.relation, inverse: question.inverse ? "true" : undefined, top: question.top, held_out: question.hide === "1" ? "hide" : undefined }) }, "API")));
}

const asTsv = ({ subject, relation, inverse }, answers) => tsv([
  ["place", "head", "relation", "tail", "probability", "score", "held_out", "rule", "path"],
  ...answers.map((answer) => {
    const [head, tail] = inverse ? [answer.entity, subject] : [subject, answer.entity];
    return [answer.place, head, relation, tail, answer.probability, answer.score, answer.held_out, answer.rule?.text, pathInWords(answer.from, answer.path)];
  })]);

/** `Ada —uncle_of→ ?` as a line with links. */
function asked(run, entity, relation, inverse) {
  const name = entityLink(run, entity.id, entity.label), unknown = el("strong", {}, "?");
  const [head, tail] = inverse ? [unknown, name] : [name, unknown];
  return [head, " —", relationLink(run, relation), "→ ", tail];
}

/** What to say where the entity is at the other end of the relation in all its facts. */
function otherWay(question, entity) {
  const { run, subject, relation, inverse } = question;
  const ends = entity.links.filter((one) => one.relation === relation);
  if (ends.length === 0 || ends.some((one) => Boolean(one.inverse) === Boolean(inverse))) return false;
  const [is, asks] = inverse ? ["before", "after"] : ["after", "before"];
  return notice(`In the graph, ${short(entity.label, 60)} always stands ${is} “${short(relation, 60)}”, never ${asks} it. Did you mean: `,
    link({ run, view: "ask", subject, relation, inverse: !inverse }, inverse ? `${short(entity.label, 60)} —${short(relation, 60)}→ ?` : `? —${short(relation, 60)}→ ${short(entity.label, 60)}`, { id: "turned" }), "?");
}

/** What to say where there is nothing to show. */
function empty({ run, subject, relation, inverse, hide }, prediction, entity) {
  if (prediction.answers.length > 0 || (hide === "1" && prediction.held_out_total > 0)) return notice("Every answer is filtered out. ", link({ run, view: "ask", subject, relation, inverse }, "Show all of them"));
  return notice(entity.links.length === 0 ? "Nothing is predicted: the graph has no fact about this entity." : "Nothing is predicted: no learnt path or rule leads from here.");
}

/** Shows the answers to `question` in `view`. */
export async function answersView(view, question, { go, signal, status }) {
  const { run, subject, relation } = question;
  const parameters = { subject, relation, inverse: question.inverse ? "true" : undefined, top: question.top, held_out: question.hide === "1" ? "hide" : undefined };
  const prediction = await ask(run, "predict", parameters, signal);
  const entity = await ask(run, "entity", { id: prediction.subject, limit: 1 }, signal);
  const meant = { ...question, subject: prediction.subject, relation: prediction.relation, inverse: prediction.inverse };
  prediction.answers.forEach((answer, i) => { answer.place = i + 1; });
  const shown = prediction.answers.filter((answer) =>
    (answer.probability ?? 1) >= (question.min ?? 0) && (!Number(question.hops) || answer.path.length <= question.hops));
  const known = prediction.known.map((label, i) => [i > 0 && ", ", entityLink(run, prediction.known_ids[i], label)]);
  const total = prediction.known_total;
  const rest = total > known.length && [" and ", link({ run, view: "entity", id: entity.id }, `${total - known.length} more`)];
  view.replaceChildren(...[
    el("h1", {}, asked(run, entity, meant.relation, meant.inverse)),
    otherWay(meant, entity),
    total > 0 && el("details", { open: total <= 6 }, el("summary", {}, `${counted(total, "answer")} in the graph already`), el("p", { class: "name" }, known, rest || "")),
    tools(meant, shown, go),
    shown.length > 0 ? ranked(meant, entity, shown) : empty(meant, prediction, entity),
    el("p", { class: "note" }, link({ run, view: "ask", subject: meant.subject, relation: meant.relation, inverse: !meant.inverse }, "Ask in the other direction"), " · ",
      link({ run, view: "relation", id: meant.relation }, "Rules and missing facts of this relation")),
  ].flat().filter(Boolean));
  status(`${counted(shown.length, "answer")}, ${total.toLocaleString("en")} in the graph already`);
  return { title: `${entity.label} ${meant.relation}` };
}
