// All frames of a run, a page of thumbnails at a time.

import { button, element } from "./elements.js";
import { Gallery } from "./gallery.js";
import { getJson } from "./server.js";
import { attempt } from "./session.js";
import { count } from "./words.js";

const PAGE = 24;

/** The rows of a table of frames that is given by columns. */
export function rowsOf({ event_id: ids, columns = {} }) {
  return ids.map((id, i) => {
    const frame = { event_id: id };
    for (const [name, values] of Object.entries(columns)) if (Array.isArray(values)) frame[name] = values[i];
    return frame;
  });
}

/** Browser of the frames of a run, which can begin at any frame. */
export class FrameBrowser {
  constructor(run) {
    this.run = run;
    this.first = 0;
    this.excluded = [];
    this.frameTags = {};
    this.gallery = new Gallery(run);
    this.where = element("span", { class: "quiet", role: "status" });
    this.back = button("‹ back", () => this.go(this.first - PAGE));
    this.on = button("on ›", () => this.go(this.first + PAGE));
    const pager = element("div", { class: "pager" }, this.back, this.where, this.on);
    this.whole = element("div", {}, this.gallery.whole, pager);
  }

  go(first) {
    this.first = Math.max(0, first);
    return attempt(() => this.load());
  }

  async load() {
    const told = await getJson(`/api/runs/${this.run}/frames`, { first: this.first, n: PAGE });
    const frames = rowsOf(told);
    this.gallery.show(frames, this.excluded, this.frameTags);
    this.back.disabled = this.first === 0;
    this.on.disabled = frames.length < PAGE || (told.total && this.first + PAGE >= told.total);
    const of = told.total ? ` of ${count(told.total)}` : "";
    const shown = `${count(this.first + 1)} to ${count(this.first + frames.length)}${of}`;
    this.where.textContent = frames.length ? shown : "no more frames";
  }
}
