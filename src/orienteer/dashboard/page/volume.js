// A volume as the server sends it: one byte per voxel between a low and a high value.

import { getArray } from "./server.js";

/**
 * A cube of n^3 voxels, indexed [x, y, z] with z running fastest.
 *
 * low, high : values of the bytes 0 and 255; their decimal logarithms where `isLog`.
 * voxel, unit : edge of a voxel.
 */
export class Volume {
  constructor({ bytes, n, low, high, voxel, unit, isLog }) {
    Object.assign(this, { bytes, n, low, high, voxel, unit, isLog });
  }

  /** The value of a byte. */
  value(byte) {
    const value = this.low + (byte / 255) * (this.high - this.low);
    return this.isLog ? 10 ** value : value;
  }

  /** The byte of a voxel. */
  at(x, y, z) {
    return this.bytes[(x * this.n + y) * this.n + z];
  }

  /**
   * The plane through a voxel, perpendicular to an axis (0: x, 1: y, 2: z).
   *
   * Returns n * n bytes, row after row; the first of the other two axes runs to the right, the second upwards.
   */
  plane(axis, index) {
    const { n } = this;
    const plane = new Uint8Array(n * n);
    for (let up = 0; up < n; up++) {
      for (let right = 0; right < n; right++) {
        const place = [right, up];
        place.splice(axis, 0, index);
        plane[(n - 1 - up) * n + right] = this.at(...place);
      }
    }
    return plane;
  }

  /** The largest distance of voxels at or above a byte from the centre, in half edges: 1 is the middle of a face. */
  reach(byte) {
    const { n, bytes } = this;
    const middle = Math.floor(n / 2);
    let farthest = 0;
    for (let i = 0; i < bytes.length; i++) {
      if (bytes[i] < byte) continue;
      const [x, y, z] = [Math.floor(i / (n * n)) - middle, (Math.floor(i / n) % n) - middle, (i % n) - middle];
      farthest = Math.max(farthest, x * x + y * y + z * z);
    }
    return Math.sqrt(farthest) / (n / 2);
  }

  /** The level (byte) at which a surface is first shown. */
  firstLevel() {
    const counts = new Float64Array(256);
    for (const byte of this.bytes) counts[byte] += 1;
    return Math.min(254, Math.max(1, this.isLog ? this.brightest(counts) : this.parting(counts)));
  }

  /**
   * The byte that a fifth of the measured voxels reach: for an intensity, it includes speckles, but not the noise far
   * out.  Voxels that were not measured have the lowest value.
   */
  brightest(counts) {
    let left = 0.8 * (this.bytes.length - counts[0]);
    return 1 + counts.slice(1).findIndex((n) => (left -= n) <= 0);
  }

  /** The byte that best separates inside from outside: the variance within the two is least (Otsu 1979). */
  parting(counts) {
    const total = this.bytes.length;
    const sum = counts.reduce((all, n, byte) => all + n * byte, 0);
    let [below, belowSum, best, level] = [0, 0, -1, 128];
    for (let byte = 0; byte < 255; byte++) {
      below += counts[byte];
      belowSum += byte * counts[byte];
      const above = total - below;
      if (!below || !above) continue;
      const between = below * above * (belowSum / below - (sum - belowSum) / above) ** 2;
      if (between > best) [best, level] = [between, byte + 1];
    }
    return this.outsideOfLayers(counts, level);
  }

  /**
   * The level, or a lower one if the surface would cut through a layer of just that value and look ragged: a clean
   * surface lies where values change fast, so that few voxels have nearly its value.
   */
  outsideOfLayers(counts, level) {
    const below = counts.slice(0, level);
    let left = below.reduce((all, n) => all + n, 0) / 2;
    const around = below.findIndex((n) => (left -= n) <= 0);
    const reach = Math.round((level - around) / 20);
    const near = (byte) => counts.slice(byte - reach, byte + reach + 1).reduce((all, n) => all + n, 0);
    let best = level;
    for (let byte = level; byte > around + (level - around) / 3; byte--) if (near(byte) < near(best)) best = byte;
    return near(level) > 2 * near(best) ? best : level;
  }
}

/** Ask for a volume of a run: kind "intensity", "density" or "density_loop"; model counts from 1. */
export async function getVolume(run, kind, model, size, signal) {
  const told = await getArray(`/api/runs/${run}/volume`, { kind, model, size }, signal);
  const bytes = new Uint8Array(told.bytes);
  const n = told.shape[0];
  if (bytes.length !== n ** 3) throw new Error(`The volume has ${bytes.length} voxels instead of ${n}³.`);
  return new Volume({ ...told, bytes, n });
}
