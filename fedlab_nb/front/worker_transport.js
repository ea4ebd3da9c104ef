// The engine of a page without Python: it deals out at once, and trains in workers; a newer request ends an older one.
import { applyMoves, countCalls, countLabels } from "./federation.js";

const MOST_WORKERS = 4; // that train; one more is the server

/** data: what the stage shows (see stage.js); engine: {deal, split, answers, explainSum, softmax, epochs, startWorker};
    host: {changed(state), dataset(name)}, what the page does when they change. */
export function createWorkerTransport(data, engine, host) {
  const { train, test, classes } = data;
  const dealt = new Map(); // shards by setting, before moves
  let listener = () => {};
  let workers = [];
  let made = null; // {revision, models} of the run that ended last
  let asked = null; // {image, pixels}: the image that is looked at

  function deal({ alpha, clients, seed }) {
    const key = `${alpha} ${clients} ${seed}`;
    if (!dealt.has(key)) dealt.set(key, engine.deal(train.labels, clients, alpha, seed));
    return dealt.get(key);
  }

  function dealShards(setting) {
    const shards = deal(setting);
    return setting.moves.length ? applyMoves(shards, train.labels, setting.moves) : shards;
  }

  function stop() {
    for (const worker of workers) worker.terminate();
    workers = [];
  }

  /** Deal the clients out so that all workers get about as many samples. */
  function shareOut(parts) {
    const many = Math.min(MOST_WORKERS, navigator.hardwareConcurrency || 2, parts.length);
    const crews = Array.from({ length: many }, () => ({ clients: [], samples: 0 }));
    const size = (k) => parts[k].train.length;
    const largest = parts.map((_, k) => k).sort((p, q) => size(q) - size(p));
    for (const k of largest) {
      const least = crews.reduce((one, other) => (other.samples < one.samples ? other : one));
      least.clients.push(k);
      least.samples += size(k);
    }
    return crews.map(({ clients }) => clients);
  }

  function start({ revision, setting }) {
    stop();
    const parts = dealShards(setting).map((shard, k) => engine.split(Int32Array.from(shard).sort(), setting.seed, k));
    const crews = data.trainsNetworks ? shareOut(parts) : [];
    const begin = performance.now();
    const server = engine.startWorker();
    const trainers = crews.map(() => engine.startWorker());
    workers = [server, ...trainers];
    server.onmessage = ({ data: step }) => {
      const isFinal = Boolean(step.made);
      if (isFinal) {
        made = { revision, models: step.made };
        stop();
      }
      listener({
        kind: "results", revision, isFinal, done: step.done, total: data.trainsNetworks ? engine.epochs : 1,
        accuracies: step.shares, each: step.each ?? [], said: step.said ?? null,
        calls: step.said ? countCalls(step.said.methods, classes.length) : null,
        seconds: (performance.now() - begin) / 1000,
      });
      if (isFinal) listener({ kind: "flights", revision, flights: fillFlights(data.flights ?? {}, step.legs) });
    };
    for (const worker of workers) {
      worker.onerror = (event) => {
        stop();
        listener({ kind: "error", text: `Training failed: ${event.message}. Reload the page and run again.` });
      };
    }
    const task = {
      x: train.images, y: train.labels, xTest: test.images, yTest: test.labels,
      classes: classes.length, parts, seed: setting.seed,
    };
    trainers.forEach((worker, i) => {
      worker.onmessage = ({ data: step }) => server.postMessage(step);
      worker.postMessage({ ...task, clients: crews[i] });
    });
    server.postMessage({ ...task, isWithoutNetworks: !data.trainsNetworks });
  }

  /** What every model of the last run says of an image: rows of C shares, by method and by client's number. */
  function answer({ image, pixels }) {
    asked = { image, pixels };
    if (made === null) return;
    const scores = engine.answers(made.models, pixels, classes.length);
    const rows = new Map();
    for (const [name, values] of Object.entries(scores)) {
      if (name === "networks") values.forEach((own, k) => rows.set(k, engine.softmax(own, classes.length)));
      else rows.set(name, toShares(name, values, classes.length, engine.softmax));
    }
    const sums = Object.keys(data.sums ?? {}).filter((name) => rows.has(name));
    listener({ kind: "answers", revision: made.revision, image, rows, sums });
  }

  /** How a method comes to its answer to the image that is looked at, where that is a sum over clients. */
  function explain({ method, image }) {
    const about = data.sums?.[method];
    if (made === null || asked?.image !== image || about === undefined) return;
    const sum = engine.explainSum(method, made.models, asked.pixels, classes.length);
    if (sum === null) return;
    const clients = sum.values.map((_, k) => k);
    listener({ kind: "sum", method, image, clients, ...sum, ...about, own: null });
  }

  return {
    data,
    connect(receive) { listener = receive; },
    send(message) {
      if (message.kind === "deal") {
        listener({ kind: "federation", revision: message.revision, shards: dealShards(message.setting) });
      } else if (message.kind === "train") start(message);
      else if (message.kind === "stop") stop();
      else if (message.kind === "ask") answer(message);
      else if (message.kind === "explain") explain(message);
      else if (message.kind === "changed") host.changed(message.state);
      else if (message.kind === "dataset") host.dataset(message.value);
    },
    preview(state, alpha) {
      return countLabels(deal({ ...state, alpha }), train.labels, classes.length);
    },
    destroy: stop,
  };
}

/** Flights with the bytes and messages of a run's legs. flights: by method, as the package describes them, without
    bytes;   legs: by method, {phase, way, bytes, messages}. */
function fillFlights(flights, legs) {
  const filled = {};
  for (const [method, flight] of Object.entries(flights)) {
    const own = legs[method].map((leg) => {
      const about = flight.legs.find(({ phase, way }) => phase === leg.phase && way === leg.way);
      return { ...about, ...leg };
    });
    filled[method] = { ...flight, clients: own[0].bytes.length, legs: own };
  }
  return filled;
}

/** The mean of probabilities is one already, and a least-squares score is cut to 0-1; other scores go through softmax. */
function toShares(name, values, classes, softmax) {
  if (name === "ensemble") return values;
  if (name === "afl") return values.map((value) => Math.min(1, Math.max(0, value)));
  return softmax(values, classes);
}
