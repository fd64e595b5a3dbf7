// What to review next, and why it is asked: by turns what is most probable and what teaches most.

import { ask } from "./api.js";
import { isLive } from "./decisions.js";
import { counted, el, notice, short } from "./dom.js";
import { factItem } from "./review.js";

const NEXT = 10;

/** Why a suggestion is in the queue. */
const reason = ({ why, alike }) => `Asked because it is ${why.replace("others rest", counted(alike, "other rests", "others rest"))}.`;

/** Shows the queue of `question.relation`, or of all relations, in `view`. */
export async function queueView(view, question, { go, signal, status }) {
  const { run } = question;
  if (!isLive(run)) {
    view.replaceChildren(el("h1", {}, "What to review next"), notice("This server keeps no verdicts. Started with --live FILE, it does, and says here what to look at next."));
    status("");
    return { title: "What to review next" };
  }
  const { relations } = await ask(run, "overview", {}, signal);
  const ids = relations.map(({ id }) => id), relation = question.relation ?? "";
  const choice = el("select", { id: "queue-relation", onchange: () => go({ run, view: "queue", relation: choice.value }) },
    [...new Set(["", relation, ...ids])].map((id) => el("option", { value: id, selected: id === relation }, short(id || "all", 60))));
  const list = el("ol", { class: "list" }), foot = el("p", { role: "status" });
  async function load() {
    const { items, open } = await ask(run, "live/queue", { relation: relation || undefined, limit: NEXT }, signal);
    /** The next suggestion without a verdict; where there is none, more are asked for. */
    const next = () => {
      const left = [...list.children].find((one) => !one.querySelector("[aria-pressed=true]"));
      if (left) left.focus({ preventScroll: false }); else load().then(() => list.firstChild?.focus()).catch(failed);
    };
    list.replaceChildren(...items.map((one, i) => factItem(run, one.fact, i + 1, { said: [one.fact.sentence, el("br"), el("em", {}, reason(one))], decided: next })));
    foot.replaceChildren(items.length === 0 ? "Nothing is left to review." : `${counted(open, "suggestion")} without a verdict of yours. `,
      items.length > 0 ? el("button", { type: "button", class: "small", id: "more-queue", onclick: () => load().catch(failed) }, "Next ones") : "");
  }
  const failed = (problem) => foot.replaceChildren(notice(problem.message));
  view.replaceChildren(el("h1", {}, "What to review next"),
    el("p", { class: "note" }, "By turns the most probable suggestion, and the one whose verdict would teach most. Keys: a, r, u."),
    el("p", { class: "tools" }, el("label", {}, "Relation", choice)), list, foot);
  foot.replaceChildren(el("progress", { "aria-label": "Looking for suggestions" }), " Looking for suggestions …");
  await load();
  status("");
  return { title: "What to review next" };
}
