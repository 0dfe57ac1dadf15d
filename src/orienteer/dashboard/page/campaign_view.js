// A beam time at a glance: samples, jobs, rules, and histograms of its shots.

import { statusChip } from "./chips.js";
import { card, element, fill } from "./elements.js";
import { BigNumbers } from "./facts.js";
import { getJson, oneAtATime } from "./server.js";
import { attempt } from "./session.js";
import { ShotHistogram } from "./shots.js";
import { ago, count, percent, short } from "./words.js";

// Ask regularly: the server announces changes of runs, but not of the database.
const EVERY_s = 3;

const HINTS = {
  samples: "Name the sample of a run: orienteer campaign add FILE RUN --sample NAME",
  jobs: "A rule makes jobs, and a worker runs them: orienteer campaign work FILE",
  rules: "Make one: orienteer campaign rule FILE NAME --steps hits,reconstruct,report --out FOLDER",
};

/** The view of the campaign's database. */
export class CampaignView {
  constructor() {
    this.title = "Campaign";
    this.refresh = oneAtATime(() => attempt(() => this.load()));
    this.timer = setInterval(() => !document.hidden && this.refresh(), 1000 * EVERY_s);
    this.numbers = new BigNumbers();
    this.missing = element("p", { class: "missing", hidden: true });
    this.shots = new ShotHistogram();
    const [samples, shots] = [card("Samples"), card("Shots")];
    // Wide, as their rows hold much text.
    const [jobs, rules] = [card("Jobs", { wide: true }), card("Rules", { wide: true })];
    Object.assign(this, { samples, jobs, rules });
    shots.body.append(this.shots.whole);
    shots.aside.append(this.shots.controls);
    this.cards = element("div", { class: "cards" }, samples.whole, shots.whole, jobs.whole, rules.whole);
    this.whole = element(
      "article", { class: "campaign" }, element("h1", {}, "Campaign"), this.missing, this.numbers.whole, this.cards,
    );
  }

  async load() {
    let told;
    try {
      told = await getJson("/api/campaign");
    } catch (trouble) {
      if (!trouble.status || trouble.status === 401) throw trouble;
      this.say(trouble.message);
      return;
    }
    if (!this.whole.isConnected) return;  // another view is open by now
    this.missing.hidden = true;
    this.cards.hidden = false;
    const { samples = [], jobs = [], rules = [] } = told;
    this.numbers.show([
      { words: "runs", value: count(told.n_runs) },
      { words: "shots", value: short(told.n_shots) },
      { words: "hits", value: short(told.n_hits), more: told.n_shots ? ` ${percent(told.n_hits / told.n_shots)}` : "" },
      { words: "samples", value: count(samples.length) },
    ]);
    fill(this.samples.body, table(["sample", "runs", "shots", "hits"], samples.map(sampleRow), HINTS.samples));
    fill(this.jobs.body, table(["run", "step", "rule", "state", "when", ""], jobs.map(jobRow), HINTS.jobs));
    fill(this.rules.body, table(["rule", "sample", "does", "on"], rules.map(ruleRow), HINTS.rules));
    await this.shots.refresh(told.columns, told.n_shots);
  }

  say(words) {
    this.missing.textContent = words;
    this.missing.hidden = false;
    this.cards.hidden = true;
  }

  changed() {
    return this.refresh();
  }

  close() {
    clearInterval(this.timer);
  }
}

function sampleRow({ name, n_runs: nRuns, n_shots: nShots, n_hits: nHits }) {
  return [linked(name, { sample: name }), count(nRuns), count(nShots), count(nHits)];
}

/** A name that links to the runs that match. */
const linked = (name, wanted) => element("a", { href: `#/?${new URLSearchParams(wanted)}` }, name);
const jobRow = (job) => [linked(job.run, { search: job.run }), stepWords(job.step), job.rule, statusChip(job.status), when(job), job.reason];
const ruleRow = ({ name, sample, steps, is_on: isOn }) => [
  name, sample || "any", steps.map(stepWords).join(", then "), isOn ? "yes" : "no",
];
const stepWords = (step) => (Array.isArray(step) ? step.join(" ") : step);
const when = ({ ended, started, created }) => ago(Date.parse(ended ?? started ?? created) / 1000);

const look = (head) => (["runs", "shots", "hits"].includes(head) ? "number" : null);

function table(heads, rows, hint) {
  if (!rows.length) return element("p", { class: "quiet" }, `none yet. ${hint}`);
  const head = element("tr", {}, heads.map((words) => element("th", { scope: "col", class: look(words) }, words)));
  const cells = (row) => element("tr", {}, row.map((cell, i) => element("td", { class: look(heads[i]) }, cell ?? "")));
  return element(
    "div", { class: "scroll" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, rows.map(cells))),
  );
}
