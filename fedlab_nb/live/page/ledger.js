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

/** Both sums of AFL: the triangle of the moments [d, d], and the classes' sums [d, C]. */
function aflBytes({ moments, classes }) {
  return WORD * (triangleOf(Math.sqrt(moments.length)) + classes.length);
}

/** Gaussian heads: all counts, and of the classes that a client has the sums [d] and the triangle of [d, d]. */
function gaussBytes({ counts, sums }) {
  const size = sums.length / counts.length;
  const held = counts.filter((count) => count > 0).length;
  return WORD * (counts.length + held * (size + triangleOf(size)));
}

/** The legs of each method of a run. networks: each client's parameters, as arrays;   layers: of one network, {inputs,
    outputs};   afl, gauss: what each client's sums are made of;   held: how many samples each client held out;
    rounds, numbers: of FENS' second phase, and how many weights travel in each. */
export function countRun({ networks, layers, afl, gauss, held, rounds, numbers }) {
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
  ledgers.afl = newLedger(all.length);
  ledgers.gauss = newLedger(all.length);
  for (const k of all) ledgers.afl.add(k, "up", "sums", aflBytes(afl[k]));
  for (const k of all) ledgers.gauss.add(k, "up", "statistics", gaussBytes(gauss[k]));
  return Object.fromEntries(Object.entries(ledgers).map(([name, { legs }]) => [name, legs]));
}
