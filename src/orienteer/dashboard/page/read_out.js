// A drawing with a read-out below it that follows pointer and arrow keys; the base of charts and histograms.

import { sharpCanvas } from "./canvas.js";
import { element } from "./elements.js";

/**
 * A figure with its canvas and its read-out; `whole` is the element for the page.
 *
 * A subclass has draw(context, width, height), follow(event) for the pointer, step(event) for the keys, and
 * point(x); null ends pointing.
 */
export class ReadOut {
  constructor({ title, height, hasCaption }) {
    this.title = title;
    this.pointed = null;
    const { canvas, redraw } = sharpCanvas((...args) => this.draw(...args), { height, label: title });
    Object.assign(this, { canvas, redraw });
    this.readOut = element("p", { class: "read-out" });
    const caption = hasCaption && element("figcaption", {}, title);
    this.whole = element("figure", { class: "chart" }, caption, canvas, this.readOut);
    canvas.addEventListener("pointermove", (event) => this.follow(event));
    canvas.addEventListener("pointerdown", (event) => this.follow(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("blur", () => this.leave());
    canvas.addEventListener("keydown", (event) => this.step(event));
  }

  /** End pointing. */
  leave() {
    this.point(null);
  }
}
