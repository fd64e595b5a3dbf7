// Judging: one fact a screen with two paths, left, right, both or neither. A vote is kept by the server before the page goes on.

import { fetched } from "./api.js";
import { el, notice } from "./dom.js";
import { drawnDown } from "./draw.js";

const CHOICES = ["left", "right", "both", "neither"];
const SETTLED = 350; // milliseconds in which a key that was pressed twice does not judge the next screen as well
const TRIES = [0, 500, 2000]; // milliseconds before a request is sent, and sent again where the server cannot be reached
const [view, statusLine] = ["view", "status"].map((id) => document.getElementById(id));

// Where the judge is, when the screen was shown, and whether a vote is on its way.
let seen = null, shownAt = 0, away = 0, hiddenAt = 0, busy = false, reading = true;

const status = (text) => { statusLine.textContent = text; };
const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

/** Asks the server as this judge. What fails on the way is sent again; the server keeps a vote once, however often it comes. */
async function ask(route, body) {
  const headers = { authorization: "Bearer " + location.hash.slice(1), "content-type": "application/json" };
  const more = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  for (const [i, wait] of TRIES.entries()) {
    await pause(wait);
    try {
      return await fetched("api/v1/judge" + route, undefined, more);
    } catch (problem) {
      const passing = problem.status === 0 || problem.status === 503 || problem.status === 504;
      if (!passing || i === TRIES.length - 1) throw problem;
      status("The server does not answer; trying again …");
    }
  }
}

/** Goes where the server says that the judge is. Elsewhere than this page thought, it says so. */
async function go(route, body, said) {
  if (busy) return;
  busy = true;
  mark(body?.choice);
  try {
    seen = await ask(route, body);
    show(said);
  } catch (problem) {
    if (problem.status === 409) {
      seen = problem.body;
      show("This was already judged, perhaps in another window. Here is the next one.");
    } else failed(problem, () => go(route, body, said));
  }
  busy = false;
}

function failed(problem, again) {
  mark();
  const known = problem.status === 401;
  status(problem.message);
  document.querySelector(".notice")?.remove();
  view.prepend(notice(known ? problem.message : "Not saved: " + problem.message, " ",
    known ? "" : el("button", { type: "button", class: "small", onclick: again }, "Try again")));
  if (!view.querySelector("h1")) view.prepend(el("h1", {}, "Judging cannot begin"));
}

/** Shows which choice is on its way, and takes no other meanwhile. */
function mark(choice) {
  for (const button of document.querySelectorAll(".choices button")) {
    button.disabled = choice !== undefined || (button.classList.contains("undo") && !seen?.can_undo);
    button.classList.toggle("chosen", choice !== undefined && button.dataset.choice === choice);
  }
}

function vote(choice) {
  if (reading || busy || !seen?.item || performance.now() - shownAt < SETTLED) return;
  go("/vote", { at: seen.item.at, choice, seconds: Math.max(0, (performance.now() - shownAt - away) / 1000) });
}

function undo() {
  if (reading || busy || !seen?.can_undo) return;
  go("/undo", { at: seen.done - 1 }, "The last vote is undone.");
}

const side = (wide, narrow) => [el("span", { class: "only-wide" }, wide), el("span", { class: "only-narrow" }, narrow)];
const NAMES = { left: side.bind(null, "Left", "Upper"), right: side.bind(null, "Right", "Lower"), both: () => "Both", neither: () => "Neither" };

function factLine({ head, relation, tail }) {
  return el("p", { class: "fact" }, el("strong", {}, head), el("span", { class: "hop" }, ` —${relation}→ `), el("strong", {}, tail));
}

function sides({ head, left, right }) {
  const one = (name, steps) => el("section", { class: "side", "data-side": name }, el("h2", {}, NAMES[name]()), drawnDown([{ label: head }, ...steps]));
  return el("div", { class: "sides" }, one("left", left), one("right", right));
}

function choices() {
  const button = (choice, i) => el("button", { type: "button", "data-choice": choice, onclick: () => vote(choice) }, el("kbd", {}, i + 1), " ", NAMES[choice]());
  return el("div", { class: "choices", role: "group", "aria-label": "Which path is the better explanation?" }, el("div", {}, CHOICES.map(button),
    el("button", { type: "button", class: "undo", disabled: !seen.can_undo, onclick: undo }, el("kbd", {}, "u"), " Undo")));
}

/** The screen at which the judge is. */
function show(said) {
  reading = false;
  const { done, total, item } = seen;
  const bar = el("progress", { max: total, value: done, "aria-label": "judged" });
  if (!item) {
    view.replaceChildren(bar, el("h1", {}, "Done. Thank you!"), el("p", {}, `You have judged all ${total} screens. Every vote is saved; you can close this page.`),
      el("p", {}, el("button", { type: "button", class: "undo", disabled: !seen.can_undo, onclick: undo }, el("kbd", {}, "u"), " Undo the last vote")));
  } else {
    view.replaceChildren(bar, el("h1", { class: "asked" }, "This is true. Which path is the better explanation?"), factLine(item), sides(item), choices());
  }
  status([said, `${done} of ${total} judged`].filter(Boolean).join(" "));
  document.body.dataset.at = item ? item.at : "done";
  window.scrollTo(0, 0);
  view.focus({ preventScroll: true });
  [shownAt, away] = [performance.now(), 0];
}

// Two worked examples. They are made up and in no study.
const EXAMPLES = [
  {
    head: "Marie Curie", relation: "nationality", tail: "Poland",
    left: [{ relation: "place of birth", inverse: false, label: "Warsaw" }, { relation: "capital", inverse: true, label: "Poland" }],
    right: [{ relation: "award received", inverse: false, label: "Nobel Prize" }, { relation: "award received", inverse: true, label: "Lech Wałęsa" }, { relation: "nationality", inverse: false, label: "Poland" }],
    answer: [el("strong", {}, "Left (1)."), " Somebody who is born in the capital of a country is likely to have its nationality. That somebody else with the same award is from there says nothing about her: the path on the right is true, but it is not a reason."],
  },
  {
    head: "Casablanca", relation: "language", tail: "English",
    left: [{ relation: "genre", inverse: false, label: "Drama" }, { relation: "genre", inverse: true, label: "Psycho" }, { relation: "language", inverse: false, label: "English" }],
    right: [{ relation: "released in", inverse: false, label: "Sweden" }, { relation: "released in", inverse: true, label: "Star Wars" }, { relation: "language", inverse: false, label: "English" }],
    answer: [el("strong", {}, "Neither (4)."), " Neither the genre nor a country of release says what the language is. If one path went through the studio that made the film, it would be better; if both gave equally good reasons, the answer would be ", el("em", {}, "both (3)"), "."],
  },
];

/** What a judge reads first, and whenever they like. */
function instructions(said) {
  reading = true;
  document.body.dataset.at = "reading";
  const example = (one, i) => el("section", { class: "example" }, el("h3", {}, `Example ${i + 1}`), factLine(one), sides(one), el("p", { class: "answer" }, one.answer));
  const begin = seen?.done > 0 ? "Continue" : "Begin";
  view.replaceChildren(
    el("h1", {}, "Instructions"),
    el("p", {}, "Each screen shows a fact that is true, and two paths that lead from one end of it to the other. Every step of a path is also true. ",
      "The question: ", el("strong", {}, "which path is the better explanation of the fact?"), " Would it convince you if you did not know the fact?"),
    el("ul", {},
      el("li", {}, el("kbd", {}, "1"), " the path on the left (on a phone: the upper one)"), el("li", {}, el("kbd", {}, "2"), " the path on the right (the lower one)"),
      el("li", {}, el("kbd", {}, "3"), " both: they are equally good"), el("li", {}, el("kbd", {}, "4"), " neither: neither is a good reason"), el("li", {}, el("kbd", {}, "u"), " undo your last vote")),
    el("p", {}, "An arrow points in the direction in which a relation is read: ", el("em", {}, "Warsaw ←capital— Poland"), " is “the capital of Poland is Warsaw”. ",
      "A path is not better because it is shorter or longer. Judge by what you know and by common sense; do not look facts up. The sides are random. A few screens are shown twice."),
    el("p", {}, "Stop whenever you like. Your link takes you back to where you were, on any device. Do not share it: it is only for you."),
    el("p", { class: "start" }, el("button", { type: "button", class: "primary", id: "begin", onclick: () => go("") }, begin), " ", seen ? `${seen.done} of ${seen.total} judged` : ""),
    el("h2", {}, "Two examples"), ...EXAMPLES.map(example));
  status(said ?? "");
  document.getElementById("begin").focus({ preventScroll: true });
}

const KEYS = { 1: () => vote("left"), 2: () => vote("right"), 3: () => vote("both"), 4: () => vote("neither"), u: undo, "?": () => instructions() };
document.addEventListener("keydown", (event) => {
  // A key that is held down is one press.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
// Time in which the page is not looked at is no time of judging.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenAt = performance.now();
  else away += performance.now() - Math.max(hiddenAt, shownAt);
});
window.addEventListener("hashchange", () => location.reload());
document.getElementById("help").addEventListener("click", () => instructions());

try {
  seen = await ask("");
  instructions(seen.done > 0 ? "Welcome back." : "");
} catch (problem) {
  failed(problem, () => location.reload());
}
