// Three planes through a volume that meet in one point; moving the point in one plane moves it in all.

import { placeOf, sharpCanvas, unit } from "./canvas.js";
import { element } from "./elements.js";
import { line } from "./frame.js";
import { colour } from "./palette.js";
import { paint } from "./picture.js";
import { number } from "./words.js";

const NAMES = ["x", "y", "z"];

/** Planes perpendicular to z, y and x. */
export class Slices {
  constructor() {
    this.volume = null;
    this.point = null;
    this.panels = [2, 1, 0].map((axis) => this.panel(axis));
    this.readOut = element("p", { class: "read-out", role: "status" }, "nothing yet");
    const figures = this.panels.map(({ words, canvas }) =>
      element("figure", {}, element("figcaption", {}, words), canvas));
    this.whole = element("div", { class: "planes" }, ...figures, this.readOut);
  }

  /** Show another volume; the point stays at its place in space. */
  show(volume) {
    const scale = this.point && this.volume ? volume.n / this.volume.n : null;
    const middle = Math.floor(volume.n / 2);
    const moved = scale && this.point.map((at) => Math.min(volume.n - 1, Math.round(at * scale)));
    this.point = moved ?? [middle, middle, middle];
    this.volume = volume;
    this.move(this.point);
  }

  /** point : [x, y, z] in voxels. */
  move(point) {
    this.point = point;
    for (const panel of this.panels) {
      const key = point[panel.axis];
      if (panel.painted?.volume !== this.volume || panel.painted.key !== key) {
        const { n } = this.volume;
        const image = paint(this.volume.plane(panel.axis, key), n, n, { low: 0, high: 255 });
        panel.painted = { image, key, volume: this.volume };
      }
      panel.redraw();
    }
    const { n, voxel } = this.volume;
    const where = NAMES.map((name, axis) => {
      const away = point[axis] - Math.floor(n / 2);
      return `${name} ${voxel ? number(away * voxel, 3) : away}`;
    });
    const value = number(this.volume.value(this.volume.at(...point)));
    this.readOut.textContent = `${where.join(", ")} ${voxel ? this.volume.unit : "voxels"}: ${value}`;
  }

  panel(axis) {
    const [right, up] = [0, 1, 2].filter((other) => other !== axis);
    const words = `${NAMES[right]} → · ${NAMES[up]} ↑`;
    const panel = { axis, words, painted: null };
    const { canvas, redraw } = sharpCanvas((...args) => this.draw(panel, right, up, ...args), {
      height: (width) => width,
      label: `Plane through the volume, perpendicular to ${NAMES[axis]}; arrow keys move the cross-hair`,
    });
    Object.assign(panel, { canvas, redraw });
    const follow = (event) => {
      if (!this.volume || !(event.buttons & 1)) return;
      const [x, y] = placeOf(event, canvas);
      const { n } = this.volume;
      const within = (at) => Math.min(n - 1, Math.max(0, Math.floor(((at * unit()) / canvas.clientWidth) * n)));
      const point = [...this.point];
      point[right] = within(x);
      point[up] = n - 1 - within(y);
      this.move(point);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      follow(event);
    });
    canvas.addEventListener("pointermove", follow);
    canvas.addEventListener("keydown", (event) => {
      const steps = {
        ArrowLeft: [right, -1], ArrowRight: [right, 1], ArrowUp: [up, 1], ArrowDown: [up, -1],
        PageUp: [axis, 1], PageDown: [axis, -1],
      };
      const step = steps[event.key];
      if (!step || !this.volume) return;
      event.preventDefault();
      const point = [...this.point];
      point[step[0]] = Math.min(this.volume.n - 1, Math.max(0, point[step[0]] + step[1]));
      this.move(point);
    });
    return panel;
  }

  draw(panel, right, up, context, width, height) {
    if (!this.volume) return;
    const { n } = this.volume;
    context.imageSmoothingEnabled = true;
    context.drawImage(panel.painted.image, 0, 0, width, height);
    const x = ((this.point[right] + 0.5) / n) * width;
    const y = height - ((this.point[up] + 0.5) / n) * height;
    context.strokeStyle = colour("cross-hair");
    context.lineWidth = 1;
    // The cross-hair is open in the middle, so that the voxel itself is visible.
    const gap = 7;
    line(context, 0, y, x - gap, y);
    line(context, x + gap, y, width, y);
    line(context, x, 0, x, y - gap);
    line(context, x, y + gap, x, height);
  }
}
