// Numbers and times as text, formatted as in the rest of Orienteer.

/** Shown instead of a missing value. */
export const MISSING = "–";

/** A number with this many significant digits, large ones with thin spaces: 12 345, 0.0312, 1.2e-7. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return minus(value.toExponential(Math.max(0, digits - 1)));
  const decimals = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const [whole, part] = Math.abs(value).toFixed(Math.min(decimals, 12)).split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u2009") : whole;
  const tail = part && !Number.isInteger(value) ? `.${part}` : "";
  return (value < 0 ? "−" : "") + grouped + tail;
}

/** A count, whole: 1 234 567. */
export function count(value) {
  return number(value === null || value === undefined ? value : Math.round(value), 15);
}

/** A count with at most four characters, for big numbers on a small screen: 12.3k, 4.56M. */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= size) return number(value / (letter === "k" ? 1e3 : size), 3) + letter;
  }
  return count(value);
}

/** A part of a whole: 12.3 %. */
export function percent(share, digits = 3) {
  return share === null || share === undefined || Number.isNaN(share) ? MISSING : `${number(100 * share, digits)} %`;
}

/** A value with its unit, or a dash without one. */
export function withUnit(value, unit, digits = 3) {
  const words = number(value, digits);
  return words === MISSING || !unit ? words : `${words} ${unit}`;
}

/** A time span: 45 s, 3 min, 2 h 10 min, 3 d. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return MISSING;
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${number(1000 * seconds, 2)} ms`;
  if (seconds < 100) return `${number(seconds, 2)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} d`;
}

/** How long ago a time (s since 1970) was. */
export function ago(time, now = Date.now() / 1000) {
  if (!time) return MISSING;
  return now - time < 5 ? "now" : `${span(Math.max(0, now - time))} ago`;
}

/** The time of day, in the time zone of the reader; time: s since 1970. */
export function clock(time, hasSeconds = true) {
  const at = new Date(1000 * time);
  const parts = [at.getHours(), at.getMinutes(), ...(hasSeconds ? [at.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// Made once, because making one takes longer than drawing a row.
const DATES = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });

/** Date and time, in the time zone of the reader; time: s since 1970. */
export function moment(time) {
  return time ? DATES.format(1000 * time) : MISSING;
}

const minus = (words) => words.replace(/-/g, "−");
