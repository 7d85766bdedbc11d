// Elements of the page. Text from the server becomes text nodes here and nowhere else, so it is never read as markup.

/**
 * Make an element.
 * @param {string} tag
 * @param {Object} attributes  `class`, `aria-label`, ...; a function is a listener (`click`), true an empty attribute,
 *   and null, undefined and false leave the attribute out
 * @param {...(Node|string|null)} children  strings become text nodes, null is left out
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Text of a document: isolated, because it may run from right to left or leave such a run open. */
export function documentText(text, attributes = {}) {
  return element("bdi", attributes, text);
}

/** A bar that is `share` (0 to 1) of its track. Its meaning is always in text beside it. */
export function bar(share, className) {
  const made = element("span", { class: className, "aria-hidden": "true" });
  made.style.setProperty("--share", String(Math.min(Math.max(share, 0), 1)));
  return made;
}

export const byId = (id) => document.getElementById(id);
