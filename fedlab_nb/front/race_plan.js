// A race in numbers: what each method has spent and has to show at a moment. Pure; nothing in it is drawn.
// scene: what Python says (panels/race.py): {bytes: [least, most], seconds, methods: [{name, training, points, …}]}
import { dataSize, fixed, percent, plural } from "./text.js";

export const RACE_TIME = 8000; // milliseconds of a race at normal speed
const TOLERANCE = 1 + 1e-9; // a budget of a point's own bytes pays for it
const MOST_TICKS = 6;

/** The seconds that somebody reads: "0.35 s", "12 s". */
export function describeSeconds(seconds) {
  return `${seconds < 10 ? Number(seconds.toPrecision(2)) : Math.round(seconds)}\u00a0s`;
}

/** What is spent at a share 0-1 of the race. axis: "bytes" (on a logarithmic scale) or "seconds". */
export function findBudget({ bytes: [least, most], seconds }, axis, share) {
  if (axis === "seconds") return share * seconds;
  return least * (most / least) ** share;
}

/** The place of an amount on its axis, 0-1. */
export function findShare({ bytes: [least, most], seconds }, axis, value) {
  const share = axis === "seconds" ? value / seconds : Math.log(Math.max(value, least) / least) / Math.log(most / least);
  return Math.min(1, Math.max(0, share));
}

/** The moments at which something happens, as shares of the race, with both ends. */
export function listMoments(scene, axis) {
  const found = [0, 1];
  for (const { points } of scene.methods) {
    for (const point of points) found.push(findShare(scene, axis, point[axis]));
  }
  found.sort((a, b) => a - b);
  return found.filter((share, i) => i === 0 || share - found[i - 1] > 1e-6);
}

/** How many of a method's global models so much pays for. */
export function countPaid({ points }, axis, budget) {
  return points.filter((point) => point[axis] <= budget * TOLERANCE).length;
}

/** Bytes that a method has spent. In seconds: between two measured moments it spends steadily. */
export function findSpentBytes({ training, points }, axis, budget) {
  const last = points.at(-1)?.bytes ?? 0;
  if (axis === "bytes") return Math.min(budget, last);
  const path = [{ seconds: 0, bytes: training?.bytes ?? 0 }, ...(training ? [training] : []), ...points];
  const next = path.findIndex(({ seconds }) => seconds > budget * TOLERANCE);
  if (next < 0) return last;
  if (next === 0) return path[0].bytes;
  const [a, b] = [path[next - 1], path[next]];
  return a.bytes + ((b.bytes - a.bytes) * (budget - a.seconds)) / (b.seconds - a.seconds);
}

/** How far the clients' own training has come, 0-1; in bytes it takes none. */
export function findTrained({ training }, axis, budget) {
  if (training === null) return 1;
  if (axis === "bytes") return budget * TOLERANCE >= training.bytes ? 1 : 0;
  return Math.min(1, budget / Math.max(training.seconds, 1e-9));
}

const sumBytes = (legs) => legs.reduce((sum, leg) => sum + leg.bytes.reduce((own, value) => own + value, 0), 0);

/** Where a flight is once so many bytes have passed: {step, leg, share, round}; leg null: all have. The legs of an
    exchange take turns in each of its rounds, each with its mean of bytes. */
export function findInFlight(plan, bytes) {
  let before = 0;
  for (const step of plan.steps) {
    const all = sumBytes(step.legs);
    if (all > 0 && bytes * TOLERANCE < before + all) return findLeg(step, Math.max(0, bytes - before) / all);
    before += all;
  }
  return { step: plan.steps.at(-1), leg: null, share: 1, round: 0 };
}

/** The leg that is under way at a share 0-1 of a step's bytes. */
function findLeg(step, done) {
  const rounds = step.kind === "exchange" ? step.rounds : 1;
  const round = Math.floor(done * rounds);
  const all = sumBytes(step.legs);
  let rest = (done * rounds - round) * all;
  for (const leg of step.legs) {
    const own = sumBytes([leg]);
    if (rest < own) return { step, leg, share: rest / own, round: round + 1 };
    rest -= own;
  }
  return { step, leg: step.legs.at(-1), share: 1, round: round + 1 };
}

/** Who leads at a moment, and how many have a model, in a sentence. */
export function describeRace(scene, axis, budget) {
  const amount = axis === "seconds" ? describeSeconds(budget) : dataSize(budget);
  const start = axis === "seconds" ? `After ${amount}` : `With ${amount} spent by all clients together`;
  const reached = [];
  for (const method of scene.methods) {
    const count = countPaid(method, axis, budget);
    if (count > 0) reached.push({ name: method.name, accuracy: method.points[count - 1].accuracy });
  }
  if (!reached.length) return `${start}, no method has a global model yet.`;
  const leader = reached.reduce((best, one) => (one.accuracy > best.accuracy || (one.accuracy === best.accuracy && one.name > best.name) ? one : best));
  const methods = plural(scene.methods.length, "method");
  return `${start}, ${leader.name} leads with ${percent(leader.accuracy)}; ${reached.length} of ${methods} have a global model.`;
}

/** The ticks of an axis: [{share, words}]. */
export function listTicks(scene, axis) {
  return axis === "seconds" ? listSecondTicks(scene) : listByteTicks(scene);
}

function listSecondTicks(scene) {
  const rough = scene.seconds / MOST_TICKS;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((many) => many * unit).find((one) => one >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = 0; i * step <= scene.seconds * TOLERANCE; i++) {
    ticks.push({ share: findShare(scene, "seconds", i * step), words: i ? `${fixed(i * step, digits)}\u00a0s` : "0" });
  }
  return ticks;
}

function listByteTicks(scene) {
  const [least, most] = scene.bytes;
  const list = (steps) => {
    const ticks = [];
    for (let unit = 10 ** Math.floor(Math.log10(least)); unit <= most; unit *= 10) {
      for (const many of steps) {
        const value = many * unit;
        if (value >= least && value <= most) ticks.push({ share: findShare(scene, "bytes", value), words: dataSize(value) });
      }
    }
    return ticks;
  };
  const kinds = [[1, 2, 5], [1, 3], [1]].map(list);
  return kinds.find((ticks) => ticks.length <= MOST_TICKS) ?? kinds.at(-1);
}
