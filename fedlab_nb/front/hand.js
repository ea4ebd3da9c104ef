// Weights of an ensemble by hand: a slider a client beside what it holds, and what the weights are worth, class by class.
// Everything is added up here; the kernel is told once the sliders rest.
import { html, keyed, setText } from "./dom.js";
import { normaliseWeights, scoreWeights, unpackNumbers } from "./hand_sums.js";
import { NO_SELECTION } from "./selection.js";
import { percent } from "./text.js";

const STEP = 0.02; // of a slider

/** give(values): called with the weights that a person has set;   choose({client, classIndex}): a row was chosen. */
export function createHand({ give = () => {}, choose = () => {} } = {}) {
  const clients = html("ul", { className: "hand-clients" });
  clients.setAttribute("aria-label", "The clients: weight, and what each holds");
  const scores = html("ul", { className: "hand-scores" });
  scores.setAttribute("aria-label", "Images that weights get right");
  const classes = html("ul", { className: "hand-classes" });
  classes.setAttribute("aria-label", "Images of each class that your weights get right; a line: equal weights");
  const foot = html("p", { className: "quiet" }, "Bar: your weights. Line: equal ones.");
  const element = html("div", { className: "hand" }, clients, html("div", { className: "hand-worth" }, scores, classes, foot));
  let scene = null;
  let data = null; // {logits, labels, classes}
  let text = ""; // that the logits were unpacked from
  let levels = []; // of the sliders
  let count = 0; // settings by hand, so that an older echo of the kernel is dropped
  let isHeld = false; // a hand is at a slider
  let selection = NO_SELECTION;
  let equal = null; // what equal weights are worth
  let drawn = 0;

  function makeClient({ name }) {
    const pick = html("button", { type: "button", className: "hand-name" }, name);
    const slider = html("input", { type: "range", min: 0, max: 1, step: STEP });
    slider.setAttribute("aria-label", `Weight of client ${name}`);
    const row = html("li", {}, pick, slider, html("b"), html("span", { className: "hand-held" }));
    pick.addEventListener("click", () => choose({ client: row.number, classIndex: null }));
    slider.addEventListener("input", () => {
      isHeld = true;
      levels = levels.with(row.number, Number(slider.value));
      draw();
    });
    slider.addEventListener("change", () => {
      isHeld = false;
      count += 1;
      give({ count, levels });
    });
    return row;
  }

  function drawClients() {
    const shares = normaliseWeights(levels);
    const rows = scene.clients.map((name, number) => ({ name, number }));
    keyed(clients, rows, ({ name, number }) => `${number} ${name}`, makeClient, (row, { name, number }) => {
      const [pick, slider, share, held] = row.children;
      row.number = number;
      row.dataset.client = number;
      row.classList.toggle("chosen", selection.client === number);
      pick.setAttribute("aria-pressed", String(selection.client === number));
      if (slider.value !== String(levels[number])) slider.value = levels[number];
      slider.setAttribute("aria-valuetext", `${percent(shares[number])} of the weight`);
      setText(share, percent(shares[number]));
      drawHeld(held, scene.counts[number], name);
    });
  }

  /** A bar of what a client holds, with a part for each class. */
  function drawHeld(held, counts, name) {
    const most = Math.max(...scene.counts.map((row) => row.reduce((sum, one) => sum + one, 0)));
    const parts = counts.map((samples, c) => ({ samples, c })).filter(({ samples }) => samples > 0);
    held.title = `Client ${name}: ${parts.map(({ samples, c }) => `${samples} of “${scene.classes[c].name}”`).join(", ")}`;
    keyed(held, parts, ({ c }) => c, () => html("i"), (part, { samples, c }) => {
      part.style.width = `${(100 * samples) / most}%`;
      part.style.background = scene.classes[c].colour;
      part.classList.toggle("faint", selection.classIndex !== null && selection.classIndex !== c);
    });
  }

  function makeClass() {
    const pick = html("button", { type: "button", className: "hand-name" });
    const row = html("li", {}, pick, html("span", { className: "track" }, html("i", { className: "value" }), html("i", { className: "level" })), html("b"));
    pick.addEventListener("click", () => choose({ client: null, classIndex: row.number }));
    return row;
  }

  function drawClasses(yours) {
    const rows = scene.classes.map(({ name, colour }, number) => ({ name, colour, number }));
    keyed(classes, rows, ({ number }) => number, makeClass, (row, { name, colour, number }) => {
      const [pick, track, share] = row.children;
      row.number = number;
      row.dataset.classIndex = number;
      row.classList.toggle("chosen", selection.classIndex === number);
      pick.setAttribute("aria-pressed", String(selection.classIndex === number));
      setText(pick, name);
      const own = yours.byClass[number];
      track.firstChild.style.background = colour;
      track.firstChild.style.transform = `scaleX(${own ?? 0})`;
      track.lastChild.style.left = `${100 * (equal.byClass[number] ?? 0)}%`;
      setText(share, own === null ? "–" : percent(own));
    });
  }

  function drawScores(yours) {
    const rows = [{ name: "your weights", tune: yours.all, judge: scene.showsJudge ? scoreWeights(data, levels, scene.judge).all : null }, ...scene.others];
    keyed(scores, rows, ({ name }) => name, () => html("li", {}, html("span"), html("b"), html("small")), (row, { name, tune, judge }) => {
      setText(row.children[0], name);
      setText(row.children[1], percent(tune));
      setText(row.children[2], judge === null ? "" : `other half: ${percent(judge)}`);
    });
  }

  function draw() {
    drawn += 1;
    const yours = scoreWeights(data, levels, scene.tune);
    drawClients();
    drawScores(yours);
    drawClasses(yours);
  }

  element.inspect = () => ({ levels, drawn });

  return {
    element,
    /** next: {clients, classes, counts, logits (unpackNumbers), labels, tune, judge, levels, count, showsJudge,
        others: [{name, tune, judge}]}, see `make_weights_by_hand_scene`; null: nothing. */
    show(next) {
      if (next === null) return;
      scene = next;
      if (text !== next.logits) {
        text = next.logits;
        data = { logits: unpackNumbers(text), labels: next.labels, classes: next.classes.length };
        equal = null;
      }
      equal ??= scoreWeights(data, next.clients.map(() => 1), next.tune);
      const isOfNow = next.count >= count && !isHeld;
      if (isOfNow || levels.length !== next.levels.length) {
        levels = [...next.levels];
        count = next.count;
      }
      draw();
    },
    select(next) {
      selection = next;
      if (scene !== null) draw();
    },
    hold() {},
    redraw() {},
    destroy() {},
  };
}
