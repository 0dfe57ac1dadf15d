// The end of a run's log, as it grows.

import { element } from "./elements.js";
import { getJson, oneAtATime } from "./server.js";

const MOST_CHARACTERS = 400000;

/** The log of a run; it scrolls with new lines as long as the end is visible. */
export class Log {
  constructor(run) {
    this.run = run;
    this.next = 0;
    this.file = "";
    this.text = "";
    this.whole = element("pre", { class: "log", tabIndex: 0, "aria-label": "Log of the run" }, "nothing yet");
    this.refresh = oneAtATime(() => this.load());
  }

  async load() {
    // A log that has grown much comes in several answers.
    for (let i = 0; i < 16; i++) {
      const told = await getJson(`/api/runs/${this.run}/log`, { after: this.next, file: this.file });
      const isNew = told.next !== this.next || told.file !== this.file;
      // Another log is the newest now, or this one has been started again.
      if (told.next < this.next || told.file !== this.file) this.text = "";
      this.next = told.next;
      this.file = told.file;
      if (told.text) this.add(told.text);
      if (!isNew || !told.text) return;
    }
  }

  add(text) {
    const { whole } = this;
    const isAtEnd = whole.scrollHeight - whole.scrollTop - whole.clientHeight < 40;
    this.text = (this.text + text).slice(-MOST_CHARACTERS);
    whole.textContent = this.text;
    if (isAtEnd) whole.scrollTop = whole.scrollHeight;
  }
}
