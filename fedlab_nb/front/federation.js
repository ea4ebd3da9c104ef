// Who holds what, as data: a list of sample numbers a client, and the changes that a person makes by hand.
// The changes are those of data/moves.py: "E>A" gives all of E's samples to A, "B3>C" gives B's samples of class 3 to C.
import { letter, percent } from "./text.js";

const EDIT = /^([A-Z]{1,2})(?:(\d*)>([A-Z]{0,2})|\*|=.+)$/;

function readClientLetters(letters) {
  let number = 0;
  for (const one of letters) number = 26 * number + one.charCodeAt(0) - 64;
  return number - 1;
}

/** What a text says: the moves [{from, label, to}], label null: all classes, to null: nobody; and `leftOut`, the parts
    that are no moves here: a double ("C*"), a name ("E=north"), a client or class that is not there. seed: the one that
    deals out; a text for another seed ("7: A>B") is left out as a whole. */
export function readMoves(text, { clients, classes, seed }) {
  const [, head, rest] = /^(?:\s*(\d+)\s*:)?(.*)$/s.exec(text);
  if (head !== undefined && Number(head) !== seed) return { moves: [], leftOut: [text.trim()] };
  const moves = [];
  const leftOut = [];
  for (const part of rest.split(",").map((one) => one.trim()).filter(Boolean)) {
    const move = readMove(part);
    const isPossible = move !== null && move.from < clients && (move.to === null || move.to < clients) && move.from !== move.to && (move.label ?? 0) < classes;
    if (isPossible) moves.push(move);
    else leftOut.push(part);
  }
  return { moves, leftOut };
}

/** Parse one move, such as "A3>B"; null if it is not a move. */
function readMove(text) {
  const found = EDIT.exec(text);
  if (found === null || found[3] === undefined) return null;
  return { from: readClientLetters(found[1]), label: found[2] === "" ? null : Number(found[2]), to: found[3] === "" ? null : readClientLetters(found[3]) };
}

/** The text of moves, as `fl.run(…, moves="E>A, B3>C, D>")` takes it. */
export function writeMoves(moves) {
  return moves.map(({ from, label, to }) => `${letter(from)}${label ?? ""}>${to === null ? "" : letter(to)}`).join(", ");
}

/** Whether this move had to leave a sample behind, as the last one of its client. piles: after the move. */
export function isLastSampleKept({ from, label }, piles, labels) {
  const pile = piles[from];
  return pile.length === 1 && (label === null || labels[pile[0]] === label);
}

/** Moves for people: the last one, and how many there are. classes: the data set's, {name, plural};   keeper: what a
    client is called, where its last sample has stayed with it; "" elsewhere;   effect: what it has done
    (`describeEffectOfMove`), "" as long as that is not known. */
export function describeMoves(moves, classes, keeper = "", effect = "") {
  const { from, label, to } = moves.at(-1);
  const named = label === null ? null : classes[label].plural ?? `samples of “${classes[label].name}”`;
  const what = `${letter(from)}’s ${named ?? "pile"}`;
  const where = to === null ? "out of the data" : `to ${letter(to)}`;
  const kept = keeper === "" ? "; kept when α changes." : `. One sample stays: every ${keeper} needs one.`;
  const rest = effect === "" ? kept : `: ${effect}`;
  if (moves.length === 1) return `You moved ${what} ${where}${rest}`;
  return `You made ${moves.length} moves, the last one ${what} ${where}${rest}`;
}

/** What a move has done for the client that it went to, in a sentence; "" where that is not known. scores: {seeds, each:
    [share that each client alone gets right]}, of the run after the move and of the one before it. */
export function describeEffectOfMove({ to }, scores, scoresBefore) {
  const isSameSeeds = JSON.stringify(scores.seeds) === JSON.stringify(scoresBefore.seeds);
  if (!isSameSeeds || scores.each[to] === undefined || scoresBefore.each[to] === undefined) return "";
  const now = percent(scores.each[to]);
  const then = percent(scoresBefore.each[to]);
  const client = letter(to);
  return now === then ? `alone ${client} still gets ${now} right.` : `alone ${client} gets ${now} right now, ${then} before.`;
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
    if (to !== null) held[to] = held[to].concat(leaving).sort(byNumber);
  }
  return held;
}

/** The sample numbers of each client, from the owner of each sample; samples without an owner are left out. */
export function groupByOwner(owners, clients) {
  const shards = Array.from({ length: clients }, () => []);
  owners.forEach((owner, i) => shards[owner]?.push(i));
  return shards;
}

/** Each client's samples class by class: the order in which a pile is built. */
export function orderPile(shards, labels) {
  return shards.map((shard) => [...shard].sort((i, j) => labels[i] - labels[j] || i - j));
}

/** Samples of each class that each client holds, [M, C]. */
export function countLabels(shards, labels, classes) {
  return shards.map((shard) => {
    const counts = new Array(classes).fill(0);
    for (const i of shard) counts[labels[i]] += 1;
    return counts;
  });
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
