// The race: the flights of several methods side by side, with bytes or seconds as their axis. At the left what each has
// to show for what it has spent, at the right its messages on their way between clients and server. It plays on the
// clock of the flight, and stands still where motion is unwanted. Numbers are those of race_plan.js.
import { REAL_CLOCK } from "./clock.js";
import { html, keyed, setText } from "./dom.js";
import { paintScene } from "./flight_paint.js";
import { planFlight } from "./flight_plan.js";
import { createPlayer, makeSignButton } from "./player.js";
import { RACE_TIME, countPaid, describeRace, findBudget, findInFlight, findShare, findSpentBytes, findTrained, listMoments, listTicks } from "./race_plan.js";
import { NAME_HEIGHT, chooseSides, placeName } from "./race_names.js";
import { traceMarker } from "./race_markers.js";
import { percent } from "./text.js";

const MARGIN = { left: 44, right: 14, top: 12, bottom: 34 }; // pixels round the plane
const TICK_GAP = 6; // pixels between two numbers of an axis
const NAMED_PLANE = 320; // pixels of a plane that has room for names; else the lanes under it have marks, colours and names
const AXES = { bytes: "bytes spent, both ways, all clients", seconds: "seconds of computing; sending takes none here" };
const LANE = { height: 30, client: 14, server: 42 };
const BUNDLE = 9; // networks that stand for all in the server's box

/** The label's places, [y]: as near as can be to where they belong, a line apart, within `low` and `high`. */
export function spreadLabels(wanted, low, high, gap) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const placed = [];
  /** A group of labels that touch, as near as possible to where they belong. */
  const makeBlock = (many) => {
    const sum = many.reduce((total, y, j) => total + y - j * gap, 0);
    const lowest = high - (many.length - 1) * gap;
    return { wanted: many, top: Math.max(low, Math.min(sum / many.length, lowest)) };
  };
  for (const i of order) {
    let block = makeBlock([wanted[i]]);
    while (placed.length && placed.at(-1).top + placed.at(-1).wanted.length * gap > block.top) {
      block = makeBlock([...placed.pop().wanted, ...block.wanted]);
    }
    placed.push(block);
  }
  const places = placed.flatMap(({ wanted: many, top }) => many.map((_, j) => top + j * gap));
  const found = new Array(wanted.length);
  order.forEach((i, j) => { found[i] = places[j]; });
  return found;
}

/** pick(method): a method was chosen, to stand out in all pictures. */
export function createRace({ clock = REAL_CLOCK, pick = () => {} } = {}) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let scene = null;
  let axis = "bytes";
  let held = ""; // the method that stands out
  let size = { width: 0, height: 0 };
  let drawn = 0; // pictures so far, for tests
  const words = html("p", { className: "race-words" });
  words.setAttribute("role", "status");
  const canvas = html("canvas", { className: "plane" });
  canvas.setAttribute("role", "img");
  const plane = html("div", { className: "plane-box" }, canvas);
  const lanes = html("ul", { className: "lanes" });
  lanes.setAttribute("aria-label", "The methods, and where their messages are");
  const player = createPlayer({
    clock,
    noun: "race",
    draw,
    findTime(time, count) {
      const moments = listMoments(scene, axis).map((share) => share * RACE_TIME);
      if (count > 0) return moments.find((one) => one > time + 1) ?? RACE_TIME;
      return moments.findLast((one) => one < time - 1) ?? 0;
    },
    describe: (time) => describeRace(scene, axis, budgetAt(time)),
    changed: (isPlaying) => words.setAttribute("aria-live", isPlaying ? "off" : "polite"),
    ended: () => player.setPlaying(false),
  });
  const axisButtons = ["bytes", "seconds"].map((name) => {
    const button = makeSignButton(`Against ${name}`, name === "bytes" ? "bytes" : "time", () => setAxis(name));
    button.dataset.axis = name;
    return button;
  });
  const choice = html("span", { className: "axes" }, ...axisButtons);
  choice.setAttribute("role", "group");
  choice.setAttribute("aria-label", "Axis of the race");
  const tools = html("div", { className: "race-tools" }, ...player.controls, choice);
  tools.setAttribute("role", "group");
  tools.setAttribute("aria-label", "The race");
  const element = html("div", { className: "race" }, tools, words, html("div", { className: "race-body" }, plane, lanes));

  const budgetAt = (time) => findBudget(scene, axis, time / RACE_TIME);

  function setAxis(name) {
    player.setPlaying(false);
    axis = name;
    player.seek(RACE_TIME);
  }

  function makeLane() {
    const button = html("button", { type: "button", className: "lane-name" }, html("canvas", { width: 28, height: 28 }), html("span"));
    const track = html("canvas", { className: "lane-track" });
    track.setAttribute("aria-hidden", "true");
    const lane = html("li", {}, button, track, html("small"), html("b"));
    button.addEventListener("click", () => pick(lane.method.key));
    return lane;
  }

  /** The theme's colours, read once a picture. */
  function readColours() {
    const style = getComputedStyle(element);
    const read = (name) => style.getPropertyValue(name).trim();
    const names = { ground: "--bg", card: "--card", server: "--act", quiet: "--soft", bad: "--bad", ink: "--ink", line: "--line", ghost: "--ghost" };
    const colours = Object.fromEntries(Object.entries(names).map(([name, property]) => [name, read(property)]));
    return { ...colours, font: style.fontFamily, isDark: style.colorScheme.includes("dark") };
  }

  function preparePen(target, width, height) {
    const scale = devicePixelRatio || 1;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (target.width !== w || target.height !== h) Object.assign(target, { width: w, height: h });
    const pen = target.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  function draw(time) {
    if (scene === null) return;
    const budget = budgetAt(time);
    const said = describeRace(scene, axis, budget);
    if (!player.isPlaying()) setText(words, time < RACE_TIME ? said : "");
    canvas.setAttribute("aria-label", `Accuracy against ${AXES[axis]}. ${said}`);
    drawn += 1;
    if (!size.width) return;
    const style = readColours();
    drawPlane(budget, style);
    scene.methods.forEach((method, i) => drawLane(lanes.children[i], method, budget, style));
  }

  // ------------------------------------------------------------------------------------------------- the plane
  const colourOf = (method, { isDark }) => (isDark ? lighten(method.colour) : method.colour);
  const letterColourOf = (method, { isDark }) => (isDark ? lighten(method.colour) : method.letterColour);
  const isQuiet = (method) => held !== "" && scene.methods.some(({ key }) => key === held) && method.key !== held;

  function drawPlane(budget, style) {
    const { width, height } = size;
    const pen = preparePen(canvas, width, height);
    const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    const toX = (value) => MARGIN.left + inner.width * findShare(scene, axis, value);
    const toY = (accuracy) => MARGIN.top + inner.height * (1 - accuracy);
    drawGrid(pen, { inner, toX, toY, budget }, style);
    const heads = [];
    const lines = [];
    for (const method of scene.methods) {
      const paid = countPaid(method, axis, budget);
      const places = method.points.map((point) => ({ x: toX(point[axis]), y: toY(point.accuracy) }));
      lines.push(places);
      pen.globalAlpha = isQuiet(method) ? 0.25 : 1;
      traceLine(pen, places, style.ghost, 1.3);
      const colour = colourOf(method, style);
      traceLine(pen, places.slice(0, paid), colour, 2.2);
      if (paid > 0) heads.push({ method, colour, ...places[paid - 1] });
    }
    drawHeads(pen, heads, lines, inner, style);
    pen.globalAlpha = 1;
  }

  function drawGrid(pen, { inner, toX, toY, budget }, style) {
    pen.font = `11px ${style.font}`;
    pen.lineWidth = 1;
    pen.fillStyle = style.quiet;
    pen.strokeStyle = style.line;
    const bottom = MARGIN.top + inner.height;
    pen.textAlign = "right";
    for (let i = 0; i <= 5; i++) {
      const y = Math.round(toY(i / 5)) + 0.5;
      strokeLine(pen, MARGIN.left, y, MARGIN.left + inner.width, y);
      pen.fillText(percent(i / 5), MARGIN.left - 6, y + 4);
    }
    pen.textAlign = "center";
    let free = MARGIN.left - 24; // where the next number may begin
    for (const { share, words: text } of listTicks(scene, axis)) {
      const x = Math.round(MARGIN.left + inner.width * share) + 0.5;
      strokeLine(pen, x, bottom, x, bottom + 4);
      const half = pen.measureText(text).width / 2;
      const middle = Math.min(x, size.width - half - 2);
      if (middle - half < free) continue;
      pen.fillText(text, middle, bottom + 15);
      free = middle + half + TICK_GAP;
    }
    pen.fillText(AXES[axis], MARGIN.left + inner.width / 2, bottom + 30);
    pen.strokeStyle = style.server;
    pen.setLineDash([4, 3]);
    const now = toX(budget);
    strokeLine(pen, now, MARGIN.top, now, bottom);
    pen.setLineDash([]);
  }

  /** A mark at the end of each line, and its name beside it. lines: of all methods, [[{x, y}, …]] */
  function drawHeads(pen, heads, lines, inner, style) {
    pen.font = `12px ${style.font}`;
    const boxes = size.width < NAMED_PLANE ? [] : placeNames(pen, heads, lines, inner);
    heads.forEach(({ method, colour, x, y }, i) => {
      const alpha = isQuiet(method) ? 0.25 : 1;
      if (boxes.length > 0) drawName(pen, { text: method.short, colour: letterColourOf(method, style), alpha }, boxes[i], style);
      pen.globalAlpha = alpha;
      pen.fillStyle = colour;
      traceMarker(pen, method.marker, x, y, 5);
      pen.fill();
    });
  }

  /** The boxes of the names: at the race's end where they are free, before it right of their marks, a line apart. */
  function placeNames(pen, heads, lines, inner) {
    const marks = heads.map(({ method, x, y }) => ({ x, y, width: pen.measureText(method.short).width }));
    const plane = { left: MARGIN.left, right: size.width - 2, top: 0, bottom: MARGIN.top + inner.height };
    if (player.getTime() >= RACE_TIME) {
      const sides = chooseSides(marks, lines, plane);
      return marks.map((mark, i) => placeName(mark, sides[i], mark.width));
    }
    const middles = spreadLabels(marks.map(({ y }) => y), MARGIN.top + 5, plane.bottom - 4, NAME_HEIGHT);
    return marks.map((mark, i) => {
      const moved = { x: mark.x, y: middles[i] };
      const box = placeName(moved, "right", mark.width);
      return box.right > plane.right ? placeName(moved, "left", mark.width) : box;
    });
  }

  /** A name in its box, on a ground that lets lines under it show a little. */
  function drawName(pen, { text, colour, alpha }, { left, right, top, bottom }, style) {
    pen.globalAlpha = 0.75 * alpha;
    pen.fillStyle = style.ground;
    pen.fillRect(left - 1, top, right - left + 2, bottom - top);
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.textAlign = "left";
    pen.fillText(text, left, bottom - 3);
  }

  // ------------------------------------------------------------------------------------------------- the lanes
  function drawLane(lane, method, budget, style) {
    const [, track, step, number] = lane.children;
    const spent = findSpentBytes(method, axis, budget);
    const paid = countPaid(method, axis, budget);
    lane.classList.toggle("quiet", isQuiet(method));
    setText(number, paid ? percent(method.points[paid - 1].accuracy) : "–");
    const trained = findTrained(method, axis, budget);
    const flying = method.plan ? findInFlight(method.plan, spent) : null;
    setText(step, describeLane(method, flying, trained, paid));
    step.title = step.textContent;
    const pen = preparePen(track, lane.wide, LANE.height);
    paintScene(pen, listLaneShapes(method, flying, trained, lane.wide, colourOf(method, style)), style);
  }

  function describeLane(method, flying, trained, paid) {
    if (flying === null) return "sends nothing";
    if (trained < 1) return "trains alone";
    const { step, leg, round } = flying;
    if (leg === null) return paid === method.points.length ? step.title : "the server works";
    if (step.kind === "exchange") return `round ${round} of ${step.rounds}`;
    return `${leg.way === "up" ? "sends" : "gets"} ${leg.words}`;
  }

  /** Client, way and server of a lane, with what is under way between them. */
  function listLaneShapes(method, flying, trained, wide, colour) {
    const middle = LANE.height / 2;
    const server = { x: wide - LANE.server, y: 3, width: LANE.server - 4, height: LANE.height - 6 };
    const from = { x: LANE.client + 14, y: middle };
    const to = { x: server.x, y: middle };
    const shapes = [
      { kind: "line", from, to, colour: "quiet", alpha: 0.35 },
      { kind: "box", ...server, colour: "quiet", alpha: 1 },
    ];
    if (flying === null) return shapes;
    const { leg, share } = flying;
    const cargo = method.cargo === "networks" ? "network" : method.cargo;
    shapes.push({ kind: cargo, x: LANE.client, y: middle, size: 0.85, colour, alpha: 0.25 + 0.75 * trained });
    if (leg === null) {
      shapes.push(...listHeld(method, server, middle, colour));
      return shapes;
    }
    if (trained < 1) return shapes;
    const moved = leg.way === "up" ? share : 1 - share;
    const x = from.x + 10 + (to.x - from.x - 20) * moved;
    const kind = leg.cargo === "note" ? "note" : "envelope";
    shapes.push({ kind, x, y: middle, size: 0.85, colour, alpha: 1, isFlying: true });
    return shapes;
  }

  /** What the server has in the end: all networks, or one thing. */
  function listHeld({ flight }, server, middle, colour) {
    const x = server.x + server.width / 2;
    if (flight.gesture !== "keep" && flight.gesture !== "notes") {
      const isTable = flight.gesture === "sums" && flight.legs.every((leg) => leg.cargo !== "gaussians");
      return [{ kind: isTable ? "sums" : "network", x, y: middle, size: 1, colour, alpha: 1 }];
    }
    const count = Math.min(flight.clients, BUNDLE);
    const across = Math.ceil(Math.sqrt(count));
    return Array.from({ length: count }, (_, i) => ({
      kind: "network",
      x: x + 10 * ((i % across) - (across - 1) / 2),
      y: middle + 7 * (Math.floor(i / across) - (Math.ceil(count / across) - 1) / 2),
      size: 0.4,
      colour,
      alpha: 1,
    }));
  }

  // ------------------------------------------------------------------------------------------------- from outside
  function measure() {
    size = { width: plane.clientWidth, height: plane.clientHeight };
    for (const lane of lanes.children) lane.wide = lane.children[1].clientWidth;
  }

  /** Marks of the lanes, and what stands out. */
  function drawNames() {
    const style = readColours();
    keyed(lanes, scene.methods, ({ name }) => name, makeLane, (lane, method) => {
      lane.method = method;
      const [button, track] = lane.children;
      setText(button.lastChild, method.short);
      button.title = method.name;
      button.setAttribute("aria-pressed", String(held !== "" && method.key === held));
      track.style.height = `${LANE.height}px`;
      const pen = button.firstChild.getContext("2d");
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, 28, 28);
      pen.fillStyle = colourOf(method, style);
      traceMarker(pen, method.marker, 14, 14, 9);
      pen.fill();
    });
  }

  function redraw() {
    if (scene === null) return;
    for (const button of axisButtons) {
      button.hidden = scene.seconds === 0;
      button.setAttribute("aria-pressed", String(button.dataset.axis === axis));
    }
    drawNames();
    measure();
    draw(player.getTime());
  }

  function followMotion() {
    player.play.hidden = still.matches;
    if (still.matches) player.setPlaying(false);
  }

  function scrubTo(event) {
    const inner = size.width - MARGIN.left - MARGIN.right;
    player.setPlaying(false);
    player.seek((RACE_TIME * (event.offsetX - MARGIN.left)) / inner);
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    scrubTo(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) scrubTo(event);
  });
  tools.addEventListener("keydown", (event) => {
    if (event.target === player.scrub) return;
    if (event.key === "ArrowLeft") player.stepBy(-1);
    else if (event.key === "ArrowRight") player.stepBy(1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  still.addEventListener("change", followMotion);
  player.setPlaying(false);
  const observer = new ResizeObserver(redraw);
  observer.observe(plane);

  /** What is shown now, for tests and films. */
  element.inspect = () => {
    if (scene === null) return null;
    const budget = budgetAt(player.getTime());
    const counts = scene.methods.map((method) => countPaid(method, axis, budget));
    return { at: player.getTime(), axis, budget, counts, drawn, isPlaying: player.isPlaying() };
  };

  return {
    element,
    /** next: see race_plan.js, and of each method also short, key, colour, marker and flight (front/flight.py), with
        `people`, the data set's words; null: there is none. The moment stays where it is, at first at the end. */
    show(next) {
      const isFirst = scene === null;
      scene = next && { ...next, methods: next.methods.map((method) => prepareMethod(method, next.people)) };
      player.load(scene === null ? 0 : RACE_TIME);
      if (scene === null) {
        player.setPlaying(false);
        return;
      }
      if (scene.seconds === 0) axis = "bytes";
      redraw();
      if (isFirst) player.seek(RACE_TIME);
      followMotion();
    },
    select() {}, // no client and no class has a mark of its own here
    hold(method) {
      held = method;
      redraw();
    },
    redraw,
    destroy() {
      player.destroy();
      observer.disconnect();
      still.removeEventListener("change", followMotion);
    },
  };
}

function prepareMethod(method, people) {
  if (method.flight === null) return { ...method, plan: null };
  const up = method.flight.legs.filter((leg) => leg.way === "up");
  const main = up.find((leg) => leg.cargo !== "note") ?? up[0];
  return { ...method, plan: planFlight(method.flight, people), cargo: main.cargo };
}

function strokeLine(pen, x, y, right, bottom) {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(right, bottom);
  pen.stroke();
}

function traceLine(pen, places, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  places.forEach(({ x, y }, i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}

/** A colour "#rrggbb" for a dark ground. */
function lighten(colour) {
  const mixed = [1, 3, 5].map((at) => Math.round(parseInt(colour.slice(at, at + 2), 16) * 0.55 + 255 * 0.45));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}
