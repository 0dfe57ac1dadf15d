// Frames as thumbnails, which can be enlarged, tagged, annotated and excluded.

import { tagChip } from "./chips.js";
import { ask, confirm, opened } from "./dialog.js";
import { button, element, fill } from "./elements.js";
import { Picture, paint, rangeOf, upright } from "./picture.js";
import { getArray, post } from "./server.js";
import { attempt, session } from "./session.js";
import { count, number } from "./words.js";

const AT_ONCE = 4;
// Pixels of all cached pictures: some hundred small ones, or a dozen of a large detector.
const KEPT = 1 << 24;
// Names of the kinds by their numbers in files.
const KINDS = ["unsure", "single", "multiple", "junk"];

/** Thumbnails of frames of one run. */
export class Gallery {
  /** drawn() : called when all pictures are drawn. */
  constructor(run, drawn = () => {}) {
    this.run = run;
    this.drawn = drawn;
    this.frames = [];
    this.pictures = new Map();
    this.canvases = new Map();
    this.shown = "";
    this.waiting = [];
    this.underway = 0;
    this.excluded = new Set();
    this.tags = new Map();
    const step = (event) => this.step(event);
    const nothing = element("p", { class: "quiet" }, "nothing yet");
    this.whole = element("div", { class: "gallery", role: "group", "aria-label": "Frames", onkeydown: step }, nothing);
  }

  /**
   * frames : [{ event_id, size_A, kind, photons, … }], or event ids alone; ids are text.
   * excluded : ids of frames that are left out.
   * frameTags : ids of frames by their tag.
   */
  show(frames, excluded, frameTags) {
    this.excluded = new Set(excluded);
    this.learnTags(frameTags);
    this.frames = frames.map((frame) => (typeof frame === "object" ? frame : { event_id: frame }));
    const key = JSON.stringify([this.frames, excluded, frameTags]);
    if (!this.frames.length || key === this.shown) return;
    this.shown = key;
    const ids = new Set(this.frames.map((frame) => frame.event_id));
    for (const id of this.canvases.keys()) if (!ids.has(id)) this.canvases.delete(id);
    const focused = document.activeElement?.dataset?.event;
    this.waiting = [];
    fill(this.whole, this.frames.map((frame, i) => this.thumbnail(frame, i)));
    const again = focused && this.whole.querySelector(`[data-event="${CSS.escape(focused)}"]`);
    if (!again) return;
    again.tabIndex = 0;
    again.focus();
  }

  /** Turn ids by tag into tags by id. */
  learnTags(frameTags) {
    this.known = Object.keys(frameTags);
    this.tags = new Map();
    for (const [tag, ids] of Object.entries(frameTags)) {
      for (const id of ids) this.tags.set(id, [...(this.tags.get(id) ?? []), tag]);
    }
  }

  tagsOf(frame) {
    return this.tags.get(frame.event_id) ?? [];
  }

  thumbnail(frame, index) {
    const size = frame.size_A ? `${number(frame.size_A)} Å` : null;
    const words = [kindOf(frame), size, ...this.tagsOf(frame)].filter(Boolean).join(", ");
    const made = element(
      "button", {
        type: "button", class: this.excluded.has(frame.event_id) ? "thumbnail excluded" : "thumbnail",
        "data-event": frame.event_id, "aria-label": `Frame ${frame.event_id} ${words}`.trim(),
        tabIndex: index ? -1 : 0, onclick: () => this.enlarge(index),
      },
      this.small(frame.event_id), element("span", {}, words || `…${frame.event_id.slice(-6)}`),
    );
    return made;
  }

  /** The tab key stops once for all thumbnails; arrow keys move from frame to frame. */
  step(event) {
    const all = [...this.whole.querySelectorAll(".thumbnail")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || !all[to]) return;
    event.preventDefault();
    all[at].tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  }

  /** The small picture of a frame, which is drawn once. */
  small(id) {
    const kept = this.canvases.get(id);
    if (kept?.dataset.isDrawn) return kept;
    const canvas = element("canvas", { width: 96, height: 96 });
    this.canvases.set(id, canvas);
    this.queue(id, (picture) => {
      drawSmall(canvas, picture);
      canvas.dataset.isDrawn = "true";
    });
    return canvas;
  }

  queue(id, drawn) {
    this.waiting.push([id, drawn]);
    this.goOn();
  }

  async goOn() {
    if (this.underway >= AT_ONCE || !this.waiting.length) return;
    const [id, drawn] = this.waiting.shift();
    this.underway += 1;
    try {
      drawn(await this.picture(id));
    } catch {
      // A frame that cannot be loaded stays empty; clicking on it shows why.
    }
    this.underway -= 1;
    this.goOn();
    if (!this.isDrawing) this.drawn();
  }

  get isDrawing() {
    return this.underway > 0 || this.waiting.length > 0;
  }

  async picture(id) {
    const kept = this.pictures.get(id);
    if (kept) return kept;
    const { bytes, shape } = await getArray(`/api/runs/${this.run}/frame/${id}`);
    const photons = Float32Array.from(new Uint16Array(bytes), (value) => (value === 65535 ? NaN : value));
    const picture = { values: upright(photons, ...shape), rows: shape[0], columns: shape[1] };
    this.pictures.set(id, picture);
    const most = Math.max(1, Math.floor(KEPT / photons.length));
    while (this.pictures.size > most) this.pictures.delete(this.pictures.keys().next().value);
    return picture;
  }

  /** One frame, enlarged; arrow keys go to its neighbours. */
  async enlarge(index) {
    let at = index;
    // The thumbnails go on loading while this one is shown.
    const { frames } = this;
    const large = new Picture({ title: "Frame", unit: "photons" });
    const heading = element("h2", {});
    const words = element("p", { class: "quiet" });
    const exclude = button("Exclude", () => this.exclude(frames[at]).then(show), { disabled: session.isReadOnly });
    const tag = button("Tag", () => this.tag(frames[at]).then(show), { disabled: session.isReadOnly });
    const tags = element("p", { class: "tags" });
    const note = button("Note", () => this.note(frames[at]), { disabled: session.isReadOnly });
    const show = async () => {
      const frame = frames[at];
      heading.textContent = `Frame ${frame.event_id}`;
      exclude.textContent = this.excluded.has(frame.event_id) ? "Take back in" : "Exclude";
      words.textContent = describe(frame, this.excluded.has(frame.event_id));
      const remove = (one) => (session.isReadOnly ? null : () => this.changeTags(frame, [], [one]).then(show));
      fill(tags, this.tagsOf(frame).map((one) => tagChip(one, remove(one))));
      await attempt(async () => {
        const { values, rows, columns } = await this.picture(frame.event_id);
        if (frame === frames[at]) large.show(values, rows, columns);
      });
    };
    const go = (by) => {
      at = (at + by + frames.length) % frames.length;
      return show();
    };
    await opened((close) => {
      const content = element(
        "div", { class: "enlarged" }, heading, large.whole, words, tags,
        element("div", { class: "actions" },
          button("‹ before", () => go(-1)), button("next ›", () => go(1)), tag, note, exclude,
          element("button", { type: "button", onclick: () => close() }, "Close")),
      );
      content.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (by) go(by);
      });
      show();
      return [content];
    });
  }

  async exclude(frame) {
    const isOut = this.excluded.has(frame.event_id);
    const question = isOut
      ? `Take frame ${frame.event_id} back in?`
      : `Leave frame ${frame.event_id} out of growing maps, and of reconstructions that are started from now on?`;
    if (!(await confirm(question, isOut ? "Take back in" : "Exclude"))) return;
    const body = isOut ? { event_ids: [], remove: [frame.event_id] } : { event_ids: [frame.event_id], remove: [] };
    if (!(await attempt(() => post(`/api/runs/${this.run}/exclude`, body)))) return;
    if (isOut) this.excluded.delete(frame.event_id);
    else this.excluded.add(frame.event_id);
    this.whole.querySelector(`[data-event="${CSS.escape(frame.event_id)}"]`)?.classList.toggle("excluded", !isOut);
  }

  async tag(frame) {
    const words = `Tag of frame ${frame.event_id}`;
    const tag = await ask(words, { action: "Tag", most: 60, suggestions: this.known });
    if (tag) await this.changeTags(frame, [tag], []);
  }

  async changeTags(frame, add, remove) {
    await attempt(async () => {
      const body = { event_ids: [frame.event_id], add, remove };
      this.learnTags((await post(`/api/runs/${this.run}/frame-tags`, body)).frame_tags);
    });
    const shown = this.whole.querySelector(`[data-event="${CSS.escape(frame.event_id)}"]`);
    const index = this.frames.findIndex((one) => one.event_id === frame.event_id);
    if (!shown || index < 0) return;
    const made = this.thumbnail(frame, index);
    made.tabIndex = shown.tabIndex;  // keeps the stop of the tab key
    shown.replaceWith(made);
  }

  /** A note on a frame is a note of the run that names the frame, so that the search finds it. */
  async note(frame) {
    const text = await ask(`Note about frame ${frame.event_id}`, { most: 1000 });
    if (text) await attempt(() => post(`/api/runs/${this.run}/note`, { text: `Frame ${frame.event_id}: ${text}` }));
  }
}

const kindOf = ({ kind }) => KINDS[kind] ?? kind;

function describe(frame, isExcluded) {
  const parts = [];
  if (kindOf(frame)) parts.push(kindOf(frame));
  if (frame.size_A) parts.push(`${number(frame.size_A)} Å`);
  if (frame.photons !== undefined && frame.photons !== null) parts.push(`${count(frame.photons)} photons`);
  if (isExcluded) parts.push("excluded");
  return parts.join(" · ");
}

function drawSmall(canvas, { values, rows, columns }) {
  const [low, high] = rangeOf(values);
  const image = paint(values, rows, columns, { low, high, isLog: true });
  const scale = Math.min(canvas.width / columns, canvas.height / rows);
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = scale < 1;
  context.imageSmoothingQuality = "high";
  const [wide, tall] = [scale * columns, scale * rows];
  context.drawImage(image, (canvas.width - wide) / 2, (canvas.height - tall) / 2, wide, tall);
}
