// What the page shows is in its address, so that back, reload and a copied link work.

export const PAGE_SIZE = 10;

/**
 * @typedef {Object} Shown
 * @property {string} q
 * @property {string} ranker  empty: the server's default
 * @property {string} against  the ranker on the right-hand side; empty: one list
 * @property {number} offset
 * @property {boolean} plain  the query is words, without operators
 * @property {boolean} typos  words that are written nearly as the query's are found too
 * @property {string[]} only  chosen values of keyword fields, as field:value
 * @property {string} why  the document whose score is explained; empty: none
 * @property {string} by  the ranker whose score that is
 */

/** @returns {Shown} */
export function readAddress() {
  const given = new URLSearchParams(location.search);
  const text = (name) => given.get(name) ?? "";
  const offset = Number.parseInt(text("offset"), 10);
  return {
    q: text("q"),
    ranker: text("ranker"),
    against: text("against"),
    offset: offset > 0 ? offset : 0,
    plain: text("plain") === "true",
    typos: text("typos") === "true",
    only: given.getAll("only"),
    why: text("why"),
    by: text("by"),
  };
}

/** The address of what is shown; what is left at its default is left out. */
export function addressOf(shown) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(shown))
    for (const one of [value].flat()) if (one) given.append(name, String(one));
  const text = given.toString();
  return text ? `?${text}` : location.pathname;
}

/** What decides the answer, as opposed to what is open on top of it. */
export function answerKey(shown) {
  return JSON.stringify([shown.q, shown.ranker, shown.against, shown.offset, shown.plain, shown.typos, shown.only]);
}
