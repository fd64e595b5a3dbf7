// An entity's own page: its facts by relation, and what is predicted of it.

import { ask } from "./api.js";
import { aside, el, entityLink, link, notice, pathInWords, relationLink, short, sure } from "./dom.js";

const PAGE = 50;

/** One relation of the entity: its facts when it is opened, more on demand, and what is predicted. */
function relationSection(run, id, { relation, inverse, facts }, open) {
  const list = el("ul", {}), foot = el("p", {}), predicted = el("div", {});
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
    try {
      const { answers } = await ask(run, "predict", { subject: id, relation, inverse: inverse ? "true" : undefined, top: 5 });
      predicted.replaceChildren(answers.length === 0 ? el("p", { class: "note" }, "Nothing more is predicted.") : el("ul", {}, answers.map((answer) =>
        el("li", {}, entityLink(run, answer.entity, answer.label), " ", sure(answer), aside(answer), " ",
          link({ ...asked, view: "why", object: answer.entity }, "why?"), el("div", { class: "said" }, pathInWords(answer.from, answer.path))))));
    } catch (problem) {
      predicted.replaceChildren(notice(problem.message));
    }
  }
  const button = el("button", { type: "button", class: "small", onclick: predict }, "What else is predicted?");
  let loaded = false;
  const first = () => { if (!loaded) { loaded = true; load(0).catch(failed); } };
  const section = el("details", { open, ontoggle: first },
    el("summary", {}, inverse ? "← " : "", short(relation, 80), inverse ? " " : " → ", el("span", { class: "degree" }, facts.toLocaleString("en"))),
    list, foot, el("p", {}, button, " ", link(asked, "all answers"), " · ", relationLink(run, relation)), predicted);
  if (open) first();
  return section;
}

/** Shows the entity `question.id` in `view`. */
export async function entityView(view, question, { signal, status }) {
  const { run, id } = question;
  const entity = await ask(run, "entity", { id, limit: 1 }, signal);
  const total = entity.facts.total;
  view.replaceChildren(
    el("h1", {}, entity.label),
    entity.label !== entity.id ? el("p", { class: "note name" }, "id " + short(entity.id, 300)) : "",
    total === 0 ? notice("The graph has no fact about this entity, so nothing can be predicted for it.") : el("p", { class: "note" }, `${total.toLocaleString("en")} facts in ${entity.links.length} relations and directions`),
    ...entity.links.map((one, i) => relationSection(run, entity.id, one, i < 3)));
  status(`${total} facts`);
  return { subject: [entity.id, entity.label], title: entity.label };
}
