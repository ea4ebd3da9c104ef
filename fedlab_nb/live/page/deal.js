// Who gets which sample, as the package deals them out (data/partition.py, "dirichlet"; Federation.split): the same
// draws of NumPy's generator, so that the same α, M and seed give every client the same samples.
import { seedFor } from "./learn.js";
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
const wide = (value) => BigInt.asUintN(128, value);
/** The four 64-bit numbers that NumPy's SeedSequence makes of the words [low, high] of a seed. */
function spread(words) {
  const mixed = (value) => (value ^ (value >>> 16)) >>> 0;
  const hasher = (constant, factor) => (value) => {
    const crossed = value ^ constant;
    constant = Math.imul(constant, factor);
    return mixed(Math.imul(crossed, constant));
  };
  const into = hasher(0x43b0d7e5, 0x931e8875);
  const pool = [0, 1, 2, 3].map((i) => into(words[i] ?? 0));
  for (let from = 0; from < 4; from++) for (let to = 0; to < 4; to++) {
    if (from !== to) pool[to] = mixed(Math.imul(0xca01f9dd, pool[to]) - Math.imul(0x4973f715, into(pool[from])));
  }
  const out = hasher(0x8b51f9dd, 0x58f38ded);
  const drawn = [...pool, ...pool].map((word) => BigInt(out(word)));
  return [0, 2, 4, 6].map((i) => drawn[i] | (drawn[i + 1] << 32n));
}
/** NumPy's default generator for a seed's words: PCG64 (O'Neill 2014), XSL-RR 128/64, and what is drawn from it. */
export function generator(words) {
  const [seedHigh, seedLow, pathHigh, pathLow] = spread(words);
  const path = wide((((pathHigh << 64n) | pathLow) << 1n) | 1n);
  let state = wide((path + ((seedHigh << 64n) | seedLow)) * MULTIPLIER + path);
  const halves = []; // of a draw of 64 bits, when 32 were wanted
  /** 64 bits as [low, high]. */
  function bits() {
    state = wide(state * MULTIPLIER + path);
    const [crossed, by] = [BigInt.asUintN(64, (state >> 64n) ^ state), state >> 122n];
    const turned = BigInt.asUintN(64, (crossed >> by) | (crossed << (64n - by)));
    return [Number(turned & 0xffffffffn), Number(turned >> 32n)];
  }
  function word() {
    if (!halves.length) halves.push(...bits());
    return halves.shift();
  }
  const fraction53 = ([low, high]) => high * 2 ** 21 + (low >>> 11);
  const uniform = () => fraction53(bits()) / 2 ** 53;

  function shuffled(values) {
    const result = [...values];
    for (let i = result.length - 1; i > 0; i--) {
      const mask = 2 ** (32 - Math.clz32(i)) - 1;
      let j; // of as many bits as i has, drawn until one is not above it
      do j = (word() & mask) >>> 0; while (j > i);
      [result[i], result[j]] = [result[j], result[i]];
    }
    return result;
  }
  /** Exponential and normal draws by the ziggurat (Marsaglia and Tsang 2000). */
  function exponential() {
    for (;;) {
      const drawn = bits();
      const [layer, place] = [(drawn[0] >>> 3) & 255, fraction53(drawn)];
      const x = place * FALLING.wide[layer];
      if (place < FALLING.sure[layer]) return x;
      if (layer === 0) return FALLING.end - Math.log1p(-uniform());
      if ((FALLING.high[layer - 1] - FALLING.high[layer]) * uniform() + FALLING.high[layer] < Math.exp(-x)) return x;
    }
  }
  function normal() {
    for (;;) {
      const [low, high] = bits();
      const layer = low & 255;
      const place = (high & 0x1fffffff) * 2 ** 23 + (low >>> 9);
      const x = place * BELL.wide[layer] * ((low >>> 8) & 1 ? -1 : 1);
      if (place < BELL.sure[layer]) return x;
      if (layer > 0 && (BELL.high[layer - 1] - BELL.high[layer]) * uniform() + BELL.high[layer] < Math.exp(-0.5 * x * x)) return x;
      while (layer === 0) {
        const [past, drop] = [-Math.log1p(-uniform()) / BELL.end, -Math.log1p(-uniform())];
        if (2 * drop > past * past) return (low >>> 17) & 1 ? -(BELL.end + past) : BELL.end + past;
      }
    }
  }
  /** Gamma(shape, 1): by rejection below 1 (Ahrens and Dieter 1974), else Marsaglia and Tsang's (2000). */
  function gamma(shape) {
    if (shape === 1) return exponential();
    while (shape < 1) {
      const [u, v] = [uniform(), exponential()];
      const more = u > 1 - shape ? -Math.log((1 - u) / shape) : 0;
      const x = (u > 1 - shape ? 1 - shape + shape * more : u) ** (1 / shape);
      if (x <= v + more) return x;
    }
    const b = shape - 1 / 3;
    for (;;) {
      const x = normal();
      const root = 1 + (1 / Math.sqrt(9 * b)) * x;
      if (root <= 0) continue;
      const [v, u] = [root * root * root, uniform()];
      if (u < 1 - 0.0331 * (x * x) * (x * x)) return b * v;
      if (Math.log(u) < 0.5 * x * x + b * (1 - v + Math.log(v))) return b * v;
    }
  }
  /** Beta(a, b): by Jöhnk's rejection (1964) where neither is above 1, else from two Gamma draws. */
  function beta(a, b) {
    const one = a > 1 || b > 1 ? gamma(a) : 0;
    if (one) return one / (one + gamma(b));
    for (;;) {
      const [u, v] = [uniform(), uniform()];
      const [x, y] = [u ** (1 / a), v ** (1 / b)];
      if (x + y > 1 || u + v === 0) continue;
      if (x > 0 && y > 0) return x / (x + y);
      const ahead = Math.log(u) / a - Math.log(v) / b; // one is too small for a number
      return ahead > 0 ? Math.exp(-Math.log1p(Math.exp(-ahead))) : Math.exp(ahead - Math.log1p(Math.exp(ahead)));
    }
  }
  /** p ~ Dir(α 1_size): for small α a stick is broken, else Gamma draws are divided by their sum. */
  function dirichlet(alpha, size) {
    if (alpha >= 0.1) return Float64Array.from({ length: size }, () => gamma(alpha)).map((value, _, all) => value / sumOf(all));
    const after = [0]; // α of what is left of the stick
    for (let j = 1; j < size; j++) after.unshift(after[0] + alpha);
    let left = 1;
    return Float64Array.from(after, (rest) => {
      const [whole, share] = [left, rest ? beta(alpha, rest) : 1];
      left *= 1 - share;
      return whole * share;
    });
  }
  return { shuffled, dirichlet };
}
/** Tables of a ziggurat with 256 layers of equal `area` under `density`, which end at `end`; places have `bits` bits. */
function ziggurat(density, inverse, end, area, bits) {
  const x = new Float64Array(256);
  x[255] = end;
  for (let i = 254; i > 0; i--) x[i] = inverse(area / x[i + 1] + density(x[i + 1]));
  const base = area / density(end);
  const [unit, high] = [2 ** bits, x.map(density)];
  const wide = x.map((value, i) => (i ? value : base) / unit);
  return { end, high, wide, sure: x.map((value, i) => (i ? x[i - 1] / value : end / base) * unit) };
}
const FALLING_END = 7.69711747013104972;
const FALLING = ziggurat((x) => Math.exp(-x), (y) => -Math.log(y), FALLING_END, (FALLING_END + 1) * Math.exp(-FALLING_END), 53);
const BELL = ziggurat((x) => Math.exp(-0.5 * x * x), (y) => Math.sqrt(-2 * Math.log(y)), 3.6541528853610088, 0.004928673233974655, 52);
const sumOf = (values) => values.reduce((s, x) => s + x, 0);
/** M sorted lists of sample numbers: each class in shares drawn from a Dirichlet, then a promised minimum for each. */
export function deal(labels, clients, alpha, seed) {
  const draws = generator(seedFor(seed, "partition"));
  const n = labels.length;
  const owned = Array.from({ length: clients }, () => []);
  const order = draws.shuffled(Array.from(labels, (_, i) => i));
  for (const label of [...new Set(labels)].sort((a, b) => a - b)) {
    const members = order.filter((i) => labels[i] === label);
    const room = owned.map((own) => own.length * clients < n);
    const p = draws.dirichlet(alpha, clients).map((value, k) => (room[k] ? value : 0));
    const mass = sumOf(p);
    // The whole mass may lie on clients that are full: then it is drawn among the others.
    const others = mass > 0 ? null : [...draws.dirichlet(alpha, room.filter(Boolean).length)];
    let [sum, from] = [0, 0];
    p.forEach((value, k) => {
      sum += others ? (room[k] ? others.shift() : 0) : value / mass;
      const end = k === clients - 1 ? members.length : Math.min(Math.trunc(sum * members.length + 1e-9), members.length);
      owned[k].push(...members.slice(from, end));
      from = Math.max(from, end);
    });
  }
  return topUp(owned, Math.min(10, Math.max(1, Math.floor(n / (2 * clients)))), draws);
}

const ascending = (values) => [...values].sort((a, b) => a - b);
/** Those with fewer than `minimum` samples get what they lack from whoever has most at that moment. */
function topUp(owned, minimum, draws) {
  const shards = owned.map(ascending);
  const givers = new Set();
  for (const own of shards.filter((shard) => shard.length < minimum)) {
    while (own.length < minimum) {
      const donor = shards.reduce((best, shard, k) => (shard.length > shards[best].length ? k : best), 0);
      if (!givers.has(donor)) shards[donor] = draws.shuffled(shards[donor]);
      givers.add(donor);
      const many = Math.min(minimum - own.length, shards[donor].length - minimum);
      own.push(...shards[donor].splice(-many));
    }
  }
  return shards.map(ascending);
}
/** Client k's samples for training and those that it holds out: a tenth, one at least. */
export function split(shard, seed, k) {
  const tenth = 0.1 * shard.length;
  const even = tenth % 1 === 0.5 ? 2 * Math.round(tenth / 2) : Math.round(tenth); // as Python rounds
  const held = Math.min(shard.length - 1, Math.max(1, even));
  const order = generator(seedFor(seed, "holdout", k)).shuffled(shard.keys());
  const at = (places) => ascending(places).map((i) => shard[i]);
  return { train: at(order.slice(held)), held: at(order.slice(0, held)) };
}
