// One live run, in a worker: the clients train alone, and everything that one upload allows is measured on the test
// images. What it says is what the package's runs of the same α, M and seed say, to rounding.
import { RECIPE, learner, logits, softmax } from "./learn.js";
import { aflScores, aflSolve, aflSums, gaussScores, gaussSolve, gaussSums } from "./sums.js";
import { deal, split } from "./deal.js";

const SHOWN = [1, 4, 10, 22, 40]; // epochs after which all is measured
const FENS = { rounds: 50, rate: 0.01, first: 0.9, second: 0.99, floor: 1e-3 }; // phase 2: T, η_s, β₁, β₂, κ; η_l is 1

const best = (scores, row, classes) => {
  const own = scores.subarray(row * classes, (row + 1) * classes);
  return own.indexOf(own.reduce((a, b) => Math.max(a, b)));
};
/** Share of the labels `y` that scores [N, classes] name. */
const accuracy = (scores, y, classes) => y.filter((label, row) => best(scores, row, classes) === label).length / y.length;
/** Σ_k w_k values_k, number by number. */
const mixed = (values, weights) => Float64Array.from(values[0], (_, i) => values.reduce((total, own, k) => total + weights[k] * own[i], 0));
const rows = (x, members) => Float32Array.from({ length: 64 * members.length }, (_, at) => x[64 * members[at >> 6] + (at & 63)]);
/** Sums as they travel, in 32 bits. */
const sent = (sums) => Object.fromEntries(Object.entries(sums).map(([name, values]) => [name, Float32Array.from(values)]));
/** Scores [N, classes] of each of `made`'s models for samples x: {networks: [M], fedavg, logits, ensemble, fens, …}. */
function answers({ networks, average, table, weights, head }, x, classes) {
  const each = networks.map((own) => logits(own, x));
  const all = each.map(() => 1 / each.length);
  const scores = { networks: each, fedavg: logits(average, x), logits: mixed(each, all), ensemble: mixed(each.map((own) => softmax(own, classes)), all) };
  if (weights) scores.afl = aflScores(weights, x);
  if (head) scores.gauss = gaussScores(head, x);
  if (table) scores.fens = combined(networks.map((own) => logits(rounded(own, classes), x)), table, classes);
  return scores;
}
/** Accuracies of scores; `each` client's, and their mean as "local". */
function measured({ networks, ...scores }, y, classes) {
  const each = networks.map((own) => accuracy(own, y, classes));
  const shares = Object.entries(scores).map(([name, own]) => [name, accuracy(own, y, classes)]);
  return { each, shares: { local: each.reduce((s, v) => s + v, 0) / each.length, ...Object.fromEntries(shares) } };
}
/** FENS' ensemble goes down in 8 bits: each layer's weights, not its biases, rounded to 127 steps on either side of 0. */
function rounded(parameters, classes) {
  const result = Float32Array.from(parameters);
  for (const [at, count] of [[0, 4096], [4160, 2048], [6240, 32 * classes]]) {
    const layer = result.subarray(at, at + count);
    const step = Math.fround(layer.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-38) / 127);
    layer.forEach((value, i) => { layer[i] = Math.round(value / step) * step; });
  }
  return result;
}
/** Σ_k λ_kc z_kc of the members' logits z_k [N, classes]; table: λ [M, classes]. */
const combined = (z, table, classes) => z[0].map((_, i) => z.reduce((s, own, k) => s + table[k * classes + (i % classes)] * own[i], 0));
/** FENS, phase 2: λ [M, classes] from 1/M on, by FedAdam on the slope over all that the clients held out. */
function aggregator(z, y, classes) {
  const table = new Float64Array(z.length * classes).fill(1 / z.length);
  const [mean, square] = [new Float64Array(table.length), new Float64Array(table.length)];
  for (let round = 0; round < FENS.rounds; round++) {
    const slopes = softmax(combined(z, table, classes), classes);
    y.forEach((label, n) => { slopes[n * classes + label] -= 1; });
    for (let q = 0; q < table.length; q++) {
      const [own, c] = [z[Math.floor(q / classes)], q % classes];
      let change = 0;
      for (let n = 0; n < y.length; n++) change -= (slopes[n * classes + c] * own[n * classes + c]) / y.length;
      mean[q] = FENS.first * mean[q] + (1 - FENS.first) * change;
      square[q] = FENS.second * square[q] + (1 - FENS.second) * change * change;
      table[q] += (FENS.rate * mean[q]) / (Math.sqrt(square[q]) + FENS.floor);
    }
  }
  return table;
}
/** The run, step by step: {done, of, each, shares}; the last step has `made`, all models. y, yTest: arrays of labels. */
function* run({ x, y, xTest, yTest, classes, alpha, clients, seed }) {
  const parts = deal(y, clients, alpha, seed).map((shard, k) => split(shard, seed, k));
  const own = parts.map(({ train }) => [rows(x, train), train.map((i) => y[i])]);
  const made = { weights: aflSolve(own.map((part) => sent(aflSums(...part, classes)))) };
  const sums = { afl: accuracy(aflScores(made.weights, xTest), yTest, classes) };
  yield { done: 0, of: RECIPE.epochs, shares: sums };
  const learners = own.map((part, client) => learner(...part, { seed, client, classes }));
  const sizes = own.map(([, labels]) => labels.length / own.reduce((s, part) => s + part[1].length, 0));
  for (let done = 1; done <= RECIPE.epochs; done++) {
    for (const one of learners) one.epoch();
    if (!SHOWN.includes(done)) continue;
    made.networks = learners.map((one) => one.parameters());
    made.average = Float32Array.from(mixed(made.networks, sizes));
    const { each, shares } = measured(answers({ networks: made.networks, average: made.average }, xTest, classes), yTest, classes);
    yield { done, of: RECIPE.epochs, each, shares: { ...sums, ...shares } };
  }
  const held = parts.flatMap((part) => part.held);
  const proxies = made.networks.map((network) => logits(rounded(network, classes), rows(x, held)));
  made.table = aggregator(proxies, held.map((i) => y[i]), classes);
  made.head = gaussSolve(own.map((part) => sent(gaussSums(...part, classes))));
  yield { done: RECIPE.epochs, of: RECIPE.epochs, ...measured(answers(made, xTest, classes), yTest, classes), made };
}
if (typeof document === "undefined") globalThis.onmessage = ({ data }) => { for (const step of run(data)) postMessage(step); };
