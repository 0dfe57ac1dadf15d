// The map of a run: a surface that can be turned, slices beside it, and controls.

import { choice, element, fill, setOptions } from "./elements.js";
import { oneAtATime } from "./server.js";
import { Slices } from "./slices.js";
import { Surface } from "./surface.js";
import { getVolume } from "./volume.js";
import { number, withUnit } from "./words.js";

const KINDS = { density: "density", density_loop: "density in the loop", intensity: "intensity" };
const SIZE = 96;

/** Surface and slices of a run's volume; `refresh()` loads a newer one if there is any. */
export class VolumeView {
  constructor(run) {
    this.run = run;
    this.kind = null;
    this.model = 1;
    this.level = null;
    this.slices = new Slices();
    this.refresh = oneAtATime(() => this.load());
    this.kinds = choice("Which volume", [["", "no volume yet"]], "", (kind) => this.choose(kind, this.model));
    this.models = choice("Which model", [["1", "model 1"]], "1", (model) => this.choose(this.kind, Number(model)));
    this.models.hidden = true;
    this.words = element("p", { class: "quiet", role: "status" });
    this.controls = element("div", { class: "choices" }, this.kinds, this.models);
    this.levelSlider = slider("Level of the surface", 1, 254, 128, (value) => this.setLevel(Number(value)));
    this.cutSlider = slider("Cut from the front", 0, 100, 0, () => this.setLevel(this.level));
    this.levelWords = element("output", {});
    this.stage = this.makeStage();
    this.whole = element("div", { class: "volume" }, this.stage, this.slices.whole, this.words);
  }

  makeStage() {
    const label = "Surface of the volume; drag or use the arrow keys to turn it, + and − to zoom, 0 to begin again";
    const canvas = element("canvas", { class: "surface", role: "img", "aria-label": label, tabIndex: 0 });
    this.surface = Surface.on(canvas);
    if (!this.surface) {
      const why = "This browser has no WebGL2, so the surface cannot be drawn; the slices show the same volume.";
      return element("p", { class: "missing" }, why);
    }
    this.bar = element("span", { class: "scale-bar" });
    this.surface.drawn = () => this.drawBar();
    return element(
      "div", { class: "stage" },
      element("div", { class: "glass" }, canvas, this.bar),
      element("div", { class: "sliders" },
        element("label", {}, "level ", this.levelSlider, " ", this.levelWords),
        element("label", {}, "cut ", this.cutSlider)),
    );
  }

  /** has : which volumes the run has; nModels : how many models. */
  offer(has, nModels) {
    const kinds = Object.keys(KINDS).filter((kind) => has[kind] || (kind === "intensity" && has.volume));
    const options = kinds.length ? kinds.map((kind) => [kind, KINDS[kind]]) : [["", "no volume yet"]];
    if (!kinds.includes(this.kind)) this.kind = kinds[0] ?? null;
    setOptions(this.kinds, options, this.kind ?? "");
    const models = Array.from({ length: Math.max(1, nModels ?? 1) }, (_, i) => [String(i + 1), `model ${i + 1}`]);
    setOptions(this.models, models, String(this.model));
    this.models.hidden = models.length < 2;
  }

  choose(kind, model) {
    [this.kind, this.model, this.level] = [kind || null, model, null];
    this.refresh();
  }

  async load() {
    if (!this.kind) {
      fill(this.words, "There is no volume yet.");
      return;
    }
    const { kind, model } = this;
    let volume;
    try {
      volume = await getVolume(this.run, kind, model, SIZE);
    } catch (trouble) {
      fill(this.words, trouble.message);
      return;
    }
    if (kind !== this.kind || model !== this.model) return;
    this.volume = volume;
    this.surface?.show(volume);
    this.slices.show(volume);
    if (this.level === null) {
      // The inside of an intensity shows more than its rim.
      this.cutSlider.value = volume.isLog ? 50 : 0;
      this.level = volume.firstLevel();
      this.surface?.fit(volume.reach(this.level));
    }
    this.setLevel(this.level);
    const edge = volume.voxel ? `, ${withUnit(volume.voxel * volume.n, volume.unit)} wide` : "";
    const values = `${number(volume.value(0))} to ${number(volume.value(255))}`;
    fill(this.words, `${volume.n} voxels along each edge${edge}; values from ${values}.`);
  }

  setLevel(level) {
    if (!this.volume) return;
    this.level = level;
    this.levelSlider.value = level;
    this.levelWords.textContent = number(this.volume.value(level), 2);
    this.surface?.set(level, Number(this.cutSlider.value) / 100);
  }

  drawBar() {
    const { voxel, unit, n } = this.volume;
    if (!voxel) return;
    const half = (voxel * n) / 2;
    const perUnit = this.surface.pixels(1 / half);
    const power = 10 ** Math.floor(Math.log10(150 / perUnit));
    const length = [5, 2, 1].map((factor) => factor * power).find((value) => value * perUnit <= 150);
    this.bar.style.width = `${length * perUnit}px`;
    this.bar.textContent = withUnit(length, unit, 2);
  }

  close() {
    this.surface?.close();
  }
}

function slider(label, min, max, value, act) {
  const made = element("input", { type: "range", min, max, "aria-label": label, oninput: () => act(made.value) });
  made.value = value;
  return made;
}
