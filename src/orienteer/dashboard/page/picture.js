// An image of numbers in colours: frames of the detector, powder sums, slices of a volume, ranks over time.

import { placeOf, sharpCanvas } from "./canvas.js";
import { element } from "./elements.js";
import { drawWords } from "./frame.js";
import { colour, MAP } from "./palette.js";
import { number } from "./words.js";

/**
 * The pixels of an image, one for each value.
 *
 * values : rows * columns numbers, row after row; those that are not finite stay transparent.
 * low, high : values at the ends of the colour table.
 * isLog : colours follow the logarithm of values + 1.
 * Returns a small canvas, to be drawn at any size.
 */
export function paint(values, rows, columns, { low, high, isLog = false, table = MAP }) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const bend = isLog ? (value) => Math.log1p(Math.max(0, value - low)) : (value) => value - low;
  const scale = 255 / Math.max(bend(high), 1e-30);
  for (let i = 0; i < rows * columns; i++) {
    if (!Number.isFinite(values[i])) continue;
    const shade = 3 * Math.min(255, Math.max(0, Math.round(bend(values[i]) * scale)));
    image.data[4 * i] = table[shade];
    image.data[4 * i + 1] = table[shade + 1];
    image.data[4 * i + 2] = table[shade + 2];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The smallest and the `share`-quantile of the finite values, so that hot pixels do not make the rest dark. */
export function rangeOf(values, share = 0.999) {
  const step = Math.max(1, Math.floor(values.length / 50000));
  const some = [];
  for (let i = 0; i < values.length; i += step) if (Number.isFinite(values[i])) some.push(values[i]);
  if (!some.length) return [0, 1];
  some.sort((a, b) => a - b);
  const high = some[Math.min(some.length - 1, Math.floor(share * some.length))];
  return [some[0], high > some[0] ? high : some[some.length - 1] > some[0] ? some[some.length - 1] : some[0] + 1];
}

/** The same image with its rows from the top down; rows of a detector go from the lowest y up. */
export function upright(values, rows, columns) {
  const turned = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    turned.set(values.subarray(row * columns, (row + 1) * columns), (rows - 1 - row) * columns);
  }
  return turned;
}

/** An image that shows the value under the pointer. */
export class Picture {
  constructor({ title, unit = "", height = null, empty = "nothing yet" }) {
    Object.assign(this, { title, unit, empty, values: null, isLog: true, at: null });
    const { canvas, redraw } = sharpCanvas((...args) => this.draw(...args), {
      height: height ?? ((width) => (this.values ? Math.min(width * (this.rows / this.columns), 560) : 180)),
      label: title,
    });
    Object.assign(this, { canvas, redraw });
    this.readOut = element("p", { class: "read-out" });
    this.whole = element("figure", { class: "chart" }, canvas, this.readOut);
    canvas.addEventListener("pointermove", (event) => this.follow(event));
    canvas.addEventListener("pointerdown", (event) => this.follow(event));
    canvas.addEventListener("pointerleave", () => this.tell(null));
  }

  /** values : rows * columns; NaN where there is nothing. */
  show(values, rows, columns) {
    Object.assign(this, { values, rows, columns });
    this.range = rangeOf(values);
    this.repaint();
  }

  repaint() {
    if (!this.values) return;
    const [low, high] = this.range;
    this.painted = paint(this.values, this.rows, this.columns, { low, high, isLog: this.isLog });
    // Keep showing the pixel under the pointer when the image is updated.
    this.tell(this.at);
    this.redraw();
  }

  draw(context, width, height) {
    if (!this.values) {
      drawWords(context, width, height, this.empty);
      return;
    }
    const scale = Math.min(width / this.columns, height / this.rows);
    const [wide, tall] = [scale * this.columns, scale * this.rows];
    const [left, top] = [(width - wide) / 2, (height - tall) / 2];
    this.place = { left, top, scale };
    context.fillStyle = colour("masked");
    context.fillRect(left, top, wide, tall);
    context.imageSmoothingEnabled = scale < 1;
    context.drawImage(this.painted, left, top, wide, tall);
  }

  follow(event) {
    if (!this.place) return;
    const [x, y] = placeOf(event, this.canvas);
    const column = Math.floor((x - this.place.left) / this.place.scale);
    const row = Math.floor((y - this.place.top) / this.place.scale);
    const isOutside = row < 0 || column < 0 || row >= this.rows || column >= this.columns;
    this.tell(isOutside ? null : [row, column]);
  }

  tell(at) {
    this.at = at;
    if (!this.values) return;
    if (!at) {
      const [low, high] = this.range;
      const scale = this.isLog ? ", logarithmic" : "";
      this.readOut.textContent = `colours from ${number(low)} to ${number(high)} ${this.unit}${scale}`;
      return;
    }
    const value = this.values[at[0] * this.columns + at[1]];
    const words = Number.isFinite(value) ? `${number(value, 4)} ${this.unit}` : "masked";
    this.readOut.textContent = `x ${at[1]}, y ${this.rows - 1 - at[0]}: ${words}`;
  }
}
