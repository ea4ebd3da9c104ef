// What adds up over clients, as the package has it: AFL's least squares and Gaussian heads on pixels, in Float64.
// Samples x [N, D] lie one after the other in one array. A client makes its sums; the server adds them up and solves.

const GAMMA = 1; // AFL: each client's own ridge, which the server takes off again
const RHO = 1; // AFL: the ridge that stays
const SHRINKAGE = 0.4; // Gaussian heads
const FLOOR = 1e-6; // least variance, as a share of the mean one

/** Add a client's arrays to the total of those before, name by name; total null: it is the first. */
export function addSums(total, sums) {
  if (total === null) return Object.fromEntries(Object.entries(sums).map(([name, values]) => [name, Float64Array.from(values)]));
  for (const [name, values] of Object.entries(sums)) {
    values.forEach((value, i) => { total[name][i] += value; });
  }
  return total;
}
/** AFL: `moments` [D + 1, D + 1] = XᵀX + γI and `classes` [D + 1, C] = XᵀY, of rows (x, 1); they lie in the sums of
    `gaussSums`. */
export function aflSums({ counts, sums, second }) {
  const many = counts.length;
  const D = sums.length / many;
  const d = D + 1;
  const made = { moments: new Float64Array(d * d), classes: new Float64Array(d * many) };
  for (let i = 0; i < d; i++) for (let c = 0; c < many; c++) {
    const own = made.classes[i * many + c] = i < D ? sums[c * D + i] : counts[c];
    made.moments[i * d + D] += own;
    for (let j = 0; i < D && j < D; j++) made.moments[i * d + j] += second[(c * D + i) * D + j];
  }
  for (let i = 0; i < D; i++) made.moments[D * d + i] = made.moments[i * d + D];
  for (let i = 0; i < d; i++) made.moments[i * (d + 1)] += GAMMA;
  return made;
}
/** AFL's weights [D + 1, C] from the sums of so many clients: (Σ A_k - MγI + ρI)⁻¹ Σ C_k. */
export function aflSolve({ moments, classes }, clients) {
  const d = Math.sqrt(moments.length);
  const kept = Float64Array.from(moments);
  for (let i = 0; i < d; i++) kept[i * (d + 1)] += RHO - clients * GAMMA;
  return solve(kept, classes, d).solution;
}
/** Scores [N, C] of AFL's weights. */
export function aflScores(weights, x, classes) {
  const D = weights.length / classes - 1;
  const scores = new Float64Array((x.length / D) * classes);
  for (let n = 0; n * D < x.length; n++) for (let i = 0; i <= D; i++) {
    const value = i < D ? x[n * D + i] : 1;
    for (let c = 0; value && c < classes; c++) scores[n * classes + c] += value * weights[i * classes + c];
  }
  return scores;
}
/** Gaussian heads: each class's `counts` [C], `sums` [C, D] and `second` moments [C, D, D]; D: numbers of a sample. */
export function gaussSums(x, y, classes, D) {
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
/** The quadratic discriminant of the sums: `constants` [C], `means` [C, D] and `precisions` [C, D, D], the
    inverse covariances. A class without a sample has the constant -Infinity. One whose samples are all alike, or that
    has but one, is given the least variance in every direction. */
export function gaussSolve({ counts, sums: totals, second }) {
  const D = totals.length / counts.length;
  const identity = Float64Array.from({ length: D * D }, (_, at) => Number(at % (D + 1) === 0));
  const all = counts.reduce((total, n) => total + n, 0);
  const means = totals.map((value, at) => value / Math.max(1, counts[Math.floor(at / D)]));
  const spread = second.map((value, at) => {
    const [row, j] = [Math.floor(at / D), at % D];
    const c = Math.floor(row / D);
    return value / Math.max(1, counts[c]) - means[row] * means[c * D + j];
  });
  const middle = Array.from(counts, (_, c) => sumDiagonal(spread.subarray(c * D * D, (c + 1) * D * D), D) / D);
  const least = FLOOR * Math.max(FLOOR, middle.reduce((total, value, c) => total + (value * counts[c]) / all, 0));
  const made = middle.map((value, c) => {
    const kept = SHRINKAGE * value < least ? 0 : 1 - SHRINKAGE;
    return solve(identity.map((one, at) => kept * spread[c * D * D + at] + one * Math.max(least, SHRINKAGE * value)), identity, D);
  });
  const precisions = new Float64Array(second.length);
  made.forEach(({ solution }, c) => precisions.set(solution, c * D * D));
  return { constants: counts.map((n, c) => Math.log(n / all) - made[c].logDet / 2), means, precisions };
}
/** Scores [N, C] of Gaussian heads. */
export function gaussScores({ constants, means, precisions }, x) {
  const classes = constants.length;
  const D = means.length / classes;
  const scores = new Float64Array((x.length / D) * classes);
  const away = new Float64Array(D);
  for (let n = 0; n * D < x.length; n++) for (let c = 0; c < classes; c++) {
    for (let i = 0; i < D; i++) away[i] = x[n * D + i] - means[c * D + i];
    let length = 0;
    for (let i = 0, at = c * D * D; i < D; i++) for (let j = 0; j < D; j++, at++) length += away[i] * precisions[at] * away[j];
    scores[n * classes + c] = constants[c] - length / 2;
  }
  return scores;
}
/** The trace of a matrix [d, d]. */
function sumDiagonal(matrix, d) {
  let total = 0;
  for (let i = 0; i < d; i++) total += matrix[i * (d + 1)];
  return total;
}
/** matrix⁻¹ right by elimination (Gauss and Jordan), and the logarithm of the determinant; the matrix [d, d] is symmetric
    and positive definite, right [d, any]. */
function solve(matrix, right, d) {
  const [a, solution, columns] = [Float64Array.from(matrix), Float64Array.from(right), right.length / d];
  let logDet = 0;
  for (let p = 0; p < d; p++) {
    const pivot = a[p * (d + 1)];
    logDet += Math.log(pivot);
    for (let i = 0; i < d; i++) {
      const factor = a[i * d + p] / pivot;
      if (i === p || factor === 0) continue;
      for (let j = p; j < d; j++) a[i * d + j] -= factor * a[p * d + j];
      for (let c = 0; c < columns; c++) solution[i * columns + c] -= factor * solution[p * columns + c];
    }
  }
  return { solution: solution.map((value, at) => value / a[Math.floor(at / columns) * (d + 1)]), logDet };
}
