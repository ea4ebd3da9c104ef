// The controls: data, α, clients, Run. Run stands in one place and says what it does.
import { html, keyed, setText } from "./dom.js";
import { MOST_SEED } from "./state.js";
import { describeWrongNumber } from "./text.js";

const LIMIT_SHOWN = 8000; // milliseconds: it lies over what is below
const PREVIEWED = [0.01, 0.1, 1, 10, 100]; // α of the small partitions over the slider

function findNearestIndex(values, value) {
  let best = 0;
  values.forEach((one, i) => {
    if (Math.abs(Math.log(one / value)) < Math.abs(Math.log(values[best] / value))) best = i;
  });
  return best;
}

/** A slider over `values`; `words(value)` is what a screen reader says. */
function makeSlider(name, kind, values, words, send, ...between) {
  const input = html("input", { type: "range", min: 0, max: values.length - 1, step: 1, className: kind });
  const now = html("b");
  now.setAttribute("aria-hidden", "true");
  input.addEventListener("input", () => send({ kind, value: values[Number(input.value)] }));
  input.addEventListener("change", () => send({ kind: "release" }));
  const label = html("label", { className: "row" }, html("span", {}, name), now, ...between, input);
  return {
    element: label,
    update(value) {
      input.value = findNearestIndex(values, value);
      input.setAttribute("aria-valuetext", words(value));
      setText(now, String(value));
    },
  };
}

/** data: {alphas, clientCounts, sets, set, classes}, and where there are such, names of controls that are
    `hidden` or `fixed`, and the α that are `previewed`; deal(alpha): class counts [M, C] for a small picture. */
export function createControls(data, send, deal) {
  const set = html("select", {}, ...data.sets.map(({ name, title }) => html("option", { value: name, selected: name === data.set }, title)));
  set.addEventListener("change", () => send({ kind: "dataset", value: set.value }));
  const seed = html("input", { type: "number", min: 0, max: MOST_SEED, step: 1, className: "seed" });
  const limit = html("small", { className: "limit" });
  limit.setAttribute("role", "status");
  let seedOfState = null;
  let limitTimer = 0;
  const forgetLimit = () => setText(limit, "");
  seed.addEventListener("change", changeSeed);
  seed.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // JupyterLab takes this key away, and with it the change
    changeSeed();
  });

  /** An invalid seed changes nothing, and the field says which seeds are valid. */
  function changeSeed() {
    const problem = describeWrongNumber(seed.value, 0, MOST_SEED);
    setText(limit, problem);
    clearTimeout(limitTimer);
    limitTimer = setTimeout(forgetLimit, LIMIT_SHOWN);
    if (problem !== "") {
      seed.value = seedOfState;
      return;
    }
    const value = Number(seed.value);
    if (value === seedOfState) return;
    send({ kind: "seed", value });
    send({ kind: "release" });
  }

  const clients = makeSlider("Clients", "clients", data.clientCounts, (value) => `${value} clients`, send);
  const previewed = data.previewed ?? PREVIEWED;
  const previews = html("div", { className: "previews" });
  previews.setAttribute("aria-hidden", "true");
  const alpha = makeSlider("α, label skew", "alpha", data.alphas, (value) => `α = ${value}`, send, previews);
  const ends = html("p", { className: "ends" }, html("span", {}, "each sees one or two"), html("span", {}, "all the same"));
  const run = html("button", { type: "button", className: "run" });
  run.addEventListener("click", () => send({ kind: run.textContent === "Stop" ? "stop" : "run" }));
  const progress = html("p", { className: "progress" });
  progress.setAttribute("role", "status");
  const source = html("p", { className: "source" }, html("label", {}, "Data ", set), html("span", { className: "limited" }, html("label", {}, "Seed ", seed), limit));
  const element = html("form", { className: "controls" }, source, alpha.element, ends, clients.element, run, progress);
  element.setAttribute("aria-label", "Setting");
  const places = { dataset: set.parentElement, seed: seed.parentElement, alpha: alpha.element, clients: clients.element };
  for (const [name, place] of Object.entries(places)) {
    if (data.hidden?.includes(name)) place.hidden = true;
    if (data.fixed?.includes(name)) for (const field of place.querySelectorAll("input, select")) field.disabled = true;
  }
  ends.hidden = alpha.element.hidden;
  element.addEventListener("input", forgetLimit);
  element.addEventListener("submit", (event) => event.preventDefault());
  const make = (value) => html("canvas", { width: 76, height: 40, title: `α = ${value}`, onclick: () => {
    send({ kind: "alpha", value });
    send({ kind: "release" });
  } });

  function drawPreview(canvas, value, key) {
    if (canvas.key === key) return;
    const counts = deal(value)?.slice(0, 10);
    if (!counts) return; // not there yet
    canvas.key = key;
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, canvas.width, canvas.height);
    counts.forEach((row, k) => {
      const all = row.reduce((total, count) => total + count, 0);
      let top = 0;
      row.forEach((count, c) => {
        const high = (canvas.height * count) / all;
        pen.fillStyle = data.classes[c].colour;
        pen.fillRect((k * canvas.width) / counts.length, top, canvas.width / counts.length - 1, high + 0.5);
        top += high;
      });
    });
  }

  return {
    element,
    /** job: {isRunning, share 0-1, text}; isWanted: whether the results shown are older than the setting. */
    update(state, job, isWanted) {
      alpha.update(state.alpha);
      clients.update(state.clients);
      if (seedOfState !== state.seed) {
        seedOfState = state.seed;
        seed.value = state.seed;
      }
      keyed(previews, previewed, (value) => value, make, (canvas, value) => drawPreview(canvas, value, `${state.clients} ${state.seed}`));
      setText(run, job.canStop ? "Stop" : job.runLabel);
      run.classList.toggle("wanted", isWanted && !job.isRunning);
      run.style.setProperty("--done", job.isRunning ? job.share : 0);
      setText(progress, job.text);
      progress.classList.toggle("alert", Boolean(job.isAlert));
    },
  };
}
