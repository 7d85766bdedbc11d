// One result: title, caption, scores, and what can be done with it.

import { documentText, element } from "./elements.js";
import { sendClick, voteButtons } from "./feedback.js";
import { figure } from "./numbers.js";

let numberOfPanels = 0;

/** A document's address, if it is one that a browser may follow: `javascript:` and relative ones are not. */
function safeAddress(url) {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const parsed = new URL(url);
  return parsed.protocol === "https:" || parsed.protocol === "http:" ? parsed.href : null;
}

/** A caption as text, with the query's words marked. */
function captionText(parts) {
  return (parts ?? []).map((part) => (part.hit ? element("mark", {}, part.text) : document.createTextNode(part.text)));
}

/** A panel of the stored fields that the result does not show anyway; null where there are none. */
function storedFields(result, name) {
  const isTold = (value) => value === "" || value === null || value === name || value === result.id;
  const fields = Object.entries(result.fields ?? {}).filter(([, value]) => !isTold(value));
  if (fields.length === 0) return null;
  const rows = fields.flatMap(([field, value]) => [
    element("dt", {}, documentText(field)),
    element("dd", {}, documentText(typeof value === "string" ? value : JSON.stringify(value))),
  ]);
  numberOfPanels += 1;
  // Long documents scroll inside: the region takes the focus so that arrow keys can scroll it.
  const region = {
    id: `stored-${numberOfPanels}`,
    class: "stored",
    tabindex: "0",
    role: "region",
    "aria-label": `Stored text of ${name}`,
  };
  return element("div", { ...region, hidden: true }, element("dl", {}, ...rows));
}

/** The title: a link where the document has an address, else a button that shows the stored text. */
function titleOf(name, url, panel, clicked) {
  const inner = documentText(name);
  if (url)
    return element(
      "a",
      { class: "title", href: url, rel: "noopener noreferrer", click: clicked, auxclick: clicked },
      inner,
    );
  if (!panel) return element("span", { class: "title", tabindex: "-1" }, inner);
  const opened = () => panel.hidden || clicked();
  return togglingButton("title", panel, inner, opened);
}

function togglingButton(className, panel, content, toggled = () => {}) {
  const button = element(
    "button",
    { type: "button", class: className, "aria-expanded": "false", "aria-controls": panel.id },
    content,
  );
  button.addEventListener("click", () => {
    panel.hidden = !panel.hidden;
    button.setAttribute("aria-expanded", String(!panel.hidden));
    toggled();
  });
  return button;
}

/** "Stored text", and of what for those who hear it alone. */
const storedLabel = (name) => element("span", {}, "Stored text", element("span", { class: "hidden" }, ` of ${name}`));

function whyButton(name, listener) {
  const label = `Why this score: ${name}`;
  return element(
    "button",
    { type: "button", class: "quiet why", "aria-label": label, "aria-haspopup": "dialog", click: listener },
    "Why this score",
  );
}

function scores(result, name) {
  const first = typeof result.first_score === "number" && result.first_score !== result.score;
  return element(
    "span",
    { class: "scores" },
    name === result.id ? null : documentText(result.id, { class: "identifier" }),
    element("span", {}, `score ${figure(result.score)}`),
    first ? element("span", { class: "first" }, `first pass ${figure(result.first_score)}`) : null,
  );
}

/**
 * A list item for a result.
 * @param {Object} result  as the server sent it
 * @param {Object} context  query; impression (null: clicks are not logged); openWhy(id), or null where a score cannot
 *   be explained; badge, a node or null; heading, a tag
 */
export function resultItem(result, { query, impression, openWhy, badge = null, heading = "h3" }) {
  const name = result.title || result.id;
  const url = safeAddress(result.url);
  const panel = storedFields(result, name);
  const title = titleOf(name, url, panel, () => sendClick(impression, result.id));
  return element(
    "li",
    { class: "result", "data-document": result.id },
    element("div", { class: "headline" }, element(heading, {}, title), badge),
    element("p", { class: "caption" }, element("bdi", {}, ...captionText(result.caption))),
    panel,
    element(
      "div",
      { class: "actions" },
      scores(result, name),
      openWhy ? whyButton(name, () => openWhy(result.id)) : null,
      url && panel ? togglingButton("quiet", panel, storedLabel(name)) : null,
      voteButtons(query, result.id, name),
    ),
  );
}
