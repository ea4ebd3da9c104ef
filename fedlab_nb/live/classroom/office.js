// What an office is called and which colour it has, on the phones and on the projector alike.
import { listed, plural } from "./text.js";

export const DIGITS = ["zeros", "ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines"];

/** The colour of a seat, an angle on the wheel: far apart for neighbours. */
export const hueOf = (seat) => Math.round((seat * 137.508) % 360);

/** "0.2 kB", "58 kB", "1.9 MB": few enough figures for a desk on the wall. */
export function formatBytes(bytes) {
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)}\u00a0MB`;
  return `${(bytes / 1000).toFixed(bytes < 10000 ? 1 : 0)}\u00a0kB`;
}

/** "zeros and sevens", the digits that labels have, the most frequent first. */
export function describeDigits(labels) {
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const held = [...counts.keys()].sort((p, q) => counts.get(q) - counts.get(p) || p - q);
  return listed(held.map((label) => DIGITS[label]));
}

/** "3:05" */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** "2 drawings", with the right form of the word. */
export const drawings = (count) => plural(count, "drawing");
