// A phone's sums and arrays as they travel; the other side: messages.py.
import { gaussSums } from "./sums.js";

export const DIGIT_CLASSES = 10;
export const DRAWING_SIZE = 64; // numbers of a drawing
/** Numbers of the sums of one class. */
export const SUM_SIZE = DRAWING_SIZE + (DRAWING_SIZE * (DRAWING_SIZE + 1)) / 2;

/** `counts`, `sums` and `second` of drawings x, one after the other, with labels y. */
export function sumDrawings(x, y) {
  return gaussSums(x, y, DIGIT_CLASSES, DRAWING_SIZE);
}

/** Sums as they travel: of each class with drawings its pixels' sums, then the upper triangle of their products. */
export function packSums({ counts, sums, second }) {
  const numbers = [];
  counts.forEach((count, c) => {
    if (!count) return;
    numbers.push(...sums.subarray(DRAWING_SIZE * c, DRAWING_SIZE * (c + 1)));
    for (let i = 0; i < DRAWING_SIZE; i++) {
      const row = DRAWING_SIZE * (DRAWING_SIZE * c + i);
      numbers.push(...second.subarray(row + i, row + DRAWING_SIZE));
    }
  });
  return Float32Array.from(numbers);
}

/** A typed array's bytes as text. */
export function encodeArray(array) {
  const bytes = new Uint8Array(array.buffer);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** How long the text of so many bytes is. */
export function measureAsText(bytes) {
  return 4 * Math.ceil(bytes / 3);
}
