// The first page: questions to try, what the graph says, how good the answers are.

import { ask, runs } from "./api.js";
import { counted, el, href, link, short } from "./dom.js";

/** How good the answers are, in a sentence. */
function quality(figures) {
  if (!figures) return "How good the answers are was not measured.";
  const of100 = (share) => (share < 1 ? Math.min(99, Math.round(100 * share)) : 100); // 100 means all
  return `Of 100 facts that were hidden from it, it puts ${of100(figures["hits@1"])} first and ${of100(figures["hits@10"])} among its first ten answers (measured on ${counted(figures.queries, "question")}).`;
}

function questionCard(run, { subject, subject_label, relation, relation_label }) {
  return el("li", {}, el("a", { href: href({ run, view: "ask", subject, relation }) },
    el("span", {}, el("strong", {}, short(subject_label, 60)), " ", el("span", { class: "hop" }, `—${short(relation_label, 60)}→`), " ", el("strong", {}, "?"))));
}

const relationCard = (run, { id, label, facts, head, tail }) =>
  el("li", {}, el("a", { href: href({ run, view: "relation", id }) },
    el("span", {}, el("strong", {}, short(label, 80)), el("span", { class: "example" }, `${short(head, 40)} → ${short(tail, 40)}`)),
    el("span", { class: "degree" }, facts.toLocaleString("en"))));

/** Shows what `run` is about. */
export async function homeView(view, { run }, { signal, status }) {
  const [overview, { runs: served }] = await Promise.all([ask(run, "overview", {}, signal), runs()]);
  const about = served.find((one) => one.name === run);
  const { questions, kinds, relations } = overview, { facts, kept_back } = about;
  view.replaceChildren(...[
    el("h1", {}, "Ask the graph"),
    el("p", { class: "lead" }, `${counted(facts, "fact")} about ${counted(about.entities, "entity", "entities")} in ${counted(about.relations, "relation")}`,
      kept_back > 0 && `; ${kept_back.toLocaleString("en")} of them were held out to check the answers`, ". ", quality(about.figures)),
    about.probabilities && el("p", { class: "note" }, "A probability of 30 % means: of 100 answers like this one, about 30 turn out to be true.",
      about.why_rough && ` Probabilities of this run are rough, and marked with ~: ${about.why_rough}.`),
    questions.length > 0 && el("h2", {}, "Try a question"),
    questions.length > 0 && el("ul", { class: "cards wide-cards" }, questions.map((one) => questionCard(run, one))),
    el("h2", {}, "What is in it"),
    kinds.length > 0 && el("p", { class: "kinds" }, kinds.map(({ label, entities }) => el("span", { class: "question" }, short(label, 60), " ", el("span", { class: "degree" }, entities.toLocaleString("en"))))),
    el("p", { class: "note" }, "Its relations, each with one of its facts and how many there are. ", about.relations > relations.length && "The others are found by searching."),
    el("ul", { class: "cards" }, relations.map((one) => relationCard(run, one))),
    el("p", { class: "note" }, `${counted(about.rules, "rule")} learnt from the graph. `, link({ run, view: "reviewed" }, "What you have reviewed")),
  ].filter(Boolean));
  status("");
  return {};
}
