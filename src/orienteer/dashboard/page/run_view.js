// Everything about one run: its state, its map, its curves, and how far to trust it.

import { statusChip } from "./chips.js";
import { Coverage } from "./coverage.js";
import { card, element, fill } from "./elements.js";
import { BigNumbers, facts } from "./facts.js";
import { FrameBrowser } from "./frame_browser.js";
import { ShellCorrelation } from "./fsc.js";
import { Log } from "./log.js";
import { RunActions } from "./run_actions.js";
import { angleWords, RunCurves } from "./run_curves.js";
import { getJson, oneAtATime } from "./server.js";
import { attempt, learn } from "./session.js";
import { ShotHistogram } from "./shots.js";
import { VolumeView } from "./volume_view.js";
import { WeatherMap } from "./weather.js";
import { count, MISSING, number, span, withUnit } from "./words.js";

/** The view of one run.  Parts that do not exist yet appear as soon as they do. */
export class RunView {
  constructor(run) {
    this.run = run;
    this.title = "Run";
    this.refresh = oneAtATime(() => attempt(() => this.load()));
    this.name = element("h1", {}, "…");
    this.state = element("span", {});
    this.words = element("p", { class: "sentence" });
    this.numbers = new BigNumbers();
    this.actions = new RunActions(run, () => this.refresh());
    this.cards = element("div", { class: "cards" });
    this.parts = new Map();
    this.whole = element(
      "article", { class: "run" },
      element("div", { class: "title" }, this.name, this.state),
      this.words, this.actions.whole, this.actions.notes, this.numbers.whole, this.cards,
    );
  }

  async load() {
    const told = await getJson(`/api/runs/${this.run}`);
    if (!this.whole.isConnected) return;  // another view is open by now
    learn(told);
    this.title = told.name;
    document.title = `${told.name} · Orienteer`;
    this.name.textContent = told.name;
    fill(this.state, statusChip(told.status));
    fill(this.words, told.words ?? "");
    this.actions.show(told);
    const has = told.has ?? {};
    this.offerParts(told, has);
    // A part that cannot be loaded shows its error in its place; the others are not affected.
    await Promise.all([...this.parts.values()].map((part) => this.update(part)));
    this.showNumbers(told);
  }

  async update(part) {
    try {
      await part.refresh?.();
      part.trouble.hidden = true;
    } catch (trouble) {
      part.trouble.textContent = trouble.message;
      part.trouble.hidden = false;
    }
  }

  /** Add the parts that the run has by now; parts that are shown already stay as they are. */
  offerParts(told, has) {
    const hasVolume = has.volume || has.density || has.density_loop;
    this.part("map", "Map", hasVolume, true, () => new VolumeView(this.run), (view, { aside }) => {
      aside.append(view.controls);
      return () => view.refresh();
    });
    const map = this.parts.get("map");
    if (map) map.made.offer(has, told.n_models);
    this.part("curves", "Iterations", has.steps, true, () => new RunCurves(this.run), (curves, { body }) => {
      body.append(curves.more);
      return () => curves.refresh();
    });
    this.part("fsc", "How far to trust it", has.fsc, false, () => new ShellCorrelation(this.run), (fsc) => {
      return () => fsc.refresh();
    });
    this.part("coverage", "Orientations", has.orientations, false, () => new Coverage(), (coverage) => async () => {
      coverage.show(await getJson(`/api/runs/${this.run}/coverage`));
    });
    this.part("weather", "Weather", has.weather, true, () => new WeatherMap(), (weather) => async () => {
      weather.show(await getJson(`/api/runs/${this.run}/weather`));
    });
    const known = told.campaign_run;
    this.part("shots", "Shots", known, false, () => new ShotHistogram(known), (shots, { aside }) => {
      aside.append(shots.controls);
      return async () => {
        const { columns, n_shots: n } = await getJson("/api/campaign");
        await shots.refresh(columns, n);
      };
    });
    this.folded("frames", "Frames", has.orientations, () => new FrameBrowser(this.run), (frames) => frames.load());
    const frames = this.parts.get("frames");
    if (frames) {
      frames.made.excluded = told.excluded ?? [];
      frames.made.frameTags = told.frame_tags ?? {};
    }
    this.folded("log", "Log", has.log, () => new Log(this.run), (log) => log.refresh());
    const place = () => ({ whole: element("div", {}) });
    const isTold = told.settings || told.input;
    this.folded("settings", "Settings and origin", isTold, place, (made) => this.showFacts(made, told));
    if (has.report && !this.parts.has("report")) {
      const href = `/api/runs/${this.run}/report`;
      const link = element("a", { href, target: "_blank", rel: "noopener" }, "The report of this run");
      this.parts.set("report", { made: null, refresh: null, trouble: element("p", { hidden: true }) });
      this.actions.whole.append(link);
    }
  }

  part(name, title, isThere, wide, make, joined) {
    if (!isThere || this.parts.has(name)) return;
    const place = card(title, { wide, name });
    const made = make();
    const trouble = element("p", { class: "missing", hidden: true });
    place.body.append(made.whole, trouble);
    const refresh = joined(made, place);
    this.cards.append(place.whole);
    this.parts.set(name, { made, refresh, trouble });
  }

  /** A part that is loaded only when it is opened. */
  folded(name, title, isThere, make, load) {
    if (!isThere || this.parts.has(name)) return;
    const made = make();
    const trouble = element("p", { class: "missing", hidden: true });
    const summary = element("summary", {}, title);
    const whole = element("details", { class: "card wide", "data-card": name }, summary, made.whole, trouble);
    const part = { made, trouble, refresh: async () => whole.open && load(made) };
    whole.addEventListener("toggle", () => this.update(part));
    this.cards.append(whole);
    this.parts.set(name, part);
  }

  showFacts(made, told) {
    const names = ["created", "seed", "input", "versions", "machine", "settings"];
    const known = names.filter((name) => told[name] !== null && told[name] !== undefined);
    fill(made.whole, facts(Object.fromEntries(known.map((name) => [name, told[name]]))));
  }

  showNumbers(told) {
    const last = this.parts.get("curves")?.made.last ?? {};
    const validated = told.resolution_A;
    const agrees = last.agrees_to_A ?? told.agrees_to_A;
    const stage = last.n_stages ? ` stage ${last.stage} of ${last.n_stages}` : "";
    const left = told.status === "working" ? last.seconds_left : null;
    const numbers = [
      { words: "iteration", value: count(last.iteration ?? told.iteration), more: stage },
      { words: "frames", value: count(told.n_frames) },
      validated
        ? { words: "resolution", value: withUnit(validated, "Å"), more: " independent halves" }
        : { words: "halves agree to", value: withUnit(agrees, "Å"), more: agrees ? " not validated" : "" },
      { words: "sentinels agree to", value: withDegrees(last.sentinel_agreement_deg) },
      { words: "sentinel gain", value: withUnit(last.sentinel_gain_nats, "nats") },
      { words: "time left", value: span(left) },
      { words: "log-likelihood", value: number(last.log_likelihood, 5), more: " nats" },
    ];
    this.numbers.show(numbers.filter(({ value }) => value !== MISSING));
  }

  changed(ids) {
    return ids === null || ids.includes(this.run) ? this.refresh() : null;
  }

  close() {
    this.parts.get("map")?.made.close();
  }
}

const withDegrees = (angle) => (angle === null || angle === undefined ? MISSING : `${angleWords(angle)}°`);
