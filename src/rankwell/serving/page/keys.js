// The keyboard: `/` to the search box, arrows through the results.

import { byId } from "./elements.js";

const isTyping = (target) => target.closest("input, select, textarea, [contenteditable]") !== null;

/** The lists of titles on the page: one, or two side by side. */
function columns() {
  return [...document.querySelectorAll("#results ol")].map((list) => [...list.querySelectorAll(".title")]);
}

/** The title that an arrow key leads to, or null where it leads nowhere. */
function neighbour(key, item) {
  const all = columns();
  const column = all.findIndex((titles) => titles.some((title) => item.contains(title)));
  const row = all[column].findIndex((title) => item.contains(title));
  if (key === "ArrowDown") return all[column][row + 1] ?? null;
  if (key === "ArrowUp") return all[column][row - 1] ?? byId("query");
  const beside = all[column + (key === "ArrowRight" ? 1 : -1)] ?? [];
  const same = beside.find((title) => title.closest(".result").dataset.document === item.dataset.document);
  return same ?? beside[Math.min(row, beside.length - 1)] ?? null;
}

function move(event) {
  const { key, target } = event;
  if (!["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"].includes(key)) return;
  const item = target.closest(".result");
  let next = null;
  if (item && !target.closest(".stored")) next = neighbour(key, item);
  else if (target.id === "query" && key === "ArrowDown") next = columns()[0]?.[0] ?? null;
  if (next === null) return;
  event.preventDefault();
  next.focus();
  if (next.id !== "query") next.closest(".result").scrollIntoView({ block: "nearest" });
}

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("why").open) return;
    if (event.key === "/" && !isTyping(event.target)) {
      event.preventDefault();
      byId("query").focus();
      byId("query").select();
    } else {
      move(event);
    }
  });
}
