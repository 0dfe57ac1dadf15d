// Agreement of two independent maps, shell by shell.

import { Chart } from "./chart.js";
import { element, fill } from "./elements.js";
import { getJson, oneAtATime } from "./server.js";
import { number } from "./words.js";

/** Fourier shell correlation of a run, with its thresholds and what it means in words. */
export class ShellCorrelation {
  constructor(run) {
    this.run = run;
    this.refresh = oneAtATime(() => this.load());
    this.chart = new Chart({
      title: "Fourier shell correlation",
      x: { label: "q = 1/d", unit: "1/Å", low: 0 },
      y: { label: "correlation", low: -0.1, high: 1.02 },
      height: 260,
      tellsLast: false,
      empty: "no halves to compare yet",
      also: (q) => (q > 0 ? `, d ${number(1 / q, 3)} Å` : ""),
    });
    this.words = element("p", {});
    this.whole = element("div", {}, this.chart.whole, this.words);
  }

  async load() {
    const told = await getJson(`/api/runs/${this.run}/fsc`);
    this.chart.marks = marks(told.thresholds);
    this.chart.show((told.curves ?? []).map((curve) => ({ name: curve.name, x: curve.q_inv_A, y: curve.value })));
    fill(this.words, told.words ?? (told.resolution_A ? `Resolution ${number(told.resolution_A)} Å.` : ""));
  }
}

function marks(thresholds) {
  const pairs = Array.isArray(thresholds)
    ? thresholds.map((one) => (typeof one === "number" ? [String(one), one] : [one.name, one.value]))
    : Object.entries(thresholds ?? {});
  return pairs.filter(([, value]) => Number.isFinite(value)).map(([words, value]) => ({ words, value }));
}
