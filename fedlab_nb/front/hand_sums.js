// What weights of an ensemble are worth: sums of the clients' logits, made here so that sliders do not wait.
// The same sums are those of labs/coboosting/votes.py.

/** Numbers from a text: base64 of their bytes, as float32. */
export function unpackNumbers(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** w / Σ w; equal shares where Σ w = 0. */
export function normaliseWeights(weights) {
  const total = weights.reduce((sum, one) => sum + one, 0);
  return weights.map((one) => (total > 0 ? one / total : 1 / weights.length));
}

/** Σ_k w_k f_k of each image and class, [N, C]. logits: [N, M, C], row after row. */
export function sumLogits(logits, weights, classes) {
  const clients = weights.length;
  const images = logits.length / (clients * classes);
  const used = weights.some((one) => one > 0) ? weights : weights.map(() => 1);
  const sums = new Float64Array(images * classes);
  for (let n = 0; n < images; n++) {
    for (let k = 0; k < clients; k++) {
      const from = (n * clients + k) * classes;
      for (let c = 0; c < classes; c++) sums[n * classes + c] += used[k] * logits[from + c];
    }
  }
  return sums;
}

/** The class that each image gets, [N]. */
export function predictClasses(logits, weights, classes) {
  const sums = sumLogits(logits, weights, classes);
  const images = sums.length / classes;
  return Array.from({ length: images }, (_, n) => {
    let best = 0;
    for (let c = 1; c < classes; c++) if (sums[n * classes + c] > sums[n * classes + best]) best = c;
    return best;
  });
}

/** What weights get right of images with these numbers: `all` of them, and by class, [C], null without images. */
export function scoreWeights({ logits, labels, classes }, weights, numbers) {
  const said = predictClasses(logits, weights, classes);
  const right = new Array(classes).fill(0);
  const images = new Array(classes).fill(0);
  for (const n of numbers) {
    images[labels[n]] += 1;
    right[labels[n]] += said[n] === labels[n] ? 1 : 0;
  }
  const count = right.reduce((sum, one) => sum + one, 0);
  return { all: count / numbers.length, byClass: right.map((one, c) => (images[c] ? one / images[c] : null)) };
}
