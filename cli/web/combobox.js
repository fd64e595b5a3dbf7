// A text box that completes what is typed (ARIA: combobox with a list box). ↑ ↓ choose, Enter takes, Esc closes.

import { el, short } from "./dom.js";

const PAUSE = 90; // milliseconds after a key before the server is asked

/**
 * Makes `input` a combobox. `complete(text, signal)` promises `[{id, label, degree}]`.
 * Gives `{value(), set(id, label)}`: the id that was taken, else what was typed.
 */
export function combobox(input, complete, taken = () => {}) {
  const list = el("ul", { class: "options", role: "listbox", id: input.id + "-options", hidden: true, "aria-label": "Suggestions" });
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off",
  })) input.setAttribute(name, value);
  let chosen = null, items = [], at = -1, timer = 0, asking = null;

  function close() {
    clearTimeout(timer);
    asking?.abort();
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function mark(place) {
    at = place;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    const item = list.children[at];
    if (item) {
      input.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }
  function take(item) {
    chosen = { id: item.id, text: item.label };
    input.value = item.label;
    close();
    taken();
  }
  function show(found) {
    items = found;
    list.replaceChildren(...items.map((item, i) =>
      el("li", { role: "option", id: `${list.id}-${i}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); take(item); } },
        el("span", { class: "name" }, short(item.label, 60), item.label !== item.id && el("span", { class: "id" }, " " + short(item.id, 24))),
        el("span", { class: "degree" }, item.degree.toLocaleString("en")))));
    list.hidden = items.length === 0;
    input.setAttribute("aria-expanded", String(items.length > 0));
    mark(-1);
  }
  function look() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      asking?.abort();
      asking = new AbortController();
      try {
        const found = await complete(input.value, asking.signal);
        if (document.activeElement === input) show(found);
      } catch (error) {
        if (error.name !== "AbortError") close();
      }
    }, PAUSE);
  }

  input.addEventListener("input", () => { chosen = null; look(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.hidden) look();
    else if (step) mark((at + step + items.length + (at < 0 && step < 0 ? 1 : 0)) % items.length);
    else if (event.key === "Enter" && !list.hidden && at >= 0) take(items[at]);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  return {
    value: () => (chosen && chosen.text === input.value ? chosen.id : input.value.trim()),
    set: (id, label) => { chosen = id ? { id, text: label ?? id } : null; input.value = label ?? id ?? ""; close(); },
  };
}
