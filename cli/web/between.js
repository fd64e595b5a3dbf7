// How two entities are related: every relation that may lead from one to the other, both ways, best first.

import { ask } from "./api.js";
import { rankedItem } from "./answers.js";
import { counted, el, entityLink, notice, relationLink } from "./dom.js";

const TOP = 5;

/** One way round: what the graph has, then what is predicted. */
function direction(run, ends, { answers, known }) {
  const [subject, object] = ends.map(({ id, label }) => entityLink(run, id, label));
  // A relation that nothing speaks for has a probability too, that of any two entities; it says nothing about these.
  const shown = answers.filter((answer) => answer.because.length > 0 || answer.path.length > 0);
  return [el("h2", {}, subject, " —?→ ", object),
    known.length > 0 && el("p", {}, "In the graph already: ", known.map((relation, i) => [i > 0 && ", ", relationLink(run, relation)]), "."),
    shown.length === 0 ? el("p", { class: "note" }, `Nothing ${known.length > 0 ? "more " : ""}is predicted: no rule or path leads from one to the other.`)
      : [el("ol", { class: "list ranked" }, shown.map((answer, i) => rankedItem({ run, subject: ends[0].id, relation: answer.relation }, ends[0],
          { ...answer, entity: ends[1].id, label: ends[1].label, place: i + 1 }, relationLink(run, answer.relation))))]];
}

/** Shows the relations between `question.subject` and `question.object` in `view`. */
export async function betweenView(view, { run, subject, object }, { signal, status }) {
  const [there, back] = await Promise.all([[subject, object], [object, subject]].map(([from, to]) =>
    ask(run, "relations", { subject: from, object: to, top: TOP }, signal)));
  const ends = await Promise.all([there.subject, there.object].map((id) => ask(run, "entity", { id, limit: 1 }, signal)));
  const [one, other] = ends.map(({ id, label }) => entityLink(run, id, label));
  view.replaceChildren(...[
    el("h1", {}, one, " and ", other),
    ends.some(({ facts }) => facts.total === 0) && notice("The graph has no fact about one of them, so little can be said."),
    direction(run, ends, there), direction(run, ends.toReversed(), back),
  ].flat(3).filter(Boolean));
  status(`${counted(there.known.length + back.known.length, "relation")} in the graph already`);
  return { title: `${ends[0].label} and ${ends[1].label}` };
}
