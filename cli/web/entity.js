// An entity's own page: questions about it, its facts by relation, and what is predicted of it.

import { ask } from "./api.js";
import { combobox } from "./combobox.js";
import { factOf, verdictButtons } from "./review.js";
import { aside, counted, el, entityLink, href, link, notice, relationLink, short, sure } from "./dom.js";

const PAGE = 50, QUESTIONS = 8;

/** `this uses ?`, as a link to its answers. */
const questionLink = (run, id, { relation, inverse }) =>
  link({ run, view: "ask", subject: id, relation, inverse }, inverse ? `? —${short(relation, 60)}→ this` : `this —${short(relation, 60)}→ ?`, { class: "question" });

/** Asking: its own relations one click away, any other by its name. */
function questions(run, entity, go) {
  const input = el("input", { id: "relation", type: "text", placeholder: "another relation", "aria-label": "Another relation", spellcheck: "false", required: true });
  const direction = el("select", { id: "direction", "aria-label": "Direction" }, el("option", { value: "" }, "this → ?"), el("option", { value: "1" }, "? → this"));
  const form = el("form", { id: "ask", class: "ask", autocomplete: "off", onsubmit: (event) => {
    event.preventDefault();
    go({ run, view: "ask", subject: entity.id, relation: relation.value(), inverse: direction.value === "1" });
  } }, el("div", { class: "field" }, input), direction, el("button", { type: "submit" }, "Ask"));
  const relation = combobox(input, async (q, signal) => (await ask(run, "suggest", { q, kind: "relation", limit: 10 }, signal)).items);
  const links = [...entity.links].sort((a, b) => b.facts - a.facts).slice(0, QUESTIONS);
  return el("section", { class: "questions", "aria-label": "Questions" }, el("h2", {}, "Ask"),
    el("p", {}, links.map((one) => [questionLink(run, entity.id, one), " "])), form, related(run, entity, go));
}

/** Asking how the entity is related to another one. */
function related(run, entity, go) {
  const input = el("input", { id: "other", type: "text", placeholder: "another entity", "aria-label": "Another entity", spellcheck: "false", required: true });
  const form = el("form", { id: "between", class: "ask", autocomplete: "off", onsubmit: (event) => {
    event.preventDefault();
    go({ run, view: "between", subject: entity.id, object: other.value() });
  } }, el("label", { for: "other" }, "How is it related to"), el("div", { class: "field" }, input), el("button", { type: "submit" }, "Ask"));
  const other = combobox(input, async (q, signal) => (await ask(run, "suggest", { q, kind: "entity", limit: 10 }, signal)).items);
  return form;
}

/** One relation of the entity: its facts when it is opened, more on demand, and what is predicted. */
function relationSection(run, entity, { relation, inverse, facts }, open) {
  const { id } = entity, list = el("ul", { class: "columns" }), foot = el("p", {}), predicted = el("div", {});
  const asked = { run, view: "ask", subject: id, relation, inverse };
  async function load(after) {
    const page = await ask(run, "entity", { id, relation, inverse: inverse ? "true" : undefined, after, limit: PAGE });
    list.append(...page.facts.items.map((fact) => el("li", {}, entityLink(run, fact.entity, fact.label))));
    const next = page.facts.next;
    foot.replaceChildren(next === null ? "" : el("button", { type: "button", class: "small", onclick: () => load(next).catch(failed) },
      `more (${(page.facts.total - next).toLocaleString("en")} left)`));
  }
  const failed = (problem) => foot.replaceChildren(notice(problem.message));
  async function predict() {
    predicted.replaceChildren(el("p", { class: "note", role: "status" }, "Looking …"));
    try {
      const { answers } = await ask(run, "predict", { subject: id, relation, inverse: inverse ? "true" : undefined, top: 5 });
      predicted.replaceChildren(answers.length === 0 ? el("p", { class: "note" }, "Nothing more is predicted.") : el("ol", { class: "predicted" }, answers.map((answer) =>
        el("li", { class: "answer", tabindex: "-1", "data-why": href({ ...asked, view: "why", object: answer.entity }) },
          entityLink(run, answer.entity, answer.label), " ", sure(answer), aside(answer), " ",
          verdictButtons(run, factOf(asked, entity, answer)), " ", link({ ...asked, view: "why", object: answer.entity }, "why?"), el("div", { class: "said" }, answer.sentence)))));
    } catch (problem) {
      predicted.replaceChildren(notice(problem.message));
    }
  }
  const button = el("button", { type: "button", class: "small predicts", onclick: predict }, "What else is predicted?");
  let loaded = false;
  const first = () => { if (!loaded) { loaded = true; load(0).catch(failed); } };
  const section = el("details", { open, ontoggle: first },
    el("summary", {}, inverse ? "← " : "", short(relation, 80), inverse ? " " : " → ", el("span", { class: "degree" }, facts.toLocaleString("en"))),
    list, foot, el("p", {}, button, " ", link(asked, "all answers"), " · ", relationLink(run, relation)), predicted);
  if (open) first();
  return section;
}

/** Shows the entity `question.id` in `view`. */
export async function entityView(view, { run, id }, { go, signal, status }) {
  const entity = await ask(run, "entity", { id, limit: 1 }, signal);
  const total = entity.facts.total;
  view.replaceChildren(
    el("h1", {}, entity.label),
    entity.label !== entity.id ? el("p", { class: "note name" }, "id " + short(entity.id, 300)) : "",
    total === 0 ? notice("The graph has no fact about this entity, so nothing can be predicted for it.")
      : el("p", {}, el("a", { id: "around-link", href: href({ run, view: "around", id: entity.id }) }, "Neighbourhood, drawn")),
    questions(run, entity, go),
    el("h2", {}, "Facts"),
    ...entity.links.map((one, i) => relationSection(run, entity, one, i < 3)));
  status(counted(total, "fact"));
  return { title: entity.label };
}
