// Bars over bins, several kinds on top of each other.

import { Axis } from "./axis.js";
import { placeOf } from "./canvas.js";
import { element, fill } from "./elements.js";
import { drawFrame, drawWords } from "./frame.js";
import { colour } from "./palette.js";
import { ReadOut } from "./read_out.js";
import { count, moment, number } from "./words.js";

/**
 * A stacked histogram.
 *
 * x : arguments of Axis.
 * y : name of what is counted.
 */
export class Histogram extends ReadOut {
  constructor({ title, x = {}, y = "shots", height = 220, empty = "nothing yet", hasCaption = true }) {
    super({ title, height, hasCaption });
    Object.assign(this, { empty, edges: [], kinds: [] });
    this.x = new Axis(x);
    this.counted = y;
    this.setLog(false);
  }

  /**
   * edges : (B + 1) ends of the bins.
   * kinds : [{ name, colour, counts }] from the bottom up, (B) each; `colour` a name of the style sheet.
   */
  show(edges, kinds) {
    const whole = kinds.filter((kind) => kind.counts.length === edges.length - 1);
    // Leave out empty bins at both ends, except one on either side.
    const isThere = edges.slice(1).map((_, i) => whole.some((kind) => kind.counts[i] > 0));
    const first = Math.max(0, isThere.indexOf(true) - 1);
    const last = Math.min(isThere.length, isThere.lastIndexOf(true) + 2);
    this.edges = edges.slice(first, last + 1);
    this.kinds = whole.map((kind) => ({ ...kind, counts: kind.counts.slice(first, last) }));
    this.totals = this.edges.slice(1).map((_, i) => this.kinds.reduce((sum, kind) => sum + kind.counts[i], 0));
    const fullest = this.totals.indexOf(Math.max(...this.totals));
    const words = this.isEmpty ? this.empty : `most in ${this.rangeWords(fullest)}`;
    this.canvas.setAttribute("aria-label", `${this.title}: ${words}`);
    this.tell();
    this.redraw();
  }

  /** Show counts on a logarithmic scale, so that small ones are visible; parts of a stack then mean little. */
  setLog(isLog) {
    const kind = isLog ? { kind: "log", low: 0.5 } : { low: 0, whole: true };
    this.y = new Axis({ label: this.counted, ...kind });
    this.redraw?.();
  }

  get isEmpty() {
    return !this.kinds.length || !this.totals.some((total) => total > 0);
  }

  draw(context, width, height) {
    if (this.isEmpty) {
      drawWords(context, width, height, this.empty);
      return;
    }
    this.x.fit([this.edges], { margin: 0 });
    this.y.fit([this.totals]);
    const place = drawFrame(context, width, height, this.x, this.y);
    this.place = place;
    this.totals.forEach((_, i) => {
      const left = place.atX(this.edges[i]);
      const wide = Math.max(1, place.atX(this.edges[i + 1]) - left - 1);
      const height = (n) => (this.y.holds(n) ? place.atY(n) : place.bottom);
      let below = 0;
      for (const kind of this.kinds) {
        const top = height(below + kind.counts[i]);
        context.fillStyle = colour(kind.colour);
        context.fillRect(left, top, wide, height(below) - top);
        below += kind.counts[i];
      }
      if (i !== this.pointed) return;
      context.strokeStyle = colour("ink");
      context.lineWidth = 1.5;
      context.strokeRect(left - 0.5, height(below) - 0.5, wide + 1, place.bottom - height(below) + 1);
    });
  }

  point(bin) {
    this.pointed = bin;
    this.tell();
    this.redraw();
  }

  tell() {
    const parts = this.kinds.map((kind) => {
      const swatch = element("i", { class: "swatch" });
      swatch.style.background = `var(--${kind.colour})`;
      const n = this.pointed === null ? kind.counts.reduce((sum, value) => sum + value, 0) : kind.counts[this.pointed];
      return element("span", {}, swatch, kind.name, " ", element("b", {}, count(n)));
    });
    const where = this.pointed === null ? null : element("span", { class: "at" }, this.rangeWords(this.pointed));
    fill(this.readOut, ...parts, where);
  }

  rangeWords(bin) {
    const unit = this.x.unit ? ` ${this.x.unit}` : "";
    if (this.x.kind === "time") return `${moment(this.edges[bin])} to ${moment(this.edges[bin + 1])}`;
    return `${number(this.edges[bin], 4)} to ${number(this.edges[bin + 1], 4)}${unit}`;
  }

  follow(event) {
    if (!this.place || this.isEmpty) return;
    const x = this.x.value(placeOf(event, this.canvas)[0], this.place.left, this.place.right);
    const bin = this.edges.findIndex((edge, i) => x >= edge && x < this.edges[i + 1]);
    this.point(bin < 0 ? null : bin);
  }

  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined || this.isEmpty) return;
    event.preventDefault();
    const n = this.totals.length;
    this.point(((this.pointed ?? (by > 0 ? -1 : n)) + by + n) % n);
  }
}
