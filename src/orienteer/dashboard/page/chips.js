// Small coloured labels: states of runs, tags.

import { element } from "./elements.js";

const GOOD = ["working", "running", "finished", "converged", "done"];
const BAD = ["failed", "damaged", "error", "lost"];
const MOVING = ["working", "running"];

/** The state of a run; the colour only repeats the word. */
export function statusChip(status) {
  const words = status || "unknown";
  const has = (list) => list.some((word) => words.includes(word));
  const look = has(BAD) ? "bad" : has(MOVING) ? "moving" : has(GOOD) ? "good" : "";
  return element("span", { class: `chip ${look}`, "data-status": words }, words);
}

/** A tag; with `remove` it has a button that removes it. */
export function tagChip(tag, remove = null) {
  const label = `Remove the tag ${tag}`;
  const cross = remove && element("button", { type: "button", "aria-label": label, onclick: remove }, "×");
  return element("span", { class: "chip tag" }, tag, cross);
}
