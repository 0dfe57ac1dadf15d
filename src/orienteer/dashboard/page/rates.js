// Hits per shot over time, in steps as fine as the shots allow.

const STEPS_s = [1, 2, 5, 10, 30];

/**
 * Rates by second in steps without holes: shots come in batches, which may take longer than a second.
 *
 * Returns { t_s, shots, hits, step }: beginnings of the steps, and their width in seconds.
 */
export function inSteps({ t_s: times = [], shots = [], hits = [] }) {
  const span = times.length ? times.at(-1) - times[0] : 0;
  const holes = (step) => 1 - new Set(times.map((t) => Math.floor(t / step))).size / (Math.floor(span / step) + 1);
  const step = STEPS_s.find((one) => holes(one) < 0.1) ?? STEPS_s.at(-1);
  const joined = new Map();
  times.forEach((t, i) => {
    const begin = step * Math.floor(t / step);
    const sums = joined.get(begin) ?? { shots: 0, hits: 0 };
    joined.set(begin, { shots: sums.shots + shots[i], hits: sums.hits + hits[i] });
  });
  const sums = [...joined.values()];
  return { t_s: [...joined.keys()], shots: sums.map((one) => one.shots), hits: sums.map((one) => one.hits), step };
}
