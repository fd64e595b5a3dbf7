// Why a fact is predicted, or why not: ways, rules, all groundings, what is left without a rule.

import { ask } from "./api.js";
import { aside, called, el, entityLink, link, notice, pathInWords, percent, relationLink, short, sure } from "./dom.js";
import { drawing, pathOf } from "./draw.js";

const drawn = (run, reason, object) => reason.path.length > 0 && el("div", { class: "wide" }, drawing(run, [pathOf(reason)], new Set([object])));

/** One sentence about where the fact stands. */
function verdict({ known, rank, rules, answers }) {
  if (known) return "A fact of the graph.";
  if (rank) {
    const probability = answers[0]?.probability;
    return `Predicted in place ${rank}` + (probability === null || probability === undefined ? "." : `, with a probability of ${percent(probability)}.`);
  }
  return rules.length > 0 ? "Not predicted: there are too many better answers." : "Not predicted: nothing that was learnt leads there.";
}

/** What the rules would say without the first of them. */
function without(rules, i) {
  if (i > 0) return "Without it nothing changes for the best rule.";
  return rules.length > 1 ? `Without it, the best rule that says so has confidence ${rules[1].confidence.toFixed(3)} instead of ${rules[0].confidence.toFixed(3)}.`
    : "Without it, no rule says so.";
}

/** What the propagator's score falls to without a path, if it has one. */
const scoreWithout = ({ propagator }) => propagator && el("p", { class: "wide note without" },
  `The propagator's score is ${propagator.score.toFixed(2)}; without this path it is ${propagator.without.toFixed(2)}.`);

function ruleSection(question, rules, rule, i, object) {
  const { run, subject, relation, inverse } = question;
  const more = el("div", {});
  const all = el("button", { type: "button", class: "small" }, "All paths of this rule");
  all.addEventListener("click", async () => {
    all.disabled = true;
    try {
      const found = await ask(run, "groundings", { rule: rule.text, subject, object, inverse: inverse ? "true" : undefined, limit: 200 });
      const paths = found.paths.filter((path) => path.length > 0).map((path) => pathOf({ ...found, path }));
      const many = found.paths.length;
      more.replaceChildren(el("p", { class: "note", role: "status" }, `${found.more ? "More than " : ""}${many} path${many === 1 ? "" : "s"}${many > 40 ? "; 40 are drawn" : ""}.`),
        paths.length > 0 ? el("div", { class: "wide" }, drawing(run, paths, new Set([object]))) : "The rule has no body: it holds of everybody.");
    } catch (problem) {
      more.replaceChildren(notice(problem.message));
    }
    all.disabled = false;
  });
  return el("section", { class: "group" },
    el("h2", {}, el("span", { class: "rule-text" }, short(rule.label, 300)), " ",
      el("span", { class: "counts" }, `confidence ${rule.confidence.toFixed(2)}, ${rule.correct.toLocaleString("en")} of ${rule.predicted.toLocaleString("en")} true`)),
    drawn(run, rule, object),
    scoreWithout(rule),
    el("div", { class: "wide" }, el("p", { class: "note" }, without(rules, i)), all, more));
}

function wayItem(run, way) {
  const agents = way.path.filter((step) => step.relation_score !== undefined).map((step) =>
    `${step.inverse ? "~" : ""}${called(step)} ${percent(Math.exp(step.relation_score))}, ${short(step.label, 40)} ${percent(Math.exp(step.entity_score))}`);
  return el("section", { class: "group" }, el("h2", {}, short(pathInWords(way.from, way.path), 300) || "No path", " ", sure(way)),
    drawn(run, way, way.entity),
    scoreWithout(way),
    agents.length > 0 && el("p", { class: "wide note" }, "The agents chose: " + agents.join("; ")));
}

/** Shows why `question.object` is an answer in `view`. */
export async function whyView(view, question, { signal, status }) {
  const { run, object } = question;
  const parameters = { subject: question.subject, relation: question.relation, object, inverse: question.inverse ? "true" : undefined };
  const why = await ask(run, "explain", parameters, signal);
  const [subject, goal] = await Promise.all([why.subject, why.object].map((id) => ask(run, "entity", { id, limit: 1 }, signal)));
  const asked = { ...question, subject: why.subject, relation: why.relation, inverse: why.inverse };
  const names = [entityLink(run, subject.id, subject.label), entityLink(run, goal.id, goal.label)];
  const [head, tail] = why.inverse ? names.toReversed() : names;
  const said = verdict(why);
  const ways = why.answers.filter((way) => !why.rules.some((rule) => JSON.stringify(rule.path) === JSON.stringify(way.path)));
  const all = { run, view: "ask", subject: why.subject, relation: why.relation, inverse: why.inverse };
  view.replaceChildren(...[
    el("h1", {}, head, " —", relationLink(run, why.relation), "→ ", tail),
    el("p", { id: "verdict" }, said, aside(why), " ", link(all, "All answers")),
    why.rules.length > 0 && el("h2", {}, "Rules that say so"),
    why.rules.map((rule, i) => ruleSection(asked, why.rules, rule, i, why.object)),
    ways.length > 0 && el("h2", {}, why.rules.length > 0 ? "Other ways" : "Ways there"),
    ways.map((way) => wayItem(run, way)),
    why.embedding && el("p", {}, `The embedding model: plausibility ${why.embedding.plausibility.toPrecision(2)}, place ${why.embedding.rank.toLocaleString("en")} of all entities.`),
    why.instead && el("div", {}, el("h2", {}, "The best answer instead"),
      el("p", {}, entityLink(run, why.instead.entity, why.instead.label), " ", sure(why.instead), aside(why.instead), " ",
        link({ ...all, view: "why", object: why.instead.entity }, "why?")),
      drawn(run, why.instead, why.instead.entity)),
  ].flat().filter(Boolean));
  status(`${why.rules.length} rule${why.rules.length === 1 ? "" : "s"} and ${ways.length} other way${ways.length === 1 ? "" : "s"}`);
  return { subject: [subject.id, subject.label], relation: [why.relation], inverse: why.inverse, title: `why ${goal.label}` };
}
