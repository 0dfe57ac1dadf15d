// Large numbers, and tables of the contents of a file.

import { element, fill } from "./elements.js";

/** Large numbers side by side; readable from the other end of a control room. */
export class BigNumbers {
  constructor() {
    this.whole = element("dl", { class: "big" });
    this.shown = "";
  }

  /** numbers : [{ words, value, more }], value and more as text. */
  show(numbers) {
    const key = JSON.stringify(numbers);
    if (key === this.shown) return;
    this.shown = key;
    fill(this.whole, numbers.map(({ words, value, more }) => {
      const told = element("dd", {}, value, more ? element("small", {}, more) : null);
      return element("div", { "data-number": words }, element("dt", {}, words), told);
    }));
  }
}

/** A table of names and values of any depth: sections become headings. */
export function facts(told, depth = 0) {
  const entries = Object.entries(told ?? {});
  const plain = entries.filter(([, value]) => !isSection(value));
  const sections = entries.filter(([, value]) => isSection(value));
  const rows = plain.map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, words(value))));
  return element(
    "div", { class: "facts" },
    rows.length ? element("table", {}, element("tbody", {}, rows)) : null,
    sections.map(([name, value]) => [element(depth ? "h4" : "h3", {}, name), facts(value, depth + 1)]),
  );
}

const isSection = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function words(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return String(Number(value.toPrecision(8)));
  if (Array.isArray(value)) return value.map(words).join(", ");
  return String(value);
}
