// The wall of offices: a desk for each, with its colour, its letters, its pile of drawings, and what its network says.
// A message that has just come flies from its desk to the gate.
import { html, keyed, setText } from "./dom.js";
import { letter } from "./text.js";
import { hueOf, formatBytes } from "./office.js";

const SIDE = 8; // pixels of a drawing
const ACROSS = 4; // drawings in a row of a pile
const FLIGHT = 1400; // milliseconds
const BETWEEN = 110; // milliseconds between two departures
const MOST_FLYING = 14;
const WIDE = 1.25; // of a desk: its width for one of height, so that its bytes fit in

/** The columns with which `count` desks are largest in a field of this size. */
export function chooseColumns(count, width, height) {
  let best = { columns: 1, size: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const size = Math.min(width / columns / WIDE, height / rows);
    if (size > best.size) best = { columns, size };
  }
  return best.columns;
}

/** gates: where messages fly to, the first one of them that is seen; choose(seat): a desk is clicked. */
export function createWall(element, gates, { choose }) {
  const known = new Set(); // seats whose messages have flown in
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let isFirst = true;
  let departures = 0;

  /** Drawings so far as a small pile: a given one as it is, others as sealed letters. */
  function paintPile(canvas, drawn, test, total) {
    const rows = Math.max(1, Math.ceil(total / ACROSS));
    const key = `${drawn} ${test?.length} ${total}`;
    if (canvas.dataset.key === key) return;
    canvas.dataset.key = key;
    canvas.width = ACROSS * (SIDE + 1);
    canvas.height = rows * (SIDE + 1);
    const pen = canvas.getContext("2d");
    for (let i = 0; i < drawn; i++) {
      const x = (i % ACROSS) * (SIDE + 1);
      const y = canvas.height - (Math.floor(i / ACROSS) + 1) * (SIDE + 1);
      pen.globalAlpha = 1;
      pen.fillStyle = "#fff";
      pen.fillRect(x, y, SIDE, SIDE);
      pen.fillStyle = "#000";
      const pixels = test?.[i]?.[1];
      if (pixels) {
        pixels.forEach((value, p) => {
          pen.globalAlpha = value / 16;
          pen.fillRect(x + (p % SIDE), y + Math.floor(p / SIDE), 1, 1);
        });
      } else {
        pen.globalAlpha = 0.35;
        pen.fillRect(x, y, SIDE, 1);
        for (let p = 1; p < SIDE / 2; p++) pen.fillRect(x + p, y + p, 1, 1);
        for (let p = 1; p < SIDE / 2; p++) pen.fillRect(x + SIDE - 1 - p, y + p, 1, 1);
      }
    }
  }

  function fly(desk, message) {
    if (still.matches || departures >= MOST_FLYING) return;
    const from = desk.getBoundingClientRect();
    const to = gates.find((gate) => gate.offsetWidth > 0).getBoundingClientRect();
    const envelope = html("div", { className: "envelope", style: { "--hue": hueOf(message.seat) } }, html("b", {}, letter(message.seat)), html("span", {}, formatBytes(message.bytes)));
    envelope.setAttribute("aria-hidden", "true");
    document.body.append(envelope);
    const box = envelope.getBoundingClientRect();
    const place = (rect) => [rect.left + rect.width / 2 - box.width / 2, rect.top + rect.height / 2 - box.height / 2];
    const [x, y] = place(from);
    const [toX, toY] = place(to);
    const top = Math.max(0, Math.min(y, toY) - innerHeight / 8);
    const frames = [
      { transform: `translate(${x}px, ${y}px) scale(0.4)`, opacity: 0.4 },
      { transform: `translate(${x}px, ${y}px) scale(1)`, opacity: 1, offset: 0.2 },
      { transform: `translate(${(x + toX) / 2}px, ${top}px) scale(1.15)`, opacity: 1, offset: 0.6 },
      { transform: `translate(${toX}px, ${toY}px) scale(0.7)`, opacity: 0.9 },
    ];
    departures += 1;
    const flight = envelope.animate(frames, { duration: FLIGHT, delay: (departures - 1) * BETWEEN, fill: "both", easing: "ease-in-out" });
    const land = () => {
      departures -= 1;
      envelope.remove();
    };
    flight.onfinish = land;
    flight.oncancel = land;
  }

  return {
    /** state: what the server tells the projector; hasNames: names are shown. */
    update(state, hasNames) {
      const { seats, sent, drawings, stage, votes, joker, need } = state;
      const bySeat = new Map(sent.map((message) => [message.seat, message]));
      const box = element.getBoundingClientRect();
      element.style.setProperty("--columns", chooseColumns(Math.max(seats.length, 8), box.width, box.height));
      element.style.setProperty("--rows", Math.ceil(Math.max(seats.length, 8) / Number(element.style.getPropertyValue("--columns"))));
      const make = ({ seat }) => html("button", { type: "button", className: "desk", onclick: () => choose(seat), style: { "--hue": hueOf(seat) } },
        html("b"), html("span", { className: "name", dir: "auto" }), html("canvas"), html("strong"), html("small"));
      keyed(element, seats, ({ seat }) => seat, make, (desk, { seat, office, drawn, sleeps, stays }) => {
        const message = bySeat.get(seat);
        const [title, name, pile, vote, small] = desk.children;
        const said = stage.step === "digit" ? votes?.seats[seat] : undefined;
        const label = stage.is_shown ? votes?.label : null;
        const isAsked = said !== undefined;
        const verdict = !isAsked || label === null || label === undefined ? "" : said === label ? "right" : "wrong";
        const isWanted = stage.step === "rounds" && !state.rounds && need.ask.includes(office);
        const classes = ["desk", message ? "sent" : "", sleeps ? "sleeps" : "", seat === joker ? "joker" : "", verdict, isWanted ? "wanted" : "", stays && stage.step === "rounds" ? "stays" : ""];
        desk.className = classes.filter(Boolean).join(" ");
        setText(title, office);
        setText(name, hasNames ? (message?.name ?? "") : "");
        paintPile(pile, message ? message.drawings + message.given : drawn, message?.test, Math.max(drawings, message ? message.drawings + message.given : 0));
        pile.hidden = isAsked;
        setText(vote, isAsked ? String(said) : "");
        vote.hidden = !isAsked;
        small.hidden = isAsked;
        setText(small, isAsked ? "" : message ? formatBytes(message.bytes) : sleeps ? "asleep" : `${drawn} of ${drawings}`);
        const status = message ? `sent ${formatBytes(message.bytes)}` : `has drawn ${drawn} of ${drawings}`;
        desk.setAttribute("aria-label", `Office ${office}: ${status}${isAsked ? `, says ${said}` : ""}${verdict && `, ${verdict}`}`);
        if (message && !known.has(seat)) {
          known.add(seat);
          if (!isFirst) fly(desk, message);
        }
      });
      for (const seat of known) if (!bySeat.has(seat)) known.delete(seat);
      isFirst = false;
    },
  };
}
