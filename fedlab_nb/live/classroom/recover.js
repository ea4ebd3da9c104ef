// The drawings that sums give away. A pixel's values in n drawings are a vector of n whole numbers; the sums have the
// products of any two such vectors, and of each with (1, …, 1), so the lengths of all whole combinations are known. A vector is
// made shorter by others until none can be. A vector v of whole numbers with Σ v = Σ v² has but zeros and ones: it picks some
// drawings, one as a rule, and its product with a pixel is their values added up. Two that are alike are picked together.
const PIXELS = 64;
const STEPS = 16; // of grey: a pixel is a whole number of sixteenths
const MOST_STEPS = 20000; // a search that gets stuck ends here

/** The drawings [[64 numbers 0-1], …] of one class that a search finds in its sums: `count` drawings, `sums` [64] and
    `second` [64 × 64] of pixels 0-1. It finds all of a few drawings, and fewer or none of many. */
export function recoverDrawings(count, sums, second) {
  const size = PIXELS + 1;
  const products = new Float64Array(size * size);
  products[0] = count;
  for (let i = 0; i < PIXELS; i++) {
    products[i + 1] = products[(i + 1) * size] = Math.round(STEPS * sums[i]);
    for (let j = 0; j < PIXELS; j++) products[(i + 1) * size + j + 1] = Math.round(STEPS * STEPS * second[i * PIXELS + j]);
  }
  const { combined, lengths } = shorten(products, size);
  const found = new Map();
  for (let v = 0; v < size; v++) {
    const picked = lengths[v]; // drawings
    const row = new Float64Array(size);
    for (let q = 0; q < size; q++) {
      const times = combined[v * size + q];
      for (let i = 0; times && i < size; i++) row[i] += times * products[q * size + i];
    }
    if (picked < 1 || Math.abs(row[0]) !== picked) continue;
    const values = Array.from(row.subarray(1), (total) => total / row[0]);
    const isDrawing = values.every((value) => Number.isInteger(value) && value >= 0 && value <= STEPS);
    if (isDrawing) found.set(values.join(), { picked, image: values.map((value) => value / STEPS) });
  }
  return [...found.values()].flatMap(({ picked, image }) => Array.from({ length: picked }, () => image)).slice(0, count);
}

/** Vectors of which only the `products` are known, made as short as whole combinations of two make them: how they are
    `combined` of the first ones, and the squares of their `lengths`. */
function shorten(products, size) {
  const g = Float64Array.from(products);
  const combined = new Float64Array(size * size);
  for (let i = 0; i < size; i++) combined[i * (size + 1)] = 1;
  for (let step = 0; step < MOST_STEPS; step++) {
    let best = 0, from = 0, by = 0, times = 0;
    for (let j = 0; j < size; j++) {
      const length = Math.max(1, g[j * (size + 1)]);
      for (let i = 0; i < size; i++) {
        if (i === j) continue;
        const wanted = Math.round(g[i * size + j] / length);
        const shorter = 2 * wanted * g[i * size + j] - wanted * wanted * length;
        if (shorter > best) [best, from, by, times] = [shorter, i, j, wanted];
      }
    }
    if (best <= 0) break;
    for (let q = 0; q < size; q++) {
      combined[from * size + q] -= times * combined[by * size + q];
      g[from * size + q] -= times * g[by * size + q];
    }
    for (let q = 0; q < size; q++) g[q * size + from] -= times * g[q * size + by];
  }
  return { combined, lengths: Array.from({ length: size }, (_, i) => g[i * (size + 1)]) };
}
