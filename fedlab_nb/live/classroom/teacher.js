// The projector: asks the server four times a second what has arrived, and shows it, step by step. Names are text, never
// HTML. What the teacher has not shown yet is covered. Its parts: wall.js (the offices), side.js, and dialogs.js.
import { html, keyed, setText } from "./dom.js";
import { pad } from "./pen.js";
import { clock, formatBytes } from "./office.js";
import { writeHeadline } from "./sentences.js";
import { createWall } from "./wall.js";
import { openMessage, openPlane, showPlane } from "./dialogs.js";
import {
  areRoundsRunning,
  createBarsPanel,
  showDigit,
  showNote,
  showPanels,
  showPiles,
  showQuestion,
} from "./side.js";

const $ = (id) => document.getElementById(id);
const PAUSE = 250; // milliseconds between two looks
const NOTICE = 6000; // milliseconds that what went wrong stands at the top
const STEP_KEYS = {
  d: "draw",
  s: "send",
  r: "reveal",
  j: "joker",
  f: "forget",
  t: "rounds",
  m: "digit",
};
// What the main button says if there is nothing to do yet.
const WAITING = {
  reveal: "Waiting for messages",
  joker: "Waiting for messages",
  forget: "Waiting for “Forget me”",
  rounds: "Waiting for phones",
  digit: "Draw a digit",
};
const WEIGHING = "The phones weigh";
const NO_ANSWER = "The class has ended, or does not answer.";

let version = ""; // of the tables that the page has
let state = null; // what the server said last
let hasNames = true;
let chosenSeat = null; // of the office whose message is open
let isBusy = false; // the main button's work is under way
let isUncovered = false; // the teacher shows the bars while messages arrive
let sending = Promise.resolve(); // of the teacher's drawings
let notice = { text: "", end: 0 }; // what went wrong, and when it has been read
const bars = createBarsPanel();
const wall = createWall($("wall"), [$("gate"), $("side")], { choose: chooseOffice });
const paper = pad($("pad"), { lifted: sendNewDrawing });

// --------------------------------------------------------------------------------------------------------------- server
/** Ask the server to do something; returns whether it was done. */
async function post(what, body = "{}") {
  const headers = { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(what, { method: "POST", headers, body });
  } catch {
    setText($("headline"), NO_ANSWER);
    return false;
  }
  const { error, name } = await answer.json();
  setText($("told"), error ?? (name ? `Loaded: ${name}.` : ""));
  if (error && !$("more").open) notice = { text: error, end: performance.now() + NOTICE };
  await look();
  return answer.ok;
}

/** Ask what is new, and show it. */
async function look() {
  let news;
  try {
    news = await (await fetch(`state?since=${version}`)).json();
  } catch {
    setText($("headline"), NO_ANSWER);
    return;
  }
  if (!news.stage) return; // too busy: the next look tells
  const isNew = news.version !== version;
  state = { ...state, ...news };
  version = news.version;
  show(isNew);
}

// ---------------------------------------------------------------------------------------------------------- main button
const goTo = (step) => () => post(`step/${step}`);
const showResult = () => post("show");

async function sendJoker() {
  if (await post("joker/in")) await post("show");
}

async function clearDigit() {
  paper.clear();
  await post("clear");
}

/** What the main button does in each step: {label, work}, or null where there is nothing to do. */
const MAIN_ACTIONS = {
  draw: () => ({ label: "Next: send", work: goTo("send") }),
  send: () => ({ label: "Next: guess", work: goTo("reveal") }),
  reveal({ stage, sent }) {
    if (stage.is_shown) return { label: "Next: the joker", work: goTo("joker") };
    return sent.length ? { label: "Show the result", work: showResult } : null;
  },
  joker({ stage, sent, joker }) {
    const isIn = joker !== null;
    if (isIn && stage.is_shown) return { label: "Take the joker out", work: () => post("joker/out") };
    if (isIn) return { label: "Show the result", work: showResult };
    if (stage.is_shown) return { label: "Next: forget", work: goTo("forget") };
    return sent.length ? { label: "The joker sends", work: sendJoker } : null;
  },
  forget({ stage, effect }) {
    if (!effect) return null;
    if (stage.is_shown) return { label: "Next: tiny rounds", work: goTo("rounds") };
    return { label: "Show what it cost", work: showResult };
  },
  rounds({ stage, sent, need, rounds }) {
    if (areRoundsRunning({ rounds })) return null;
    if (rounds && stage.is_shown) return { label: "Next: my digit", work: goTo("digit") };
    if (rounds) return { label: "Show the result", work: showResult };
    const hasNetwork = sent.some(({ network }) => network);
    if (!hasNetwork || !need.phones) return null;
    const label = need.is_enough ? "Start the rounds" : "Start anyway";
    return { label, work: () => post("rounds") };
  },
  digit: ({ votes }) => (votes ? { label: "Another digit", work: clearDigit } : null),
};

const findMainAction = () => MAIN_ACTIONS[state.stage.step](state);

async function act() {
  const action = findMainAction();
  if (!action || isBusy) return;
  isBusy = true;
  $("main").disabled = true;
  try {
    await action.work();
  } finally {
    isBusy = false;
    show(false);
  }
}

function showMainButton() {
  const action = findMainAction();
  const { step } = state.stage;
  const waiting = step === "rounds" && areRoundsRunning(state) ? WEIGHING : WAITING[step];
  $("main").disabled = !action || isBusy;
  setText($("main"), action ? action.label : waiting);
}

// ---------------------------------------------------------------------------------------------------------------- steps
/** Begin a step. If the tiny rounds are over, their key starts them again. */
function beginStep(step) {
  const { stage, rounds } = state;
  const isOver = rounds !== null && !areRoundsRunning(state) && stage.is_shown;
  const isAgain = step === "rounds" && stage.step === "rounds" && isOver;
  return post(isAgain ? "again" : `step/${step}`);
}

function showSteps() {
  const make = ({ name, title }) => {
    const key = Object.keys(STEP_KEYS).find((one) => STEP_KEYS[one] === name);
    const label = html("kbd", {}, key.toUpperCase());
    const properties = { type: "button", onclick: () => beginStep(name) };
    return html("button", properties, label, html("span", {}, title));
  };
  keyed($("steps"), state.steps, ({ name }) => name, make, (button, { name }) => {
    button.setAttribute("aria-current", name === state.stage.step ? "step" : "false");
  });
}

function showClock() {
  const { seconds, minutes, total } = state.stage;
  setText($("clock"), `${clock(seconds)} of ${minutes} min · ${clock(total)}`);
  $("clock").classList.toggle("late", seconds > 60 * minutes);
}

function showGate() {
  const { sent } = state;
  const bytes = sent.reduce((sum, message) => sum + message.bytes, 0);
  setText($("count"), String(sent.length));
  setText($("total"), `${sent.length === 1 ? "message" : "messages"}, ${formatBytes(bytes)}`);
}

/** Update the whole page. isNew: whether the tables have changed. */
function show(isNew) {
  const isNoticed = performance.now() < notice.end;
  setText($("headline"), isNoticed ? notice.text : writeHeadline(state));
  showPanels(state, isUncovered);
  wall.update(state, hasNames);
  showClock();
  showSteps();
  showQuestion(state);
  showNote(state);
  if (isNew || !$("bars").hidden) bars.update(state);
  showPiles(state);
  showDigit(state);
  showPlane(state);
  showGate();
  showMainButton();
  setText($("kept"), state.kept);
  $("names").setAttribute("aria-pressed", hasNames);
}

// --------------------------------------------------------------------------------------------------- the teacher's digit
function sendNewDrawing() {
  if (paper?.strokes.length) sendDrawing([...paper.image()]);
}

/** Send the drawing, and which digit it is, where that is told: one after the other, so that the last one counts. */
function sendDrawing(image, label = null) {
  sending = sending.then(() => post("draw", JSON.stringify({ image, label })));
}

function tellLabel(label) {
  const image = paper.strokes.length ? [...paper.image()] : state.votes?.image;
  if (image) sendDrawing(image, label);
}

// ------------------------------------------------------------------------------------------------------- keys and clicks
function chooseOffice(seat) {
  chosenSeat = seat;
  openMessage(state, seat, hasNames);
}

function toggleNames() {
  hasNames = !hasNames;
  show(false);
}

/** Let the bars be seen while messages arrive, or cover the result of this step again. */
async function toggleCover() {
  if (state.stage.step === "send") {
    isUncovered = !isUncovered;
    show(true);
    return;
  }
  await post(state.stage.is_shown ? "cover" : "show");
}

const openHelp = () => $("more").showModal();

const OTHER_KEYS = {
  n: toggleNames,
  c: toggleCover,
  h: openHelp,
  "?": openHelp,
  p: () => openPlane(state),
};

function onKey(event) {
  const isTyping = ["INPUT", "TEXTAREA"].includes(event.target.tagName);
  const isOpen = document.querySelector("dialog[open]") !== null;
  if (!state || isTyping || isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  if (key === " ") {
    event.preventDefault();
    if (!event.repeat) act();
  } else if (STEP_KEYS[key]) beginStep(STEP_KEYS[key]);
  else if (OTHER_KEYS[key]) OTHER_KEYS[key]();
  else if (state.stage.step === "digit" && /^\d$/.test(key)) tellLabel(Number(key));
}

async function loadMessage() {
  const [file] = $("file").files;
  await post("load", file ? await file.text() : $("text").value);
  $("file").value = "";
  $("text").value = "";
}

function takeOut() {
  $("one").close();
  post(`forget/${chosenSeat}`);
}

const labels = Array.from({ length: 10 }, (_, digit) => {
  return html("button", { type: "button", onclick: () => tellLabel(digit) }, String(digit));
});
$("labels").replaceChildren(...labels);
$("here").href = `/${$("address").textContent.trim().split("/").filter(Boolean).at(-1)}/`;
$("main").addEventListener("click", act);
$("names").addEventListener("click", toggleNames);
$("help").addEventListener("click", openHelp);
$("load").addEventListener("click", loadMessage);
$("out").addEventListener("click", takeOut);
for (const button of document.querySelectorAll("dialog .close")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}
document.addEventListener("keydown", onKey);
for (;;) {
  try {
    await look();
  } catch (error) {
    console.error(error); // the next look may succeed
  }
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
}
