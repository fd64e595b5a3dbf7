// A relation's own page: how it is used, its rules, and its missing facts, best first, to accept or reject.

import { ask } from "./api.js";
import { aside, el, entityLink, href, link, notice, pathInWords, percent, short, sure } from "./dom.js";
import { judge, verdictOf } from "./judged.js";

const PAGE = 25;

function ruleRow(rule) {
  return el("tr", {}, el("td", { class: "rule-text" }, short(rule.label, 300)),
    el("td", {}, rule.confidence.toFixed(3)), el("td", {}, rule.correct.toLocaleString("en")), el("td", {}, rule.predicted.toLocaleString("en")));
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
  const head = ["Rule", "Confidence", "True", "Predicted"].map((name) => el("th", { scope: "col" }, name));
  return [el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Rules" }, el("table", {}, el("thead", {}, el("tr", {}, head)), body)), foot];
}

/** A missing fact with its two buttons. */
function factItem(run, fact, place) {
  const button = (verdict, text) => el("button", { type: "button", class: "small " + verdict, "aria-pressed": String(verdictOf(run, fact) === verdict) }, text);
  const accept = button("accept", "accept"), reject = button("reject", "reject");
  function choose(verdict) {
    const now = judge(run, fact, verdict);
    accept.setAttribute("aria-pressed", String(now === "accept"));
    reject.setAttribute("aria-pressed", String(now === "reject"));
  }
  accept.addEventListener("click", () => choose("accept"));
  reject.addEventListener("click", () => choose("reject"));
  const why = { run, view: "why", subject: fact.head, relation: fact.relation, object: fact.tail };
  return el("li", { tabindex: "-1", class: fact.held_out ? "answer put-aside" : "answer", "data-why": href(why) },
    el("span", { class: "place" }, place),
    el("span", { class: "name" }, entityLink(run, fact.head, fact.head_label), " → ", entityLink(run, fact.tail, fact.tail_label), aside(fact)),
    sure(fact), el("span", { class: "acts" }, accept, " ", reject, " ", link(why, "why?")),
    el("span", { class: "said" }, pathInWords(fact.from, fact.path), fact.rule ? `  [${percent(fact.rule.confidence)}: ${short(fact.rule.label, 160)}]` : ""));
}

/** The missing facts, looked for when they are asked for: that can take a while. */
function missing(run, id) {
  const list = el("ol", { class: "list" }), foot = el("p", { role: "status" });
  async function load(after) {
    foot.replaceChildren("Looking for missing facts …");
    try {
      const page = await ask(run, "facts", { relation: id, after, limit: PAGE });
      list.append(...page.items.map((fact, i) => factItem(run, fact, after + i + 1)));
      const partly = page.asked < page.subjects && `Only ${page.asked.toLocaleString("en")} of ${page.subjects.toLocaleString("en")} entities could be asked in time; \`ruleguider complete\` asks all of them. `;
      foot.replaceChildren(partly || "", page.total === 0 ? "No missing fact is predicted." : "",
        page.next === null ? "" : el("button", { type: "button", class: "small", onclick: () => load(page.next) }, `more (${(page.total - page.next).toLocaleString("en")} left)`));
    } catch (problem) {
      foot.replaceChildren(notice(problem.message));
    }
  }
  foot.append(el("button", { type: "button", id: "find-missing", onclick: () => load(0) }, "Find missing facts"));
  const hide = el("input", { type: "checkbox", onchange: () => list.classList.toggle("new-only", hide.checked) });
  return [el("p", { class: "tools" }, el("label", {}, hide, "hide held-out facts")), list, foot];
}

/** Shows the relation `question.id` in `view`. */
export async function relationView(view, question, { signal, status }) {
  const { run, id } = question;
  const { relation, rules } = await ask(run, "rules", { head: id, limit: PAGE }, signal);
  const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value.toLocaleString("en")));
  view.replaceChildren(
    el("h1", {}, relation.label),
    relation.label !== relation.relation ? el("p", { class: "note name" }, relation.relation) : "",
    el("dl", { class: "figures" }, figure("facts", relation.facts), figure("heads", relation.heads), figure("tails", relation.tails), figure("rules", relation.rules)),
    el("h2", {}, "Missing facts, best first"), el("p", { class: "note" }, "What you accept or reject is kept in this browser: ", link({ run, view: "judged" }, "the list"), "."),
    ...missing(run, relation.relation),
    el("h2", {}, "Rules"), ...(rules.total > 0 ? ruleTable(run, relation.relation, rules) : [el("p", {}, "No rule predicts this relation.")]));
  status(`${relation.facts} facts, ${relation.rules} rules`);
  return { relation: [relation.relation], title: relation.label };
}
