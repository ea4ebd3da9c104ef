// The projector: asks the server four times a second what has arrived, and shows it, step by step. Names are text, never
// HTML. What the teacher has not shown yet is covered.
import { html, keyed, setText } from "./dom.js";
import { pad, picture } from "./pen.js";
import { letter, percent, plural } from "./text.js";
import { createBars } from "./bars.js";
import { layOutPiles } from "./layout.js";
import { clock, drawings, hueOf, formatBytes } from "./office.js";
import { FALL, isCalm, readAccuracies, writeHeadline, writeNote } from "./sentences.js";
import { createWall } from "./wall.js";

const $ = (id) => document.getElementById(id);
const PAUSE = 250; // milliseconds between two looks
const ZOOM = 2; // of the tiles of given drawings
const KEYS = { d: "draw", s: "send", r: "reveal", j: "joker", f: "forget", t: "rounds", m: "digit" };
const COLOURS = {
  "Local only": "#717581", FedAvg: "#bd1f01", "FedAvg, median": "#e76300", "Mean of logits": "#d45fa5", Ensemble: "#2f9e5a",
  "Ensemble, median": "#7a9a1c", FENS: "#0072b2", AFL: "#8a6500", "Gaussian heads": "#007a70",
};
let version = "";
let state = null;
let hasNames = true;
let chosen = null; // the office whose message is open
let bars = null; // {key, view}
let last = {}; // accuracies that the bars showed last
let paper = null;
let sending = Promise.resolve(); // of the teacher's drawings
let isBusy = false; // the main button's work is under way
let isUncovered = false; // the teacher shows the bars while messages arrive
const wall = createWall($("wall"), [$("gate"), $("side")], { choose });

async function post(what, body = "{}") {
  const answer = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const said = await answer.json();
  setText($("told"), said.error ?? (said.name ? `Loaded: ${said.name}.` : ""));
  if (said.error && !$("more").open) setText($("headline"), said.error);
  await look();
  return answer.ok;
}

// ---------------------------------------------------------------------------------------------------------- main button
/** What the main button does in this step: [words, work], or null where there is nothing to do. */
function mainAction() {
  const { stage, rounds, effect, joker, sent, need } = state;
  const go = (name) => () => post(`step/${name}`);
  switch (stage.step) {
    case "draw":
      return ["Next: send", go("send")];
    case "send":
      return ["Next: guess", go("reveal")];
    case "reveal":
      return stage.is_shown ? ["Next: the joker", go("joker")] : sent.length ? ["Show the result", () => post("show")] : null;
    case "joker":
      if (joker !== null) return stage.is_shown ? ["Take the joker out", () => post("joker/out")] : ["Show the result", () => post("show")];
      if (stage.is_shown) return ["Next: forget", go("forget")];
      return sent.length ? ["The joker sends", async () => { if (await post("joker/in")) await post("show"); }] : null;
    case "forget":
      return !effect ? null : stage.is_shown ? ["Next: tiny rounds", go("rounds")] : ["Show what it cost", () => post("show")];
    case "rounds":
      if (!rounds) return sent.some(({ network }) => network) && need.phones ? [need.is_enough ? "Start the rounds" : "Start anyway", () => post("rounds")] : null;
      if (rounds.round < rounds.of) return null;
      return stage.is_shown ? ["Next: my digit", go("digit")] : ["Show the result", () => post("show")];
    default:
      return state.votes ? ["Another digit", clearDigit] : null;
  }
}

async function act() {
  const action = mainAction();
  if (!action || isBusy) return;
  isBusy = true;
  $("main").disabled = true;
  try {
    await action[1]();
  } finally {
    isBusy = false;
    draw(false);
  }
}

const WAITS = {
  reveal: "Waiting for messages", joker: "Waiting for messages", forget: "Waiting for “Forget me”",
  rounds: "Waiting for phones", digit: "Draw a digit",
};

// --------------------------------------------------------------------------------------------------------------- panels
/** Which parts of the side are seen: covered results are not. */
function choosePanels() {
  const { step, is_shown: isShown, question } = state.stage;
  const { rounds } = state;
  const panels = new Set();
  if (step === "draw") panels.add("join");
  if (step === "send") for (const id of ["gate", "join", "piles"]) panels.add(id);
  if (question && !isShown) panels.add("question");
  if (writeNote(state) || (step === "rounds" && !isShown)) panels.add("need");
  if (["reveal", "joker", "forget", "rounds"].includes(step) && isShown) panels.add("bars");
  if (step === "digit") panels.add("digit");
  if (isUncovered && step === "send") {
    panels.delete("join");
    panels.delete("piles");
    panels.add("bars");
  }
  if (rounds && step === "rounds" && rounds.round < rounds.of) panels.delete("question");
  for (const id of ["gate", "join", "piles", "question", "need", "bars", "digit"]) $(id).hidden = !panels.has(id);
  $("side").dataset.step = step;
  document.body.classList.toggle("empty", state.seats.length === 0);
}

function drawQuestion() {
  const { question, is_shown: isShown } = state.stage;
  if (!question) return;
  setText($("question-text"), question.text);
  const total = question.counts.reduce((sum, count) => sum + count, 0);
  const items = question.options.map((option, i) => ({ option, i, count: question.counts[i] }));
  const make = () => html("li", {}, html("span"), html("b"), html("i"));
  keyed($("options"), items, ({ i }) => i, make, (item, { option, i, count }) => {
    const [text, number, bar] = item.children;
    setText(text, option);
    setText(number, isShown || total ? String(count) : "");
    bar.style.transform = `scaleX(${total ? count / total : 0})`;
    item.className = question.answer === i ? "right" : "";
  });
}

function drawBars() {
  const { rows, before, stage } = state;
  const key = rows.map(({ title }) => title).join();
  if (bars?.key !== key) {
    const methods = rows.map(({ title, name, phrase }) => ({ name: title, short: name, title: phrase, colour: COLOURS[title] }));
    bars = { key, view: createBars({ methods }) };
    $("bars").replaceChildren(bars.view.element);
    bars.view.element.querySelector(".bars").tabIndex = -1;
  }
  const now = readAccuracies(state);
  const compares = ["joker", "forget"].includes(stage.step) && (stage.step !== "joker" || state.joker !== null);
  const stored = (title) => (compares && before[title] !== undefined ? { mean: before[title], half: 0 } : null);
  bars.view.update({ accuracies: now, isStale: false, stored, about: compares ? "Of 360 digits; grey mark: before." : "Right of 360 digits of other people." });
  if ($("bars").hidden) return;
  const isOther = rows.some(({ title, digits }) => last[title] !== digits);
  if (!isOther) return;
  const reference = compares ? before : last;
  const isShaken = rows.some(({ title, digits }) => reference[title] - digits >= FALL);
  rows.forEach(({ title, digits }, i) => {
    const bar = bars.view.element.querySelectorAll(".bar")[i];
    const change = reference[title] - digits;
    bar.classList.remove("trembles", "calm");
    void bar.offsetWidth; // so that the animation begins anew
    if (change >= FALL) bar.classList.add("trembles");
    else if (isShaken && isCalm(title, reference[title], digits)) bar.classList.add("calm");
  });
  last = now;
}

/** The drawings that were given, in ten piles, each in its office's colour. */
function drawPiles() {
  const canvas = $("piles");
  if (canvas.hidden) return;
  const given = state.sent.flatMap(({ seat, test }) => test.map(([label, pixels]) => ({ seat, label, pixels })));
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.setAttribute("aria-label", `${drawings(given.length)} for the class's test, in ten piles`);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const foot = Math.round(0.09 * width);
  const labels = given.map(({ label }) => label);
  const piles = Array.from({ length: 10 }, (_, c) => given.map((_, i) => i).filter((i) => labels[i] === c));
  const counts = piles.map((pile, c) => Array.from({ length: 10 }, (_, d) => (c === d ? pile.length : 0)));
  const layout = layOutPiles({ piles, labels, counts, width: width / ZOOM, height: (height - foot) / ZOOM, head: 0 });
  for (const tile of layout.tiles) {
    const { seat, pixels } = given[tile.sample];
    const [x, y, side] = [ZOOM * tile.x, ZOOM * tile.y, ZOOM * layout.side];
    pen.fillStyle = `hsl(${hueOf(seat)} 70% 84%)`;
    pen.fillRect(x, y, side - 1, side - 1);
    pen.fillStyle = "#000";
    pixels.forEach((value, p) => {
      if (!value) return;
      pen.globalAlpha = value / 16;
      pen.fillRect(x + (p % 8) * (side - 1) / 8, y + Math.floor(p / 8) * (side - 1) / 8, side / 8, side / 8);
    });
    pen.globalAlpha = 1;
  }
  pen.fillStyle = style.color;
  pen.textAlign = "center";
  pen.font = `600 ${Math.round(0.8 * foot)}px ${style.fontFamily}`;
  for (let c = 0; c < 10; c++) pen.fillText(String(c), ZOOM * layout.column * (c + 0.5), height - 0.2 * foot);
}

/** The sentence beside a result, and how far the tiny rounds are. */
function drawNote() {
  const { rounds, stage } = state;
  setText($("need-text"), writeNote(state));
  const done = rounds ? Math.round((100 * rounds.round) / rounds.of) : 0;
  $("progress").hidden = stage.step !== "rounds" || !rounds || rounds.round >= rounds.of;
  $("progress").setAttribute("aria-valuenow", done);
  $("progress").firstChild.style.transform = `scaleX(${done / 100})`;
}

function drawDigit() {
  const { votes, stage, rows } = state;
  [...$("labels").children].forEach((button, c) => {
    button.setAttribute("aria-pressed", votes?.label === c && stage.is_shown);
    button.disabled = !votes;
  });
  const ways = rows.filter(({ title }) => votes?.ways[title] !== undefined);
  const make = () => html("div", { className: "way" }, html("span"), html("b"));
  keyed($("ways"), ways, ({ title }) => title, make, (way, { title, name }) => {
    const said = votes.ways[title];
    setText(way.firstChild, name);
    setText(way.lastChild, String(said));
    way.className = `way ${!stage.is_shown ? "" : said === votes.label ? "right" : "wrong"}`;
  });
}

async function clearDigit() {
  paper.clear();
  await post("clear");
}

/** Send the drawing, and which digit it is, where that is told: one after the other, so that the last one counts. */
function sendDrawing(image, label = null) {
  sending = sending.then(() => post("draw", JSON.stringify({ image, label })));
}

function tellLabel(label) {
  const image = paper.strokes.length ? [...paper.image()] : state.votes?.image;
  if (image) sendDrawing(image, label);
}

function drawClock() {
  const { seconds, minutes, total } = state.stage;
  setText($("clock"), `${clock(seconds)} of ${minutes} min · ${clock(total)}`);
  $("clock").classList.toggle("late", seconds > 60 * minutes);
}

/** Begin a step; tiny rounds that are over begin anew where their key is pressed once more. */
function goTo(name) {
  const { stage, rounds } = state;
  const isOver = rounds && rounds.round >= rounds.of && stage.is_shown;
  return post(name === "rounds" && stage.step === "rounds" && isOver ? "again" : `step/${name}`);
}

function drawSteps() {
  const make = ({ name, title }) => {
    const key = Object.keys(KEYS).find((one) => KEYS[one] === name).toUpperCase();
    return html("button", { type: "button", onclick: () => goTo(name) }, html("kbd", {}, key), html("span", {}, title));
  };
  keyed($("steps"), state.steps, ({ name }) => name, make, (button, { name }) => {
    button.setAttribute("aria-current", name === state.stage.step ? "step" : "false");
  });
}

// -------------------------------------------------------------------------------------------------------------- dialogs
/** The means of the sums as digits, in the colour of their office. */
function drawPlane() {
  if (!$("map").open) return;
  const { points, share, alike } = state.plane;
  $("plane").replaceChildren(...points.map(([seat, digit, x, y]) => html("b", { textContent: digit, style: { "--x": x, "--y": y, "--hue": hueOf(seat) } })));
  $("plane").setAttribute("aria-label", `${plural(points.length, "digit")}, coloured by office`);
  setText($("axes"), points.length ? `Each office's mean of each digit, in its colour, on the two axes along which drawings vary most (${percent(share)} of it). The nearest mean of another office is of the same digit for ${alike} of ${points.length}.` : "No sums have come yet.");
}

/** What one office has sent, and what its sums show of the drawings. */
function choose(seat) {
  const message = state.sent.find((each) => each.seat === seat);
  chosen = seat;
  const { name } = message ?? { name: "" };
  $("who").replaceChildren(`Office ${letter(seat)} `, html("bdi", {}, hasNames ? name : ""));
  $("out").hidden = !message;
  if (!message) setText($("what"), "It has sent nothing yet.");
  else {
    const { bytes, drawings: count, means, network, given } = message;
    const parts = [network && "a network", means.length && "sums", given && `${drawings(given)} for the test`].filter(Boolean);
    setText($("what"), `${formatBytes(bytes)}, made from ${drawings(count)}: ${parts.join(", ")}. ${means.length ? "What its sums show at once is the mean of each digit; a search gets each drawing out of them." : "It shows no sums."}`);
  }
  $("means").replaceChildren(...(message?.means ?? []).map(([c, count, mean]) => html("figure", {},
    picture(mean, `Mean of ${drawings(count)} of a ${c}`), html("figcaption", {}, `${count} × ${c}`))));
  $("one").showModal();
}

// ----------------------------------------------------------------------------------------------------------------- loop
function draw(isNew) {
  setText($("headline"), writeHeadline(state));
  choosePanels();
  wall.update(state, hasNames);
  drawClock();
  drawSteps();
  drawQuestion();
  drawNote();
  if (isNew || !$("bars").hidden) drawBars();
  drawPiles();
  drawDigit();
  drawPlane();
  const total = state.sent.reduce((sum, { bytes }) => sum + bytes, 0);
  setText($("letters"), String(state.sent.length));
  setText($("total"), `${state.sent.length === 1 ? "letter" : "letters"}, ${formatBytes(total)}`);
  const action = mainAction();
  $("main").disabled = !action || isBusy;
  const isRunning = state.stage.step === "rounds" && state.rounds && state.rounds.round < state.rounds.of;
  setText($("main"), action ? action[0] : isRunning ? "The phones weigh" : WAITS[state.stage.step]);
  setText($("kept"), state.kept);
  $("names").setAttribute("aria-pressed", hasNames);
}

async function look() {
  let now;
  try {
    now = await (await fetch(`state?since=${version}`)).json();
  } catch {
    setText($("headline"), "The class has ended.");
    return;
  }
  if (!now.stage) return; // too busy: the next look tells
  state = { ...state, ...now };
  const isNew = now.version !== version;
  version = now.version;
  draw(isNew);
}

/** Let the bars be seen while messages arrive, or cover the result of this step again. */
async function toggleCover() {
  if (state.stage.step === "send") {
    isUncovered = !isUncovered;
    draw(true);
  } else await post(state.stage.is_shown ? "cover" : "show");
}

function onKey(event) {
  const isTyping = ["INPUT", "TEXTAREA"].includes(event.target.tagName) || document.querySelector("dialog[open]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !state) return;
  const key = event.key.toLowerCase();
  if (key === " ") {
    event.preventDefault();
    if (!event.repeat) act();
  } else if (KEYS[key]) goTo(KEYS[key]);
  else if (key === "n") toggleNames();
  else if (key === "c") toggleCover();
  else if (key === "h" || key === "?") $("more").showModal();
  else if (key === "p") openPlane();
  else if (state.stage.step === "digit" && /^\d$/.test(key)) tellLabel(Number(key));
}

function toggleNames() {
  hasNames = !hasNames;
  draw(false);
}

function openPlane() {
  $("map").showModal();
  drawPlane();
}

$("labels").replaceChildren(...Array.from({ length: 10 }, (_, c) => html("button", { type: "button", onclick: () => tellLabel(c) }, String(c))));
paper = pad($("pad"), { lifted: () => { if (paper?.strokes.length) sendDrawing([...paper.image()]); } });
$("here").href = `/${$("address").textContent.trim().split("/").filter(Boolean).at(-1)}/`;
$("main").addEventListener("click", act);
$("names").addEventListener("click", toggleNames);
$("help").addEventListener("click", () => $("more").showModal());
$("load").addEventListener("click", async () => {
  const [file] = $("file").files;
  await post("load", file ? await file.text() : $("text").value);
  $("file").value = $("text").value = "";
});
$("out").addEventListener("click", () => {
  $("one").close();
  post(`forget/${chosen}`);
});
for (const button of document.querySelectorAll("dialog .close")) button.addEventListener("click", () => button.closest("dialog").close());
document.addEventListener("keydown", onKey);
for (;;) {
  await look();
  await new Promise((done) => setTimeout(done, PAUSE));
}
