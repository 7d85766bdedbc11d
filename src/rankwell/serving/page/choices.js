// The choice of a ranker, and of one to compare it with.

import { byId, element } from "./elements.js";

export function defaultRanker(rankers) {
  return (rankers.find((each) => each.default) ?? rankers[0])?.name ?? "";
}

const option = ({ name, default: isDefault }) =>
  element("option", { value: name }, isDefault ? `${name} (default)` : name);

/** Offer the server's rankers; a comparison needs two. */
export function offer(rankers) {
  byId("ranker").replaceChildren(...rankers.map(option));
  byId("against").replaceChildren(element("option", { value: "" }, "nothing"), ...rankers.map(option));
  byId("against-choice").hidden = rankers.length < 2;
}

/** Choose a name. One that the server does not have is still shown: the server will say what is wrong with it. */
export function choose(select, name) {
  const isKnown = [...select.options].some((each) => each.value === name);
  if (!isKnown && name !== "") select.append(element("option", { value: name }, name));
  select.value = name;
}
