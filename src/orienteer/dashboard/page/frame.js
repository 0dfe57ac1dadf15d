// The frame of a chart: axes, ticks, grid and labels around the area of the data.

import { font } from "./canvas.js";
import { colour } from "./palette.js";

/**
 * Draw axes on a canvas.
 *
 * x, y : Axis, fitted.
 * Returns the area of the data: { left, right, top, bottom, atX, atY } in units of the canvas.
 */
export function drawFrame(context, width, height, x, y) {
  const rows = y.ticks(Math.max(2, Math.floor(height / 48)));
  context.font = font(12);
  const widest = Math.max(...rows.map(([, words]) => context.measureText(words).width), 12);
  const place = { left: Math.ceil(widest) + 30, right: width - 14, top: 10, bottom: height - 42 };
  const columns = xTicks(context, x, place.right - place.left);
  place.atX = (value) => x.place(value, place.left, place.right);
  place.atY = (value) => y.place(value, place.bottom, place.top);

  context.strokeStyle = colour("grid");
  context.fillStyle = colour("quiet");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [value, words] of rows) {
    const at = Math.round(place.atY(value)) + 0.5;
    line(context, place.left, at, place.right, at);
    context.fillText(words, place.left - 6, at);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const [value, words] of columns) {
    const at = Math.round(place.atX(value)) + 0.5;
    line(context, at, place.top, at, place.bottom);
    const half = context.measureText(words).width / 2;
    context.fillText(words, Math.max(half + 2, Math.min(at, width - half - 2)), place.bottom + 6);
  }
  context.strokeStyle = colour("line");
  line(context, place.left, place.bottom + 0.5, place.right, place.bottom + 0.5);
  context.fillStyle = colour("ink");
  context.fillText(x.words, (place.left + place.right) / 2, height - 17);
  context.save();
  context.translate(8, (place.top + place.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textBaseline = "middle";
  context.fillText(y.words, 0, 0);
  context.restore();
  return place;
}

/** Ticks whose labels fit beside each other: times with seconds need more room. */
function xTicks(context, x, wide) {
  const fits = (room) => x.ticks(Math.max(2, Math.floor(wide / room)));
  const near = fits(60);
  const widest = Math.max(...near.map(([, words]) => context.measureText(words).width), 0);
  return near.length * (widest + 14) > wide ? fits(widest + 24) : near;
}

/** Say why nothing is drawn. */
export function drawWords(context, width, height, words) {
  context.font = font(14);
  context.fillStyle = colour("quiet");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(words, width / 2, height / 2, width - 20);
}

/** A straight line. */
export function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
