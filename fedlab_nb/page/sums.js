// What adds up over clients, as the package has it: AFL's least squares and Gaussian heads on pixels, in Float64.
// Samples x [N, 64] lie one after the other in one array. A client makes its sums; the server solves for a list of them.

const D = 64;
const GAMMA = 1; // AFL: each client's own ridge, which the server takes off again
const RHO = 1; // AFL: the ridge that stays
const SHRINKAGE = 0.4; // Gaussian heads
const FLOOR = 1e-6; // least variance, as a share of the mean one

/** AFL: `moments` [65, 65] = XᵀX + γI and `classes` [65, C] = XᵀY, of rows (x, 1). */
export function aflSums(x, y, classes = 10) {
  const d = D + 1;
  const sums = { moments: new Float64Array(d * d), classes: new Float64Array(d * classes) };
  const row = new Float64Array(d).fill(1);
  for (let n = 0; n < y.length; n++) {
    for (let i = 0; i < D; i++) row[i] = x[n * D + i];
    for (let i = 0; i < d; i++) {
      sums.classes[i * classes + y[n]] += row[i];
      for (let j = 0; row[i] && j < d; j++) sums.moments[i * d + j] += row[i] * row[j];
    }
  }
  for (let i = 0; i < d; i++) sums.moments[i * (d + 1)] += GAMMA;
  return sums;
}

/** AFL's weights [65, C] from the clients' sums: (Σ A_k - MγI + ρI)⁻¹ Σ C_k. */
export function aflSolve(sums) {
  const d = D + 1;
  const [moments, right] = [added(sums, "moments"), added(sums, "classes")];
  for (let i = 0; i < d; i++) moments[i * (d + 1)] += RHO - sums.length * GAMMA;
  const { values, axes } = eigen(moments, d);
  const classes = right.length / d;
  const weights = new Float64Array(right.length);
  for (let e = 0; e < d; e++) for (let c = 0; c < classes; c++) {
    let along = 0;
    for (let i = 0; i < d; i++) along += axes[e * d + i] * right[i * classes + c];
    for (let i = 0; i < d; i++) weights[i * classes + c] += (axes[e * d + i] * along) / values[e];
  }
  return weights;
}

/** Scores [N, C] of AFL's weights. */
export function aflScores(weights, x) {
  const classes = weights.length / (D + 1);
  const scores = new Float64Array((x.length / D) * classes);
  for (let n = 0; n * D < x.length; n++) for (let i = 0; i <= D; i++) {
    const value = i < D ? x[n * D + i] : 1;
    for (let c = 0; value && c < classes; c++) scores[n * classes + c] += value * weights[i * classes + c];
  }
  return scores;
}

/** Gaussian heads: each class's `counts` [C], `sums` [C, 64] and `second` moments [C, 64, 64]. */
export function gaussSums(x, y, classes = 10) {
  const sums = { counts: new Float64Array(classes), sums: new Float64Array(classes * D), second: new Float64Array(classes * D * D) };
  for (let n = 0; n < y.length; n++) {
    const row = x.subarray(n * D, (n + 1) * D);
    sums.counts[y[n]] += 1;
    for (let i = 0, c = y[n] * D; i < D; i++) {
      sums.sums[c + i] += row[i];
      for (let j = 0, at = (c + i) * D; row[i] && j < D; j++) sums.second[at + j] += row[i] * row[j];
    }
  }
  return sums;
}

/** The quadratic discriminant of the clients' sums: `constants` [C], `means` [C, 64] and `whitening` [C, 64, 64], whose
    rows bring a difference from the mean to unit spread. A class without a sample has the constant -Infinity. */
export function gaussSolve(sums) {
  const [counts, totals, second] = ["counts", "sums", "second"].map((name) => added(sums, name));
  const classes = counts.length;
  const all = counts.reduce((s, n) => s + n, 0);
  const means = totals.map((value, at) => value / Math.max(1, counts[Math.floor(at / D)]));
  const spread = Array.from(counts, (count, c) => {
    const mean = means.subarray(c * D, (c + 1) * D);
    const own = second.slice(c * D * D, (c + 1) * D * D).map((value, at) => value / Math.max(1, count) - mean[Math.floor(at / D)] * mean[at % D]);
    const { values, axes } = eigen(own, D);
    return { values, axes, middle: values.reduce((s, v) => s + v, 0) / D };
  });
  const least = FLOOR * Math.max(FLOOR, spread.reduce((s, { middle }, c) => s + (middle * counts[c]) / all, 0));
  const constants = Float64Array.from(counts, (n) => Math.log(n / all));
  const whitening = new Float64Array(classes * D * D);
  spread.forEach(({ values, axes, middle }, c) => values.forEach((value, e) => {
    const shrunk = Math.max((1 - SHRINKAGE) * value + SHRINKAGE * middle, least);
    constants[c] -= Math.log(shrunk) / 2;
    for (let i = 0; i < D; i++) whitening[(c * D + e) * D + i] = axes[e * D + i] / Math.sqrt(shrunk);
  }));
  return { constants, means, whitening };
}

/** Scores [N, C] of Gaussian heads. */
export function gaussScores({ constants, means, whitening }, x) {
  const classes = constants.length;
  const scores = new Float64Array((x.length / D) * classes);
  const away = new Float64Array(D);
  for (let n = 0; n * D < x.length; n++) for (let c = 0; c < classes; c++) {
    for (let i = 0; i < D; i++) away[i] = x[n * D + i] - means[c * D + i];
    let length = 0;
    for (let e = 0, at = c * D * D; e < D; e++) {
      let along = 0;
      for (let i = 0; i < D; i++, at++) along += away[i] * whitening[at];
      length += along * along;
    }
    scores[n * classes + c] = constants[c] - length / 2;
  }
  return scores;
}

/** The clients' arrays `name`, added up. */
function added(sums, name) {
  const total = Float64Array.from(sums[0][name]);
  for (const own of sums.slice(1)) for (let i = 0; i < total.length; i++) total[i] += own[name][i];
  return total;
}

/** Eigenvalues and eigenvectors (rows of `axes`) of a symmetric matrix [d, d], by Jacobi's rotations (1846). */
function eigen(matrix, d) {
  const a = Float64Array.from(matrix);
  const axes = new Float64Array(d * d);
  for (let i = 0; i < d; i++) axes[i * (d + 1)] = 1;
  const size = a.reduce((s, v) => s + v * v, 0);
  for (let sweep = 0; sweep < 50; sweep++) {
    let off = 0;
    for (let p = 0; p < d; p++) for (let q = p + 1; q < d; q++) off += a[p * d + q] ** 2;
    if (off <= 1e-31 * size) break;
    for (let p = 0; p < d; p++) for (let q = p + 1; q < d; q++) {
      const over = a[p * d + q];
      if (over * over <= 1e-34 * size / (d * d)) continue;
      const ratio = (a[q * (d + 1)] - a[p * (d + 1)]) / (2 * over);
      const tangent = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.sqrt(ratio * ratio + 1));
      const cosine = 1 / Math.sqrt(tangent * tangent + 1);
      turn(a, p, q, d, d, cosine, tangent * cosine); // columns
      turn(a, p * d, q * d, 1, d, cosine, tangent * cosine); // rows
      turn(axes, p * d, q * d, 1, d, cosine, tangent * cosine);
    }
  }
  return { values: Float64Array.from({ length: d }, (_, i) => a[i * (d + 1)]), axes };
}


/** Rotate two lines of `count` numbers, from p and q on; in a line the numbers are `step` apart. */
function turn(a, p, q, step, count, cosine, sine) {
  for (let k = 0; k < count; k++, p += step, q += step) {
    const [one, other] = [a[p], a[q]];
    a[p] = cosine * one - sine * other;
    a[q] = sine * one + cosine * other;
  }
}
