// The classroom's network (64-32-10, ReLU) trained as the package trains it: same recipe, same first weights, same
// batches from the same random streams. A client trained here is that client of the package, but for rounding.
// Samples are rows of 64 numbers 0-1, one after the other in one array; labels are whole numbers from 0 on.
/** The package's usual recipe for the digits: SGD with momentum and weight decay. */
export const RECIPE = { epochs: 40, batch: 32, rate: 0.05, momentum: 0.9, decay: 1e-5 };
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (value) => ((value % 1) * 2 ** 32) >>> 0;
const ROUNDS = primes.map((p) => fraction(Math.cbrt(p)));
const FIRST_HASH = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
const turnRight = (word, by) => (word >>> by) | (word << (32 - by));
/** The 63-bit seed of the stream `names` of a run's `seed`, as [low 32 bits, the others]: `rng.derive_stream_seed` of the package,
    which takes the first 8 bytes of SHA-256 (FIPS 180-4; one block: at most 55 letters). */
export function seedFor(seed, ...names) {
  const text = [seed, ...names].join("/");
  const w = new Uint32Array(64);
  [...text, "\x80"].forEach((letter, i) => { w[i >> 2] |= letter.charCodeAt(0) << (24 - 8 * (i % 4)); });
  w[15] = 8 * text.length;
  for (let i = 16; i < 64; i++) {
    const [p, q] = [w[i - 15], w[i - 2]];
    w[i] = w[i - 16] + w[i - 7] + ((turnRight(p, 7) ^ turnRight(p, 18) ^ (p >>> 3)) >>> 0) + ((turnRight(q, 17) ^ turnRight(q, 19) ^ (q >>> 10)) >>> 0);
  }
  let [a, b, c, d, e, f, g, h] = FIRST_HASH;
  for (let i = 0; i < 64; i++) {
    const one = h + (turnRight(e, 6) ^ turnRight(e, 11) ^ turnRight(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i];
    const two = (turnRight(a, 2) ^ turnRight(a, 13) ^ turnRight(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  const [high, low] = [(a + FIRST_HASH[0]) >>> 0, (b + FIRST_HASH[1]) >>> 0];
  return [((high << 31) | (low >>> 1)) >>> 0, high >>> 1];
}
/** PyTorch's CPU generator, 32 random bits a call: the Mersenne twister (Matsumoto and Nishimura 1998). */
function twister([seed]) {
  const state = new Uint32Array(624).fill(seed);
  for (let j = 1; j < 624; j++) state[j] = Math.imul(1812433253, state[j - 1] ^ (state[j - 1] >>> 30)) + j;
  let drawn = 624;
  return () => {
    for (let j = 0; drawn === 624 && j < 624; j++) {
      const mixed = (state[j] & 0x80000000) | (state[(j + 1) % 624] & 0x7fffffff);
      state[j] = state[(j + 397) % 624] ^ (mixed >>> 1) ^ (mixed & 1 && 0x9908b0df);
    }
    drawn %= 624;
    let word = state[drawn++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  };
}
const SIZES = [64, 64, 32];
/** Where each layer's weights and biases lie among the parameters. */
function layout(classes) {
  let end = 0;
  return SIZES.map((inputs, l) => {
    const [at, outputs] = [end, SIZES[l + 1] ?? classes];
    end = at + (inputs + 1) * outputs;
    return { inputs, outputs, at, bias: at + inputs * outputs, end };
  });
}
export const layoutOf = (count) => layout((count - layout(0)[2].at) / (SIZES[2] + 1));
/** The parameters with each layer's weights [outputs, inputs] as [inputs, outputs] in Float64, or `back` again. */
function turned(parameters, layers, back = false) {
  const result = new (back ? Float32Array : Float64Array)(parameters);
  for (const { inputs, outputs, at } of layers) {
    for (let i = 0; i < inputs; i++) for (let o = 0; o < outputs; o++) {
      const [one, other] = [at + o * inputs + i, at + i * outputs + o];
      result[back ? one : other] = parameters[back ? other : one];
    }
  }
  return result;
}
/** First weights: each layer uniform in ±1/√inputs, weights before biases, from the stream "init". */
function initial(seed, layers) {
  const draw = twister(seedFor(seed, "init", "mlp"));
  const parameters = new Float32Array(layers[2].end);
  for (const { inputs, at, end } of layers) {
    const bound = Math.fround(1 / Math.sqrt(inputs));
    for (let i = at; i < end; i++) parameters[i] = ((draw() & 0xffffff) / 2 ** 24) * 2 * bound - bound;
  }
  return parameters;
}
/** to[at + o] += Σ_i from[first + i · step] · matrix[start + i · width + o], for all i < count, o < width. Zeros, half of
    the pixels and of the hidden units, cost nothing; the others are taken four at a time. */
function addRows(to, at, width, from, first, step, count, matrix, start) {
  let found = 0;
  for (let i = 0; i < count; i++) {
    const value = from[first + i * step];
    if (value === 0) continue;
    values[found] = value;
    places[found++] = start + i * width;
  }
  for (; found % 4; found++) [values[found], places[found]] = [0, start];
  for (let f = 0; f < found; f += 4) {
    const p = values[f], q = values[f + 1], r = values[f + 2], s = values[f + 3];
    const i = places[f], j = places[f + 1], k = places[f + 2], l = places[f + 3];
    for (let o = 0; o < width; o++) to[at + o] += p * matrix[i + o] + q * matrix[j + o] + (r * matrix[k + o] + s * matrix[l + o]);
  }
}
const [values, places] = [new Float64Array(64), new Int32Array(64)];
/** Fill the activations `acts` (input, two hidden layers, logits; [rows, units] each) from the input on; w: `turned`. */
function forward(w, layers, acts, rows) {
  for (let l = 0; l < 3; l++) {
    const { inputs, outputs, at, bias } = layers[l];
    const to = acts[l + 1];
    for (let n = 0; n < rows; n++) {
      const first = n * outputs;
      for (let o = 0; o < outputs; o++) to[first + o] = w[bias + o];
      addRows(to, first, outputs, acts[l], n * inputs, 1, inputs, w, at);
      for (let o = first; l < 2 && o < first + outputs; o++) if (to[o] < 0) to[o] = 0;
    }
  }
}
const activations = (layers, rows) => [SIZES[0], ...layers.map(({ outputs }) => outputs)].map((n) => new Float64Array(rows * n));
/** Logits [N, classes] of a network's parameters (in the package's order) for samples x [N, 64]. */
export function logits(parameters, x) {
  const [layers, rows] = [layoutOf(parameters.length), x.length / SIZES[0]];
  const acts = activations(layers, rows);
  acts[0].set(x);
  forward(turned(parameters, layers), layers, acts, rows);
  return Float32Array.from(acts[3]);
}
/** Softmax of each row of `values` [N, classes], into `result`. */
export function softmax(values, classes, result = new Float64Array(values.length)) {
  for (let at = 0; at < values.length; at += classes) {
    let [most, total] = [-Infinity, 0];
    for (let c = at; c < at + classes; c++) most = Math.max(most, values[c]);
    for (let c = at; c < at + classes; c++) total += result[c] = Math.exp(values[c] - most);
    for (let c = at; c < at + classes; c++) result[c] /= total;
  }
  return result;
}
/** FENS: Σ_k λ_kc z_kc of the members' logits z_k [N, classes]; table: λ [M, classes]. */
export const combined = (z, table, classes) => z[0].map((_, i) => z.reduce((s, own, k) => s + table[k * classes + (i % classes)] * own[i], 0));
/** The slope of their mean cross-entropy on the labels `y`, [M, classes]. */
export function slopeOf(z, table, y, classes) {
  const slopes = softmax(combined(z, table, classes), classes);
  y.forEach((label, n) => { slopes[n * classes + label] -= 1; });
  const slope = (own, c) => y.reduce((sum, _, n) => sum + (slopes[n * classes + c] * own[n * classes + c]) / y.length, 0);
  return Float64Array.from(table, (_, q) => slope(z[Math.floor(q / classes)], q % classes));
}
/** A client that learns from x [N, 64], y [N]: `epoch()` is one pass over its shuffled samples, `parameters()` gives the
    network as it is now, in the package's order. client: its number, which names its stream of batches. */
export function learner(x, y, { seed = 0, client = 0, classes = 10 } = {}) {
  const layers = layout(classes);
  const w = turned(initial(seed, layers), layers);
  const [slope, velocity] = [new Float64Array(w.length), new Float64Array(w.length)];
  const [acts, deltas] = [activations(layers, RECIPE.batch), activations(layers, RECIPE.batch)];
  const draw = twister(seedFor(seed, "batches", client));
  /** The slope of the mean cross-entropy of a batch: of samples whose activations stand in `acts`. */
  function backward(labels) {
    const rows = labels.length;
    slope.fill(0);
    softmax(acts[3], classes, deltas[3]);
    labels.forEach((label, n) => { deltas[3][n * classes + label] -= 1; });
    for (let p = 0; p < rows * classes; p++) deltas[3][p] /= rows;
    for (let l = 2; l >= 0; l--) {
      const { inputs, outputs, at, bias } = layers[l];
      const [from, above, below] = [acts[l], deltas[l + 1], deltas[l]];
      for (let n = 0; n < rows; n++) for (let o = 0; o < outputs; o++) slope[bias + o] += above[n * outputs + o];
      for (let i = 0; i < inputs; i++) addRows(slope, at + i * outputs, outputs, from, i, inputs, rows, above, 0);
      for (let n = 0; l > 0 && n < rows; n++) for (let i = 0; i < inputs; i++) {
        let back = 0;
        if (from[n * inputs + i] !== 0) { // else the unit is at rest: no slope
          for (let o = 0, k = at + i * outputs, q = n * outputs; o < outputs; o++) back += w[k + o] * above[q + o];
        }
        below[n * inputs + i] = back;
      }
    }
  }
  function epoch() {
    const order = Array.from(y, (_, i) => i); // torch.randperm
    for (let i = 0; i < order.length - 1; i++) {
      const other = i + (draw() % (order.length - i));
      [order[i], order[other]] = [order[other], order[i]];
    }
    for (let start = 0; start < order.length; start += RECIPE.batch) {
      const batch = order.slice(start, start + RECIPE.batch);
      batch.forEach((row, n) => acts[0].set(x.subarray(row * SIZES[0], (row + 1) * SIZES[0]), n * SIZES[0]));
      forward(w, layers, acts, batch.length);
      backward(batch.map((row) => y[row]));
      for (let i = 0; i < w.length; i++) {
        velocity[i] = RECIPE.momentum * velocity[i] + slope[i] + RECIPE.decay * w[i];
        w[i] -= RECIPE.rate * velocity[i];
      }
    }
  }
  return { epoch, parameters: () => turned(w, layers, true) };
}
/** Train one client on x [N, 64], y [N]; its parameters, 6,570 for 10 classes. */
export function train(x, y, { epochs = RECIPE.epochs, ...options } = {}) {
  const own = learner(x, y, options);
  for (let done = 0; done < epochs; done++) own.epoch();
  return own.parameters();
}
