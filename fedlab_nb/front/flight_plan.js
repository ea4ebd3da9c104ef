// What a flight shows and when: the legs of a ledger in, timed steps out. Pure, and nothing in it is random.
// A step shows messages only where the ledger has them; between its legs stand what clients do alone, the gate that
// shuts, and what becomes of the messages.
import { dataSize, letter, listed, plural } from "./text.js";

const STEP_TIME = 1200; // milliseconds that a step takes at least at normal speed
const EXCHANGE_TIME = 3000; // the same of a step whose messages go there and back again and again
const LETTERS_A_SECOND = 15; // that a person reads while something moves
const TIME_UNIT = 20; // milliseconds: a step takes a multiple, as the slider of a flight has it
const MOST_SILENT = 4; // clients that a sentence names
const MOST_TRIPS = 5; // of a leg with many messages: a trip in the picture then stands for several
const LATEST_START = 0.25; // of a hop's time: when the last client's envelope leaves

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const isRepeated = (leg) => Math.max(...leg.messages) > 1;
const range = (count) => Array.from({ length: count }, (_, i) => i);

/** The legs of each step: one by one; those whose messages come again and again together, as they take turns, and with
    them what answers them in the same phase. */
function groupLegs(legs) {
  const repeated = legs.filter(isRepeated).map(({ phase }) => phase);
  const takesTurns = ({ phase }) => repeated.includes(phase);
  const first = legs.findIndex(takesTurns);
  const last = legs.length - 1 - [...legs].reverse().findIndex(takesTurns);
  if (first < 0) return legs.map((leg) => [leg]);
  const alone = (some) => some.map((leg) => [leg]);
  return [...alone(legs.slice(0, first)), legs.slice(first, last + 1), ...alone(legs.slice(last + 1))];
}

/** How many of `messages` have been sent after so many of all trips. */
function countSent(messages, trip, trips) {
  return Math.ceil((messages * trip) / trips);
}

/** Who flies in one trip of a leg, with what: the shares of all trips add up to the ledger's numbers. The ledger keeps
    no message apart, so that each counts the mean. */
function makeHop(leg, trip, trips) {
  const hop = { way: leg.way, cargo: leg.cargo, clients: [], bytes: [], messages: [] };
  leg.messages.forEach((messages, client) => {
    const before = countSent(messages, trip, trips);
    const after = countSent(messages, trip + 1, trips);
    if (after === before) return;
    const bytesAfter = (count) => Math.floor((leg.bytes[client] * count) / messages);
    hop.clients.push(client);
    hop.bytes.push(bytesAfter(after) - bytesAfter(before));
    hop.messages.push(after - before);
  });
  return hop;
}

/** The hops of a step's legs in turn, with their times as shares of the step. */
function makeHops(legs) {
  const rounds = Math.max(...legs.map((leg) => Math.max(...leg.messages)));
  const trips = Math.min(rounds, MOST_TRIPS);
  const hops = [];
  for (let trip = 0; trip < trips; trip++) {
    for (const leg of legs) {
      const hop = makeHop(leg, trip, trips);
      if (hop.clients.length > 0) hops.push({ ...hop, round: countSent(rounds, trip + 1, trips) });
    }
  }
  return { rounds, hops };
}

/** "10 × 26.3 kB"; "10 × 1.2 kB to 3.4 kB, 26 kB in all" where they are not of one size. */
export function describeSizes(leg) {
  const sizes = leg.bytes.filter((_, k) => leg.messages[k] > 0);
  const least = dataSize(Math.min(...sizes));
  const most = dataSize(Math.max(...sizes));
  if (sizes.length === 1) return most;
  if (least === most) return `${sizes.length} × ${most}`;
  return `${sizes.length} × ${least} to ${most}, ${dataSize(total(sizes))} in all`;
}

/** "Each office", "Each of 3 offices", "One office": those that have messages in a leg. */
function describeSubject({ messages }, people) {
  const count = messages.filter((one) => one > 0).length;
  if (count === 1) return messages.length === 1 ? `The ${people.one}` : `One ${people.one}`;
  return count === messages.length ? `Each ${people.one}` : `Each of ${count} ${people.many}`;
}

/** Who of a leg's clients is left out: " (E takes no part)"; "" where nobody is. */
function describeSilent({ messages }) {
  const silent = range(messages.length).filter((k) => messages[k] === 0);
  if (silent.length === 0) return "";
  const who = silent.length > MOST_SILENT ? `${silent.length} others` : listed(silent.map(letter));
  return ` (${who} ${silent.length === 1 ? "takes" : "take"} no part)`;
}

/** How large all networks in one message are, beside what they were on their way up: " (25 % of their size)". */
function describePacking(leg, legs) {
  const came = legs.find((one) => one.way === "up" && one.cargo === "network");
  if (!came || leg.cargo !== "networks") return "";
  const share = Math.max(...leg.bytes) / total(came.bytes);
  return share < 0.99 ? `, packed to ${Math.round(100 * share)} % of their size` : "";
}

function describeSend(leg, legs, people) {
  const subject = describeSubject(leg, people);
  const sizes = describeSizes(leg);
  if (leg.way === "down") {
    const before = legs.slice(0, legs.indexOf(leg)).some((one) => one.way === "up");
    const title = before ? "The gate stays open" : "From the server";
    const packing = describePacking(leg, legs);
    return { title, brief: describeCargo(leg, packing), text: `${subject} gets ${leg.words}${packing}: ${sizes}.` };
  }
  const up = legs.filter((one) => one.way === "up");
  const most = Math.max(...leg.messages);
  const once = up.length === 1 && most === 1 ? ", once" : "";
  const parts = most > 1 ? `, in ${most} messages` : "";
  const one = up[0] === leg ? "One message each" : "Another message each";
  const title = most > 1 ? "Several messages each" : one;
  return { title, brief: describeCargo(leg), text: `${subject}${describeSilent(leg)} sends ${leg.words}${once}${parts}: ${sizes}.` };
}

/** What a leg carries, as a sentence of its own: "Its network.", "The networks of all, packed to 25 % of their size." */
function describeCargo({ words }, packing = "") {
  return `${words[0].toUpperCase()}${words.slice(1)}${packing}.`;
}

function describeExchange(legs, rounds, people) {
  const subject = describeSubject(legs[0], people);
  const parts = legs.map((leg) => {
    const messages = Math.max(...leg.messages);
    const times = messages === rounds ? "" : ` (${plural(messages, "time")})`;
    return `${leg.way === "up" ? "sends" : "gets"} ${leg.words}${times}`;
  });
  const isSmall = legs.every((leg) => leg.cargo === "note");
  const all = dataSize(total(legs.map((leg) => total(leg.bytes))));
  const title = isSmall ? `Small notes, ${rounds} times` : `There and back, ${rounds} times`;
  const start = `${rounds} times ${subject[0].toLowerCase()}${subject.slice(1)}${describeSilent(legs[0])}`;
  return { title, brief: `${all} in all.`, text: `${start} ${listed(parts)}: ${all} in all.` };
}

const WORK = {
  network: (people) => `Each ${people.one} trains a network alone, on its own pile.`,
  answers: (people) => `Each ${people.one} trains a network alone, on its own pile.`,
  sums: (people) => `Each ${people.one} adds up its own pile into a table.`,
  gaussians: (people) => `Each ${people.one} fits Gaussians to its own pile.`,
  images: (people) => `Each ${people.one} makes its message from its own pile.`,
  generator: (people) => `Each ${people.one} trains a generator on its own pile.`,
  note: (people) => `Each ${people.one} makes its message from its own pile.`,
};

function describeGate(legs, people) {
  const up = legs.filter((leg) => leg.way === "up");
  const clients = legs[0].messages.length;
  const messages = total(up.map((leg) => total(leg.messages)));
  const came = dataSize(total(up.map((leg) => total(leg.bytes))));
  const isOne = up.length === 1 && messages <= clients;
  const one = `The server has ${plural(messages, "message")}, and nothing else will come.`;
  const many = `${messages.toLocaleString("en")} messages came from ${plural(clients, people.one)}, ${came} in all.`;
  return { title: "The gate shuts", text: isOne ? one : many };
}

function countNetworks(legs) {
  const up = legs.filter((leg) => leg.way === "up");
  const main = up.find((leg) => leg.cargo === "network") ?? up[0] ?? legs[0];
  return main.messages.filter((count) => count > 0).length;
}

const END_WORDS = {
  blend: (n, { result }) => ["One blend", `The ${n} networks are mixed into ${result}.`],
  keep: (n) => ["All voices", `The server keeps all ${n} networks and asks every one of them.`],
  notes: (n) => ["All voices, weighed", `All ${n} networks stay; the notes have taught how much each counts.`],
  sums: (n, { result, legs }) => legs.some((leg) => leg.cargo === "gaussians")
    ? ["One head", `The server draws from the Gaussians of all ${n}, and trains ${result}.`]
    : ["One sum", `The ${n} tables go into one, whoever held what: ${result} comes of it.`],
  images: (n, { source }) => ["One pupil", {
    sent: "One network learns from what has come.",
    made: `The server makes images with the ${n} networks, and one network learns from them.`,
    public: `The ${n} networks name public images, and one network learns what they say.`,
  }[source]],
  rounds: (n, { result }) => ["After the last round", `The server has ${result}.`],
};

function describeEnd(flight) {
  const [title, text] = END_WORDS[flight.gesture](countNetworks(flight.legs), flight);
  return { title, text };
}

/** The steps of a flight: {kind, title, text, brief, start, end, still, hops, …}, times in milliseconds of a flight at
    normal speed; text: what happens, in a sentence; brief: as much of it as is read while the flight plays, ""
    where the title says enough; still: when a step is seen best. flight: what the engine says of a run's ledger (front/flight.py): clients,
    legs, gesture, result, source; people: the data set's words. */
export function planFlight(flight, people) {
  const { legs } = flight;
  const steps = [];
  let hasWorked = false;
  for (const group of groupLegs(legs)) {
    const firstUp = group.find((leg) => leg.way === "up");
    if (firstUp && !hasWorked) {
      const main = group.find((leg) => leg.way === "up" && leg.cargo !== "note") ?? firstUp;
      const text = WORK[main.cargo](people);
      steps.push({ kind: "work", cargo: main.cargo, title: `Each ${people.one} alone`, text, brief: "", legs: [], hops: [] });
      hasWorked = true;
    }
    const { rounds, hops } = makeHops(group);
    const isExchange = group.length > 1;
    const words = isExchange ? describeExchange(group, rounds, people) : describeSend(group[0], legs, people);
    steps.push({ kind: isExchange ? "exchange" : "send", rounds, legs: group, hops, ...words });
  }
  steps.push({ kind: "gate", brief: "", legs: [], hops: [], ...describeGate(legs, people) });
  steps.push({ kind: "end", brief: "", legs: [], hops: [], ...describeEnd(flight) });
  const timed = setTimes(steps);
  return { ...flight, duration: timed.at(-1).end, steps: timed };
}

/** How long a step is shown: until what happens in it is seen, and its title and brief words are read. */
function computeStepTime({ kind, title, brief }) {
  const readingTime = (1000 * `${title}. ${brief}`.length) / LETTERS_A_SECOND;
  const time = Math.max(kind === "exchange" ? EXCHANGE_TIME : STEP_TIME, readingTime);
  return TIME_UNIT * Math.ceil(time / TIME_UNIT);
}

/** One step after the other; hops follow each other within their step. */
function setTimes(steps) {
  let end = 0;
  return steps.map((step) => {
    const start = end;
    end += computeStepTime(step);
    const long = (end - start) / Math.max(1, step.hops.length);
    const hops = step.hops.map((hop, j) => ({ ...hop, start: start + j * long, end: start + (j + 1) * long }));
    return { ...step, start, end, hops, still: findStill(hops, end) };
  });
}

/** When a step is seen best: while its messages are under way, and none of them has arrived. Of several trips that is
    the second, so that one is over: rounds and bytes are those of the first. Without messages it is the end. */
function findStill(hops, end) {
  if (hops.length === 0) return end - 1;
  const hop = hops.find(({ round }) => round > hops[0].round) ?? hops[0];
  return hop.start + 0.6 * (hop.end - hop.start);
}

/** The step that is shown at a time, by number. */
export function findStep(plan, time) {
  const found = plan.steps.findIndex((step) => time < step.end);
  return found < 0 ? plan.steps.length - 1 : found;
}

/** How far client number `place` of a hop's clients has come, 0 to 1; they leave one after the other. */
export function computeShareOfHop(hop, place, time) {
  const delay = hop.clients.length > 1 ? (LATEST_START * place) / (hop.clients.length - 1) : 0;
  const share = (time - hop.start) / (hop.end - hop.start);
  return Math.min(1, Math.max(0, (share - delay) / (1 - LATEST_START)));
}

/** Bytes and messages that have arrived at a time: {up, down, messages}. */
export function countArrived(plan, time) {
  const arrived = { up: 0, down: 0, messages: 0 };
  for (const hop of plan.steps.flatMap((step) => step.hops)) {
    for (const place of range(hop.clients.length)) {
      if (computeShareOfHop(hop, place, time) < 1) continue;
      arrived[hop.way] += hop.bytes[place];
      arrived.messages += hop.messages[place];
    }
  }
  return arrived;
}

/** How many messages the client with most of them sends. */
export function countMostMessages(legs) {
  const up = legs.filter((leg) => leg.way === "up");
  return Math.max(0, ...range(legs[0].messages.length).map((k) => total(up.map((leg) => leg.messages[k]))));
}

/** A flight in one sentence, for when it has ended. */
export function summarise(plan, name) {
  const sum = (way, what) => total(plan.legs.filter((leg) => leg.way === way).map((leg) => total(leg[what])));
  const sizes = ["up", "down"].filter((way) => sum(way, "bytes")).map((way) => `${dataSize(sum(way, "bytes"))} ${way}`);
  const most = countMostMessages(plan.legs);
  return `${name}: ${most === 1 ? "one message" : `up to ${most} messages`} each, ${listed(sizes)}.`;
}
