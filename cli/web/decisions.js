// What people decided about facts. Where the server takes verdicts, they are its own: all reviewers and windows see the
// same. Elsewhere they are kept in the browser, one list a run, the same in all tabs.

import { ask, fetched, keep, kept } from "./api.js";

const PREFIX = "ruleguider:reviewed:";
const EVERY = 4000; // milliseconds between looks at what others decided
const memory = new Map(); // where the browser keeps nothing, as long as the page is open
const served = new Map(); // by run: who reviews, and all verdicts of the server by fact
let changed = () => {};

export const key = ({ head, relation, tail }) => JSON.stringify([head, relation, tail]);

/** Whether the server keeps the verdicts of a run. */
export const isLive = (run) => served.has(run);

/** Whether this reviewer may decide. */
export const mayDecide = (run) => served.get(run)?.mayReview ?? true;

/** The name under which verdicts are given, and whether it can be chosen. */
export const reviewer = (run) => ({ name: served.get(run)?.who ?? "", fixed: Boolean(served.get(run)?.fixed) });

export function callReviewer(run, name) {
  keep("who", name, "sessionStorage");
  served.get(run).who = name;
  changed();
}

/** Learns which runs are live, and calls `refresh` whenever verdicts have changed. */
export async function startDecisions(runs, refresh) {
  changed = refresh;
  for (const { name } of runs.filter((run) => run.live)) {
    const standing = await ask(name, "live", {});
    const fixed = standing.who !== "local";
    served.set(name, { who: fixed ? standing.who : kept("who", "sessionStorage") ?? "local", fixed, mayReview: standing.may_review, sequence: -1, list: {} });
    await look(name);
  }
  const all = () => { if (!document.hidden) for (const run of served.keys()) look(run).catch(() => { /* the next look may succeed */ }); };
  if (served.size > 0) {
    setInterval(all, EVERY);
    document.addEventListener("visibilitychange", all);
  }
  window.addEventListener("storage", (event) => { if (event.key === null || event.key.startsWith(PREFIX)) changed(); });
}

/** Gets the server's verdicts, if there are new ones. */
async function look(run) {
  const own = served.get(run), { last } = await ask(run, "live/changes", { after: Math.max(own.sequence, 0), limit: 1 });
  if (last === own.sequence) return;
  const { items, sequence } = await ask(run, "live/verdicts", {});
  own.sequence = sequence;
  own.list = Object.fromEntries(items.map((item) => {
    const fact = { head: item.subject, relation: item.relation, tail: item.object, head_label: item.subject_label, tail_label: item.object_label };
    return [key(fact), { ...fact, outcome: item.outcome, verdicts: item.verdicts }];
  }));
  changed();
}

/** What was decided in a run: by fact, with `verdict` by this reviewer. */
export function decisions(run) {
  if (isLive(run)) {
    const { who, list } = served.get(run);
    return Object.fromEntries(Object.entries(list).map(([fact, item]) => {
      const own = item.verdicts.find((one) => one.who === who);
      return [fact, { ...item, verdict: own?.verdict, note: own?.note, others: item.verdicts.filter((one) => one !== own) }];
    }));
  }
  try {
    return JSON.parse(localStorage.getItem(PREFIX + run)) ?? {};
  } catch {
    return memory.get(run) ?? {};
  }
}

/** Decides about a fact: "accept", "reject", "unsure", or nothing, which takes it back. */
export async function decide(run, fact, verdict, note) {
  if (isLive(run)) {
    const { who, fixed } = served.get(run);
    const body = { subject: fact.head, relation: fact.relation, object: fact.tail, verdict: verdict ?? "undo", note: note || undefined, who: fixed ? undefined : who };
    await fetched(`api/v1/${encodeURIComponent(run)}/live/verdicts`, undefined, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    });
    return look(run);
  }
  const list = decisions(run);
  delete list[key(fact)];
  if (verdict) {
    const { head, relation, tail, head_label, tail_label, probability, probability_rough, score } = fact;
    list[key(fact)] = { head, relation, tail, head_label, tail_label, probability, probability_rough, score, verdict };
  }
  try {
    localStorage.setItem(PREFIX + run, JSON.stringify(list));
  } catch {
    memory.set(run, list);
  }
  changed();
}
