// One live run: workers train the clients, another one measures on the test images everything that one upload allows.
// What it says is what the package's runs of the same α, M and seed say, to rounding; a client's network does not depend
// on who else trains in its worker. parts: {train, held} sample numbers by client; y, yTest: arrays of labels.
import { RECIPE, combined, layoutOf, learner, logits, slopeOf, softmax } from "./learn.js";
import { countNetworks, countSums } from "./ledger.js";
import { addSums, aflScores, aflSolve, aflSums, gaussScores, gaussSolve, gaussSums } from "./sums.js";

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
/** Sums as they travel, in 32 bits. */
const sent = (sums) => Object.fromEntries(Object.entries(sums).map(([name, values]) => [name, Float32Array.from(values)]));
/** Scores [N, classes] of models for samples x: {networks: [M], fedavg, logits, ensemble, fens, …}; of those that there are. */
function answers({ networks, average, small, table, weights, head }, x, classes) {
  const scores = {};
  if (networks) {
    const each = networks.map((own) => logits(own, x));
    const all = each.map(() => 1 / each.length);
    scores.networks = each;
    scores.fedavg = logits(average, x);
    scores.logits = mixed(each, all);
    scores.ensemble = mixed(each.map((own) => softmax(own, classes)), all);
  }
  if (weights) scores.afl = aflScores(weights, x, classes);
  if (head) scores.gauss = gaussScores(head, x);
  if (table) scores.fens = combined(small.map((own) => logits(own, x)), table, classes);
  return scores;
}
/** How a method comes to its answer to one sample x, as Σ_k weights[k][c] values[k][c] of each class c:
    {values [M][C], weights [M][C], total [C]}; null where it is no sum over clients, or was not trained. */
function explainSum(name, models, x, classes) {
  const { networks, small, table } = models;
  let values = null;
  let weights = null;
  if (name === "fens" && table) {
    values = small.map((one) => Array.from(logits(one, x)));
    weights = values.map((_, k) => Array.from(table.subarray(k * classes, (k + 1) * classes)));
  } else if (networks && (name === "logits" || name === "ensemble")) {
    const read = (one) => (name === "logits" ? logits(one, x) : softmax(logits(one, x), classes));
    values = networks.map((one) => Array.from(read(one)));
    weights = values.map((row) => row.map(() => 1 / networks.length));
  }
  if (values === null) return null;
  return { values, weights, total: Array.from(answers(models, x, classes)[name]) };
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
/** FENS, phase 2: λ [M, classes] from 1/M on, by FedAdam on the slope over all that the clients held out (where one held
    out more than 128, Python takes 128 of them in a round). */
function aggregator(z, y, classes) {
  const table = new Float64Array(z.length * classes).fill(1 / z.length);
  const [mean, square] = [new Float64Array(table.length), new Float64Array(table.length)];
  for (let round = 0; round < FENS.rounds; round++) {
    slopeOf(z, table, y, classes).forEach((slope, q) => {
      mean[q] = FENS.first * mean[q] + (1 - FENS.first) * slope;
      square[q] = FENS.second * square[q] + (1 - FENS.second) * slope * slope;
      table[q] -= (FENS.rate * mean[q]) / (Math.sqrt(square[q]) + FENS.floor);
    });
  }
  return table;
}
/** How many numbers a sample has. */
const sizeOf = ({ x, y }) => x.length / y.length;
/** The rows and labels of these samples. */
function own(samples, members) {
  const size = sizeOf(samples);
  const x = new Float32Array(size * members.length);
  members.forEach((member, row) => x.set(samples.x.subarray(size * member, size * (member + 1)), size * row));
  return [x, members.map((i) => samples.y[i])];
}
/** AFL and Gaussian heads from the clients' sums, each client's in 32 bits: {weights, head, counts [M, C]}. */
function solveSums(parts, samples, classes) {
  const counts = [];
  let afl = null;
  let gauss = null;
  for (const { train } of parts) {
    const sums = gaussSums(...own(samples, train), classes, sizeOf(samples));
    counts.push(sums.counts);
    afl = addSums(afl, sent(aflSums(sums)));
    gauss = addSums(gauss, sent(sums));
  }
  return { weights: aflSolve(afl, parts.length), head: gaussSolve(gauss), counts };
}
/** The `clients` of one worker train; {done, networks: [[client, parameters], …]} after each epoch of SHOWN. */
function* training({ parts, clients, classes, seed, ...samples }) {
  const learners = clients.map((client) => learner(...own(samples, parts[client].train), { seed, client, classes }));
  for (let done = 1; done <= RECIPE.epochs; done++) {
    for (const one of learners) one.epoch();
    if (SHOWN.includes(done)) yield { done, networks: learners.map((one, i) => [clients[i], one.parameters()]) };
  }
}
/** A run of the methods that need no network, in a single step. */
function runSums({ xTest, yTest, classes, parts, ...samples }) {
  const { counts, ...made } = solveSums(parts, samples, classes);
  const scores = answers(made, xTest, classes);
  const shares = Object.fromEntries(Object.entries(scores).map(([name, values]) => [name, accuracy(values, yTest, classes)]));
  return { done: 1, shares, made, said: sayAll(scores, classes), legs: countSums({ size: sizeOf(samples), counts }) };
}
/** The server's part: takes what the workers send, and yields {done, each, shares} once all clients have done so many
    epochs, until then null. shares: accuracies by method; each: the clients'; the last step has `made`, all models, and
    `legs`, what was sent. */
function* serving({ xTest, yTest, classes, parts, ...samples }) {
  const { counts, ...made } = solveSums(parts, samples, classes);
  const share = (scores) => accuracy(scores, yTest, classes);
  const first = { afl: share(aflScores(made.weights, xTest, classes)), gauss: share(gaussScores(made.head, xTest)) };
  const [total, arrived] = [parts.reduce((s, { train }) => s + train.length, 0), {}];
  let step = { done: 0, shares: first };
  for (;;) {
    const { done, networks } = yield step;
    const all = arrived[done] ??= [];
    for (const [client, parameters] of networks) all[client] = parameters;
    step = null;
    if (Object.keys(all).length < parts.length) continue;
    const average = Float32Array.from(mixed(all, parts.map(({ train }) => train.length / total)));
    const last = done === RECIPE.epochs && phaseTwo(all, parts.flatMap(({ held }) => held), samples, classes);
    const { networks: each, ...scores } = answers({ networks: all, average, ...last }, xTest, classes);
    const shares = Object.fromEntries(Object.entries(scores).map(([name, values]) => [name, share(values)]));
    const alone = each.map(share);
    shares.local = alone.reduce((s, v) => s + v, 0) / alone.length;
    step = { done, each: alone, shares: { ...first, ...shares } };
    if (last) {
      step.made = { ...made, ...last, networks: all, average };
      step.said = sayAll(answers(step.made, xTest, classes), classes);
      const networkLegs = countNetworks({
        networks: all,
        layers: layoutOf(all[0].length),
        held: parts.map(({ held }) => held.length),
        rounds: FENS.rounds,
        numbers: last.table.length,
      });
      step.legs = { ...networkLegs, ...countSums({ size: sizeOf(samples), counts }) };
    }
  }
}
/** The class that each method and each network names for each image: {methods: {name: [N]}, clients: [M, N]}. */
function sayAll({ networks = [], ...scores }, classes) {
  const name = (values) => Uint8Array.from({ length: values.length / classes }, (_, row) => best(values, row, classes));
  const methods = Object.fromEntries(Object.entries(scores).map(([method, values]) => [method, name(values)]));
  return { methods, clients: networks.map(name) };
}
/** FENS of trained networks: `small`, in 8 bits, and their `table`, from the samples that clients held out. */
function phaseTwo(networks, held, samples, classes) {
  const [x, y] = own(samples, held);
  const small = networks.map((one) => rounded(one, classes));
  return { small, table: aggregator(small.map((one) => logits(one, x)), y, classes) };
}
let server;
/** What a worker makes of a message: a share of the clients to train, a run without networks, or what the clients sent. */
function takeStep(message) {
  if (message.clients) return training(message);
  if (message.isWithoutNetworks) return [runSums(message)];
  if (server) return [server.next(message).value];
  server = serving(message);
  return [server.next().value];
}
if (typeof document === "undefined") globalThis.onmessage = ({ data }) => {
  for (const step of takeStep(data)) if (step) postMessage(step);
};
