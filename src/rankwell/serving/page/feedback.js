// What users tell about results: clicks, and thumbs up and down.

import { postClick, postVote } from "./api.js";
import { byId, element } from "./elements.js";

const clicksSent = new Set();
let clicksAreLogged = true;
let votesAreKept = false;

/** Whether the server has no such call, as opposed to no such document or impression. */
const isAbsent = (error) => error.status === 404 && error.parameter === null;

/** Whether thumbs are shown. A server that does not say is asked with the first vote. */
export function allowVotes(allowed) {
  votesAreKept = allowed;
}

/** Tell the server that a result was opened: once for each answer and document. */
export async function sendClick(impression, document) {
  const name = JSON.stringify([impression, document]);
  if (impression === null || impression === undefined || !clicksAreLogged || clicksSent.has(name)) return;
  clicksSent.add(name);
  try {
    await postClick(impression, document);
  } catch (error) {
    // A lost click is no reason to disturb whoever reads the results.
    clicksAreLogged = !isAbsent(error);
  }
}

// Votes of this tab, so that they are still visible after a reload. The server keeps the judgments.
const voteName = (query, document) => `vote ${JSON.stringify([query, document])}`;
const voteOf = (query, document) => Number(sessionStorage.getItem(voteName(query, document)) ?? 0);

function thumb(direction, label, listener) {
  const attributes = {
    type: "button",
    class: `thumb ${direction}`,
    "aria-label": label,
    title: label,
    click: listener,
  };
  return element("button", attributes, byId("thumb").content.cloneNode(true));
}

const groups = () => [...globalThis.document.querySelectorAll(".votes")];

function press(group, vote) {
  group.querySelector(".up").setAttribute("aria-pressed", String(vote === 1));
  group.querySelector(".down").setAttribute("aria-pressed", String(vote === -1));
}

/** Show a vote wherever its document is on the page: twice, where two rankings are side by side. */
function show(document, vote) {
  for (const group of groups()) if (group.dataset.document === document) press(group, vote);
}

/** The two thumbs of a result, or null where votes are not kept. */
export function voteButtons(query, document, title) {
  if (!votesAreKept) return null;
  const group = element(
    "span",
    { class: "votes", role: "group", "aria-label": "Vote", "data-document": document },
    thumb("up", `Good result: ${title}`, () => cast(query, document, 1, group)),
    thumb("down", `Bad result: ${title}`, () => cast(query, document, -1, group)),
  );
  press(group, voteOf(query, document));
  return group;
}

/** Vote, or take the same vote back. */
async function cast(query, document, chosen, group) {
  const before = voteOf(query, document);
  const vote = before === chosen ? 0 : chosen;
  show(document, vote);
  group.parentElement.querySelector(".refused")?.remove();
  try {
    await postVote(query, document, vote);
    sessionStorage.setItem(voteName(query, document), String(vote));
    byId("announcement").textContent = vote === 0 ? "Vote withdrawn" : "Vote recorded";
  } catch (error) {
    show(document, before);
    refuse(error, group);
  }
}

function refuse(error, group) {
  const words = `Your vote was not kept: ${error.message}`;
  group.parentElement.append(element("span", { class: "refused", role: "alert" }, words));
  if (!isAbsent(error)) return;
  votesAreKept = false;
  for (const each of groups()) each.remove();
}
