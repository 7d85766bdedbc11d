// One answer: what was found, how long it took and where the time went, whether it is whole.

import { PAGE_SIZE } from "./address.js";
import { bar, element } from "./elements.js";
import { count, milliseconds, plural } from "./numbers.js";

/** The line over the results, which screen readers announce. */
export function summaryOf(answer, offset) {
  const n = answer.results.length;
  const found = plural(answer.n_matches, "match", "matches");
  if (n === 0 && offset > 0) return `There are no results after the first ${count(offset)}.`;
  if (n === 0) return answer.degraded ? `No results yet for “${answer.query}”` : `Nothing matches “${answer.query}”`;
  const part = answer.n_matches > n ? `, ${count(offset + 1)} to ${count(offset + n)} shown` : "";
  return `${found}${part}`;
}

/** Notes on an answer that is not whole, and why. */
export function noticesOf(answer) {
  const { shards, answered } = answer.coverage ?? { shards: 1, answered: 1 };
  const missing = answered < shards ? `${count(answered)} of ${count(shards)} shards answered. ` : "";
  if (!answer.degraded && !missing) return [];
  const reason = answer.degraded?.text || answer.degraded?.reason || "";
  return [element("p", { class: "notice partial" }, element("strong", {}, "Partial answer:"), ` ${missing}${reason}`)];
}

/** Stages with their shares of the time; what no stage claims is "other". */
function stagesOf(answer) {
  const stages = Object.entries(answer.stages_ms ?? {});
  const claimed = stages.reduce((sum, [, time]) => sum + time, 0);
  const rest = answer.took_ms - claimed;
  if (rest > 0.005 * answer.took_ms) stages.push(["other", rest]);
  const whole = Math.max(answer.took_ms, claimed) || 1;
  return stages.map(([name, time]) => ({ name, time, share: time / whole }));
}

/** The time an answer took: a bar by stage with its legend in words. */
export function timingOf(answer) {
  const stages = stagesOf(answer);
  const work = [`${milliseconds(answer.took_ms)}`];
  if (answer.cached) work.push("from the cache");
  if (answer.n_candidates) work.push(plural(answer.n_candidates, "candidate"));
  if (answer.n_ranked) work.push(`${count(answer.n_ranked)} ranked by ${answer.ranker ?? "BM25"}`);
  return element(
    "div",
    { class: "timing" },
    element("p", { class: "took" }, work.join(" · ")),
    element("div", { class: "stages", "aria-hidden": "true" }, ...stages.map(({ share }) => bar(share, "stage"))),
    element(
      "ul",
      { class: "legend", "aria-label": "Time by stage" },
      ...stages.map(({ name, time }) =>
        element("li", {}, element("span", { class: "name" }, name), ` ${milliseconds(time)}`),
      ),
    ),
  );
}

/** Buttons to the pages before and after; none where there is one page. */
export function pagingOf(answer, offset, goTo) {
  // A ranker orders its candidates and no more; BM25 alone orders all matches.
  const reachable = answer.ranker === null ? answer.n_matches : Math.min(answer.n_matches, answer.n_candidates);
  const pages = Math.ceil(reachable / PAGE_SIZE);
  if (offset === 0 && pages <= 1) return [];
  const step = (label, target, allowed) =>
    element("button", { type: "button", disabled: !allowed, click: () => goTo(target) }, label);
  return [
    step("← Previous", Math.max(offset - PAGE_SIZE, 0), offset > 0),
    element("span", { "aria-current": "page" }, `Page ${count(Math.floor(offset / PAGE_SIZE) + 1)} of ${count(pages)}`),
    step("Next →", offset + PAGE_SIZE, offset + PAGE_SIZE < reachable),
  ];
}
