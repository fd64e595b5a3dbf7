// What the user accepts and rejects: kept in the browser, one list a run, the same in all tabs, saved as TSV.

import { counted, el, entityLink, link, notice, relationLink, save, short, sure, tsv } from "./dom.js";

const PREFIX = "ruleguider:reviewed:";
const memory = new Map(); // where the browser keeps nothing, as long as the page is open

function read(run) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + run)) ?? {};
  } catch {
    return memory.get(run) ?? {};
  }
}

function write(run, list) {
  try {
    localStorage.setItem(PREFIX + run, JSON.stringify(list));
  } catch {
    memory.set(run, list);
  }
}

const key = ({ head, relation, tail }) => JSON.stringify([head, relation, tail]);

/** Decides about a fact: "accept", "reject", or nothing, which takes it back. */
function decide(run, fact, verdict) {
  const list = read(run);
  delete list[key(fact)];
  if (verdict) {
    const { head, relation, tail, head_label, tail_label, probability, probability_rough, score } = fact;
    list[key(fact)] = { head, relation, tail, head_label, tail_label, probability, probability_rough, score, verdict };
  }
  write(run, list);
  refresh();
}

/** Lets all buttons in the document show what holds now, whoever decided it in whichever tab. */
export function refresh() {
  const lists = new Map();
  for (const group of document.querySelectorAll(".verdict")) {
    const { run, fact } = group.dataset;
    if (!lists.has(run)) lists.set(run, read(run));
    const now = lists.get(run)[fact]?.verdict;
    for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.verdict === now));
  }
}
window.addEventListener("storage", (event) => { if (event.key === null || event.key.startsWith(PREFIX)) refresh(); });

/** Two buttons for a fact. A pressed one takes its verdict back: what is done is what is seen, not what another tab has. */
export function verdictButtons(run, fact) {
  const now = read(run)[key(fact)]?.verdict;
  const button = (verdict) => el("button", { type: "button", class: "small " + verdict, "data-verdict": verdict, "aria-pressed": String(now === verdict),
    "aria-label": `${verdict} ${short(fact.head_label, 60)} ${short(fact.relation, 60)} ${short(fact.tail_label, 60)}`,
    onclick: (event) => decide(run, fact, event.target.getAttribute("aria-pressed") === "true" ? undefined : verdict) }, verdict);
  return el("span", { class: "verdict", "data-run": run, "data-fact": key(fact) }, button("accept"), " ", button("reject"));
}

/** The fact that an answer to `question` is, with what is known of both ends. */
export function factOf({ relation, inverse }, subject, answer) {
  const [one, other] = [{ id: subject.id, label: subject.label }, { id: answer.entity, label: answer.label }];
  const [head, tail] = inverse ? [other, one] : [one, other];
  return { head: head.id, relation, tail: tail.id, head_label: head.label, tail_label: tail.label, probability: answer.probability, probability_rough: answer.probability_rough, score: answer.score };
}

/** Shows the list in `view`. */
export async function reviewedView(view, { run }, { status }) {
  const facts = Object.values(read(run)), accepted = facts.filter((fact) => fact.verdict === "accept");
  const all = [["head", "relation", "tail", "verdict", "probability", "score"],
    ...facts.map((fact) => [fact.head, fact.relation, fact.tail, fact.verdict, fact.probability, fact.score])];
  const graph = [["head", "relation", "tail"], ...accepted.map((fact) => [fact.head, fact.relation, fact.tail])];
  const tsvButton = (id, text, name, rows) => el("button", { type: "button", id, onclick: () => save(name, "text/tab-separated-values", tsv(rows)) }, text);
  const item = (fact, i) => el("li", { tabindex: "-1", class: "answer", "data-why": link({ run, view: "why", subject: fact.head, relation: fact.relation, object: fact.tail }, "").getAttribute("href") },
    el("span", { class: "place" }, i + 1),
    el("span", { class: "name" }, entityLink(run, fact.head, fact.head_label), " —", relationLink(run, fact.relation), "→ ", entityLink(run, fact.tail, fact.tail_label)),
    typeof fact.score === "number" ? sure(fact) : el("span", {}),
    el("span", { class: "acts" }, verdictButtons(run, fact), " ",
      link({ run, view: "why", subject: fact.head, relation: fact.relation, object: fact.tail }, "why?")));
  view.replaceChildren(el("h1", {}, "Reviewed facts"),
    el("p", { class: "note" }, "What you accept and reject stays in this browser until you save it."),
    facts.length === 0 ? notice("Nothing is reviewed yet. Answers and the missing facts of a relation have buttons to accept or reject them.")
      : el("div", { class: "tools" }, tsvButton("save-reviewed", "Save all as TSV", `reviewed-${run}.tsv`, all),
        accepted.length > 0 && tsvButton("save-accepted", "Save the accepted as a graph", `accepted-${run}.tsv`, graph)),
    el("ol", { class: "list" }, facts.map(item)));
  status(`${accepted.length} accepted, ${facts.length - accepted.length} rejected`);
  return { title: counted(facts.length, "reviewed fact") };
}
