// Facets: how many of the matches have each keyword, and the choice of some of them.

import { documentText, element } from "./elements.js";
import { count } from "./numbers.js";

const MOST_FIELDS = 6;
const MOST_VALUES = 8;

let isOpen = false;

/** The fields to count: the first keyword fields of the index. */
export const facetFields = (index) => (index?.keywords ?? []).slice(0, MOST_FIELDS);

/** What documents must meet, in the query language: of each field one of the values that are chosen. */
export function filterOf(only, fields) {
  return fields
    .map((field) => {
      const values = valuesOf(only, field).map((value) => `"${value.replace(/["\\]/g, "\\$&")}"`);
      return values.length > 0 ? `+${field.replace(/[\s"()\\^~:]/g, "\\$&")}:(${values.join(" OR ")})` : "";
    })
    .filter((clause) => clause !== "")
    .join(" ");
}

/** The values of a field that are chosen; a choice is field:value. */
function valuesOf(only, field) {
  return only.filter((choice) => choice.startsWith(`${field}:`)).map((choice) => choice.slice(field.length + 1));
}

/**
 * A panel of check boxes by field; none where there is nothing to choose.
 * @param {Object} facets  as the server sent them
 * @param {string[]} only  the choices
 * @param {function(string[], string): void} narrow  gets the new choices, and the one that changed
 */
export function facetsOf(facets, only, narrow) {
  const fields = Object.keys(facets ?? {}).map((field) => fieldsetOf(field, facets[field], only, narrow));
  const shown = fields.filter((each) => each !== null);
  if (shown.length === 0) return [];
  const panel = element(
    "details",
    { class: "facets", open: isOpen || only.length > 0 },
    element("summary", {}, only.length > 0 ? `Narrowed down by ${count(only.length)}` : "Narrow down"),
    element("div", { class: "facet-fields" }, ...shown),
  );
  panel.addEventListener("toggle", () => {
    isOpen = panel.open;
  });
  return [panel];
}

function fieldsetOf(field, { values, n_values: nValues }, only, narrow) {
  const counts = new Map(values.map(({ value, n_docs: nDocs }) => [String(value), nDocs]));
  const chosen = valuesOf(only, field);
  // What is chosen can be taken back, however few documents have it.
  const offered = [...new Set([...[...counts.keys()].slice(0, MOST_VALUES), ...chosen])];
  if (offered.length === 0) return null;
  const more = nValues - offered.length;
  return element(
    "fieldset",
    {},
    element("legend", {}, documentText(field)),
    ...offered.map((value) => boxOf(field, value, counts.get(value) ?? 0, only, narrow)),
    more > 0 ? element("p", { class: "more" }, `${count(more)} more`) : null,
  );
}

function boxOf(field, value, nDocs, only, narrow) {
  const choice = `${field}:${value}`;
  const isChosen = only.includes(choice);
  const change = () => narrow(isChosen ? only.filter((each) => each !== choice) : [...only, choice], choice);
  return element(
    "label",
    {},
    element("input", { type: "checkbox", checked: isChosen, "data-choice": choice, change }),
    documentText(value, { class: "value" }),
    element("span", { class: "n" }, count(nDocs)),
  );
}
