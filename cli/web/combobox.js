// A text box that completes what is typed (ARIA: combobox with a list box). The first suggestion is chosen already:
// Enter takes it, ↑ ↓ choose another, Esc closes.

import { el, short } from "./dom.js";

const PAUSE = 90; // milliseconds after a key before the server is asked

/**
 * Makes `input` a combobox. `complete(text, signal)` promises `[{kind, id, label, degree}]`; `taken(item)` hears what
 * is taken. Gives `{value(), set(id, label)}`: the id that was taken, else what was typed.
 */
export function combobox(input, complete, taken = () => {}) {
  const list = el("ul", { class: "options", role: "listbox", id: input.id + "-options", hidden: true, "aria-label": "Suggestions" });
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off",
  })) input.setAttribute(name, value);
  let chosen = null, items = [], at = -1, timer = 0, asking = null, shownFor = null;

  function close() {
    clearTimeout(timer);
    asking?.abort();
    list.hidden = true;
    at = -1;
    shownFor = null;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function mark(place) {
    at = place;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    const item = items[at] && list.children[at];
    if (item) {
      input.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }
  function take(item) {
    chosen = { id: item.id, text: item.label };
    input.value = item.label;
    close();
    taken(item);
  }
  const option = (item, i) => el("li", { role: "option", id: `${list.id}-${i}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); take(item); } },
    el("span", { class: "name" }, short(item.label, 60), item.label !== item.id && el("span", { class: "id" }, " " + short(item.id, 24))),
    el("span", { class: "degree" }, `${item.kind}, ${item.degree.toLocaleString("en")} fact${item.degree === 1 ? "" : "s"}`));
  function show(found, text) {
    items = found;
    shownFor = text;
    const nothing = el("li", { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, `No match for “${short(text, 60)}”.`);
    list.replaceChildren(...(items.length > 0 ? items.map(option) : [nothing]));
    list.hidden = items.length === 0 && text === "";
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(items.length > 0 && text !== "" ? 0 : -1);
  }
  /** Asks for what fits the text of now, and shows it. */
  async function look() {
    clearTimeout(timer);
    asking?.abort();
    asking = new AbortController();
    const text = input.value.trim();
    try {
      const found = await complete(text, asking.signal);
      if (document.activeElement === input) show(found, text);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  }
  /** Takes what is marked; if the list is not that of the text of now, the first of what fits. */
  async function enter() {
    if (list.hidden || shownFor !== input.value.trim()) await look();
    if (items[at] && !list.hidden) take(items[at]);
  }

  input.addEventListener("input", () => { chosen = null; clearTimeout(timer); timer = setTimeout(look, PAUSE); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.hidden) look();
    else if (step && items.length > 0) mark((at + step + items.length + (at < 0 && step < 0 ? 1 : 0)) % items.length);
    else if (event.key === "Enter" && input.value.trim() !== "" && !chosen) enter();
    else if (event.key === "Enter" && !list.hidden && items[at]) take(items[at]);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  return {
    value: () => (chosen && chosen.text === input.value ? chosen.id : input.value.trim()),
    set: (id, label) => { chosen = id ? { id, text: label ?? id } : null; input.value = label ?? id ?? ""; close(); },
  };
}
