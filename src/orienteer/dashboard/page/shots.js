// A histogram of one column of the shots in the database of a campaign.

import { Axis } from "./axis.js";
import { choice, element, setOptions } from "./elements.js";
import { Histogram } from "./histogram.js";
import { getJson } from "./server.js";

const UNITS = { A: "Å", s: "s", J: "J", eV: "eV", m: "m", V: "V" };

/** A histogram of shots, with a choice of the column. */
export class ShotHistogram {
  /** run : its name in the campaign; empty: all runs. */
  constructor(run = "") {
    this.run = run;
    this.column = "photons";
    this.shown = "";
    this.columns = choice("Column of the shots", [["photons", "photons"]], "photons", (column) => {
      this.column = column;
      this.load();
    });
    this.histogram = new Histogram({ title: "Shots", hasCaption: false, y: "shots" });
    const change = () => this.histogram.setLog(logarithmic.checked);
    const logarithmic = element("input", { type: "checkbox", onchange: change });
    this.controls = element("div", { class: "choices" }, this.columns, element("label", {}, logarithmic, " log"));
    this.whole = element("div", {}, this.histogram.whole);
  }

  /** names : the columns to choose from; state : any value that changes when shots are added. */
  async refresh(names, state) {
    setOptions(this.columns, names.map((name) => [name, titled(name).label]), this.column);
    this.column = this.columns.value;
    this.controls.hidden = !names.length;
    const key = JSON.stringify([this.column, state]);
    if (key === this.shown) return;
    await this.load();
    this.shown = key;
  }

  async load() {
    const { column } = this;
    if (!column) {  // there is no shot yet
      this.histogram.show([], []);
      return;
    }
    const { edges, counts } = await getJson("/api/campaign/shots", { column, run: this.run, bins: 80 });
    if (column !== this.column) return;
    this.histogram.x = new Axis(titled(column));
    this.histogram.show(edges, [{ name: "shots", colour: "curve-1", counts }]);
  }
}

/** Label and unit of a column; its name ends with the unit. */
function titled(column) {
  if (column === "time_s" || column === "received_s") return { label: column === "time_s" ? "time" : "received", kind: "time" };
  const [, name, unit = ""] = column.match(/^(.*?)(?:_(A|s|J|eV|m|V))?$/);
  return { label: name.replaceAll("_", " "), unit: UNITS[unit] ?? "" };
}
