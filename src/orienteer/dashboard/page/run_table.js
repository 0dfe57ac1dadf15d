// The table of runs: search, tags, samples, order; a page of rows at a time, so that thousands stay fast.

import { statusChip, tagChip } from "./chips.js";
import { choice, element, fill, setOptions } from "./elements.js";
import { getJson, oneAtATime } from "./server.js";
import { attempt, learn, session } from "./session.js";
import { ago, count, moment, number, percent } from "./words.js";

const PAGE = 50;
const COLUMNS = [
  ["name", "run"], ["kind", "kind"], ["status", "state"], ["sample", "sample"], ["iteration", "iteration"],
  ["resolution_A", "resolution"], ["n_frames", "frames"], ["hit_rate", "hit rate"], ["modified", "changed"],
];
// Columns that are first sorted in descending order: the best or newest comes first.
const FALLING = ["modified", "iteration", "n_frames", "hit_rate"];

/** The view of all runs; `parameters` come from the address. */
export class RunTable {
  constructor(parameters) {
    const { search = "", tag = "", sample = "", sort = "-modified", offset = "0" } = parameters;
    this.wanted = { search, tag, sample, sort, offset: Math.max(0, Number(offset) || 0) };
    this.title = "Runs";
    this.refresh = oneAtATime(() => attempt(() => this.load()));
    const placeholder = "Search name, state, sample, tag   ( / )";
    this.search = element("input", { type: "search", placeholder, value: search, "aria-label": "Search runs" });
    let timer = null;
    this.search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.want({ search: this.search.value.trim(), offset: 0 }), 150);
    });
    const only = (key) => (value) => this.want({ [key]: value, offset: 0 });
    this.tag = choice("Only with this tag", [["", "all tags"]], "", only("tag"));
    this.sample = choice("Only of this sample", [["", "all samples"]], "", only("sample"));
    this.count = element("span", { class: "quiet", role: "status" });
    this.head = element("tr", {});
    this.rows = element("tbody", { onkeydown: (event) => this.step(event) });
    this.pager = element("nav", { class: "pager", "aria-label": "Pages of the table" });
    this.whole = element(
      "div", { class: "runs" },
      element("div", { class: "filters" }, this.search, this.tag, this.sample, this.count),
      element("div", { class: "scroll" }, element("table", {}, element("thead", {}, this.head), this.rows)),
      this.pager,
    );
  }

  want(changes) {
    if (!this.whole.isConnected) return null;  // another view was opened after typing
    Object.assign(this.wanted, changes);
    const given = Object.entries(this.wanted).filter(([, value]) => value && value !== "-modified");
    const query = new URLSearchParams(given).toString();
    history.replaceState(null, "", query ? `#/?${query}` : "#/");
    return this.refresh();
  }

  async load() {
    const told = await getJson("/api/runs", { ...this.wanted, limit: PAGE });
    learn(told);
    this.told = told;
    if (this.wanted.offset >= told.total && told.total > 0) {
      this.wanted.offset = PAGE * Math.floor((told.total - 1) / PAGE);
      return this.load();
    }
    this.draw();
    return null;
  }

  draw() {
    const { runs, total } = this.told;
    const { tag, sample, offset, search } = this.wanted;
    const known = [...new Set([...session.tags, ...(tag ? [tag] : [])])];
    setOptions(this.tag, [["", "all tags"], ...known.map((one) => [one, one])], tag);
    const samples = [...new Set([...session.samples, ...(sample ? [sample] : [])])].filter(Boolean);
    setOptions(this.sample, [["", "all samples"], ...samples.map((one) => [one, one])], sample);
    this.tag.hidden = known.length === 0;
    this.sample.hidden = samples.length === 0;
    this.count.textContent = `${count(total)} ${total === 1 ? "run" : "runs"}`;
    fill(this.head, COLUMNS.map(([key, words]) => this.heading(key, words)));
    const focused = document.activeElement?.closest?.("tr")?.dataset.run;
    fill(this.rows, runs.map(row));
    if (focused) this.rows.querySelector(`tr[data-run="${CSS.escape(focused)}"] a`)?.focus();
    if (!runs.length) {
      const isFiltered = search || tag || sample;
      const words = isFiltered ? "No run matches. Remove a filter." : "There is no run yet in the folders of this server.";
      fill(this.rows, element("tr", {}, element("td", { colSpan: COLUMNS.length, class: "quiet" }, words)));
    }
    this.drawPager(total, offset);
  }

  heading(key, words) {
    const { sort } = this.wanted;
    const isThis = sort.replace("-", "") === key;
    const isFalling = sort.startsWith("-");
    const next = isThis ? (isFalling ? key : `-${key}`) : FALLING.includes(key) ? `-${key}` : key;
    const sign = isThis ? (isFalling ? " ↓" : " ↑") : "";
    const order = isThis ? (isFalling ? "descending" : "ascending") : "none";
    return element(
      "th", { scope: "col", "aria-sort": order, class: `column-${key}` },
      element("button", { type: "button", onclick: () => this.want({ sort: next, offset: 0 }) }, words + sign),
    );
  }

  drawPager(total, offset) {
    if (total <= PAGE) {
      fill(this.pager);
      return;
    }
    const go = (words, to, disabled) =>
      element("button", { type: "button", disabled, onclick: () => this.want({ offset: to }) }, words);
    const last = PAGE * Math.floor((total - 1) / PAGE);
    fill(
      this.pager,
      go("« first", 0, offset === 0), go("‹ back", Math.max(0, offset - PAGE), offset === 0),
      element("span", {}, `${count(offset + 1)} to ${count(Math.min(total, offset + PAGE))} of ${count(total)}`),
      go("on ›", offset + PAGE, offset + PAGE >= total), go("last »", last, offset + PAGE >= total),
    );
  }

  /** Arrow keys go from row to row. */
  step(event) {
    const by = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = by && event.target.closest("tr")?.[by]?.querySelector("a");
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  /** Any change may change the order. */
  changed() {
    return this.refresh();
  }

  close() {}
}

function row(run) {
  // A run whose folder is elsewhere is known only from the database.
  const to = run.kind === "live" && run.status !== "elsewhere" ? `#/live/${run.id}` : `#/run/${run.id}`;
  const cells = {
    name: element("td", {}, element("a", { href: to }, run.name), ...(run.tags ?? []).map((tag) => tagChip(tag))),
    kind: run.kind,
    status: element("td", {}, statusChip(run.status)),
    sample: run.sample,
    iteration: numeric(run.iteration === null || run.iteration === undefined ? "" : count(run.iteration)),
    resolution_A: resolution(run),
    n_frames: numeric(run.n_frames === null || run.n_frames === undefined ? "" : count(run.n_frames)),
    hit_rate: numeric(run.hit_rate === null || run.hit_rate === undefined ? "" : percent(run.hit_rate)),
    modified: element("td", { title: moment(run.modified) }, ago(run.modified)),
  };
  const made = COLUMNS.map(([key, words]) => {
    const cell = cells[key] instanceof Node ? cells[key] : element("td", {}, cells[key] ?? "");
    cell.classList.add(`column-${key}`);
    cell.dataset.label = words;
    return cell;
  });
  return element("tr", { "data-run": run.id, title: run.words ?? "" }, made);
}

const numeric = (words) => element("td", { class: "number" }, words);

// The resolution shown by independent halves; before a validation, that of the run's own halves is shown instead.
function resolution(run) {
  if (run.resolution_A) return numeric(`${number(run.resolution_A)} Å`);
  if (!run.agrees_to_A) return numeric("");
  const cell = numeric(`(${number(run.agrees_to_A)} Å)`);
  cell.title = "resolution to which the halves of the run agree; not validated";
  return cell;
}
