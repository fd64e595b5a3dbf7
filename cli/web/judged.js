// What the user has accepted and rejected: kept in the browser, one list a run, saved as TSV.

import { el, entityLink, link, notice, relationLink, save, tsv } from "./dom.js";

const memory = new Map(); // where the browser keeps nothing, as long as the page is open

function read(run) {
  try {
    return JSON.parse(localStorage.getItem("ruleguider:judged:" + run)) ?? {};
  } catch {
    return memory.get(run) ?? {};
  }
}

function write(run, list) {
  try {
    localStorage.setItem("ruleguider:judged:" + run, JSON.stringify(list));
  } catch {
    memory.set(run, list);
  }
}

const key = ({ head, relation, tail }) => JSON.stringify([head, relation, tail]);

/** What was said of a fact: "accept", "reject" or nothing. */
export const verdictOf = (run, fact) => read(run)[key(fact)]?.verdict;

/** Says it; the same again takes it back. Gives what holds now. */
export function judge(run, fact, verdict) {
  const list = read(run), place = key(fact);
  if (list[place]?.verdict === verdict) delete list[place];
  else {
    const { head, relation, tail, head_label, tail_label, probability, score } = fact;
    list[place] = { head, relation, tail, head_label, tail_label, probability, score, verdict };
  }
  write(run, list);
  return list[place]?.verdict;
}

/** Shows the list in `view`. */
export async function judgedView(view, question, { status }) {
  const { run } = question;
  const show = () => {
    const facts = Object.values(read(run));
    const rows = [["head", "relation", "tail", "verdict", "probability", "score"],
      ...facts.map((fact) => [fact.head, fact.relation, fact.tail, fact.verdict, fact.probability, fact.score])];
    const item = (fact, i) => el("li", {}, el("span", { class: "place" }, i + 1),
      el("span", { class: "name" }, entityLink(run, fact.head, fact.head_label), " —", relationLink(run, fact.relation), "→ ", entityLink(run, fact.tail, fact.tail_label)),
      el("span", {}, fact.verdict + "ed"),
      el("span", { class: "acts" }, el("button", { type: "button", class: "small", onclick: () => { judge(run, fact, fact.verdict); show(); } }, "undo"), " ",
        link({ run, view: "why", subject: fact.head, relation: fact.relation, object: fact.tail }, "why?")));
    view.replaceChildren(el("h1", {}, "Judged facts"),
      facts.length === 0 ? notice("Nothing is judged yet. The page of a relation lists its missing facts, to accept or reject.")
        : el("div", { class: "tools" }, el("button", { type: "button", id: "save-judged", onclick: () => save(`judged-${run}.tsv`, "text/tab-separated-values", tsv(rows)) }, "Save as TSV")),
      el("ol", { class: "list" }, facts.map(item)));
    status(`${facts.length} judged`);
  };
  show();
  return { title: "judged facts" };
}
