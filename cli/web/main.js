// The page: reads the question from the address, shows its view, follows links without loading again, hears keys.

import { ask, keep, kept as remembered, runs, useToken } from "./api.js";
import { answersView } from "./answers.js";
import { betweenView } from "./between.js";
import { aroundView } from "./around.js";
import { combobox } from "./combobox.js";
import { isLive, startDecisions } from "./decisions.js";
import { el, href, learnReliability, link, notice } from "./dom.js";
import { entityView } from "./entity.js";
import { homeView } from "./home.js";
import { listView } from "./list.js";
import { queueView } from "./queue.js";
import { relationView } from "./relation.js";
import { refresh, reviewedView } from "./review.js";
import { whyView } from "./why.js";

const VIEWS = { ask: answersView, why: whyView, entity: entityView, around: aroundView, between: betweenView, relation: relationView, list: listView, queue: queueView, reviewed: reviewedView, home: homeView };
// What an address has to say for its view, and how that is called in a message.
const NEEDED = { ask: ["subject", "relation"], why: ["subject", "relation", "object"], entity: ["id"], around: ["id"], between: ["subject", "object"], relation: ["id"] };
const CALLED = { subject: "which entity is asked about", relation: "which relation is asked for", object: "which answer or other entity is meant", id: "which one is meant" };
const KEPT = 30; // views that Back shows again as they were

const [view, statusLine, runBox] = ["view", "status", "run"].map((id) => document.getElementById(id));
const kept = new Map();
let served = [], showing = new AbortController(), settled = null, here = history.state?.key ?? newKey();

function newKey() {
  return `${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`;
}

const status = (text) => { statusLine.textContent = text; };

/** A number of the address; what is none is as if it were not there. */
const number = (text, most) => (text && Number(text) > 0 && Number(text) <= most ? Number(text) : undefined);

/** The question that the address holds. */
function question() {
  const given = Object.fromEntries(new URLSearchParams(location.search));
  const whole = (text, most) => (Number.isInteger(number(text, most)) ? number(text, most) : undefined);
  return { ...given, run: given.run ?? served[0]?.name, inverse: given.inverse === "1" || given.inverse === "true",
    min: number(given.min, 1), top: whole(given.top, 1000), missing: whole(given.missing, 5000) };
}

/** Keeps the view as it is for the way back; one that is still being made is made again instead. */
function leave() {
  if (settled !== here) return;
  kept.delete(here);
  kept.set(here, { nodes: [...view.childNodes], y: scrollY, focus: view.contains(document.activeElement) ? document.activeElement : null,
    status: statusLine.textContent, title: document.title, address: location.search });
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
}

/** Goes to an address: there is a new entry in the history, and its view. */
async function follow(address) {
  leave();
  here = newKey();
  history.pushState({ key: here }, "", address);
  window.scrollTo(0, 0);
  // What has the focus will be gone.
  if (view.contains(document.activeElement)) view.focus({ preventScroll: true });
  await show();
}

/** The same view with other parameters: the focus stays on the control that changed them. */
async function go(parameters) {
  const focused = view.contains(document.activeElement) && document.activeElement.id;
  await follow(href(parameters));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/** Writes what the entry `own` of the history shows into its address, without going anywhere. */
function remember(own, parameters) {
  if (here === own) history.replaceState({ key: here }, "", href(parameters));
  else if (kept.has(own)) kept.get(own).address = href(parameters);
}

/** Shows an entry of the history again: as it was, with its lists, if it is kept. */
function again(key) {
  here = key;
  const entry = kept.get(here);
  if (!entry) return show();
  showing.abort();
  document.body.classList.remove("busy");
  view.replaceChildren(...entry.nodes);
  settled = here;
  if (entry.address !== location.search) history.replaceState({ key: here }, "", entry.address);
  frame(question());
  document.title = entry.title;
  status(entry.status);
  refresh();
  window.scrollTo(0, entry.y);
  (entry.focus?.isConnected ? entry.focus : view).focus({ preventScroll: true });
}

/** What is around the view. */
function frame({ run }) {
  runBox.value = run;
  document.getElementById("reviewed-link").href = href({ run, view: "reviewed" });
  document.getElementById("list-link").href = href({ run, view: "list" });
  const queue = document.getElementById("queue-link");
  queue.href = href({ run, view: "queue" });
  queue.hidden = !isLive(run);
  document.getElementById("brand").href = href({ run });
}

/** Shows the view of the address; whatever was on its way before is taken back. */
async function show() {
  showing.abort();
  showing = new AbortController();
  const { signal } = showing, asked = question(), own = here;
  document.body.classList.add("busy");
  status("Working …");
  search.set();
  settled = null;
  try {
    frame(asked);
    const shown = incomplete(asked) ?? await VIEWS[asked.view ?? "home"](view, asked, {
      go, signal, remember: (parameters) => remember(own, parameters), status: (text) => { if (here === own) status(text); },
    });
    if (signal.aborted) return;
    document.title = shown.title ? `${shown.title.slice(0, 80)} · RuleGuider` : "RuleGuider";
  } catch (problem) {
    if (problem.name === "AbortError" || signal.aborted) return;
    failed(asked, problem);
  }
  document.body.classList.remove("busy");
  settled = own;
}

/** A message where the address does not say enough. */
function incomplete(asked) {
  const { run, subject } = asked;
  if (asked.view && !Object.hasOwn(VIEWS, asked.view)) {
    view.replaceChildren(el("h1", {}, "No such page"), notice(`There is no page called “${asked.view.slice(0, 100)}”. `, link({ run }, "To the start")));
  } else {
    const missing = (NEEDED[asked.view] ?? []).filter((name) => !asked[name]);
    if (missing.length === 0) return undefined;
    view.replaceChildren(el("h1", {}, "Not a whole question"), notice(`This address does not say ${missing.map((name) => CALLED[name]).join(", nor ")}. `,
      subject ? link({ run, view: "entity", id: subject }, `All about ${subject.slice(0, 100)}`) : link({ run }, "To the start")));
  }
  status("");
  return { title: "Not found" };
}

/** A message with names that may be meant, each a link to the question as it would be with it. */
function failed(asked, { message, status: code, suggestions = [], request_id }) {
  const meant = ["subject", "relation", "object", "id", "run"].find((name) => asked[name] && message.includes("`" + asked[name]) && (name !== "subject" || !message.includes("a relation `")));
  const instead = (name) => el("li", {}, meant ? link({ ...asked, [meant]: name }, name) : name);
  const sentence = message.charAt(0).toUpperCase() + message.slice(1) + (/[.?!]$/.test(message) ? "" : ".");
  view.replaceChildren(el("h1", {}, code === 404 ? "Not found" : "That did not work"),
    notice(sentence, suggestions.length > 0 && el("ul", {}, suggestions.map(instead)),
      request_id && code >= 500 ? el("p", { class: "note" }, `request ${request_id}`) : "",
      el("p", {}, el("button", { type: "button", class: "small", onclick: () => show() }, "Try again"), " ", link({ run: served[0]?.name }, "To the start"))));
  status(sentence.slice(0, 300));
}

/** Shows the clauses of rules beside their sentences, or hides them. */
function clauses(shown) {
  document.documentElement.classList.toggle("clauses", shown);
  document.getElementById("clauses").setAttribute("aria-pressed", String(shown));
  for (const clause of document.querySelectorAll(".clause")) clause.hidden = !shown;
  keep("clauses", shown ? "1" : "");
}

const turnClauses = () => clauses(!document.documentElement.classList.contains("clauses"));

/** Moves among the answers. */
function step(by) {
  const all = [...document.querySelectorAll(".answer")].filter((one) => one.offsetParent), at = all.indexOf(document.activeElement.closest(".answer"));
  all[Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
}

const press = (verdict) => (document.activeElement.closest(".answer") ?? view.querySelector(".fact"))?.querySelector("button." + verdict)?.click();

const search = combobox(document.getElementById("search"),
  async (q, signal) => (await ask(question().run, "suggest", { q, kind: "any", limit: 12 }, signal)).items,
  ({ kind, id }) => { view.focus({ preventScroll: true }); follow(href({ run: question().run, view: kind, id })); });

const KEYS = {
  "/": () => document.getElementById("search").select(),
  j: () => step(1),
  k: () => step(-1),
  e: () => { const answer = document.activeElement.closest(".answer") ?? document.querySelector(".answer"); if (answer) follow(answer.dataset.why); },
  a: () => press("accept"),
  r: () => press("reject"),
  u: () => press("unsure"),
  c: turnClauses,
  "?": () => document.getElementById("help").showModal(),
};

function theme(next) {
  if (next) keep("theme", next);
  const chosen = next ?? remembered("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

document.getElementById("find").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("clauses").addEventListener("click", turnClauses);
if (remembered("clauses")) clauses(true);
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a");
  const address = anchor?.getAttribute("href");
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (address === "#view") {
    event.preventDefault();
    view.focus();
  } else if (address?.startsWith("?")) {
    event.preventDefault();
    follow(address);
  }
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
runBox.addEventListener("change", () => follow(href({ run: runBox.value })));
document.getElementById("help-button").addEventListener("click", KEYS["?"]);
document.getElementById("theme").addEventListener("click", () => {
  const forced = document.documentElement.dataset.theme;
  const dark = forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme(dark ? "light" : "dark");
});
history.scrollRestoration = "manual";
window.addEventListener("popstate", (event) => {
  leave();
  again(event.state?.key ?? newKey());
});
// A page that is loaded again begins where it was left; its lists are in its address.
window.addEventListener("pagehide", () => {
  keep("at:" + here, String(scrollY), "sessionStorage");
});

/** Asks for the token that the server wants. */
function tokenForm() {
  const field = el("input", { id: "token", type: "password", autocomplete: "current-password", "aria-label": "token" });
  const use = () => { useToken(field.value.trim()); location.reload(); };
  return notice("This server needs a token. ", field, " ", el("button", { type: "button", id: "use-token", onclick: use }, "Use it"));
}

theme();
try {
  served = (await runs()).runs;
  learnReliability(served);
  await startDecisions(served, refresh);
  runBox.replaceChildren(...served.map(({ name }) => el("option", { value: name }, name)));
  history.replaceState({ key: here }, "");
  await show();
  window.scrollTo(0, Number(remembered("at:" + here, "sessionStorage")));
} catch (problem) {
  view.replaceChildren(el("h1", {}, "RuleGuider"), problem.status === 401 ? tokenForm() : notice(problem.message));
}
