// Who holds what, as data: a list of sample numbers a client, and the changes that a person makes by hand.
// The changes are those of data/moves.py: "E>A" gives all of E's samples to A, "B3>C" gives B's samples of class 3 to C.
import { letter } from "./text.js";

const MOVE = /^([A-Z]{1,2})(\d*)>([A-Z]{1,2})$/;

function clientOf(letters) {
  let number = 0;
  for (const one of letters) number = 26 * number + one.charCodeAt(0) - 64;
  return number - 1;
}

/** The moves [{from, label, to}] that a text says; label null: all classes. What it cannot say is left out. */
export function readMoves(text, clients, classes) {
  const moves = [];
  for (const part of text.split(",")) {
    const found = MOVE.exec(part.trim());
    if (!found) continue;
    const from = clientOf(found[1]);
    const label = found[2] === "" ? null : Number(found[2]);
    const to = clientOf(found[3]);
    const isKnown = from < clients && to < clients && from !== to && (label ?? 0) < classes;
    if (isKnown) moves.push({ from, label, to });
  }
  return moves;
}

/** The text of moves, as `fl.run(…, moves="E>A, B3>C")` takes it. */
export function writeMoves(moves) {
  return moves.map(({ from, label, to }) => `${letter(from)}${label ?? ""}>${letter(to)}`).join(", ");
}

const byNumber = (p, q) => p - q;

/** What clients hold after the moves; shards: a list of sample numbers a client. A client's last sample stays with it. */
export function applyMoves(shards, labels, moves) {
  const held = shards.map((shard) => [...shard].sort(byNumber));
  for (const { from, label, to } of moves) {
    let leaving = held[from].filter((i) => label === null || labels[i] === label);
    if (leaving.length === held[from].length) leaving = leaving.slice(1);
    const gone = new Set(leaving);
    held[from] = held[from].filter((i) => !gone.has(i));
    held[to] = held[to].concat(leaving).sort(byNumber);
  }
  return held;
}

/** Each sample's owner, `uint16`: what travels between an engine and the stage. */
export function ownersOf(shards, samples) {
  const owners = new Uint16Array(samples);
  shards.forEach((shard, k) => {
    for (const i of shard) owners[i] = k;
  });
  return owners;
}

/** The sample numbers of each client: the other way round. Nobody's samples are left out. */
export function groupByOwner(owners, clients) {
  const shards = Array.from({ length: clients }, () => []);
  owners.forEach((owner, i) => shards[owner]?.push(i));
  return shards;
}

/** The sample numbers of each client, class by class: the order in which a pile is built. */
export function pileOrder(owners, labels, clients) {
  const piles = groupByOwner(owners, clients);
  for (const pile of piles) pile.sort((i, j) => labels[i] - labels[j] || i - j);
  return piles;
}

/** Samples of each class that each client holds, [M, C]. */
export function countLabels(owners, labels, clients, classes) {
  const counts = Array.from({ length: clients }, () => new Array(classes).fill(0));
  owners.forEach((owner, i) => {
    if (owner < clients) counts[owner][labels[i]] += 1;
  });
  return counts;
}

/** More than `most` classes are shown as the largest ones and "others": the shown class of each label. */
export function groupLabels(labels, classes, most = 10) {
  const names = classes.map((one) => one);
  if (classes.length <= most) return { groups: classes.map((_, c) => c), classes: names };
  const sizes = new Array(classes.length).fill(0);
  for (const label of labels) sizes[label] += 1;
  const largest = sizes.map((_, c) => c).sort((p, q) => sizes[q] - sizes[p] || p - q).slice(0, most).sort(byNumber);
  const groups = classes.map((_, c) => (largest.includes(c) ? largest.indexOf(c) : most));
  const others = { name: "others", colour: "#9aa3ab" };
  return { groups, classes: [...largest.map((c) => names[c]), others] };
}

/** How many test samples each method calls each class, {method: [C]}. said: {method: the class of each sample}. */
export function countCalls(said, classes) {
  const calls = {};
  for (const [name, labels] of Object.entries(said)) {
    calls[name] = new Array(classes).fill(0);
    for (const label of labels) calls[name][label] += 1;
  }
  return calls;
}
