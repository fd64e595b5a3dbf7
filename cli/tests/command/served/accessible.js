// What a reader with weak eyes, or a screen reader, would stumble over on the page; one line for each.
const complaints = [];
const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
const luminance = ([red, green, blue]) => [red, green, blue]
  .map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const behind = (element) => {
  const box = element.parentElement?.querySelector(":scope > rect");
  if (element.tagName === "text" && box) return numbers(getComputedStyle(box).fill);
  for (let at = element; at; at = at.parentElement) {
    const colour = numbers(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (!own || element.tagName === "title" || element.closest(".skip, noscript, dialog:not([open])") || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  const ratio = contrast(numbers(element.ownerSVGElement ? style.fill : style.color), behind(element));
  if (ratio < (large ? 3 : 4.5)) complaints.push(`contrast ${ratio.toFixed(2)}: ${element.outerHTML.slice(0, 90)}`);
}
for (const element of document.querySelectorAll("a[href], button, input, select, summary, svg[role], [role=region], [role=button]")) {
  const name = element.textContent.trim() || element.getAttribute("aria-label") || element.labels?.[0]?.textContent.trim() || element.title;
  if (!name) complaints.push(`no name: ${element.outerHTML.slice(0, 90)}`);
}
for (const element of document.querySelectorAll("[aria-controls], [aria-activedescendant], [aria-labelledby]")) {
  for (const name of ["aria-controls", "aria-activedescendant", "aria-labelledby"]) {
    const id = element.getAttribute(name);
    if (id && !document.getElementById(id)) complaints.push(`${name} names nothing: ${id}`);
  }
}
// What axe calls nested-interactive and scrollable-region-focusable.
for (const image of document.querySelectorAll("[role=img]")) {
  if (image.querySelector("a[href], [tabindex], button")) complaints.push(`an image with links: ${image.outerHTML.slice(0, 90)}`);
}
for (const element of document.querySelectorAll("body *")) {
  if (!/auto|scroll/.test(getComputedStyle(element).overflowX) || element.scrollWidth <= element.clientWidth + 1) continue;
  if (element.tabIndex < 0 && !element.querySelector("a[href], button, [tabindex='0']")) complaints.push(`scrolls, but not by keyboard: ${element.outerHTML.slice(0, 90)}`);
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => complaints.push(`twice: ${id}`));
if (document.querySelectorAll("main h1").length !== 1) complaints.push("a view has one h1");
if (!document.documentElement.lang) complaints.push("no language");
return complaints;
