// The side of the projector: the question and the guesses, the bars, the piles of given drawings, the teacher's digit.
// Each function brings its part up to date with what the server said last.
import { html, keyed, setText } from "./dom.js";
import { createBars } from "./bars.js";
import { layOutPiles } from "./layout.js";
import { drawings, hueOf } from "./office.js";
import { FALL, isSteady, readAccuracies, writeNote } from "./sentences.js";

const $ = (id) => document.getElementById(id);
const PANELS = ["gate", "join", "piles", "question", "need", "bars", "digit"];
const STEPS_WITH_BARS = ["reveal", "joker", "forget", "rounds"];
const CLASSES = 10;
const SIDE = 8; // pixels of a drawing
const FULL = 16; // a pixel that is all ink
const TILE_SCALE = 2; // of the tiles of given drawings
const FOOT = 0.09; // of the piles' width: the height of the digits under them
const COLOURS = {
  "Local only": "#717581",
  FedAvg: "#bd1f01",
  "FedAvg, median": "#e76300",
  "Mean of logits": "#d45fa5",
  Ensemble: "#2f9e5a",
  "Ensemble, median": "#7a9a1c",
  FENS: "#0072b2",
  AFL: "#8a6500",
  "Gaussian heads": "#007a70",
};

/** Whether tiny rounds are in progress. */
export function areRoundsRunning({ rounds }) {
  return rounds !== null && rounds.round < rounds.of;
}

// --------------------------------------------------------------------------------------------------------------- panels
/** Which parts of the side are seen: covered results are not. isUncovered: the teacher shows the bars while messages
    arrive. */
export function showPanels(state, isUncovered) {
  const panels = choosePanels(state, isUncovered);
  for (const id of PANELS) $(id).hidden = !panels.has(id);
  $("side").dataset.step = state.stage.step;
  document.body.classList.toggle("empty", state.seats.length === 0);
}

function choosePanels(state, isUncovered) {
  const { step, is_shown: isShown, question } = state.stage;
  if (step === "draw") return new Set(["join"]);
  if (step === "digit") return new Set(["digit"]);
  if (step === "send") return new Set(isUncovered ? ["gate", "bars"] : ["gate", "join", "piles"]);
  const panels = new Set();
  if (question && !isShown) panels.add("question");
  if (writeNote(state) || (step === "rounds" && !isShown)) panels.add("need");
  if (STEPS_WITH_BARS.includes(step) && isShown) panels.add("bars");
  return panels;
}

// ------------------------------------------------------------------------------------------------------------- question
export function showQuestion({ stage }) {
  const { question, is_shown: isShown } = stage;
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

/** The sentence beside a result, and how far the tiny rounds are. */
export function showNote(state) {
  const { rounds, stage } = state;
  setText($("need-text"), writeNote(state));
  const done = rounds ? Math.round((100 * rounds.round) / rounds.of) : 0;
  const progress = $("progress");
  progress.hidden = stage.step !== "rounds" || !areRoundsRunning(state);
  progress.setAttribute("aria-valuenow", done);
  progress.firstChild.style.transform = `scaleX(${done / 100})`;
}

// ----------------------------------------------------------------------------------------------------------------- bars
/** What the bars and the marks in them mean. before: accuracies that they are compared with, or null. */
function describeBars(rows, before) {
  if (!before) return "Right of 360 digits of other people.";
  if (!isAnyShaken(rows, before)) return "Of 360 digits. Grey mark: before.";
  return "Of 360. Grey: before. Frame: holds.";
}

/** Whether an accuracy has fallen so far that everybody can see it. */
function isAnyShaken(rows, before) {
  return rows.some(({ title, digits }) => before[title] - digits >= FALL);
}

/** The bars of all ways. A bar that falls trembles; one that stays while others fall is marked as calm. */
export function createBarsPanel() {
  let titles = null; // of the ways that have a bar
  let view = null;
  let last = {}; // accuracies that were seen last

  /** Bars for these ways, unless they are there. */
  function makeBars(rows) {
    const wanted = rows.map(({ title }) => title).join();
    if (wanted === titles) return;
    titles = wanted;
    const methods = rows.map(({ title, name, phrase }) => {
      return { name: title, short: name, title: phrase, colour: COLOURS[title] };
    });
    view = createBars({ methods });
    $("bars").replaceChildren(view.element);
    view.element.querySelector(".bars").tabIndex = -1;
  }

  /** Move those bars that have changed much. reference: accuracies before. */
  function animate(rows, reference) {
    const fallOf = ({ title, digits }) => reference[title] - digits;
    const isShaken = isAnyShaken(rows, reference);
    const bars = view.element.querySelectorAll(".bar");
    rows.forEach((row, i) => {
      const { title, digits } = row;
      bars[i].classList.remove("trembles", "calm");
      void bars[i].offsetWidth; // so that the animation begins anew
      if (fallOf(row) >= FALL) bars[i].classList.add("trembles");
      else if (isShaken && isSteady(reference[title], digits)) bars[i].classList.add("calm");
    });
  }

  return {
    update(state) {
      const { rows, before, stage, joker } = state;
      makeBars(rows);
      const accuracies = readAccuracies(state);
      const compares = stage.step === "forget" || (stage.step === "joker" && joker !== null);
      const stored = (title) => {
        if (!compares || before[title] === undefined) return null;
        return { mean: before[title], half: 0 };
      };
      const about = describeBars(rows, compares ? before : null);
      view.update({ accuracies, isStale: false, stored, about });
      if ($("bars").hidden) return;
      if (rows.every(({ title, digits }) => last[title] === digits)) return;
      animate(rows, compares ? before : last);
      last = accuracies;
    },
  };
}

// ---------------------------------------------------------------------------------------------------------------- piles
/** The drawings that were given, in ten piles, each in its office's colour. */
export function showPiles({ sent }) {
  const canvas = $("piles");
  if (canvas.hidden) return;
  const given = sent.flatMap(({ seat, test }) => {
    return test.map(([label, pixels]) => ({ seat, label, pixels }));
  });
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const label = `${drawings(given.length)} for the class's test, in ten piles`;
  canvas.setAttribute("aria-label", label);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const foot = Math.round(FOOT * width);
  const layout = layOutGivenDrawings(given, width, height - foot);
  for (const tile of layout.tiles) paintTile(pen, tile, layout.side, given[tile.sample]);
  const style = getComputedStyle(canvas);
  pen.fillStyle = style.color;
  pen.textAlign = "center";
  pen.font = `600 ${Math.round(0.8 * foot)}px ${style.fontFamily}`;
  for (let c = 0; c < CLASSES; c++) {
    pen.fillText(String(c), TILE_SCALE * layout.column * (c + 0.5), height - 0.2 * foot);
  }
}

/** Where the tiles stand, a pile for each digit. */
function layOutGivenDrawings(given, width, height) {
  const labels = given.map(({ label }) => label);
  const digits = Array.from({ length: CLASSES }, (_, c) => c);
  const piles = digits.map((c) => {
    return labels.flatMap((label, sample) => (label === c ? [sample] : []));
  });
  const counts = piles.map((pile, c) => digits.map((d) => (c === d ? pile.length : 0)));
  const size = { width: width / TILE_SCALE, height: height / TILE_SCALE, head: 0 };
  return layOutPiles({ piles, labels, counts, ...size });
}

function paintTile(pen, tile, side, { seat, pixels }) {
  const x = TILE_SCALE * tile.x;
  const y = TILE_SCALE * tile.y;
  const inner = TILE_SCALE * side - 1; // a line between two tiles stays free
  const step = inner / SIDE;
  pen.fillStyle = `hsl(${hueOf(seat)} 70% 84%)`;
  pen.fillRect(x, y, inner, inner);
  pen.fillStyle = "#000";
  pixels.forEach((value, p) => {
    if (!value) return;
    pen.globalAlpha = value / FULL;
    pen.fillRect(x + (p % SIDE) * step, y + Math.floor(p / SIDE) * step, step, step);
  });
  pen.globalAlpha = 1;
}

// --------------------------------------------------------------------------------------------------- the teacher's digit
export function showDigit({ votes, stage, rows }) {
  [...$("labels").children].forEach((button, c) => {
    button.setAttribute("aria-pressed", votes?.label === c && stage.is_shown);
    button.disabled = !votes;
  });
  const ways = rows.filter(({ title }) => title !== "Local only"); // the desks show these
  const make = () => html("div", { className: "way" }, html("span"), html("b"));
  keyed($("ways"), ways, ({ title }) => title, make, (way, { title, name }) => {
    const answer = votes?.ways[title];
    setText(way.firstChild, name);
    setText(way.lastChild, answer === undefined ? "–" : String(answer));
    way.className = "way";
    const isJudged = stage.is_shown && answer !== undefined;
    if (isJudged) way.classList.add(answer === votes.label ? "right" : "wrong");
  });
}
