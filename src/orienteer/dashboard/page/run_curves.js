// The curves of a run, iteration by iteration; all are read out at the same iteration.

import { Chart, Link } from "./chart.js";
import { element } from "./elements.js";
import { getJson, oneAtATime } from "./server.js";
import { number } from "./words.js";

// If both halves choose the same pose of the grid, the angle is 0 up to rounding.
const SMALLEST_deg = 0.01;
const x = { label: "iteration", whole: true };

/** Likelihood, sentinels, resolution and other numbers of the steps of a run. */
export class RunCurves {
  constructor(run) {
    this.run = run;
    this.columns = { iteration: [] };
    this.last = null;
    this.refresh = oneAtATime(() => this.load());
    const link = new Link();
    const chart = (title, y, more = {}) => new Chart({ title, x, y, link, ...more });
    this.likelihood = chart("log-likelihood", { label: "ln P of a frame", unit: "nats" });
    const angle = { label: "median angle", unit: "°", kind: "log" };
    this.agreement = chart("sentinels: angle between the halves' poses", angle);
    const marks = [{ value: 0, words: "nothing but noise below" }];
    this.gain = chart("sentinels: gain over the radial mean", { label: "gain", unit: "nats" }, { marks });
    this.resolution = chart("resolution", { label: "full period", unit: "Å", kind: "log" });
    this.correlation = chart("correlation between the halves", { label: "mean over shells", low: 0, high: 1 });
    this.change = chart("change of the model", { label: "relative rms", kind: "log" });
    this.perplexity = chart("poses that a frame is spread over", { label: "perplexity", kind: "log" });
    this.temperature = chart("inverse temperature", { label: "β", kind: "log" });
    this.seconds = chart("time of an iteration", { label: "time", unit: "s", low: 0 });
    const main = [this.likelihood, this.agreement, this.gain, this.resolution];
    const others = [this.correlation, this.change, this.perplexity, this.temperature, this.seconds];
    this.whole = element("div", { class: "charts" }, ...main.map((one) => one.whole));
    const more = element("div", { class: "charts" }, ...others.map((one) => one.whole));
    this.more = element("details", {}, element("summary", {}, "More curves"), more);
  }

  async load() {
    const held = this.columns.iteration.at(-1) ?? 0;
    let told = await getJson(`/api/runs/${this.run}/steps`, { after: held });
    // A run that has gone back to a checkpoint repeats the iterations after it.
    if (held && (told.last?.iteration ?? 0) < held) {
      this.columns = { iteration: [] };
      told = await getJson(`/api/runs/${this.run}/steps`, { after: 0 });
    }
    this.last = told.last ?? null;
    this.append(told);
    this.draw();
  }

  append(told) {
    const before = this.columns.iteration.length;
    const grown = told.iteration?.length ?? 0;
    const added = Object.keys(told).filter((name) => Array.isArray(told[name]));
    const names = new Set([...Object.keys(this.columns), ...added]);
    for (const name of names) {
      const old = this.columns[name] ?? new Array(before).fill(null);
      this.columns[name] = old.concat(told[name] ?? new Array(grown).fill(null));
    }
  }

  draw() {
    const curve = (name, key, more = {}) => ({ name, x: this.columns.iteration, y: this.columns[key] ?? [], ...more });
    this.likelihood.show([curve("log-likelihood", "log_likelihood")]);
    const angles = (this.columns.sentinel_agreement_deg ?? []).map((angle) => angle && Math.max(angle, SMALLEST_deg));
    this.agreement.show([{ ...curve("agree to", ""), y: angles, joined: true, words: (angle) => angleWords(angle) }]);
    this.gain.show([curve("gain", "sentinel_gain_nats", { joined: true })]);
    this.resolution.show([
      curve("halves agree to", "agrees_to_A", { joined: true }),
      curve("data reach to", "resolution_A", { joined: true }),
    ]);
    this.correlation.show([curve("correlation", "half_correlation", { joined: true })]);
    this.change.show([curve("change", "change")]);
    this.perplexity.show([curve("perplexity", "perplexity")]);
    this.temperature.show([curve("β", "inverse_temperature")]);
    this.seconds.show([curve("time", "seconds")]);
  }
}

/** An angle in degrees, without digits that mean nothing. */
export function angleWords(angle_deg) {
  return angle_deg !== null && angle_deg !== undefined && angle_deg <= SMALLEST_deg ? "< 0.01" : number(angle_deg, 3);
}
