// Actions on a run: start, stop, tag, note.  Actions that cannot be undone ask for confirmation first.

import { tagChip } from "./chips.js";
import { ask, confirm } from "./dialog.js";
import { button, element, fill } from "./elements.js";
import { post } from "./server.js";
import { attempt, session } from "./session.js";

const STARTABLE = ["new", "stopped", "failed"];

/** The buttons of a run; `done()` is called after something was changed. */
export class RunActions {
  constructor(run, done) {
    this.run = run;
    this.done = done;
    this.start = button("Start", () => this.go("start", "Continue this run where it stopped?", "Start"));
    const stopWords = "Stop this run? It writes a checkpoint and can be started again.";
    this.stop = button("Stop", () => this.go("stop", stopWords, "Stop"));
    this.tag = button("Tag", () => this.addTag());
    this.note = button("Note", () => this.addNote());
    // No buttons until it is known which actions are allowed.
    for (const one of [this.start, this.stop, this.tag, this.note]) one.disabled = true;
    this.tags = element("span", { class: "tags" });
    this.notes = element("div", { class: "notes" });
    this.whole = element("div", { class: "actions" }, this.start, this.stop, this.tag, this.note, this.tags);
  }

  show(told) {
    this.start.disabled = session.isReadOnly || !STARTABLE.includes(told.status);
    this.stop.disabled = session.isReadOnly || told.status !== "working";
    this.tag.disabled = this.note.disabled = session.isReadOnly;
    const why = session.isReadOnly ? "This dashboard is read-only." : "";
    for (const one of [this.start, this.stop, this.tag, this.note]) one.title = one.disabled ? why : "";
    const remove = (tag) => (session.isReadOnly ? null : () => this.removeTag(tag));
    fill(this.tags, (told.tags ?? []).map((tag) => tagChip(tag, remove(tag))));
    const notes = told.notes ?? (told.note ? [{ text: told.note }] : []);
    fill(this.notes, notes.map((one) => element("blockquote", { title: one.time ?? "" }, one.text ?? one)));
  }

  async change(what, body) {
    if (await attempt(() => post(`/api/runs/${this.run}/${what}`, body))) await this.done();
  }

  async go(what, words, action) {
    if (await confirm(words, action)) await this.change(what, {});
  }

  async addTag() {
    const tag = await ask("Tag of this run", { action: "Tag", most: 60, suggestions: session.tags });
    if (tag) await this.change("tags", { add: [tag], remove: [] });
  }

  async removeTag(tag) {
    if (await confirm(`Remove the tag “${tag}”?`, "Remove")) await this.change("tags", { add: [], remove: [tag] });
  }

  async addNote() {
    const text = await ask("Note about this run", { many: true });
    if (text) await this.change("note", { text });
  }
}
