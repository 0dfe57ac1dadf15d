// A live run: counters, hit rate, sizes, powder, hits, and the map that grows from them.

import { Chart } from "./chart.js";
import { statusChip } from "./chips.js";
import { card, choice, element, fill } from "./elements.js";
import { BigNumbers } from "./facts.js";
import { rowsOf } from "./frame_browser.js";
import { Gallery } from "./gallery.js";
import { Histogram } from "./histogram.js";
import { KIND_COLOURS } from "./palette.js";
import { Picture, upright } from "./picture.js";
import { inSteps } from "./rates.js";
import { RunActions } from "./run_actions.js";
import { RunCurves } from "./run_curves.js";
import { getArray, getJson, oneAtATime } from "./server.js";
import { attempt, learn } from "./session.js";
import { VolumeView } from "./volume_view.js";
import { count, percent, short, span, withUnit } from "./words.js";

// The last minute shows the effect of an adjustment; the longer spans show what happened overnight.
const SPANS = [["hit_rate", "whole run, by minute"], ["last_minute", "last minute, by second"]];
const MINUTE_s = 60;
const COUNTERS = ["received", "filtered", "dropped", "processed"];
const BESIDE = ["duplicates", "malformed", "gaps", "late"];
const HINT = "Begin one with: orienteer live --source … --out RUN, or see one with: orienteer live --demo";

/** The view of one live run. */
export class LiveView {
  constructor(run) {
    this.run = run;
    this.title = "Live";
    this.map = null;
    this.hits = [];
    this.refresh = oneAtATime(() => attempt(() => this.load()));
    this.name = element("h1", {}, "…");
    this.state = element("span", {});
    this.words = element("p", { class: "sentence" });
    this.actions = new RunActions(run, () => this.refresh());
    this.numbers = new BigNumbers();
    this.now = new BigNumbers();
    this.balance = element("p", { class: "quiet", role: "status" });
    this.rate = new Chart({
      title: "hit rate", hasCaption: false,
      x: { label: "time of day", kind: "time" },
      y: { label: "hits per shot", unit: "%", low: 0 },
    });
    this.sizes = new Histogram({
      title: "size of the hits", hasCaption: false, x: { label: "diameter", unit: "Å", kind: "log" }, y: "hits",
    });
    this.powder = new Picture({ title: "Powder", unit: "photons" });
    // Hits may come faster than their pictures: finish drawing those on the page before showing newer ones.
    this.gallery = new Gallery(run, () => this.isBehind && this.refresh());
    this.isBehind = false;
    this.whole = this.layOut();
  }

  layOut() {
    this.powderOf = "hits";
    this.rateOf = "hit_rate";
    const spans = choice("Time span of the hit rate", SPANS, "hit_rate", (of) => {
      this.rateOf = of;
      this.refresh();
    });
    const sums = [["hits", "sum of the hits"], ["background", "mean without particle"]];
    const which = choice("Shots of the powder sum", sums, "hits", (of) => {
      this.powderOf = of;
      this.refresh();
    });
    const logarithmic = element("input", { type: "checkbox", checked: true, onchange: () => {
      this.powder.isLog = logarithmic.checked;
      this.powder.repaint();
    } });
    const titled = (title, name, content, aside = [], wide = false) => {
      const place = card(title, { wide, name });
      place.body.append(content);
      place.aside.append(...aside);
      return place.whole;
    };
    this.cards = element(
      "div", { class: "cards" },
      titled("Hit rate", "hit-rate", this.rate.whole, [spans]),
      titled("Sizes", "sizes", this.sizes.whole),
      titled("Powder", "powder", this.powder.whole, [which, element("label", {}, logarithmic, " log")]),
      titled("Recent hits", "hits", this.gallery.whole),
    );
    return element(
      "article", { class: "live" },
      element("div", { class: "title" }, this.name, this.state),
      this.words, this.actions.whole, this.actions.notes,
      this.numbers.whole, this.balance, this.now.whole, this.cards,
    );
  }

  async load() {
    const [told, live] = await Promise.all([getJson(`/api/runs/${this.run}`), getJson(`/api/live/${this.run}`)]);
    if (!this.whole.isConnected) return;  // another view is open by now
    learn(told);
    document.title = `${told.name} · Orienteer`;
    this.name.textContent = told.name;
    fill(this.state, statusChip(told.status));
    fill(this.words, told.words ?? "");
    this.actions.show(told);
    this.showCounters(live);
    const isWhole = this.rateOf === "hit_rate";
    this.showRate(isWhole ? { ...live.hit_rate, step: MINUTE_s } : inSteps(live.last_minute ?? {}));
    this.showSizes(live.size_A ?? {});
    await Promise.all([this.showHits(live, told), this.showPowder(), this.showMap(told)]);
  }

  showCounters({ counters = {}, now = {}, kinds = {}, hits = 0 }) {
    this.numbers.show(COUNTERS.map((name) => ({ words: name, value: short(counters[name]), more: "" })));
    const missing = counters.received - counters.filtered - counters.dropped - counters.processed;
    const others = BESIDE.filter((name) => counters[name]).map((name) => `${count(counters[name])} ${name}`);
    const sum = "Received = filtered + dropped + processed.";
    const adds = missing ? `${count(missing)} ${missing === 1 ? "event is" : "events are"} not accounted for.` : sum;
    this.balance.className = missing ? "trouble" : "quiet";
    this.balance.textContent = others.length ? `${adds} Beside them ${others.join(", ")}.` : adds;
    const singles = hits && kinds.single ? ` ${percent(kinds.single / hits)} of hits` : "";
    this.now.show([
      { words: "hits", value: short(hits), more: counters.processed ? ` ${percent(hits / counters.processed)}` : "" },
      { words: "single particles", value: short(kinds.single), more: singles },
      { words: "frames per second", value: short(now.frames_per_s), more: "" },
      { words: "hits per second", value: withUnit(now.hits_per_s, ""), more: "" },
      // The latency of the last frame means nothing when no frames come any more.
      { words: "behind the detector", value: span(now.frames_per_s ? now.latency_s : null), more: "" },
    ]);
  }

  showRate({ t_s = [], hits = [], shots = [], step }) {
    const rate = hits.map((n, i) => (shots[i] ? (100 * n) / shots[i] : null));
    this.rate.show([{ name: "hit rate", x: t_s, y: rate, bars: step }]);
  }

  showSizes({ edges = [], counts = [], by_kind: byKind }) {
    const kinds = Object.keys(KIND_COLOURS).filter((name) => byKind?.[name]);
    const named = kinds.map((name) => ({ name, colour: KIND_COLOURS[name], counts: byKind[name] }));
    this.sizes.show(edges, named.length ? named : [{ name: "hits", colour: "curve-1", counts }]);
  }

  /** The newest hits, with the results of their analysis if these are available. */
  async showHits({ recent_hits: ids = [], hits = 0 }, { excluded = [], frame_tags: tags = {} }) {
    const isNew = ids.length > 0 && ids[0] !== this.hits[0]?.event_id;
    this.isBehind = isNew && this.gallery.isDrawing;
    if (isNew && !this.isBehind) {
      const asked = { first: Math.max(0, hits - ids.length), n: ids.length };
      const known = new Map();
      await getJson(`/api/runs/${this.run}/frames`, asked)
        .then((told) => rowsOf(told).forEach((frame) => known.set(frame.event_id, frame)))
        .catch(() => null);  // without it, show only pictures and ids
      this.hits = ids.map((id) => known.get(id) ?? { event_id: id });
    }
    this.gallery.show(this.hits, excluded, tags);
  }

  async showPowder() {
    try {
      const { bytes, shape } = await getArray(`/api/live/${this.run}/powder`, { of: this.powderOf });
      this.powder.show(upright(new Float32Array(bytes), ...shape), ...shape);
    } catch (trouble) {
      if (trouble.status !== 404) throw trouble;
    }
  }

  /** The map; until its first round, a sentence in its place. */
  async showMap(told) {
    if (!told.map) return;
    const described = await getJson(`/api/runs/${told.map}`);
    const has = described.has ?? {};
    this.map ??= this.makeMap(told.map);
    fill(this.map.words, described.words ?? "");
    if (!has.volume && !described.iteration) return;
    if (!this.map.volume) {
      this.map.volume = new VolumeView(told.map);
      this.map.curves = new RunCurves(told.map);
      this.map.aside.prepend(this.map.volume.controls);
      this.map.body.append(this.map.volume.whole, this.map.curves.whole);
    }
    this.map.volume.whole.hidden = this.map.volume.controls.hidden = !has.volume;
    this.map.volume.offer(has, described.n_models);
    await Promise.all([has.volume && this.map.volume.refresh(), this.map.curves.refresh()]);
  }

  makeMap(id) {
    const place = card("Map so far", { wide: true, name: "map" });
    const words = element("p", { class: "quiet" });
    place.aside.append(element("a", { href: `#/run/${id}` }, "all about it"));
    place.body.append(words);
    // Below rates and sizes, which people look at first.
    this.cards.children[1].after(place.whole);
    return { id, words, body: place.body, aside: place.aside, volume: null, curves: null };
  }

  changed(ids) {
    const isOurs = ids === null || ids.includes(this.run) || (this.map && ids.includes(this.map.id));
    return isOurs ? this.refresh() : null;
  }

  close() {
    this.map?.volume?.close();
  }
}

/** The newest live run, for the address #/live. */
export class LiveChoice {
  constructor() {
    this.title = "Live";
    this.whole = element("p", { class: "missing" }, "Looking for live runs …");
    this.refresh = oneAtATime(() => attempt(() => this.load()));
  }

  async load() {
    const told = await getJson("/api/runs", { kind: "live", sort: "-modified", limit: 200 });
    if (!this.whole.isConnected) return;
    learn(told);
    const newest = told.runs.find((run) => run.status !== "elsewhere");
    if (newest) location.replace(`#/live/${newest.id}`);
    else fill(this.whole, `There is no live run yet. ${HINT}`);
  }

  changed() {
    return this.refresh();
  }

  close() {}
}
