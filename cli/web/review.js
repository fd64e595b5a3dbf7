// Buttons to accept and reject facts, and the list of what was decided.

import { address, ask, text } from "./api.js";
import { callReviewer, decide, decisions, isLive, key, mayDecide, reviewer } from "./decisions.js";
import { aside, counted, el, entityLink, href, link, notice, relationLink, save, short, sure, tsv } from "./dom.js";

const VERBS = { accept: "accepts", reject: "rejects", unsure: "is unsure" };

/** What other reviewers decided, in words. */
const inWords = (others = []) => others.map(({ who, verdict, note }) => `${short(who, 30)} ${VERBS[verdict]}${note ? `: ${short(note, 80)}` : ""}`).join("; ");

/** Lets all buttons in the document show what holds now, whoever decided it in whichever window. */
export function refresh() {
  const lists = new Map();
  for (const group of document.querySelectorAll(".verdict")) {
    const { run, fact } = group.dataset;
    if (!lists.has(run)) lists.set(run, decisions(run));
    const now = lists.get(run)[fact];
    for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.verdict === now?.verdict));
    const others = group.querySelector(".others"), note = group.querySelector(".note-field");
    if (others) others.textContent = inWords(now?.others);
    if (note) showNote(note, now);
  }
}

/** Shows a field for a note where there is a verdict of one's own; what is being typed stays. */
function showNote(field, now) {
  field.hidden = !now?.verdict;
  if (field !== document.activeElement) field.value = now?.note ?? "";
}

/** A note on one's own verdict. */
function noteOf(run, fact, now) {
  const field = el("input", { class: "note-field", maxlength: 1000, placeholder: "note", "aria-label": `note on ${short(fact.head_label, 60)} ${short(fact.relation, 60)} ${short(fact.tail_label, 60)}`,
    onchange: () => decide(run, fact, decisions(run)[key(fact)]?.verdict, field.value).then(() => "", (problem) => problem.message).then((wrong) => { field.setCustomValidity(wrong); field.reportValidity(); }) });
  showNote(field, now);
  return field;
}

/** A button a verdict for a fact; `decided` hears that one was given. A pressed one takes its verdict back: what is done is what is seen, not what another tab has. */
export function verdictButtons(run, fact, decided = () => {}) {
  const now = decisions(run)[key(fact)], live = isLive(run);
  const failed = el("span", { class: "note", role: "status" });
  let busy = false;
  const press = async (event, verdict) => {
    const pressed = event.target.getAttribute("aria-pressed") === "true";
    if (busy) return;
    busy = true; // a disabled button would lose the focus
    failed.textContent = "";
    try {
      await decide(run, fact, pressed ? undefined : verdict);
      if (!pressed) decided();
    } catch (problem) {
      failed.textContent = " not saved: " + problem.message;
    }
    busy = false;
  };
  const button = (verdict) => [el("button", { type: "button", class: "small " + verdict, "data-verdict": verdict, "aria-pressed": String(now?.verdict === verdict),
    "aria-label": `${verdict} ${short(fact.head_label, 60)} ${short(fact.relation, 60)} ${short(fact.tail_label, 60)}`, onclick: (event) => press(event, verdict) }, verdict), " "];
  const verdicts = mayDecide(run) ? ["accept", "reject", ...(live ? ["unsure"] : [])] : [];
  return el("span", { class: "verdict", "data-run": run, "data-fact": key(fact) }, verdicts.map(button), live && mayDecide(run) && noteOf(run, fact, now), live && el("span", { class: "note others" }, inWords(now?.others)), failed);
}

/** The fact that an answer to `question` is, with what is known of both ends. */
export function factOf({ relation, inverse }, subject, answer) {
  const [one, other] = [{ id: subject.id, label: subject.label }, { id: answer.entity, label: answer.label }];
  const [head, tail] = inverse ? [other, one] : [one, other];
  return { head: head.id, relation, tail: tail.id, head_label: head.label, tail_label: tail.label, probability: answer.probability, probability_rough: answer.probability_rough, score: answer.score };
}

/** A fact in a list: how sure it is, buttons, what is said of it. `decided` hears of a verdict. */
export function factItem(run, fact, place, { beside = sure(fact), said, decided } = {}) {
  const why = { run, view: "why", subject: fact.head, relation: fact.relation, object: fact.tail };
  return el("li", { tabindex: "-1", class: "answer", "data-why": href(why) },
    el("span", { class: "place" }, place),
    el("span", { class: "name" }, entityLink(run, fact.head, fact.head_label), " —", relationLink(run, fact.relation), "→ ", entityLink(run, fact.tail, fact.tail_label), aside(fact)),
    beside, el("span", { class: "acts" }, verdictButtons(run, fact, decided), " ", link(why, "why?")),
    said && el("span", { class: "said" }, said));
}

/** Who reviews: the holder of the token, or a name that is chosen here. */
function asWhom(run) {
  const { name, fixed } = reviewer(run);
  const chosen = (event) => callReviewer(run, event.target.value.trim().replace(/[^\p{L}\p{N}\-_.@]/gu, "-") || "local");
  return el("p", { class: "note" }, "Verdicts are kept by the server, for all reviewers. You review as ",
    fixed ? el("strong", {}, name) : el("input", { id: "reviewer", value: name, maxlength: 60, "aria-label": "your name as a reviewer", onchange: chosen }), ".");
}

/** How far reviewers agree, and how often they accept what the run finds likely, in a line. */
function agreed({ pairs, compared, bins }) {
  const often = pairs.toSorted((a, b) => b.facts - a.facts).slice(0, 3).map(({ reviewers, facts, agree, kappa }) =>
    `${reviewers.map((name) => short(name, 30)).join(" and ")} agree on ${agree} of ${counted(facts, "fact")}${typeof kappa === "number" ? ` (κ ${kappa.toFixed(2)})` : ""}`);
  const sure = bins.map(({ from, to, facts, accepted }) => `${accepted} of ${facts} at ${Math.round(100 * from)} to ${Math.round(100 * to)} %`);
  return [...often, compared > 0 && `accepted by probability: ${sure.join(", ")}`].filter(Boolean).join("; ");
}

/** Shows the list in `view`. */
export async function reviewedView(view, { run }, { signal, status }) {
  const live = isLive(run), facts = Object.values(decisions(run));
  const is = (outcome, verdict) => facts.filter((fact) => (live ? fact.outcome === outcome : fact.verdict === verdict));
  const accepted = is("accepted", "accept"), rejected = is("rejected", "reject"), disputed = is("disputed");
  const all = [["head", "relation", "tail", "verdict", "probability", "score"],
    ...facts.map((fact) => [fact.head, fact.relation, fact.tail, fact.verdict, fact.probability, fact.score])];
  const graph = [["head", "relation", "tail"], ...accepted.map((fact) => [fact.head, fact.relation, fact.tail])];
  const tsvButton = (id, text, name, rows) => el("button", { type: "button", id, onclick: () => save(name, "text/tab-separated-values", tsv(rows)) }, text);
  const file = (format, type, name) => [el("button", { type: "button", id: `save-${format}`,
    onclick: async () => save(`verdicts-${run}.${format === "rdf" ? "nt" : format}`, type, await text(address(run, "live/verdicts", { format }))) }, name), " "];
  const item = (fact, i) => factItem(run, fact, i + 1, { beside: typeof fact.score === "number" ? sure(fact) : el("span", {}, fact.outcome ?? "") });
  const agreement = el("p", { class: "note", id: "agreement" });
  view.replaceChildren(el("h1", {}, "Reviewed facts"),
    live ? asWhom(run) : el("p", { class: "note" }, "What you accept and reject stays in this browser until you save it."),
    facts.length === 0 ? notice("Nothing is reviewed yet. Answers and the missing facts of a relation have buttons to accept or reject them.")
      : el("div", { class: "tools" }, live ? [file("tsv", "text/tab-separated-values", "Save all as TSV"), file("jsonl", "application/x-ndjson", "JSON lines"), file("rdf", "application/n-triples", "RDF")] : tsvButton("save-reviewed", "Save all as TSV", `reviewed-${run}.tsv`, all),
        accepted.length > 0 && tsvButton("save-accepted", "Save the accepted as a graph", `accepted-${run}.tsv`, graph)),
    agreement, el("ol", { class: "list" }, facts.map(item)));
  // Old suggestions are scored for it, which can take a while; it is a line that nobody waits for.
  if (live && facts.length > 0) ask(run, "live/agreement", {}, signal).then((found) => { agreement.textContent = agreed(found); }).catch(() => { /* there is none then */ });
  status(`${accepted.length} accepted, ${rejected.length} rejected${live ? `, ${disputed.length} disputed` : ""}`);
  return { title: counted(facts.length, "reviewed fact") };
}
