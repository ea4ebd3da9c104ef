// The wall of offices: a desk for each, with its colour, its name, its pile of drawings, and what its network says.
// A message that has just come flies from its desk to the gate.
import { html, keyed, setText } from "./dom.js";
import { letter } from "./text.js";
import { hueOf, formatBytes } from "./office.js";

const SIDE = 8; // pixels of a drawing
const CELL = SIDE + 1; // of a pile: a drawing, and the gap beside it
const ACROSS = 4; // drawings in a row of a pile
const FULL = 16; // a pixel that is all ink
const FLIGHT = 1400; // milliseconds
const BETWEEN = 110; // milliseconds between two departures
const MOST_FLYING = 14;
const FEWEST_DESKS = 8; // a class that begins has desks of this size
const WIDE = 1.25; // of a desk: its width for one of height, so that its bytes fit in

/** The number of columns with which `count` desks are largest in a field of this size. */
export function chooseColumns(count, width, height) {
  let best = { columns: 1, size: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const size = Math.min(width / columns / WIDE, height / rows);
    if (size > best.size) best = { columns, size };
  }
  return best.columns;
}

// ---------------------------------------------------------------------------------------------------------------- piles
/** The drawings so far as a small pile: given ones as they are, others as sealed envelopes. total: how many fit. */
function paintPile(canvas, drawn, test, total) {
  const key = `${drawn} ${test.length} ${total}`;
  if (canvas.dataset.key === key) return;
  canvas.dataset.key = key;
  canvas.width = ACROSS * CELL;
  canvas.height = Math.max(1, Math.ceil(total / ACROSS)) * CELL;
  const pen = canvas.getContext("2d");
  for (let i = 0; i < drawn; i++) {
    const x = (i % ACROSS) * CELL;
    const y = canvas.height - (Math.floor(i / ACROSS) + 1) * CELL;
    pen.globalAlpha = 1;
    pen.fillStyle = "#fff";
    pen.fillRect(x, y, SIDE, SIDE);
    pen.fillStyle = "#000";
    if (i < test.length) paintDrawing(pen, x, y, test[i][1]);
    else paintEnvelope(pen, x, y);
  }
}

function paintDrawing(pen, x, y, pixels) {
  pixels.forEach((value, p) => {
    pen.globalAlpha = value / FULL;
    pen.fillRect(x + (p % SIDE), y + Math.floor(p / SIDE), 1, 1);
  });
}

function paintEnvelope(pen, x, y) {
  pen.globalAlpha = 0.35;
  pen.fillRect(x, y, SIDE, 1);
  for (let p = 1; p < SIDE / 2; p++) {
    pen.fillRect(x + p, y + p, 1, 1);
    pen.fillRect(x + SIDE - 1 - p, y + p, 1, 1);
  }
}

// ---------------------------------------------------------------------------------------------------------------- desks
function makeDesk(seat, choose) {
  const properties = { type: "button", className: "desk", onclick: () => choose(seat) };
  const parts = [
    html("b"),
    html("span", { className: "name", dir: "auto" }),
    html("canvas"),
    html("strong"),
    html("small"),
  ];
  return html("button", { ...properties, style: { "--hue": hueOf(seat) } }, ...parts);
}

/** What a desk shows: its message, what its network says of the teacher's digit, and whether that is right. */
function describeDesk(state, { seat, office, drawn, sleeps, stays }, message) {
  const { stage, votes, joker, need } = state;
  const answer = stage.step === "digit" ? votes?.seats[seat] : undefined;
  const hasVoted = answer !== undefined;
  const label = stage.is_shown ? (votes?.label ?? null) : null;
  const isJudged = hasVoted && label !== null;
  const verdict = isJudged ? (answer === label ? "right" : "wrong") : "";
  const isRoundsStep = stage.step === "rounds";
  const classes = {
    sent: message !== undefined,
    sleeps,
    joker: seat === joker,
    right: verdict === "right",
    wrong: verdict === "wrong",
    wanted: isRoundsStep && !state.rounds && need.ask.includes(office),
    stays: isRoundsStep && stays,
  };
  let status = `${drawn} of ${state.drawings}`;
  let long = `has drawn ${status}`;
  if (message) {
    status = formatBytes(message.bytes);
    long = `sent ${status}`;
  } else if (sleeps) {
    status = "asleep";
    long = "asleep";
  }
  if (hasVoted) long += `, says ${answer}`;
  if (isJudged) long += `, ${verdict}`;
  return { answer, hasVoted, classes, status, label: `Office ${office}: ${long}` };
}

function updateDesk(desk, state, seat, message, hasNames) {
  const { answer, hasVoted, classes, status, label } = describeDesk(state, seat, message);
  const [title, name, pile, vote, small] = desk.children;
  for (const [className, isOn] of Object.entries(classes)) desk.classList.toggle(className, isOn);
  desk.setAttribute("aria-label", label);
  setText(title, seat.office);
  setText(name, hasNames && message ? message.name : "");
  const drawn = message ? message.drawings + message.given : seat.drawn;
  paintPile(pile, drawn, message?.test ?? [], Math.max(state.drawings, drawn));
  pile.hidden = hasVoted;
  setText(vote, hasVoted ? String(answer) : "");
  vote.hidden = !hasVoted;
  setText(small, hasVoted ? "" : status);
  small.hidden = hasVoted;
}

/** gates: where messages fly to, the first one of them that is seen; choose(seat): a desk is clicked. */
export function createWall(element, gates, { choose }) {
  const known = new Set(); // seats whose messages have flown in
  const wantsNoMotion = matchMedia("(prefers-reduced-motion: reduce)");
  let isFirst = true;
  let departures = 0;

  function makeEnvelope({ seat, bytes }) {
    const parts = [html("b", {}, letter(seat)), html("span", {}, formatBytes(bytes))];
    const envelope = html("div", { className: "envelope", style: { "--hue": hueOf(seat) } }, ...parts);
    envelope.setAttribute("aria-hidden", "true");
    document.body.append(envelope);
    return envelope;
  }

  function fly(desk, message) {
    if (wantsNoMotion.matches || departures >= MOST_FLYING) return;
    const gate = gates.find((each) => each.offsetWidth > 0);
    const envelope = makeEnvelope(message);
    const { width, height } = envelope.getBoundingClientRect();
    /** Where the envelope's corner is when its middle is in the middle of `place`. */
    const findCorner = (place) => {
      const box = place.getBoundingClientRect();
      return [box.left + (box.width - width) / 2, box.top + (box.height - height) / 2];
    };
    const [x, y] = findCorner(desk);
    const [toX, toY] = findCorner(gate);
    const top = Math.max(0, Math.min(y, toY) - innerHeight / 8);
    const move = (left, upper, scale) => `translate(${left}px, ${upper}px) scale(${scale})`;
    const frames = [
      { transform: move(x, y, 0.4), opacity: 0.4 },
      { transform: move(x, y, 1), opacity: 1, offset: 0.2 },
      { transform: move((x + toX) / 2, top, 1.15), opacity: 1, offset: 0.6 },
      { transform: move(toX, toY, 0.7), opacity: 0.9 },
    ];
    const delay = departures * BETWEEN;
    departures += 1;
    const options = { duration: FLIGHT, delay, fill: "both", easing: "ease-in-out" };
    const flight = envelope.animate(frames, options);
    const land = () => {
      departures -= 1;
      envelope.remove();
    };
    flight.onfinish = land;
    flight.oncancel = land;
  }

  function layOut(count) {
    const { width, height } = element.getBoundingClientRect();
    const desks = Math.max(count, FEWEST_DESKS);
    const columns = chooseColumns(desks, width, height);
    element.style.setProperty("--columns", columns);
    element.style.setProperty("--rows", Math.ceil(desks / columns));
  }

  return {
    /** state: what the server tells the projector; hasNames: names are shown. */
    update(state, hasNames) {
      const { seats, sent } = state;
      const messages = new Map(sent.map((message) => [message.seat, message]));
      layOut(seats.length);
      const make = ({ seat }) => makeDesk(seat, choose);
      keyed(element, seats, ({ seat }) => seat, make, (desk, seat) => {
        const message = messages.get(seat.seat);
        updateDesk(desk, state, seat, message, hasNames);
        if (!message || known.has(seat.seat)) return;
        known.add(seat.seat);
        if (!isFirst) fly(desk, message);
      });
      for (const seat of known) if (!messages.has(seat)) known.delete(seat);
      isFirst = false;
    },
  };
}
