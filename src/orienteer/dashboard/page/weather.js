// Activity and speed of every rank over time: slow nodes are brown rows, stalls of a file system red stripes.

import { font, placeOf, sharpCanvas } from "./canvas.js";
import { element, fill } from "./elements.js";
import { drawWords } from "./frame.js";
import { colour, RATE } from "./palette.js";
import { number, span } from "./words.js";

// As in `orienteer weather`: reading and saving, which keep ranks from work, have strong colours, other work pale ones.
const STAGES = {
  temperature: ["#b8c4d6", "chooses the temperature"], solve: ["#7f95b8", "makes new models"],
  phase: ["#56719e", "phases"], nuisances: ["#9db1a1", "fluence, background"], sentinels: ["#c9b79c", "asks sentinels"],
  refine: ["#a58fb5", "refines poses"], other: ["#f4efe0", "other work"], read: ["#e31a1c", "waits for frames"],
  wait: ["#dcdcdc", "waits for other ranks"], save: ["#6a3d9a", "writes files"], orient: ["#35978f", "orients frames"],
};
const [SLOWEST, FASTEST] = [0.25, 1.4];

/** Ranks over time. */
export class WeatherMap {
  constructor() {
    this.told = null;
    const { canvas, redraw } = sharpCanvas((...args) => this.draw(...args), {
      height: () => 34 + Math.min(420, Math.max(60, 20 * (this.told?.ranks.length ?? 0))),
      label: "Activity of every rank over time",
    });
    Object.assign(this, { canvas, redraw });
    this.readOut = element("p", { class: "read-out" });
    this.legend = element("p", { class: "legend" });
    this.findings = element("ul", {});
    this.whole = element("figure", { class: "chart" }, canvas, this.readOut, this.legend, this.findings);
    canvas.addEventListener("pointermove", (event) => this.follow(event));
    canvas.addEventListener("pointerleave", () => (this.readOut.textContent = this.summary));
  }

  /** told : ranks (R), t_s (C), rate (R, C) relative to the usual one, what (R, C) of stage_names, and findings. */
  show(told) {
    this.told = told;
    const seen = new Set(told.what.flat());
    const parts = told.stage_names.filter((name, i) => seen.has(i)).map((name) => {
      const swatch = element("i", { class: "swatch" });
      swatch.style.background = (STAGES[name] ?? ["#888"])[0];
      return element("span", {}, swatch, (STAGES[name] ?? ["", name])[1]);
    });
    fill(this.legend, ...parts);
    fill(this.findings, (told.findings ?? []).map((words) => element("li", {}, words)));
    const n = told.ranks.length;
    this.summary = `${n} ${n === 1 ? "rank" : "ranks"}; while they orient, brown is slower and green faster than usual`;
    this.readOut.textContent = this.summary;
    this.canvas.setAttribute("aria-label", `Activity of every rank over time: ${this.summary}`);
    this.redraw();
  }

  draw(context, width, height) {
    const { told } = this;
    if (!told?.ranks.length || !told.t_s.length) {
      drawWords(context, width, height, "nothing yet");
      return;
    }
    const place = { left: 64, right: width - 10, top: 4, bottom: height - 28 };
    this.place = place;
    const [n, cells] = [told.ranks.length, told.t_s.length];
    const tall = (place.bottom - place.top) / n;
    const wide = (place.right - place.left) / cells;
    for (let rank = 0; rank < n; rank++) {
      for (let cell = 0; cell < cells; cell++) {
        const shade = this.shade(rank, cell);
        if (!shade) continue;
        context.fillStyle = shade;
        const high = tall > 6 ? tall - 1 : Math.max(1, tall);
        context.fillRect(place.left + cell * wide, place.top + rank * tall, wide + 0.5, high);
      }
    }
    context.font = font(11);
    context.fillStyle = colour("quiet");
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.ceil(12 / tall);
    for (let rank = 0; rank < n; rank += every) {
      context.fillText(nameOf(told.ranks[rank]), place.left - 5, place.top + (rank + 0.5) * tall, 58);
    }
    context.textBaseline = "top";
    for (let i = 0; i <= 4; i++) {
      const cell = Math.min(cells - 1, Math.round((i / 4) * cells));
      context.textAlign = i === 4 ? "right" : i ? "center" : "left";
      const x = place.left + (i / 4) * (place.right - place.left);
      context.fillText(span(told.t_s[cell] - told.t_s[0]), x, place.bottom + 8);
    }
  }

  shade(rank, cell) {
    const rate = this.told.rate[rank]?.[cell];
    if (rate !== null && Number.isFinite(rate)) {
      const share = Math.log(Math.min(FASTEST, Math.max(SLOWEST, rate)) / SLOWEST) / Math.log(FASTEST / SLOWEST);
      const i = 3 * Math.round(255 * share);
      return `rgb(${RATE[i]},${RATE[i + 1]},${RATE[i + 2]})`;
    }
    const name = this.told.stage_names[this.told.what[rank][cell]];
    return name ? (STAGES[name] ?? ["#888"])[0] : null;
  }

  follow(event) {
    if (!this.place) return;
    const [x, y] = placeOf(event, this.canvas);
    const { told, place } = this;
    const cell = Math.floor(((x - place.left) / (place.right - place.left)) * told.t_s.length);
    const rank = Math.floor(((y - place.top) / (place.bottom - place.top)) * told.ranks.length);
    if (cell < 0 || rank < 0 || cell >= told.t_s.length || rank >= told.ranks.length) return;
    const name = told.stage_names[told.what[rank][cell]];
    const rate = told.rate[rank]?.[cell];
    const doing = name ? (STAGES[name] ?? ["", name])[1] : "nothing";
    const speed = rate !== null && Number.isFinite(rate) ? `, ${number(rate, 2)} of the usual rate` : "";
    const when = span(told.t_s[cell] - told.t_s[0]);
    this.readOut.textContent = `rank ${nameOf(told.ranks[rank])}, after ${when}: ${doing}${speed}`;
  }
}

const nameOf = ({ rank, host }) => (host ? `${rank} ${host}` : String(rank));
