// Axes: from values to places on the screen, with ticks at round numbers; linear, logarithmic, or times of day.

import { clock, number } from "./words.js";

/**
 * One axis of a chart.
 *
 * label, unit : texts beside the axis.
 * kind : "linear", "log" or "time" (s since 1970).
 * low, high : fixed ends; an end that is not given follows the values.
 * whole : ticks at whole numbers only.
 */
export class Axis {
  constructor({ label = "", unit = "", kind = "linear", low = null, high = null, whole = false } = {}) {
    Object.assign(this, { label, unit, kind, fixedLow: low, fixedHigh: high, whole, low: 0, high: 1 });
  }

  get isLog() {
    return this.kind === "log";
  }

  get words() {
    return this.unit ? `${this.label} (${this.unit})` : this.label;
  }

  /** Whether a value can be shown on this axis. */
  holds(value) {
    return value !== null && Number.isFinite(value) && (!this.isLog || value > 0);
  }

  /** Choose the ends so that all values (lists of lists) can be seen. */
  fit(lists, { margin = 0.05 } = {}) {
    let [low, high] = [Infinity, -Infinity];
    for (const list of lists) {
      for (const value of list) {
        if (!this.holds(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (low > high) [low, high] = this.isLog ? [1, 10] : [0, 1];
    if (this.isLog) {
      const wider = Math.max((high / low) ** margin, low === high ? 2 : 1.02);
      [low, high] = [low / wider, high * wider];
    } else {
      const wider = high > low ? margin * (high - low) : Math.max(0.5 * Math.abs(high), 0.5);
      [low, high] = [low - wider, high + wider];
    }
    this.low = this.fixedLow ?? low;
    this.high = this.fixedHigh ?? high;
    if (!(this.high > this.low)) this.high = this.isLog ? 10 * this.low : this.low + 1;
    return this;
  }

  /** The place of a value between `from` and `to`, in units of the canvas. */
  place(value, from, to) {
    const at = this.isLog
      ? Math.log(value / this.low) / Math.log(this.high / this.low)
      : (value - this.low) / (this.high - this.low);
    return from + at * (to - from);
  }

  /** The value at a place. */
  value(place, from, to) {
    const at = (place - from) / (to - from);
    return this.isLog ? this.low * (this.high / this.low) ** at : this.low + at * (this.high - this.low);
  }

  /** About n ticks as [value, words]. */
  ticks(n) {
    if (this.isLog) return this.logTicks(n);
    return this.kind === "time" ? this.timeTicks(n) : this.evenTicks(n);
  }

  timeTicks(n) {
    const step = timeStep((this.high - this.low) / n);
    // Round times are round in local time.
    const shift = 60 * new Date(1000 * this.low).getTimezoneOffset();
    const made = [];
    for (let i = Math.ceil((this.low - shift) / step); i * step + shift <= this.high; i++) {
      made.push([i * step + shift, clock(i * step + shift, step < 60)]);
    }
    return made;
  }

  logTicks(n) {
    const decades = Math.log10(this.high / this.low);
    // Over less than a decade, ticks at even steps are easier to read.
    if (decades < 1) return this.evenTicks(n);
    const made = [];
    const every = Math.max(1, Math.ceil(decades / (n + 1)));
    const factors = decades > n ? [1] : decades > 0.4 * n ? [1, 3] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(this.low)); power <= Math.log10(this.high); power++) {
      if (power % every) continue;
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= this.low && value <= this.high) made.push([value, number(value, 1)]);
      }
    }
    return made;
  }

  evenTicks(n) {
    const step = roundStep((this.high - this.low) / n, this.whole);
    const made = [];
    for (let i = Math.ceil(this.low / step - 1e-9); i * step <= this.high + 1e-9 * step; i++) {
      made.push([i * step || 0, fixed(i * step, step)]);
    }
    return made;
  }
}

// Ticks may be closer than asked for by this factor.
const ABOUT = 0.85;

function roundStep(rough, whole) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= ABOUT * rough);
  return whole ? Math.max(1, Math.round(step)) : step;
}

function timeStep(rough) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  return steps.find((step) => step >= ABOUT * rough) ?? 86400 * Math.ceil(rough / 86400);
}

function fixed(value, step) {
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (decimals > 6 || Math.abs(value) >= 1e6) return number(value, 3);
  const words = Math.abs(value).toFixed(decimals).replace(/\B(?=(\d{3})+(?!\d))/g, decimals ? "" : "\u2009");
  return (value < 0 && Number(words.replace(/\u2009/g, "")) !== 0 ? "−" : "") + words;
}
