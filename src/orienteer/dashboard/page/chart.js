// Curves over one axis, with a read-out under the pointer or the arrow keys; charts can be linked and read together.

import { Axis } from "./axis.js";
import { placeOf } from "./canvas.js";
import { element, fill } from "./elements.js";
import { drawFrame, drawWords, line } from "./frame.js";
import { colour, curve } from "./palette.js";
import { ReadOut } from "./read_out.js";
import { clock, number } from "./words.js";

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [12, 3], [4, 2]];

/** Charts with the same x axis: when one is pointed at, all show their values there. */
export class Link {
  charts = new Set();

  point(x) {
    for (const chart of this.charts) chart.point(x);
  }
}

/**
 * A chart of curves.
 *
 * x, y : arguments of Axis.
 * curves : [{ name, x, y, unit, bars, joined, words }], lists of equal length with null for missing values; `bars`
 *     is the width of steps that are filled from 0 up, `joined` draws across missing values, `words(value)` is
 *     the read-out.
 * marks : [{ value, words }], horizontal lines such as a threshold.
 * tellsLast : whether the last value is shown while nobody points at another; it means little on an axis of q.
 * hasCaption : whether the title is shown above the chart, too.
 * also(x) : more text for the read-out at a place on the x axis.
 */
export class Chart extends ReadOut {
  constructor({
    title, x = {}, y = {}, height = 220, link = null, marks = [], empty = "nothing yet", also = null,
    tellsLast = true, hasCaption = true,
  }) {
    super({ title, height, hasCaption });
    Object.assign(this, { marks, empty, also, tellsLast, curves: [] });
    this.x = new Axis(x);
    this.y = new Axis(y);
    this.link = link ?? new Link();
    this.link.charts.add(this);
  }

  leave() {
    this.link.point(null);
  }

  /** Show these curves. */
  show(curves) {
    this.curves = curves.filter((one) => one.y.some((value) => this.y.holds(value)));
    const last = this.curves.map((one) => `${one.name} ${number(lastOf(one.y), 4)}`).join(", ");
    this.canvas.setAttribute("aria-label", `${this.title}: ${last || this.empty}`);
    this.tell();
    this.redraw();
  }

  /** Point at a place of the x axis; null ends pointing. */
  point(x) {
    this.pointed = x;
    this.tell();
    this.redraw();
  }

  draw(context, width, height) {
    if (!this.curves.length) {
      drawWords(context, width, height, this.empty);
      return;
    }
    const places = this.curves.map((one) => (one.bars ? [...one.x, one.x.at(-1) + one.bars] : one.x));
    this.x.fit(places, { margin: this.x.kind === "log" ? 0.02 : 0.01 });
    const marked = this.marks.map((mark) => mark.value);
    this.y.fit([...this.curves.map((one) => one.y), marked]);
    const place = drawFrame(context, width, height, this.x, this.y);
    this.place = place;
    this.drawMarks(context, place);
    context.save();
    context.beginPath();
    context.rect(place.left, place.top - 2, place.right - place.left, place.bottom - place.top + 3);
    context.clip();
    this.curves.forEach((one, index) => {
      if (one.bars) this.drawSteps(context, place, one, index);
      else this.drawCurve(context, place, one, index);
    });
    if (this.pointed !== null) this.drawPointed(context, place);
    context.restore();
  }

  drawMarks(context, place) {
    context.strokeStyle = context.fillStyle = colour("quiet");
    context.setLineDash([3, 3]);
    context.textBaseline = "bottom";
    for (const { value, words } of this.marks) {
      const at = place.atY(value);
      line(context, place.left, at, place.right, at);
      // The text is placed on the side that the curves leave free.
      const away = (y) => Math.min(...this.curves.map((one) => Math.abs(place.atY(y(one)) - at)));
      const isLeft = away((one) => firstOf(one.y)) > away((one) => lastOf(one.y));
      context.textAlign = isLeft ? "left" : "right";
      context.fillText(words, isLeft ? place.left + 4 : place.right - 4, at - 2);
    }
    context.setLineDash([]);
  }

  drawCurve(context, place, one, index) {
    context.strokeStyle = context.fillStyle = one.colour ? colour(one.colour) : curve(index);
    context.lineWidth = 2;
    context.setLineDash(DASHES[index % DASHES.length]);
    context.beginPath();
    let isDown = false;
    let drawn = 0;
    one.y.forEach((value, i) => {
      const holds = this.y.holds(value) && this.x.holds(one.x[i]);
      if (holds) {
        if (isDown) context.lineTo(place.atX(one.x[i]), place.atY(value));
        else context.moveTo(place.atX(one.x[i]), place.atY(value));
        drawn += 1;
      }
      // Values that exist only now and then are joined; a gap in values that should exist stays visible.
      isDown = holds || (isDown && one.joined);
    });
    context.stroke();
    context.setLineDash([]);
    // Few values, or a single one, are drawn as points; but not on dashed lines, where dots would be confusing.
    if (drawn > 1 && (drawn > 40 || index % DASHES.length)) return;
    one.y.forEach((value, i) => {
      if (this.y.holds(value) && this.x.holds(one.x[i])) dot(context, place.atX(one.x[i]), place.atY(value), 2.5);
    });
  }

  drawSteps(context, place, one, index) {
    context.fillStyle = one.colour ? colour(one.colour) : curve(index);
    one.y.forEach((value, i) => {
      if (!this.y.holds(value)) return;
      const left = place.atX(one.x[i]);
      const wide = Math.max(1, place.atX(one.x[i] + one.bars) - left - 0.5);
      context.fillRect(left, place.atY(value), wide, place.bottom - place.atY(value));
    });
  }

  drawPointed(context, place) {
    const at = place.atX(this.pointed);
    context.strokeStyle = colour("ink");
    context.lineWidth = 1;
    line(context, at, place.top, at, place.bottom);
    this.curves.forEach((one, index) => {
      const i = nearest(one, this.pointed, this.y);
      if (i < 0 || one.bars) return;
      context.fillStyle = one.colour ? colour(one.colour) : curve(index);
      dot(context, place.atX(one.x[i]), place.atY(one.y[i]), 4.5);
    });
  }

  /** The read-out: values at the pointer, otherwise the last ones; it is also the legend. */
  tell() {
    const parts = this.curves.map((one, index) => {
      const i = this.pointed === null ? one.y.length - 1 : nearest(one, this.pointed, this.y);
      const value = this.pointed === null ? lastOf(one.y) : one.y[i];
      const swatch = element("i", { class: "swatch" });
      swatch.style.background = one.colour ? `var(--${one.colour})` : `var(--curve-${1 + (index % 6)})`;
      if (this.pointed === null && !this.tellsLast) return element("span", {}, swatch, one.name);
      const unit = one.unit ?? this.y.unit;
      const words = one.words ? one.words(value ?? null) : number(value ?? null, 4);
      return element("span", {}, swatch, one.name, " ", element("b", {}, words), unit ? ` ${unit}` : "");
    });
    fill(this.readOut, ...parts, this.pointed === null ? null : element("span", { class: "at" }, this.whereWords()));
  }

  whereWords() {
    if (this.x.kind === "time") return `at ${clock(this.pointed)}`;
    const unit = this.x.unit ? ` ${this.x.unit}` : "";
    return `at ${this.x.label} ${number(this.pointed, 4)}${unit}${this.also ? this.also(this.pointed) : ""}`;
  }

  follow(event) {
    if (!this.place || !this.curves.length) return;
    const [at] = placeOf(event, this.canvas);
    this.link.point(this.snapped(this.x.value(at, this.place.left, this.place.right)));
  }

  snapped(x) {
    const i = nearest(this.curves[0], x, this.y);
    return i < 0 ? x : this.curves[0].x[i];
  }

  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") this.link.point(null);
    if (by === undefined || !this.curves.length) return;
    event.preventDefault();
    const { x } = this.curves[0];
    const now = this.pointed === null ? x.length : nearest(this.curves[0], this.pointed, this.y);
    this.link.point(x[Math.min(x.length - 1, Math.max(0, now + by))]);
  }
}

function nearest(one, x, axis) {
  let [best, distance] = [-1, Infinity];
  one.x.forEach((value, i) => {
    const away = Math.abs(value - x);
    if (away < distance && axis.holds(one.y[i])) [best, distance] = [i, away];
  });
  return best;
}

const firstOf = (values) => values.find((value) => value !== null && Number.isFinite(value)) ?? null;
const lastOf = (values) => values.findLast((value) => value !== null && Number.isFinite(value)) ?? null;

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}
