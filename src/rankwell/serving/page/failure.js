// What went wrong, in the server's own words, and what can be done about it.

import { byId, element } from "./elements.js";

/** Whether the query may be what was refused: as words without operators, no query is wrong. */
function mayBeSyntax({ status, parameter }) {
  return (status === 400 || status === 422) && (parameter === "q" || parameter === null);
}

/**
 * Show an error; null takes away the last one.
 * @param {?ServerError} error
 * @param {Object} remedies  again(): ask once more; plainly(): search without operators, or null
 */
export function showFailure(error, { again, plainly } = {}) {
  byId("query").setAttribute("aria-invalid", String(error !== null && mayBeSyntax(error)));
  if (error === null) {
    byId("failure").replaceChildren();
    return;
  }
  const button = (label, listener) => element("button", { type: "button", click: () => listener() }, label);
  byId("failure").replaceChildren(
    element(
      "div",
      { class: "notice" },
      element("p", {}, element("strong", {}, "Error:"), ` ${error.message}`),
      error.passes ? button("Try again", again) : null,
      plainly && mayBeSyntax(error) ? button("Search for the words as they are", plainly) : null,
    ),
  );
}
