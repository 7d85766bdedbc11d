// Two rankings of one query side by side, with the documents that moved.

import { element } from "./elements.js";
import { count, plural } from "./numbers.js";
import { resultItem } from "./result.js";

/** Where each document is in the two rankings: { from, to }, null where it is not in the list. */
function placesOf(answer) {
  const places = new Map();
  answer.rankings.forEach((ranking, side) => {
    for (const result of ranking.results) {
      const place = places.get(result.id) ?? { from: null, to: null };
      place[side === 0 ? "from" : "to"] = result.rank;
      places.set(result.id, place);
    }
  });
  // The server may know a place below the end of the list.
  for (const [id, { from, to }] of Object.entries(answer.moved ?? {})) {
    const place = places.get(id);
    if (place) places.set(id, { from: place.from ?? from ?? null, to: place.to ?? to ?? null });
  }
  return places;
}

function badge(className, sign, words) {
  return element(
    "span",
    { class: `badge ${className}`, title: words },
    element("span", { "aria-hidden": "true" }, sign),
    element("span", { class: "hidden" }, words),
  );
}

/** How a document of the second ranking moved against the first. */
function movement({ from, to }, other) {
  if (from === null) return badge("new", "new", `Not among the results of ${other}`);
  if (from === to) return badge("same", "=", `Same place as by ${other}`);
  const steps = Math.abs(from - to);
  const words = `${to < from ? "Up" : "Down"} by ${steps}, from place ${from} by ${other}`;
  return to < from ? badge("up", `▲ ${steps}`, words) : badge("down", `▼ ${steps}`, words);
}

/** What happened to a document of the first ranking, where the second does not show it. */
function departure({ to }, other) {
  return to === null ? badge("gone", "gone", `Not among the results of ${other}`) : null;
}

export function comparisonSummary(answer) {
  const places = [...placesOf(answer).values()];
  const isIn = (side) => places.filter((place) => place[side] !== null);
  const moved = places.filter(({ from, to }) => from !== null && to !== null && from !== to).length;
  const fresh = isIn("to").filter(({ from }) => from === null).length;
  if (places.length === 0) return "Nothing matches";
  if (moved === 0 && fresh === 0) return "Both rankers give the same order";
  const [first, second] = answer.rankings.map((ranking) => ranking.ranker ?? "bm25");
  return `${plural(moved, "document")} moved from ${first} to ${second}, ${count(fresh)} new`;
}

/** Mark a document in both lists while it is pointed at or has the focus. */
function pairUp(lists) {
  const mark = (event) => {
    const item = event.target.closest?.(".result");
    for (const each of lists.querySelectorAll(".result")) {
      each.classList.toggle("pointed", item !== null && each.dataset.document === item.dataset.document);
    }
  };
  lists.addEventListener("pointerover", mark);
  lists.addEventListener("focusin", mark);
  lists.addEventListener("pointerleave", () =>
    lists.querySelectorAll(".pointed").forEach((each) => each.classList.remove("pointed")),
  );
  return lists;
}

/** The two lists. `explainer(ranker)` is what opens the explanation of that ranker's scores, or null. */
export function comparisonOf(answer, query, explainer) {
  const places = placesOf(answer);
  const names = answer.rankings.map((ranking) => ranking.ranker ?? "bm25");
  const columns = answer.rankings.map(({ results }, side) => {
    const other = names[1 - side];
    const badgeOf = (id) => (side === 0 ? departure(places.get(id), other) : movement(places.get(id), other));
    const items = results.map((result) =>
      resultItem(result, {
        query,
        impression: null,
        openWhy: explainer(names[side]),
        badge: badgeOf(result.id),
        heading: "h4",
      }),
    );
    const heading = `ranking-${side}`;
    return element(
      "section",
      { class: "ranking", "aria-labelledby": heading },
      element("h3", { id: heading }, names[side]),
      element("ol", {}, ...items),
    );
  });
  return pairUp(element("div", { class: "rankings" }, ...columns));
}
