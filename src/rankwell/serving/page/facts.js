// Facts about the index and the rankers.

import { documentText, element } from "./elements.js";
import { bytes, count } from "./numbers.js";

const names = (list) =>
  (list ?? []).map((each) => (typeof each === "string" ? each : (each.name ?? JSON.stringify(each)))).join(", ");

function indexList(index) {
  const rows = [
    ["documents", count(index.documents)],
    ["segments", count(index.segments)],
    ["size", typeof index.bytes === "number" ? bytes(index.bytes) : ""],
    ["language", index.language],
    ["streams", names(index.streams)],
    ["numbers", names(index.statics)],
    ["keywords", names(index.keywords)],
    ["generation", index.generation],
  ].filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return element(
    "dl",
    {},
    ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, documentText(String(value)))]),
  );
}

const shardText = (shard) =>
  `${count(shard.documents)} documents at ${shard.nodes.map((node) => `${node.address} (${node.state})`).join(", ")}`;

function shardList(shards) {
  return element(
    "details",
    {},
    element("summary", {}, `${count(shards.length)} shards`),
    element("ol", {}, ...shards.map((shard) => element("li", {}, documentText(shardText(shard))))),
  );
}

function rankerRow(ranker) {
  const notes = [ranker.default ? "default" : "", ranker.cascade ? "cascade" : ""].filter(Boolean).join(", ");
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, documentText(ranker.name)),
    element("td", {}, ranker.kind ?? ""),
    element("td", { class: "number" }, ranker.features ? count(ranker.features) : "–"),
    element("td", {}, notes),
  );
}

function rankerTable(rankers) {
  const heads = ["Ranker", "Kind", "Features", "Notes"].map((head) => element("th", { scope: "col" }, head));
  return element(
    "table",
    {},
    element("caption", { class: "hidden" }, "Rankers"),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...rankers.map(rankerRow)),
  );
}

export const factsOf = (index, rankers) => [
  index ? indexList(index) : "",
  index?.shards?.length > 0 ? shardList(index.shards) : "",
  rankers.length > 0 ? rankerTable(rankers) : "",
];
