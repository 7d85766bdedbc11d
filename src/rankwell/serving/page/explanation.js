// Why a document has its score: features, their values, what the ranker made of them and what each contributed.

import { explain } from "./api.js";
import { bar, documentText, element } from "./elements.js";
import { count, figure, plural, signedFigure } from "./numbers.js";

const SHOWN_AT_FIRST = 15;

const isFormula = (feature) => feature.transforms?.[0]?.kind === "expression";

/** The value of a feature and, where the model normalises it, what it read; a formula has the value that it gave. */
function valueText(feature) {
  if (isFormula(feature)) return figure(feature.transforms[0].output);
  const hasInput = feature.input !== undefined && feature.input !== null && feature.input !== feature.value;
  return hasInput ? `${figure(feature.value)} → ${figure(feature.input)}` : figure(feature.value);
}

/** The transforms of a feature by kind, with what each gave and, where there are several, what it added. */
function transformList(feature, largest) {
  const all = feature.transforms ?? [];
  const telling = all.filter((each) => each.kind !== "linear" || each.output !== feature.input);
  if (telling.length === 0) return null;
  const words = ({ kind, output, contribution }) =>
    all.length > 1 ? `${kind} ${figure(output)} (${signedFigure(contribution, largest)})` : `${kind} ${figure(output)}`;
  return element("ul", { class: "transforms" }, ...telling.map((each) => element("li", {}, words(each))));
}

function featureItem(feature, largest) {
  const share = largest > 0 ? Math.abs(feature.contribution) / largest : 0;
  return element(
    "li",
    { class: feature.contribution < 0 ? "feature negative" : "feature positive" },
    documentText(feature.name, { class: "name" }),
    element("span", { class: "value" }, element("span", { class: "hidden" }, "value "), valueText(feature)),
    element(
      "span",
      { class: "contribution" },
      element("span", { class: "hidden" }, "contribution "),
      signedFigure(feature.contribution, largest),
    ),
    transformList(feature, largest),
    element("span", { class: "axis", "aria-hidden": "true" }, bar(share, "extent")),
  );
}

/** The sum that the score is, in one line. */
function sumText({ score, bias, features, offset }) {
  const added = features.reduce((sum, feature) => sum + feature.contribution, 0);
  const parts = [`${plural(features.length, "feature")} added ${signedFigure(added, Math.abs(added))}`];
  if (typeof bias === "number" && bias !== 0) parts.unshift(`${figure(bias)} for any document`);
  if (typeof offset === "number") {
    parts.push(`${signedFigure(offset, Math.abs(offset))} for its place below those kept`);
  }
  return element(
    "p",
    { class: "sum" },
    element("strong", {}, `Score ${figure(score)}`),
    element("span", {}, parts.join(", ")),
  );
}

/** What the score is of, where it is not that of the ranker itself. */
function passNote({ ranking_pass: pass }) {
  if (pass !== "first") return null;
  const words =
    "The ranker's first pass did not keep this document for the second. It is below all that were kept, by its score " +
    "in the first pass:";
  return element("p", { class: "pass" }, words);
}

function featureList(features) {
  const largest = Math.max(0, ...features.map((feature) => Math.abs(feature.contribution)));
  const telling = features.filter((feature) => feature.contribution !== 0);
  const list = element(
    "ol",
    { class: "features" },
    ...telling.slice(0, SHOWN_AT_FIRST).map((each) => featureItem(each, largest)),
  );
  const rest = [...telling.slice(SHOWN_AT_FIRST), ...features.filter((feature) => feature.contribution === 0)];
  if (rest.length === 0) return [list];
  const silent = features.length - telling.length;
  const note = silent > 0 ? ` (${count(silent)} contributed nothing)` : "";
  const more = element(
    "button",
    { type: "button", class: "more" },
    `Show ${plural(rest.length, "more feature")}${note}`,
  );
  more.addEventListener("click", () => {
    const made = rest.map((each) => featureItem(each, largest));
    list.append(...made);
    made[0].tabIndex = -1;
    made[0].focus();
    more.remove();
  });
  return [list, more];
}

/**
 * What the panel shows for a document; throws ServerError.
 * @param {Object} wanted  what was searched for, the document's id and the ranker
 * @param {string} title  the document's
 */
export async function explanationOf(wanted, title, signal) {
  const explanation = await explain(wanted, signal);
  const { ranker } = wanted;
  return [
    element("p", { class: "of" }, documentText(title), ranker ? element("span", {}, `by ${ranker}`) : null),
    passNote(explanation),
    sumText(explanation),
    element(
      "p",
      { class: "key", "aria-hidden": "true" },
      element("span", {}, "lowers the score"),
      element("span", {}, "raises it"),
    ),
    ...featureList(explanation.features),
  ].filter((part) => part !== null);
}
