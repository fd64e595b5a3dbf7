// The page: reads the question from the address, shows its view, follows links without loading again, hears keys.

import { ask, runs } from "./api.js";
import { answersView } from "./answers.js";
import { combobox } from "./combobox.js";
import { el, href, link, notice } from "./dom.js";
import { entityView } from "./entity.js";
import { judgedView } from "./judged.js";
import { relationView } from "./relation.js";
import { whyView } from "./why.js";

const VIEWS = { ask: answersView, why: whyView, entity: entityView, relation: relationView, judged: judgedView, home: homeView };
const [view, statusLine, runBox, direction] = ["view", "status", "run", "direction"].map((id) => document.getElementById(id));
let served = [], showing = new AbortController();

const status = (text) => { statusLine.textContent = text; };

/** The question that the address holds. */
function question() {
  const given = Object.fromEntries(new URLSearchParams(location.search));
  const run = given.run ?? served[0]?.name;
  return { ...given, run, inverse: given.inverse === "1" || given.inverse === "true", min: given.min ? Number(given.min) : undefined };
}

/** Goes to a question: the address changes, and so does the view. */
function go(parameters) {
  history.pushState(null, "", href(parameters));
  return show();
}

const completing = (kind) => async (q, signal) => (await ask(question().run, "complete", { q, kind, limit: 10 }, signal)).items;
const subject = combobox(document.getElementById("subject"), completing("entity"));
const relation = combobox(document.getElementById("relation"), completing("relation"));

/** Shows the view of the address; whatever was on its way before is taken back. */
async function show() {
  showing.abort();
  showing = new AbortController();
  const { signal } = showing, asked = question();
  const kind = Object.hasOwn(VIEWS, asked.view) ? asked.view : "home";
  document.body.classList.add("busy");
  status("…");
  try {
    runBox.value = asked.run;
    document.getElementById("judged-link").href = href({ run: asked.run, view: "judged" });
    const shown = await VIEWS[kind](view, asked, { go, signal, status });
    if (signal.aborted) return;
    if (shown.subject) subject.set(...shown.subject);
    if (shown.relation) relation.set(...shown.relation);
    if (shown.inverse !== undefined) direction.value = shown.inverse ? "1" : "";
    document.title = shown.title ? `${shown.title.slice(0, 80)} · RuleGuider` : "RuleGuider";
  } catch (problem) {
    if (problem.name === "AbortError" || signal.aborted) return;
    if (asked.subject) subject.set(asked.subject);
    if (asked.relation) relation.set(asked.relation);
    failed(asked, problem);
  }
  document.body.classList.remove("busy");
}

/** A message with names that may be meant, each a link to the question as it would be with it. */
function failed(asked, problem) {
  const meant = ["subject", "relation", "object", "id", "run"].find((name) => asked[name] && problem.message.includes("`" + asked[name]) && (name !== "subject" || !problem.message.includes("a relation `")));
  const instead = (name) => el("li", {}, meant ? link({ ...asked, [meant]: name }, name) : name);
  view.replaceChildren(notice(problem.message, problem.suggestions.length > 0 && el("ul", {}, problem.suggestions.map(instead)),
    problem.request_id && problem.status >= 500 ? el("p", { class: "note" }, `request ${problem.request_id}`) : ""));
  status(problem.message.slice(0, 300));
}

/** The first page: the run, and its relations to begin with. */
async function homeView(view, { run }, { signal, status }) {
  const about = served.find((one) => one.name === run);
  const { items } = await ask(run, "complete", { q: "", kind: "relation", limit: 60 }, signal);
  const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  view.replaceChildren(
    el("h1", {}, "Ask the graph"),
    el("p", {}, "Name an entity and a relation: the answers come with the rules and paths that lead to them."),
    about ? el("dl", { class: "figures" }, ["entities", "relations", "facts", "rules"].map((name) => figure(name, about[name].toLocaleString("en"))),
      about.figures ? figure("MRR", about.figures.mrr.toFixed(3)) : "") : "",
    el("h2", {}, "Relations"),
    el("ul", { class: "cards" }, items.map(({ id, label, degree }) =>
      el("li", {}, el("a", { href: href({ run, view: "relation", id }) }, el("span", {}, label), el("span", { class: "degree" }, degree.toLocaleString("en")))))));
  status("");
  return {};
}

/** Moves among the answers. */
function step(by) {
  const all = [...document.querySelectorAll(".answer")].filter((one) => one.offsetParent), at = all.indexOf(document.activeElement.closest(".answer"));
  all[Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
}

const KEYS = {
  "/": () => document.getElementById("subject").select(),
  j: () => step(1),
  k: () => step(-1),
  e: () => { const answer = document.activeElement.closest(".answer") ?? document.querySelector(".answer"); if (answer) follow(answer.dataset.why); },
  a: () => document.activeElement.closest(".answer")?.querySelector("button.accept")?.click(),
  r: () => document.activeElement.closest(".answer")?.querySelector("button.reject")?.click(),
  "?": () => document.getElementById("help").showModal(),
};

function follow(address) {
  history.pushState(null, "", address);
  window.scrollTo(0, 0);
  view.focus({ preventScroll: true });
  show();
}

function theme(next) {
  if (next) document.documentElement.dataset.theme = next;
  try {
    if (next) localStorage.setItem("ruleguider:theme", next);
    else if (localStorage.getItem("ruleguider:theme")) document.documentElement.dataset.theme = localStorage.getItem("ruleguider:theme");
  } catch { /* a browser that keeps nothing forgets the theme */ }
}

document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const { run, top } = question();
  view.focus({ preventScroll: true });
  go({ run, view: "ask", subject: subject.value(), relation: relation.value(), inverse: direction.value === "1", top });
});
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a");
  const address = anchor?.getAttribute("href");
  if (!address?.startsWith("?") || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  follow(address);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
runBox.addEventListener("change", () => go({ run: runBox.value }));
document.getElementById("help-button").addEventListener("click", KEYS["?"]);
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  theme(dark ? "light" : "dark");
});
window.addEventListener("popstate", show);

theme();
try {
  served = (await runs()).runs;
  runBox.replaceChildren(...served.map(({ name }) => el("option", { value: name }, name)));
  await show();
} catch (problem) {
  view.replaceChildren(notice(problem.message));
}
