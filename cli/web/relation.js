// A relation's own page: how it is used, its rules, and its missing facts, best first, to accept or reject.

import { ask } from "./api.js";
import { counted, el, link, notice, short } from "./dom.js";
import { clause } from "./draw.js";
import { isLive } from "./decisions.js";
import { factItem } from "./review.js";

const PAGE = 25;

function ruleRow(rule) {
  return el("tr", {}, el("td", rule.sentence ? { title: rule.label } : { class: "rule-text" }, short(rule.sentence || rule.label, 300), clause(rule)),
    el("td", {}, rule.correct.toLocaleString("en")), el("td", {}, rule.predicted.toLocaleString("en")), el("td", {}, rule.confidence.toFixed(3)));
}

/** The rules, page by page. */
function ruleTable(run, id, first) {
  const body = el("tbody", {}, first.items.map(ruleRow)), foot = el("p", {});
  function offer(next, total) {
    foot.replaceChildren(next === null ? "" : el("button", { type: "button", class: "small", onclick: () => more(next) }, `more rules (${(total - next).toLocaleString("en")} left)`));
  }
  async function more(after) {
    try {
      const { rules } = await ask(run, "rules", { head: id, after, limit: PAGE });
      body.append(...rules.items.map(ruleRow));
      offer(rules.next, rules.total);
    } catch (problem) {
      foot.replaceChildren(notice(problem.message));
    }
  }
  offer(first.next, first.total);
  const head = ["Rule", "True", "Predicted", "Confidence"].map((name) => el("th", { scope: "col", title: name === "Confidence" && "true / predicted" }, name));
  return [el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Rules" }, el("table", {}, el("thead", {}, el("tr", {}, head)), body)), foot];
}

/** The missing facts, looked for when they are asked for: that can take a while. How many are shown is in the address. */
function missing(question, id, { go, remember }) {
  const { run } = question, wanted = ["hide", "show", "only"].includes(question.held) ? question.held : "hide";
  const list = el("ol", { class: "list" }), foot = el("p", { role: "status" }), proof = el("p", { class: "note" });
  async function load(after, most) {
    foot.replaceChildren(el("progress", { "aria-label": "Looking for missing facts" }), " Looking for missing facts …");
    try {
      const page = await ask(run, "facts", { relation: id, after, limit: Math.min(most, 1000), held_out: wanted });
      proof.replaceChildren(page.hidden > 0 ? `As proof, it recovered ${page.recovered.toLocaleString("en")} of the ${counted(page.hidden, "fact")} hidden from it.` : "");
      list.append(...page.items.map((fact, i) => factItem(run, fact, after + i + 1, { said: fact.sentence })));
      remember({ ...question, view: "relation", missing: list.children.length });
      const left = most - page.items.length;
      if (page.next !== null && left > 0) return load(page.next, left);
      const partly = page.asked < page.subjects && `Only ${page.asked.toLocaleString("en")} of ${page.subjects.toLocaleString("en")} entities could be asked in time; \`ruleguider complete\` asks all of them. `;
      foot.replaceChildren(partly || "", page.total === 0 ? NONE[wanted] : "",
        page.next === null ? "" : el("button", { type: "button", class: "small", id: "more-missing", onclick: () => load(page.next, PAGE) }, `more (${(page.total - page.next).toLocaleString("en")} left)`));
    } catch (problem) {
      foot.replaceChildren(notice(problem.message));
    }
  }
  if (question.missing) load(0, question.missing);
  else foot.append(el("button", { type: "button", id: "find-missing", onclick: () => load(0, PAGE) }, "Find missing facts"));
  const held = el("select", { id: "held", onchange: () => go({ ...question, view: "relation", held: held.value, missing: list.children.length > 0 ? PAGE : undefined }) },
    Object.entries(HELD).map(([value, text]) => el("option", { value, selected: value === wanted }, text)));
  return [el("p", { class: "tools" }, el("label", {}, "Show", held)), proof, list, foot];
}

const HELD = { hide: "new facts only", show: "new and held-out facts", only: "held-out facts only, as a check" };
const NONE = { hide: "No missing fact is predicted.", show: "No missing fact is predicted.", only: "No held-out fact of this relation is found again." };

/** Shows the relation `question.id` in `view`. */
export async function relationView(view, question, { go, remember, signal, status }) {
  const { run, id } = question;
  const { relation, rules } = await ask(run, "rules", { head: id, limit: PAGE }, signal);
  const name = short(relation.label, 60);
  view.replaceChildren(
    el("h1", {}, relation.label),
    relation.label !== relation.relation ? el("p", { class: "note name" }, relation.relation) : "",
    el("p", { class: "lead" }, `${counted(relation.facts, "fact")}: ${counted(relation.heads, "entity stands", "entities stand")} before “${name}”, ${relation.tails.toLocaleString("en")} after it. `,
      relation.rules > 0 ? `${counted(relation.rules, "rule predicts", "rules predict")} more.` : "No rule predicts more."),
    el("h2", {}, "Missing facts, best first"), el("p", { class: "note" }, `What you accept or reject is kept ${isLive(run) ? "by the server, for all reviewers" : "in this browser"}: `, link({ run, view: "reviewed" }, "reviewed facts"), ". ",
      isLive(run) && link({ run, view: "queue", relation: id }, "What to review next")),
    ...missing(question, relation.relation, { go, remember }),
    el("h2", {}, "Rules"), ...(rules.total > 0 ? ruleTable(run, relation.relation, rules) : [el("p", {}, "No rule predicts this relation.")]));
  status(`${counted(relation.facts, "fact")}, ${counted(relation.rules, "rule")}`);
  return { title: relation.label };
}
