// Where everything is at one moment of a flight: a plan, a time and the size of the field in, shapes out. Pure: the same
// moment gives the same shapes, and an envelope is there only where a message of the ledger is under way.
// A shape: {kind, x, y, size, colour, alpha, …}, x and y of its middle, size 1 for a network of 20 by 16 pixels.
import { countArrived, findStep, computeShareOfHop } from "./flight_plan.js";
import { dataSize } from "./text.js";

const SERVER = "server"; // the colour of what is nobody's own: the stage's accent
const QUIET = "quiet";
const MOST_DOTS = 25; // of a bundle of networks
const SMALL_BUNDLE = 0.4; // its size below which it is a single dot
const BYTES_COLUMN = 44; // pixels of a column that has room for a size below its network

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
/** Slow at both ends. */
const ease = (share) => share * share * (3 - 2 * share);
const mix = (a, b, share) => a + (b - a) * share;
/** A share of a part of a step: 0 before `from`, 1 after `to`. */
const within = (share, from, to) => clamp((share - from) / (to - from), 0, 1);

/** Where server, slots and clients are. size: {width, height, top}, top: pixels that the caption takes. */
export function placeFlight(clients, { width, height, top }) {
  const column = width / clients;
  const high = clamp(0.27 * (height - top), 42, 76);
  const wide = clamp(0.4 * width, 128, 340);
  const server = { x: (width - wide) / 2, y: top, width: wide, height: high };
  const middle = { x: width / 2, y: top + high / 2 };
  const size = clamp(column / 42, 0.22, 1.6);
  const homes = Array.from({ length: clients }, (_, k) => ({ x: column * (k + 0.5), y: height - 20 - 13 * size }));
  return { column, server, middle, size, homes, height, ...placeSlots(clients, server) };
}

/** A place for each client's message in the server's box: one row, or several where there are many. */
function placeSlots(clients, { x, y, width, height }) {
  const room = { width: width - 16, height: height - 12 };
  const rows = clients <= room.width / 12 ? 1 : Math.ceil(Math.sqrt((clients * room.height) / room.width));
  const across = Math.ceil(clients / rows);
  const cell = { width: room.width / across, height: room.height / rows };
  const slots = Array.from({ length: clients }, (_, k) => ({
    x: x + 8 + cell.width * ((k % across) + 0.5),
    y: y + 6 + cell.height * (Math.floor(k / across) + 0.5),
  }));
  return { slots, slotSize: clamp(Math.min(cell.width / 24, cell.height / 20), 0.12, 1.25) };
}

/** What lies at each client and in each slot: {kind, isOwn, step}, step: the number of the one in which it came. */
function findThings(plan, index, time) {
  const things = { homes: new Array(plan.clients).fill(null), slots: new Array(plan.clients).fill(null) };
  plan.steps.slice(0, index + 1).forEach((step, number) => {
    if (step.kind === "work" && number < index) things.homes.fill({ kind: step.cargo, isOwn: true, step: number });
    for (const hop of step.hops) {
      hop.clients.forEach((client, place) => {
        if (computeShareOfHop(hop, place, time) === 1) arrive(things, hop, client, number);
      });
    }
  });
  return things;
}

/** A message has come: a network stays where it is when only a note follows. */
function arrive(things, { way, cargo }, client, step) {
  const place = way === "up" ? things.slots : things.homes;
  const there = place[client];
  if (cargo === "note" && there !== null) return;
  if (way === "up") place[client] = { kind: cargo, isOwn: true, step };
  else if (there === null || cargo === "networks") place[client] = { kind: cargo, isOwn: false, step };
}

/** The shapes of a moment, from back to front. colours: of the clients. */
export function makeScene(plan, time, size, colours) {
  const places = placeFlight(plan.clients, size);
  const index = findStep(plan, time);
  const step = plan.steps[index];
  const share = clamp((time - step.start) / (step.end - step.start), 0, 1);
  const scene = { plan, time, index, step, share, places, colours, things: findThings(plan, index, time), shapes: [] };
  drawServer(scene);
  drawHomes(scene);
  if (step.kind === "end") ENDS[plan.gesture](scene, ease(within(share, 0, 0.7)));
  else drawSlots(scene);
  for (const hop of step.hops) drawHop(scene, hop);
  return scene.shapes;
}

function add({ shapes }, kind, x, y, size, colour, more = {}) {
  shapes.push({ kind, x, y, size, colour, alpha: 1, ...more });
}

function drawServer(scene) {
  const { plan, time, step, share, places } = scene;
  const { server, middle } = places;
  scene.shapes.push({ kind: "box", ...server, colour: QUIET, alpha: 1 });
  const gate = plan.steps.findIndex((one) => one.kind === "gate");
  const isAfter = scene.index > gate;
  const shut = isAfter ? 1 : step.kind === "gate" ? ease(within(share, 0, 0.35)) : 0;
  const y = server.y + server.height + 3;
  if (shut > 0) scene.shapes.push({ kind: "gate", ...server, x: middle.x, y, share: shut, alpha: 1 });
  const left = server.x - 10;
  const right = server.x + server.width + 10;
  const { up, down } = countArrived(plan, time);
  const text = (x, line, words, align) => add(scene, "text", x, server.y + 14 + 15 * line, 11, QUIET, { text: words, align });
  text(left, 0, "server", "right");
  if (shut === 1) text(left, 1, "gate shut", "right");
  else if (step.kind === "exchange") text(left, 1, `${countRoundsDone(step, time)} of ${step.rounds}`, "right");
  text(right, 0, `↑ ${dataSize(up)}`, "left");
  text(right, 1, `↓ ${dataSize(down)}`, "left");
}

/** How many rounds of an exchange are over: of a trip, which stands for several, once its last message has arrived. */
function countRoundsDone(step, time) {
  const current = step.hops.find((hop) => time < hop.end);
  if (current === undefined) return step.rounds;
  const over = step.hops.filter((hop) => hop.round < current.round);
  return over.at(-1)?.round ?? 0;
}

function drawHomes(scene) {
  const { plan, step, share, places, colours, things } = scene;
  const { homes, size, column, height } = places;
  const hasWork = step.kind === "work";
  things.homes.forEach((thing, k) => {
    const { x, y } = homes[k];
    if (hasWork) {
      const grown = ease(within(share, (0.3 * k) / plan.clients, 0.7 + (0.3 * k) / plan.clients));
      if (thing) add(scene, thing.kind, x, y, size, QUIET, { alpha: 0.6 * (1 - grown) });
      add(scene, step.cargo, x, mix(y + 12, y, grown), size * mix(0.5, 1, grown), colours[k], { alpha: grown });
      return;
    }
    if (!thing) return;
    const hasSent = things.slots[k] !== null;
    const alpha = hasSent ? 0.55 : 1;
    if (thing.kind === "networks") drawBundle(scene, x, y, size, alpha);
    else add(scene, thing.kind, x, y, size, thing.isOwn ? colours[k] : QUIET, { alpha });
  });
  const leg = step.legs.at(-1);
  if (!leg || column < BYTES_COLUMN) return;
  leg.bytes.forEach((bytes, k) => {
    if (leg.messages[k] === 0) return;
    const words = dataSize(step.kind === "exchange" ? bytes / leg.messages[k] : bytes);
    add(scene, "text", homes[k].x, height - 5, 11, QUIET, { text: words, align: "center" });
  });
}

/** The networks of all in one place: a dot a client, in a block; of many clients some stand for all. */
function drawBundle(scene, x, y, size, alpha = 1) {
  const { colours } = scene;
  const most = size < SMALL_BUNDLE ? 1 : MOST_DOTS;
  const step = Math.ceil(colours.length / most);
  const shown = colours.filter((_, k) => k % step === 0);
  const across = Math.ceil(Math.sqrt(shown.length));
  const gap = (22 * size) / across;
  shown.forEach((colour, i) => {
    const left = x + gap * ((i % across) - (across - 1) / 2);
    const top = y + gap * (Math.floor(i / across) - (across - 1) / 2);
    add(scene, "dot", left, top, 0.36 * gap, most === 1 ? QUIET : colour, { alpha });
  });
}

/** What the server has: what came in this step lies there closed, and is opened behind the gate. */
function drawSlots(scene) {
  const { step, share, places, colours, things, index } = scene;
  const { slots, slotSize } = places;
  const opened = step.kind === "gate" ? ease(within(share, 0.45, 0.85)) : 0;
  things.slots.forEach((thing, k) => {
    if (!thing) return;
    const { x, y } = slots[k];
    const isClosed = thing.kind !== "note" && thing.step >= index - (step.kind === "gate" ? 1 : 0);
    const open = isClosed ? opened : 1;
    if (open < 1) add(scene, "envelope", x, y, slotSize, colours[k], { alpha: 1 - open, isArrived: true });
    if (open > 0) add(scene, thing.kind, x, y, slotSize * mix(0.7, 1, open), colours[k], { alpha: open });
  });
}

/** The messages of a hop that are under way: an envelope a client, or a note. */
function drawHop(scene, hop) {
  const { time, places, colours } = scene;
  const { homes, slots, size, slotSize, server, middle } = places;
  if (time < hop.start || time >= hop.end) return;
  const isUp = hop.way === "up";
  const kind = hop.cargo === "note" ? "note" : "envelope";
  const bottom = server.y + server.height;
  hop.clients.forEach((client, place) => {
    const share = computeShareOfHop(hop, place, time);
    const home = { x: homes[client].x, y: homes[client].y - 18 * size };
    const slot = isUp ? slots[client] : { x: mix(slots[client].x, middle.x, 0.4), y: bottom };
    const [from, to] = isUp ? [home, slot] : [slot, home];
    const colour = isUp ? colours[client] : SERVER;
    const bend = { x: (home.x + 2 * middle.x) / 3, y: mix(home.y, bottom, 0.6) };
    scene.shapes.push({ kind: "path", from, bend, to, colour, alpha: 0.3 });
    if (share === 1 || (share === 0 && !isUp)) return;
    const moved = ease(share);
    const { x, y } = curve(from, bend, to, moved);
    const grown = isUp ? mix(size, slotSize, moved) : mix(slotSize, size, moved);
    add(scene, kind, x, y, grown, colour, { client });
    if (hop.cargo === "networks") drawBundle(scene, x, y + 1, 0.55 * grown);
  });
}

/** A point of a quadratic curve. */
function curve(from, bend, to, share) {
  const rest = 1 - share;
  const at = (a, b, c) => rest * rest * a + 2 * rest * share * b + share * share * c;
  return { x: at(from.x, bend.x, to.x), y: at(from.y, bend.y, to.y) };
}

/** What lies in the slots as the last step begins: [{kind, colour, slot}]. */
function listReceived({ things, places, colours }) {
  const found = [];
  things.slots.forEach((thing, k) => {
    if (thing) found.push({ kind: thing.kind, colour: colours[k], slot: places.slots[k] });
  });
  return found;
}

/** Everything goes into one thing in the middle. */
function gather(scene, share, kind, colour) {
  const { middle, slotSize } = scene.places;
  for (const one of listReceived(scene)) {
    const x = mix(one.slot.x, middle.x, share);
    const y = mix(one.slot.y, middle.y, share);
    add(scene, one.kind, x, y, slotSize, one.colour, { alpha: 1 - within(share, 0.75, 1) });
  }
  const grown = within(share, 0.5, 1);
  if (grown > 0) add(scene, kind, middle.x, middle.y, mix(0.6, 1.9, grown), colour, { alpha: grown });
}

/** All stay where they are; `each(one, x, y)` adds what is seen at each. */
function keepAll(scene, each) {
  const { slotSize } = scene.places;
  for (const one of listReceived(scene)) {
    add(scene, one.kind, one.slot.x, one.slot.y, slotSize, one.colour);
    each(one, one.slot.x, one.slot.y);
  }
}

const ENDS = {
  blend(scene, share) {
    gather(scene, share, "network", mixColours(listReceived(scene).map(({ colour }) => colour)));
  },
  rounds(scene, share) {
    gather(scene, share, "network", SERVER);
  },
  sums(scene, share) {
    const isTable = scene.plan.legs.every((leg) => leg.cargo !== "gaussians");
    gather(scene, share, isTable ? "sums" : "network", SERVER);
  },
  keep(scene, share) {
    const { server, slotSize, middle } = scene.places;
    const y = server.y + server.height + 36;
    keepAll(scene, ({ colour }, x, top) => {
      const to = { x: mix(x, middle.x, share), y: mix(top + 8 * slotSize, y, share) };
      scene.shapes.push({ kind: "line", from: { x, y: top + 8 * slotSize }, to, colour, alpha: 0.8 });
    });
    if (share > 0.8) add(scene, "answer", middle.x, y, 1, SERVER, { alpha: within(share, 0.8, 1) });
  },
  notes(scene, share) {
    const { server, slotSize, middle } = scene.places;
    const y = server.y + server.height + 36;
    keepAll(scene, ({ colour }, x, top) => {
      const to = { x: mix(x, middle.x, share), y: mix(top + 8 * slotSize, y, share) };
      const from = { x, y: top + 8 * slotSize };
      scene.shapes.push({ kind: "line", from, to, colour, alpha: 0.8 });
      add(scene, "note", mix(from.x, to.x, 0.5), mix(from.y, to.y, 0.5), Math.min(0.8, slotSize) * share, SERVER);
    });
    if (share > 0.8) add(scene, "answer", middle.x, y, 1, SERVER, { alpha: within(share, 0.8, 1) });
  },
  images(scene, share) {
    const { server, slots, slotSize, middle, homes, size } = scene.places;
    const { source } = scene.plan;
    const bottom = server.y + server.height;
    const pupil = { x: middle.x, y: Math.min(bottom + 52, homes[0].y - 22 * size) };
    const row = mix(bottom, pupil.y, 0.34);
    const received = listReceived(scene);
    if (source !== "sent") keepAll(scene, () => {});
    const taught = within(share, 0.5, 0.85);
    received.forEach(({ colour, slot, kind }, i) => {
      const delay = (0.25 * i) / received.length;
      const moved = ease(within(share, delay, 0.5 + delay));
      const x = mix(middle.x, slots[i].x, received.length > 1 ? 0.9 : 1);
      const y = source === "public" ? row : mix(slot.y, row, moved);
      const what = source === "sent" ? kind : "images";
      const own = source === "public" ? QUIET : colour;
      const to = { x: mix(x, pupil.x, taught), y: mix(row, pupil.y, taught) };
      if (taught > 0) scene.shapes.push({ kind: "line", from: { x, y: row }, to, colour: own, alpha: 0.6 });
      const alpha = source === "sent" ? 1 : moved;
      add(scene, what, x, y, Math.max(0.3, 0.75 * slotSize), own, { alpha });
    });
    const grown = within(share, 0.5, 1);
    if (grown > 0) add(scene, "network", pupil.x, pupil.y, mix(0.6, 1.4, grown), SERVER, { alpha: grown });
  },
};

/** The mean of colours "#rrggbb". */
export function mixColours(colours) {
  const channel = (at) => {
    const values = colours.map((colour) => parseInt(colour.slice(at, at + 2), 16));
    const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
    return Math.round(mean).toString(16).padStart(2, "0");
  };
  return `#${channel(1)}${channel(3)}${channel(5)}`;
}
