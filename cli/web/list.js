// A list of facts, pasted or from a file: each is scored, and the table can be sorted and saved.

import { address, ask, fetched } from "./api.js";
import { verdictButtons } from "./review.js";
import { counted, el, entityLink, likely, link, notice, relationLink, save, short, tsv } from "./dom.js";

const AT_ONCE = 25, MOST = 5000;

/** The fields of a line: separated by tabs, else by commas, where quotes hold a field together. */
function fields(line) {
  if (line.includes("\t")) return line.split("\t").map((field) => field.trim());
  return [...line.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g)].map(([, quoted, plain]) => (quoted?.replaceAll('""', '"') ?? plain).trim()).slice(0, 4);
}

/** The facts of a text, a fact a line; a first line that names columns is none. */
function read(text) {
  const rows = text.split(/\r?\n/).map((line, i) => ({ line: i + 1, cells: fields(line) })).filter(({ cells }) => cells.some(Boolean) && !cells[0].startsWith("#"));
  if (/^(subject|head|source|from)$/i.test(rows[0]?.cells[0])) rows.shift();
  const wrong = rows.find(({ cells }) => cells.length < 3 || !cells[0] || !cells[1] || !cells[2]);
  if (wrong) throw new Error(`Line ${wrong.line}: expected subject, relation and object, separated by tabs or commas; found “${short(wrong.cells.filter(Boolean).join(", "), 80)}”.`);
  return rows.map(({ cells: [subject, relation, object] }) => ({ subject, relation, object }));
}

/** What is decided about a row. */
const factOf = ({ subject: head, relation, object: tail, probability, probability_rough }) => ({ head, relation, tail, head_label: head, tail_label: tail, probability, probability_rough });

/** How a fact stands. */
const standing = (row) => (row.error ? "not found" : row.known ? "in the graph" : row.held_out ? `held out, ${row.held_out}` : "new");

// The columns: their names, what they are sorted by, what they show, what is saved.
const COLUMNS = [
  ...[["Subject", "subject", entityLink], ["Relation", "relation", relationLink], ["Object", "object", entityLink]].map(([name, key, to]) =>
    [name, (row) => row[key], (run, row) => (row.error ? short(row[key], 60) : to(run, row[key], row[key]))]),
  ["Probability", (row) => row.probability ?? row.plausibility ?? -1, (_, row) => (typeof row.probability === "number" ? likely(row) : row.plausibility?.toPrecision(2) ?? "–")],
  ["Rank", (row) => row.rank_tail ?? Infinity, (_, row) => (row.rank_tail ? Math.round(row.rank_tail).toLocaleString("en") : "–")],
  ["It is", standing, (_, row) => standing(row)],
  ["Reason", (row) => row.error ?? row.sentence ?? "", (run, row) => (row.error ? row.error : [row.sentence || "no rule or path leads there", " ", link({ run, view: "why", subject: row.subject, relation: row.relation, object: row.object }, "why?"), " ", !row.known && verdictButtons(run, factOf(row))])],
];

/** The table of scored facts, which is sorted by the column whose heading is pressed. */
function table(run, rows) {
  let by = 3, down = true;
  const body = el("tbody", {});
  const heads = COLUMNS.map(([name], at) => el("th", { scope: "col" }, el("button", { type: "button", class: "small sorts", onclick: () => {
    down = by === at ? !down : at === 3;
    by = at;
    fill();
  } }, name)));
  function fill() {
    const [, key] = COLUMNS[by];
    const order = (a, b) => (typeof key(a) === "number" ? key(a) - key(b) : String(key(a)).localeCompare(String(key(b)))) * (down ? -1 : 1);
    body.replaceChildren(...[...rows].sort(order).map((row) => el("tr", { class: row.error ? "wrong" : undefined }, COLUMNS.map(([, , show], at) => el("td", { class: at === 6 ? "said" : undefined }, show(run, row))))));
    heads.forEach((head, at) => head.setAttribute("aria-sort", at !== by ? "none" : down ? "descending" : "ascending"));
  }
  fill();
  return { element: el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Scored facts" }, el("table", { class: "scored" }, el("thead", {}, el("tr", {}, heads)), body)), fill };
}

const asTsv = (rows) => tsv([["subject", "relation", "object", "probability", "rank_tail", "rank_head", "standing", "sentence", "error"],
  ...rows.map((row) => [row.subject, row.relation, row.object, row.probability, row.rank_tail, row.rank_head, standing(row), row.sentence, row.error])]);

/** Shows the form, and then the table, in `view`. */
export async function listView(view, { run }, { signal, status }) {
  const { questions } = await ask(run, "overview", {}, signal);
  const example = questions.slice(0, 2).map(({ subject, relation }) => `${subject}\t${relation}\t…`).join("\n");
  const text = el("textarea", { id: "facts", rows: 6, spellcheck: "false", placeholder: example, "aria-label": "Facts, one a line" });
  const file = el("input", { id: "file", type: "file", accept: ".tsv,.csv,.txt", onchange: async () => { if (file.files[0]) text.value = await file.files[0].text(); } });
  const said = el("p", { role: "status" }), result = el("div", {});
  const start = el("button", { type: "submit", class: "primary" }, "Score");
  let takes = 0;
  async function score() {
    const facts = read(text.value), rows = [];
    if (facts.length === 0) throw new Error("There is no fact in it yet.");
    if (facts.length > MOST) throw new Error(`${facts.length.toLocaleString("en")} facts are too many for a page; \`ruleguider score RUN --file LIST\` scores lists of any length.`);
    const shown = table(run, rows), bar = el("progress", { max: facts.length, value: 0, "aria-label": "Scoring" });
    said.replaceChildren(bar, " Scoring …");
    result.replaceChildren(shown.element);
    for (let at = 0; at < facts.length; at += AT_ONCE) {
      if (!result.isConnected) return; // the reader has left
      const found = await fetched(address(run, "score", {}), undefined, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ facts: facts.slice(at, at + AT_ONCE) }) });
      rows.push(...found.facts);
      bar.value = rows.length;
      shown.fill();
    }
    const wrong = rows.filter((row) => row.error).length;
    said.replaceChildren(`${counted(rows.length, "fact")} scored${wrong > 0 ? `, ${wrong} with a name that is not in the graph` : ""}. `,
      el("button", { type: "button", id: "save-scored", class: "small", onclick: () => save(`scored-${run}.tsv`, "text/tab-separated-values", asTsv(rows)) }, "Save as TSV"));
    const named = facts.map((fact, i) => ({ ...fact, meant: rows[i].suggestions?.length === 1 && rows[i].suggestions[0], wrong: rows[i].error?.match(/`(.*?)`/)?.[1] }));
    const take = () => {
      text.value = named.map(({ subject, relation, object, meant, wrong }) => [subject, relation, object].map((name) => (meant && name === wrong ? meant : name)).join("\t")).join("\n");
      form.requestSubmit();
    };
    // A fact is told its first wrong name alone: there may be another.
    if (named.some(({ meant }) => meant)) {
      if (takes-- > 0) return take();
      said.append(" ", el("button", { type: "button", id: "take-names", class: "small", onclick: () => { takes = 2; take(); } }, "Take the suggested names"));
    }
    status(`${counted(rows.length, "fact")} scored`);
  }
  const form = el("form", { id: "score", onsubmit: async (event) => {
    event.preventDefault();
    start.disabled = true;
    await score().catch((problem) => said.replaceChildren(notice(problem.message)));
    start.disabled = false;
  } }, text, el("p", { class: "tools" }, el("label", {}, "or a file ", file), start));
  view.replaceChildren(el("h1", {}, "Score a list"),
    el("p", { class: "note" }, "Facts to check, one a line: subject, relation, object, separated by tabs or commas. Each gets a probability, its rank among all objects and its best reason. A fact of the graph is scored as if the graph did not have it."),
    form, said, result);
  status("");
  return { title: "Score a list" };
}
