// What a run of this page sends, counted as the package counts it (comm/link.py): by method, the legs of its ledger. A
// leg: {phase, way, bytes, messages}, both [M]. Numbers travel in 32 bits; of a symmetric matrix its upper triangle.
const WORD = 4; // bytes of a number

function newLedger(clients) {
  const legs = [];
  return {
    legs,
    add(client, way, phase, bytes, messages = 1) {
      let leg = legs.find((one) => one.phase === phase && one.way === way);
      if (!leg) {
        leg = { phase, way, bytes: new Array(clients).fill(0), messages: new Array(clients).fill(0) };
        legs.push(leg);
      }
      leg.bytes[client] += bytes;
      leg.messages[client] += messages;
    },
  };
}

const triangleOf = (n) => (n * (n + 1)) / 2;

/** A network whose layers' weights travel in 8 bits, with a scale a layer, and whose biases travel as they are;
    layers: [{inputs, outputs}]. */
function packedBytes(layers) {
  return layers.reduce((sum, { inputs, outputs }) => sum + inputs * outputs + WORD + WORD * outputs, 0);
}

/** Both sums of AFL: the triangle of the moments [size + 1, size + 1], and the classes' sums [size + 1, C]. */
function aflBytes(size, classes) {
  return WORD * (triangleOf(size + 1) + (size + 1) * classes);
}

/** Gaussian heads: all counts, and of the classes that a client has the sums [size] and the triangle of [size, size]. */
function gaussBytes(size, counts) {
  const held = counts.filter((count) => count > 0).length;
  return WORD * (counts.length + held * (size + triangleOf(size)));
}

/** The legs of AFL and Gaussian heads. size: numbers of a sample;   counts: each client's samples by class, [M, C]. */
export function countSums({ size, counts }) {
  const afl = newLedger(counts.length);
  const gauss = newLedger(counts.length);
  counts.forEach((own, k) => {
    afl.add(k, "up", "sums", aflBytes(size, own.length));
    gauss.add(k, "up", "statistics", gaussBytes(size, own));
  });
  return { afl: afl.legs, gauss: gauss.legs };
}

/** The legs of the methods that send networks. networks: each client's parameters, as arrays;   layers: of one network,
    {inputs, outputs};   held: how many samples each client held out;   rounds, numbers: of FENS' second phase, and how
    many weights travel in each. */
export function countNetworks({ networks, layers, held, rounds, numbers }) {
  const all = networks.map((_, k) => k);
  const ledgers = { fedavg: newLedger(all.length), ensemble: newLedger(all.length), fens: newLedger(all.length) };
  for (const ledger of Object.values(ledgers)) {
    for (const k of all) ledger.add(k, "down", "initial model", WORD * networks[k].length);
    for (const k of all) ledger.add(k, "up", "local models", WORD * networks[k].length);
  }
  for (const k of all) ledgers.fens.add(k, "down", "ensemble", all.length * packedBytes(layers));
  for (const k of all.filter((one) => held[one] > 0)) {
    ledgers.fens.add(k, "down", "aggregator", rounds * WORD * numbers, rounds);
    ledgers.fens.add(k, "up", "aggregator", rounds * WORD * numbers, rounds);
  }
  return Object.fromEntries(Object.entries(ledgers).map(([name, { legs }]) => [name, legs]));
}
