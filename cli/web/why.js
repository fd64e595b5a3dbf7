// Why a fact is predicted, or why not: ways, rules, all groundings, what is left without a rule.

import { ask } from "./api.js";
import { aside, called, el, entityLink, likely, link, notice, pathInWords, percent, picture, relationLink, short, sure } from "./dom.js";
import { factOf, verdictButtons } from "./review.js";
import { otherWays, pathOf, ruleBesidePath, ruleHeading, verdict } from "./draw.js";

const PAGE = 20, PATHS = 40;

const drawn = (run, reason, object) => reason.path.length > 0 && picture(run, [pathOf(reason)], [object]);

/** The answer without a rule. */
function without({ without: left }, now) {
  if (!left) return "";
  if (left.score === null) return "Without it, this would not be predicted.";
  const same = left.probability === null ? left.score === now.score : likely(left) === likely(now);
  if (left.rank === now.rank && same) return "Without it, rank and probability would be the same.";
  const place = left.rank === now.rank ? `still rank ${left.rank}` : `rank ${left.rank} instead of ${now.rank}`;
  const sure = left.probability === null ? `score ${left.score.toPrecision(4)} instead of ${now.score.toPrecision(4)}`
    : `${likely(left)} instead of ${likely(now)}`;
  return `Without it: ${place}, ${sure}.`;
}

/** What the score of the propagator falls to without a path, if it has one. */
const scoreWithout = ({ propagator }) => propagator && el("p", { class: "wide note without" },
  `Without this path, the graph network (propagator) would give ${propagator.without.toFixed(2)} instead of ${propagator.score.toFixed(2)}.`);

function ruleSection(question, now, rule, object) {
  const { run, subject, relation, inverse } = question;
  const list = el("div", {});
  const all = el("button", { type: "button", class: "small" }, "All paths of this rule");
  let after = 0;
  all.addEventListener("click", async () => {
    all.disabled = true;
    try {
      const found = await ask(run, "groundings", { rule: rule.text, subject, object, inverse: inverse ? "true" : undefined, after, limit: PATHS });
      const paths = found.paths.filter((path) => path.length > 0).map((path) => pathOf({ ...found, path }));
      list.append(el("p", { class: "note", role: "status" }, pathsCounted(after, found)),
        picture(run, paths, [object]) || "The rule has no body: it holds for every entity.");
      after = found.next;
      all.replaceChildren("More paths of this rule");
    } catch (problem) {
      list.append(notice(problem.message));
    }
    all.disabled = false;
    all.hidden = after === null;
  });
  return el("section", { class: "group" },
    el("h2", {}, rule.path.length > 0 ? ruleBesidePath(rule, relation) : ruleHeading(rule)),
    drawn(run, rule, object),
    scoreWithout(rule),
    el("div", { class: "wide" }, el("p", { class: "note" }, without(rule, now)), list, el("p", {}, all)));
}

/** How many paths there are, or which of them these are. */
function pathsCounted(after, { paths, next, more }) {
  const last = after + paths.length, unseen = more && next === null ? ", and perhaps more: the search was stopped early" : "";
  if (after > 0) return `Paths ${(after + 1).toLocaleString("en")} to ${last.toLocaleString("en")}${next === null ? ", the last" + unseen : ""}.`;
  return next === null ? `${last} path${last === 1 ? "" : "s"}${unseen}.` : `The first ${last} paths.`;
}

/** The rules after the first, page by page. */
function moreRules(question, now, why) {
  const list = el("div", {}), foot = el("p", {});
  const parameters = { subject: why.subject, relation: why.relation, object: why.object, inverse: why.inverse ? "true" : undefined };
  function offer(next) {
    foot.replaceChildren(next === null || next >= why.rules_total ? "" : el("button", { type: "button", id: "more-rules", onclick: () => load(next) },
      `more rules (${(why.rules_total - next).toLocaleString("en")} left)`));
  }
  async function load(after) {
    try {
      const page = await ask(question.run, "reasons", { ...parameters, after, limit: PAGE });
      list.append(...page.items.map((rule) => ruleSection(question, now, rule, why.object)));
      offer(page.next);
    } catch (problem) {
      foot.replaceChildren(notice(problem.message));
    }
  }
  offer(why.rules.length);
  return [list, foot];
}

function wayItem(run, way) {
  const agents = way.path.filter((step) => step.relation_score !== undefined).map((step) =>
    `${step.inverse ? "~" : ""}${called(step)} ${percent(Math.exp(step.relation_score))}, ${short(step.label, 40)} ${percent(Math.exp(step.entity_score))}`);
  return el("section", { class: "group" }, el("h2", {}, short(pathInWords(way.from, way.path), 300) || "No path", " ", sure(way)),
    drawn(run, way, way.entity),
    scoreWithout(way),
    agents.length > 0 && el("p", { class: "wide note" }, "How sure the path finder (walker) was of each step: " + agents.join("; ")));
}

/** A member's cases: what they share with the subject or the answer, and their shares. */
function cases(run, { evidence = [] }) {
  const item = ({ share, case: one }) => el("li", {}, entityLink(run, one.entity, one.label), " ", el("span", { class: "counts" }, signed(share)), " ",
    one.shared.length > 0 ? `shares ${one.shared.map((step) => `${step.inverse ? "~" : ""}${called(step)} ${short(step.label, 40)}`).join(", ")}` : "has no facts in common",
    one.shared_total > one.shared.length && ` and ${one.shared_total - one.shared.length} more`);
  const all = evidence.filter((part) => part.case), rest = evidence.find((part) => part.rest === 0);
  return all.length > 0 && el("ul", {}, all.map(item), rest && el("li", {}, "the rest ", el("span", { class: "counts" }, signed(rest.share))));
}

const minus = (score) => score.toFixed(2).replace("-", "−");
const signed = (share) => (share < 0 ? "" : "+") + minus(share);

/** A member's evidence in words; a share below 0 speaks against the answer. */
const inWords = ({ share, words }) => (share < 0 ? `speaks against it${words ? ": " + words.replace(/^against it: /, "") : ""}` : words ?? "");

/** What the score came from: a bar for each member, as long as its share. */
function because(run, { because: members = [], typical, answers }) {
  if (members.length === 0) return false;
  const longest = Math.max(...members.map((member) => Math.abs(member.share)));
  const bar = ({ share }) => el("meter", { class: share < 0 ? "against" : "for", min: 0, max: longest || 1, value: Math.abs(share), "aria-hidden": "true" });
  const row = (member) => el("div", { class: "share" }, el("dt", {}, member.member),
    el("dd", {}, el("span", { class: "amount" }, signed(member.share)), bar(member),
      el("span", { class: "counts" }, inWords(member)), cases(run, member)));
  return el("section", { id: "because", class: "group" }, el("h2", {}, "What the score came from ",
    el("span", { class: "counts" }, `${minus(answers[0].score)}; a typical candidate has ${minus(typical)}`)),
    el("dl", { class: "shares wide" }, members.map(row)));
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
  const said = verdict(why), now = { rank: why.rank, score: why.answers[0]?.score, probability: why.answers[0]?.probability, probability_rough: why.answers[0]?.probability_rough };
  const ways = otherWays(why), fact = factOf(why, subject, { entity: goal.id, label: goal.label, ...now });
  const all = { run, view: "ask", subject: why.subject, relation: why.relation, inverse: why.inverse };
  view.replaceChildren(...[
    el("h1", {}, head, " —", relationLink(run, why.relation), "→ ", tail),
    el("p", { id: "verdict", class: "fact" }, said, aside(why), " ", !why.known && verdictButtons(run, fact), " ", link(all, "All answers")),
    because(run, why),
    why.rules_total > 0 && el("h2", {}, "Rules that predict it", " ", el("span", { class: "degree" }, why.rules_total.toLocaleString("en"))),
    why.rules.map((rule) => ruleSection(asked, now, rule, why.object)),
    moreRules(asked, now, why),
    ways.length > 0 && el("h2", {}, why.rules.length > 0 ? "Other paths" : "Paths"),
    ways.map((way) => wayItem(run, way)),
    why.embedding && !(why.because?.length > 0) && el("p", {}, `The embedding model: plausibility ${why.embedding.plausibility.toPrecision(2)}, rank ${why.embedding.rank.toLocaleString("en")} among all entities.`),
    why.instead && el("div", {}, el("h2", {}, "The best answer instead"),
      el("p", {}, entityLink(run, why.instead.entity, why.instead.label), " ", sure(why.instead), aside(why.instead), " ",
        link({ ...all, view: "why", object: why.instead.entity }, "why?")),
      drawn(run, why.instead, why.instead.entity)),
  ].flat().filter(Boolean));
  status(`${why.rules_total} rule${why.rules_total === 1 ? "" : "s"} and ${ways.length} other path${ways.length === 1 ? "" : "s"}`);
  return { title: `why ${goal.label}` };
}
