// The search page: reads what to show from the address, asks the server, and shows the answer.

import { PAGE_SIZE, addressOf, answerKey, readAddress } from "./address.js";
import { noticesOf, pagingOf, summaryOf, timingOf } from "./answer.js";
import * as api from "./api.js";
import { choose, defaultRanker, offer } from "./choices.js";
import { comparisonOf, comparisonSummary } from "./comparison.js";
import { byId, element } from "./elements.js";
import { explanationOf } from "./explanation.js";
import { facetFields, facetsOf, filterOf } from "./facets.js";
import { factsOf } from "./facts.js";
import { showFailure } from "./failure.js";
import { allowVotes } from "./feedback.js";
import { listenToKeys } from "./keys.js";
import { count, plural } from "./numbers.js";
import { resultItem } from "./result.js";

let shown = readAddress();
let rankers = [];
let index = null; // facts of the index, as far as they are known
let answered = null; // the answerKey of what is on the page
let search = new AbortController();
let explanation = new AbortController();

/** Show something else, as a new entry of the history; the same again is no new entry. */
function go(change) {
  const before = addressOf(shown);
  shown = { ...shown, why: "", by: "", ...change };
  if (addressOf(shown) !== before) history.pushState({ inPage: true }, "", addressOf(shown));
  return show();
}

/** What opens the panel for a ranker's scores; null for BM25, which has no features. */
function explainer(ranker) {
  const isLearned = rankers.find((each) => each.name === ranker)?.kind !== "bm25";
  return isLearned ? (id) => go({ why: id, by: ranker }) : null;
}

function fillForm() {
  byId("query").value = shown.q;
  choose(byId("ranker"), shown.ranker || defaultRanker(rankers));
  choose(byId("against"), shown.against);
  byId("typos").checked = shown.typos;
  document.body.classList.toggle("home", shown.q === "");
  document.body.classList.toggle("comparing", shown.against !== "" && shown.q !== "");
  document.title = shown.q ? `${shown.q} · Rankwell` : "Rankwell";
}

async function show() {
  fillForm();
  if (shown.q.trim() === "") clear();
  else if (answerKey(shown) !== answered) await ask();
  await showWhy();
}

function clear() {
  search.abort();
  answered = null;
  setBusy(false);
  showFailure(null);
  put({});
  byId("facts").open = true;
}

/** Replace what is below the search box. */
function put({ summary = "", notices = [], timing = [], facets = [], results = [], paging = [] }) {
  byId("summary").textContent = summary;
  byId("notices").replaceChildren(...notices);
  byId("timing").replaceChildren(...timing);
  byId("facets").replaceChildren(...facets);
  byId("results").replaceChildren(...results);
  byId("paging").replaceChildren(...paging);
  byId("paging").hidden = paging.length === 0;
}

async function ask() {
  search.abort();
  search = new AbortController();
  const { signal } = search;
  setBusy(true);
  try {
    const parts = await (shown.against ? askBoth(signal) : askOne(signal));
    if (signal.aborted) return;
    showFailure(null);
    put(parts);
    answered = answerKey(shown);
    byId("facts").open = false;
  } catch (error) {
    if (signal.aborted) return;
    answered = null;
    put({});
    const plainly = shown.plain ? null : () => go({ plain: true, offset: 0 });
    showFailure(error, { again: show, plainly });
  } finally {
    if (!signal.aborted) setBusy(false);
  }
}

/** What is searched for: the same whether it is shown, compared or explained. */
function searchedFor() {
  const { q, plain, typos } = shown;
  return { q, plain, typos, filter: filterOf(shown.only, facetFields(index)) };
}

async function askOne(signal) {
  const { q, ranker, offset, only } = shown;
  const facet = facetFields(index);
  const answer = await api.search({ k: PAGE_SIZE, offset, ranker, ...searchedFor(), facet }, signal);
  const context = { query: q, impression: answer.impression, openWhy: explainer(answer.ranker ?? "bm25") };
  const items = answer.results.map((result) => resultItem(result, context));
  return {
    summary: summaryOf(answer, offset),
    notices: noticesOf(answer),
    timing: [timingOf(answer)],
    facets: facetsOf(answer.facets, only, narrow),
    results: items.length > 0 ? [element("ol", { start: String(offset + 1) }, ...items)] : [],
    paging: pagingOf(answer, offset, turnTo),
  };
}

async function askBoth(signal) {
  const { q, ranker, against, only } = shown;
  const both = `${ranker || defaultRanker(rankers)},${against}`;
  const answer = await api.compare({ ...searchedFor(), k: PAGE_SIZE, rankers: both }, signal);
  const narrowed = only.length > 0 ? `, narrowed down by ${count(only.length)}` : "";
  return {
    summary: `${comparisonSummary(answer)}${narrowed}`,
    notices: noticesOf(answer),
    results: [comparisonOf(answer, q, explainer)],
  };
}

/** Show only documents with these keywords; the focus stays on the box that was changed. */
async function narrow(only, changed) {
  await go({ only, offset: 0 });
  [...document.querySelectorAll("[data-choice]")].find((each) => each.dataset.choice === changed)?.focus();
}

async function turnTo(offset) {
  await go({ offset });
  byId("results-heading").focus();
  scrollTo({ top: 0 });
}

function setBusy(isBusy) {
  byId("main").classList.toggle("busy", isBusy);
  byId("results").setAttribute("aria-busy", String(isBusy));
}

/** Open, change or close the panel, as the address says. */
async function showWhy() {
  explanation.abort();
  const panel = byId("why");
  if (shown.why === "" || shown.q === "") {
    panel.close();
    return;
  }
  explanation = new AbortController();
  const { signal } = explanation;
  const body = byId("why-body");
  body.replaceChildren(element("p", { class: "waiting" }, "Explaining …"));
  if (!panel.open) panel.showModal();
  const wanted = { ...searchedFor(), id: shown.why, ranker: shown.by };
  try {
    const parts = await explanationOf(wanted, titleOf(shown.why), signal);
    if (!signal.aborted) body.replaceChildren(...parts);
  } catch (error) {
    if (!signal.aborted) body.replaceChildren(element("p", { class: "notice", role: "alert" }, error.message));
  }
}

function titleOf(id) {
  const item = [...document.querySelectorAll(".result")].find((each) => each.dataset.document === id);
  return item?.querySelector(".title").textContent ?? id;
}

/** Closing the panel is a step back where opening it was a step forward. */
function leaveWhy() {
  if (shown.why === "") return;
  if (history.state?.inPage) history.back();
  else {
    shown = { ...shown, why: "", by: "" };
    history.replaceState(null, "", addressOf(shown));
  }
}

async function loadFacts() {
  const [facts, listed] = await Promise.allSettled([api.indexFacts(), api.rankers()]);
  index = facts.value ?? null;
  rankers = listed.status === "fulfilled" ? listed.value : [];
  // A server that does not say whether it keeps votes is asked by the first one.
  if (index !== null) {
    allowVotes(index.votes ?? true);
    byId("query").placeholder = `Search ${plural(index.documents, "document")}`;
  }
  const refusals = [facts, listed].filter((each) => each.status === "rejected").map((each) => each.reason.message);
  byId("facts-body").replaceChildren(...factsOf(index, rankers), ...new Set(refusals));
  offer(rankers);
}

function listen() {
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    answered = null; // Enter asks again, even for the same words
    go({ q: byId("query").value.trim(), offset: 0, plain: false, only: [] });
  });
  byId("ranker").addEventListener("change", (event) => go({ ranker: event.target.value, offset: 0 }));
  byId("against").addEventListener("change", (event) => go({ against: event.target.value, offset: 0 }));
  byId("typos").addEventListener("change", (event) => go({ typos: event.target.checked, offset: 0 }));
  byId("home").addEventListener("click", (event) => {
    event.preventDefault();
    go({ q: "", offset: 0, against: "", plain: false, only: [] });
    byId("query").focus();
  });
  byId("why-close").addEventListener("click", () => byId("why").close());
  byId("why").addEventListener("close", leaveWhy);
  byId("why").addEventListener("click", (event) => event.target === byId("why") && byId("why").close());
  addEventListener("popstate", () => {
    shown = readAddress();
    show();
  });
  listenToKeys();
}

listen();
await loadFacts();
await show();
