// Viewing directions: the beam in the frame of the particle, on an equal-area map of the sphere.

import { placeOf, sharpCanvas } from "./canvas.js";
import { element } from "./elements.js";
import { drawWords, line } from "./frame.js";
import { colour, MAP } from "./palette.js";
import { count, number } from "./words.js";

/** Latitude's auxiliary angle of Mollweide's projection: 2 a + sin 2a = pi sin(latitude), by Newton. */
export function auxiliary(sine) {
  let angle = Math.asin(Math.max(-1, Math.min(1, sine)));
  for (let i = 0; i < 30; i++) {
    const slope = 2 + 2 * Math.cos(2 * angle);
    if (slope < 1e-9) break;
    angle -= (2 * angle + Math.sin(2 * angle) - Math.PI * sine) / slope;
  }
  return angle;
}

const CORNERS = 12;

/** A map of directions in Mollweide's projection. */
export class Coverage {
  constructor() {
    this.told = null;
    const { canvas, redraw } = sharpCanvas((...args) => this.draw(...args), {
      height: (width) => Math.min(0.52 * width, 360),
      label: "Directions of the beam in the frame of the particle",
    });
    Object.assign(this, { canvas, redraw });
    this.readOut = element("p", { class: "read-out" }, "");
    const words = "directions of the beam in the frame of the particle, equal areas (1: even)";
    this.whole = element("figure", { class: "chart" }, element("figcaption", {}, words), canvas, this.readOut);
    canvas.addEventListener("pointermove", (event) => this.follow(event));
    canvas.addEventListener("pointerleave", () => this.summarise());
  }

  /** told : longitudes, latitudes, counts relative to even coverage, n_frames; bands of equal area from the south. */
  show(told) {
    this.told = told;
    const { counts } = told;
    this.mean = counts.reduce((sum, n) => sum + n, 0) / Math.max(1, counts.length);
    const sorted = [...counts].sort((a, b) => a - b);
    this.high = Math.max(2, this.mean ? sorted[Math.floor(0.99 * (sorted.length - 1))] / this.mean : 2);
    this.summarise();
    this.redraw();
  }

  summarise() {
    if (!this.told) return;
    const seen = this.told.counts.filter((n) => n > 0).length;
    const share = number((100 * seen) / this.told.counts.length, 3);
    this.readOut.textContent = this.mean
      ? `${count(this.told.n_frames)} frames; ${share} % of the sphere seen; colours from 0 to ${number(this.high, 2)}`
      : "";
  }

  draw(context, width, height) {
    if (!this.told || !this.mean) {
      drawWords(context, width, height, "nothing yet");
      return;
    }
    const { latitudes, longitudes, counts } = this.told;
    const tall = Math.min(height / 2 - 6, (width / 2 - 8) / 2);
    const place = { x: width / 2, y: height / 2, wide: 2 * tall, tall };
    this.place = place;
    const at = (sine, longitude) => {
      const angle = auxiliary(sine);
      return [place.x + place.wide * (longitude / Math.PI) * Math.cos(angle), place.y - place.tall * Math.sin(angle)];
    };
    for (let band = 0; band < latitudes; band++) {
      const [low, high] = [-1 + (2 * band) / latitudes, -1 + (2 * (band + 1)) / latitudes];
      for (let cell = 0; cell < longitudes; cell++) {
        const [west, east] = [cell, cell + 1].map((i) => -Math.PI + (2 * Math.PI * i) / longitudes);
        const shade = 3 * Math.min(255, Math.round((255 * counts[band * longitudes + cell]) / (this.mean * this.high)));
        context.fillStyle = context.strokeStyle = `rgb(${MAP[shade]},${MAP[shade + 1]},${MAP[shade + 2]})`;
        context.beginPath();
        // The sides of a cell are curved, so each is drawn with a few corners.
        const sides = [];
        const between = (i) => Math.sin(Math.asin(low) + ((Math.asin(high) - Math.asin(low)) * i) / CORNERS);
        for (let i = 0; i <= CORNERS; i++) sides.push(at(between(i), east));
        for (let i = CORNERS; i >= 0; i--) sides.push(at(between(i), west));
        sides.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
        context.closePath();
        context.fill();
        context.lineWidth = 0.6;
        context.stroke();
      }
    }
    context.strokeStyle = colour("cross-hair");
    context.globalAlpha = 0.35;
    for (const latitude of [-60, -30, 0, 30, 60]) {
      const [east, y] = at(Math.sin((latitude * Math.PI) / 180), Math.PI);
      const half = east - place.x;
      line(context, place.x - half, y, place.x + half, y);
    }
    context.globalAlpha = 1;
  }

  follow(event) {
    if (!this.place) return;
    const [x, y] = placeOf(event, this.canvas);
    const up = (this.place.y - y) / this.place.tall;
    if (Math.abs(up) >= 1) return;
    const angle = Math.asin(up);
    const longitude = (Math.PI * (x - this.place.x)) / (this.place.wide * Math.cos(angle));
    if (Math.abs(longitude) >= Math.PI) return;
    const sine = (2 * angle + Math.sin(2 * angle)) / Math.PI;
    const { latitudes, longitudes, counts } = this.told;
    const band = Math.min(latitudes - 1, Math.floor(((sine + 1) / 2) * latitudes));
    const cell = Math.min(longitudes - 1, Math.floor((longitude / (2 * Math.PI) + 0.5) * longitudes));
    const n = counts[band * longitudes + cell];
    const degrees = (radians) => `${Math.round((radians * 180) / Math.PI)}°`;
    const where = `latitude ${degrees(Math.asin(sine))}, longitude ${degrees(longitude)}`;
    this.readOut.textContent = `${where}: ${number(n / this.mean, 3)} of even`;
  }
}
