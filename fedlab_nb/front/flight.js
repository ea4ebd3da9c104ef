// The flight over the piles: what a method sends, once or again and again, from the ledger of a run. It plays on one
// clock, can be stepped, slowed, scrubbed and skipped, and delays no result. A plan says what is shown when
// (flight_plan.js), a scene where (flight_scene.js); here are the canvas, the controls and the clock.
import { REAL_CLOCK } from "./clock.js";
import { html, setText } from "./dom.js";
import { paintScene } from "./flight_paint.js";
import { countArrived, findStep, planFlight, summarise } from "./flight_plan.js";
import { makeScene } from "./flight_scene.js";
import { createPlayer, makeSignButton } from "./player.js";
import { percent } from "./text.js";

/** data: {methods, people, groups, shownClasses}; hint(text): a sentence for where the stage's own hint stands, ""
    for none; choose(method): a person has chosen another method. */
export function createFlight(data, { clock = REAL_CLOCK, hint = () => {}, choose = () => {} } = {}) {
  const { methods, people, groups, shownClasses } = data;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const who = html("b", { className: "who" }); // whose flight it is, and where in it one is
  const title = html("b");
  const text = html("span");
  const result = html("span", { className: "result" });
  const caption = html("p", { className: "caption" }, who, " ", title, " ", text, " ", result);
  const canvas = html("canvas", { className: "sky" });
  canvas.setAttribute("role", "img");
  const layer = html("div", { className: "flight", hidden: true }, caption, canvas);
  const choice = html("select", { className: "flown" });
  choice.addEventListener("change", () => choose(choice.value));
  choice.setAttribute("aria-label", "Method whose messages fly");
  const watch = makeSignButton("Watch what was sent", "▶ Flight", () => open(choice.value));
  const player = createPlayer({
    clock,
    noun: "flight",
    draw,
    findTime(time, count) {
      const next = Math.min(plan.steps.length - 1, Math.max(0, findStep(plan, time) + count));
      return plan.steps[next].still;
    },
    describe(time) {
      const index = findStep(plan, time);
      return `Step ${index + 1} of ${plan.steps.length}: ${plan.steps[index].title}`;
    },
    changed(isPlaying) {
      caption.setAttribute("aria-live", isPlaying ? "off" : "polite");
      if (plan !== null) draw(player.getTime());
    },
    ended: rest,
  });
  const skip = makeSignButton("Close the flight", "×", close);
  const tools = html("span", { className: "flight-tools", hidden: true }, ...player.controls, skip);
  const bar = html("span", { className: "flight-bar", hidden: true }, tools, choice, watch);
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "The flight of the messages");
  let flights = {}; // by method
  let counts = []; // samples of each client and class, [M, C]
  let accuracies = {};
  let plan = null; // of the flight that is open
  let method = "";
  let size = { width: 0, height: 0 };

  const findMethod = (name) => methods.find((one) => one.name === name);

  /** Both plain means belong to one ensemble, so their messages are the same. */
  const flightOf = (name) => flights[name === "logits" ? "ensemble" : name];

  /** Each client's colour: that of the class that it has most of. */
  function listColours(clients) {
    return Array.from({ length: clients }, (_, k) => {
      const row = counts[k] ?? [1];
      return shownClasses[groups[row.indexOf(Math.max(...row))]].colour;
    });
  }

  function open(name) {
    const flight = flightOf(name);
    if (!flight) return;
    method = name;
    choice.value = name;
    who.style.setProperty("--hue", findMethod(name).colour);
    plan = planFlight(flight, people);
    player.load(plan.duration);
    layer.hidden = false;
    tools.hidden = false;
    watch.hidden = true;
    layer.parentElement?.classList.add("flying");
    bar.parentElement?.classList.add("flying");
    hint("");
    measure();
    player.seek(still.matches ? plan.steps[0].still : 0);
    player.setPlaying(!still.matches);
  }

  /** At its end a flight stays visible, with its last step and its controls, until a person goes on. */
  function rest() {
    player.setPlaying(false);
  }

  /** Back to the piles; a flight that has been seen to its end leaves its sentence. */
  function close() {
    if (plan === null) return;
    const isSeen = player.getTime() >= plan.duration;
    const said = isSeen ? summarise(plan, findMethod(method).short) : "";
    const hadFocus = tools.contains(bar.getRootNode().activeElement);
    player.setPlaying(false);
    player.load(0);
    plan = null;
    layer.hidden = true;
    tools.hidden = true;
    watch.hidden = false;
    layer.parentElement?.classList.remove("flying");
    bar.parentElement?.classList.remove("flying");
    if (hadFocus) watch.focus();
    hint(said);
  }

  function draw(at) {
    const index = findStep(plan, at);
    const step = plan.steps[index];
    const share = accuracies[method];
    writeCaption(index, player.isPlaying());
    setText(result, step.kind === "end" && share !== undefined ? `It gets ${percent(share)} right.` : "");
    if (canvas.getAttribute("aria-label") !== step.text) canvas.setAttribute("aria-label", step.text);
    if (!size.width) return;
    const scale = devicePixelRatio || 1;
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(layer);
    const read = (name) => style.getPropertyValue(name).trim();
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    const colours = { ground: read("--bg"), card: read("--card"), server: read("--act"), quiet: read("--soft"), bad: read("--bad") };
    paintScene(pen, listShapes(at), { ...colours, font: style.fontFamily });
  }

  /** The caption of a step: short enough to be read while it plays, else in full. */
  function writeCaption(index, isPlaying) {
    const step = plan.steps[index];
    setText(who, `${findMethod(method).short}, ${index + 1} of ${plan.steps.length}:`);
    setText(title, `${step.title}.`);
    setText(text, isPlaying ? step.brief : step.text);
  }

  const listShapes = (at) => makeScene(plan, at, size, listColours(plan.clients));

  /** Reserve room for the longest caption, so that the server does not move. */
  function measure() {
    let top = 0;
    plan.steps.forEach((step, index) => {
      writeCaption(index, false);
      setText(result, step.kind === "end" ? "It gets 100 % right." : "");
      top = Math.max(top, caption.offsetHeight);
    });
    size = { width: layer.clientWidth, height: layer.clientHeight, top: top + 8 };
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(size.width * scale);
    canvas.height = Math.round(size.height * scale);
  }

  bar.addEventListener("keydown", (event) => {
    if (plan === null || event.target === choice || event.target === player.scrub) return;
    if (event.key === "ArrowLeft") player.stepBy(-1);
    else if (event.key === "ArrowRight") player.stepBy(1);
    else if (event.key === "Home") player.seek(plan.steps[0].still);
    else if (event.key === "End") player.seek(plan.duration);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** What is shown now, for tests and films: the time, its step, what has arrived, and the shapes. */
  layer.inspect = () => {
    if (plan === null) return null;
    const at = player.getTime();
    const arrived = countArrived(plan, at);
    const isPlaying = player.isPlaying();
    return { at, step: findStep(plan, at), steps: plan.steps, arrived, shapes: listShapes(at), isPlaying, method };
  };

  return {
    layer,
    bar,
    open,
    close,
    isOpen: () => plan !== null,
    /** What is visible, for a picture: the canvas as a data URL and the step in words; null while nothing flies. */
    describe: () => (plan === null ? null : { address: canvas.toDataURL(), caption: [who, title, text].map((one) => one.textContent).join(" ") }),
    /** flights: by method, {} where nothing was sent yet;   counts: [M, C];   accuracies: by method;   chosen: the
        method that a person has chosen, or null: it stays chosen while its flight is not there. */
    update(next) {
      ({ flights, counts, accuracies } = next);
      const flown = methods.filter(({ name }) => flightOf(name));
      bar.hidden = flown.length === 0;
      const names = flown.map(({ name }) => name).join();
      if (names !== choice.names) {
        choice.names = names;
        choice.replaceChildren(...flown.map(({ name, short }) => html("option", { value: name }, short)));
      }
      const inHand = plan === null ? next.chosen : method;
      const shown = flown.find(({ name }) => name === inHand) ?? flown[0];
      if (shown !== undefined) choice.value = shown.name;
      if (plan !== null) draw(player.getTime());
    },
    /** The method whose flight comes with a run: the one that was chosen, else the first that sends anything. */
    chosen: () => choice.value,
    /** The method whose flight is shown, or null. */
    getMethod: () => (plan === null ? null : method),
    resize() {
      if (plan === null) return;
      measure();
      draw(player.getTime());
    },
    destroy() {
      player.destroy();
    },
  };
}
