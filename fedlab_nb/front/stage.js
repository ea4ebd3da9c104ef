// The stage: who holds what, what each is worth alone, what one message makes of it, and one image on which it is seen.
// One direction: a gesture is an event, `reduce` makes the next state of it, the engine behind `transport` is asked for
// what the state lacks, and everything is drawn from the state and the engine's newest answers. What belongs to an
// older setting than the one on the screen has an older revision: it is dimmed, and no sentence is made of it.
import { createAccuracyHistory, createBars, nameBars } from "./bars.js";
import { createControls } from "./controls.js";
import { html, setText } from "./dom.js";
import { countLabels, describeEffectOfMove, describeMoves, groupLabels, isLastSampleKept, orderPile } from "./federation.js";
import { createFlight } from "./flight.js";
import { chooseStory, describeFirstSteps, describeStory, findHeadline, findHeadlineOfMethod } from "./headline.js";
import { createLegend } from "./legend.js";
import { createOneImage, isDrawing, unpackImage } from "./one_image.js";
import { createPiles } from "./piles.js";
import { composePicture, describeSetting, offerFile, toPng, writeAddress } from "./save_picture.js";
import { announceSelection, isSameSelection, watchSelection } from "./selection.js";
import { FIRST_STATE, MOST_LIVE_CLIENTS, reduce, makeSettingKey } from "./state.js";
import { describeSample, fixed, letter, listed, percent, plural } from "./text.js";
import { isDark, watchTheme } from "./theme.js";

const CROWD_OF_CLIENTS = 40; // more than so many: their columns are too narrow for letters
const PASSED_ON = ["dataset", "open methods", "open settings"]; // the engine's matter alone

/** Put a stage into `element`. transport: {data, connect(listener), send(message), preview(state, alpha), destroy()};
    stylesheet: the text of stage.css;   initial: the state that it begins with;   clock: see clock.js. `update(state)` changes the state from outside, as a link does.

    Where `data.isStrip`, it is a slim strip over the views of a lab, whose own controls stand beside it: who holds
    what, the classes, the flight, and one image when somebody opens it. What is chosen in it is marked in the views,
    and the other way round (selection.js). */
export function createStage(element, transport, { stylesheet = "", initial = FIRST_STATE, clock } = {}) {
  const { groups, classes: shownClasses } = groupLabels(transport.data.train.labels, transport.data.classes);
  const data = { ...transport.data, groups, shownClasses };
  const { people, isStrip = false } = data;
  const revisions = new Map(); // of each setting that was on the screen, by its key
  let state = initial;
  let federation = null; // {revision, piles, counts}
  let before = {}; // {method: accuracy} of the setting before this one, while piles are moved by hand
  let scores = null; // {setting, seeds, each} of the newest run that has ended
  let effect = null; // {revision, text}, what the last move has done
  const recordAccuracies = createAccuracyHistory();
  let results = null; // {revision, done, total, accuracies, each, calls, said, seconds, isFinal}
  let answers = null; // {revision, image, rows, sums}
  let unfolded = ""; // the method whose sum is looked at
  let sum = null; // how it comes to its answer (arithmetic.js)
  let job = { isRunning: false, share: 0, text: "" }; // isRun: of all seeds, by the button
  let words = {}; // what the engine says of the next run: {runLabel, cost, waitsForRun}
  let isImageKept = initial.image !== FIRST_STATE.image; // chosen by a person, or seen with answers: it stays
  let story = null; // {image, revision, text}: why this image was chosen for a person
  let isNudged = false;
  let flights = null; // {revision, flights}, what a run's methods have sent
  let isFlightDue = false; // Run was pressed, and its first messages have not been shown yet
  let flown = ""; // a sentence on the flight that has just been seen
  let isDrawn = true; // nothing has changed since
  let isDestroyed = false;

  const headline = html("h2", { className: "headline" });
  headline.setAttribute("aria-live", "polite");
  const hint = html("span", {});
  const undo = html("button", { type: "button", className: "link undo", hidden: true, onclick: () => dispatch({ kind: "undo" }) });
  const controls = createControls(data, dispatch, (alpha) => transport.preview(state, alpha));
  const bars = createBars(data, dispatch);
  const piles = createPiles(data, dispatch, { hasCard: !isStrip });
  const legend = createLegend(data, dispatch);
  const oneImage = createOneImage(data, dispatch);
  const chips = html("div", { className: "chips" });
  if (data.hasSettings) chips.append(...makeSettingsButtons());
  if (isStrip) chips.append(makeImageButton());
  chips.append(...makeSaveButtons());
  const flight = createFlight(data, {
    clock,
    hint(text) {
      flown = text;
      draw();
    },
    choose: chooseMethod,
  });
  const sub = html("p", { className: "sub" }, hint, undo, flight.bar);
  const scene = html("div", { className: "scene" }, headline, sub, piles.element);
  piles.element.firstChild.append(flight.layer);
  piles.element.addEventListener("pointerdown", flight.close);
  const body = html("div", { className: "stage" });
  if (isStrip) {
    body.classList.add("strip");
    oneImage.element.hidden = true;
    scene.append(html("div", { className: "strip-tools" }, legend.element, chips), oneImage.element);
    body.append(scene);
  } else {
    piles.foot.append(legend.element);
    scene.append(oneImage.element);
    body.append(html("div", { className: "side" }, controls.element, bars.element, chips), scene);
  }
  body.dataset.lmSuppressShortcuts = "true";
  const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  root.replaceChildren(html("style", {}, stylesheet), body);

  /** Buttons that open what most runs leave as it is; the engine shows it under the stage. */
  function makeSettingsButtons() {
    const press = (kind) => ({ type: "button", className: "chip", onclick: () => dispatch({ kind }) });
    const methods = html("button", press("open methods"), "+ method");
    const settings = html("button", press("open settings"), "More ▾");
    return [methods, settings];
  }

  /** The button of a strip that opens one image with what everybody says of it. */
  function makeImageButton() {
    const button = html("button", { type: "button", className: "chip" }, `One ${people.thing} ▾`);
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const isOpen = oneImage.element.hidden;
      oneImage.element.hidden = !isOpen;
      button.setAttribute("aria-expanded", String(isOpen));
      setText(button, `One ${people.thing} ${isOpen ? "▴" : "▾"}`);
      if (isOpen) drawNow();
    });
    return button;
  }

  /** Buttons that save the stage as it stands. */
  function makeSaveButtons() {
    const make = (kind) => {
      const button = html("button", { type: "button", className: "chip", onclick: () => savePicture(kind) }, `Save ${kind}`);
      button.title = `Save the stage as it stands as ${kind === "PNG" ? "a PNG" : "an SVG"}, with its sentence and setting`;
      return button;
    };
    return [make("PNG"), make("SVG")];
  }

  async function savePicture(kind) {
    const svg = composePicture(describePicture());
    const name = `one-shot-${data.set}-alpha-${state.alpha}-clients-${state.clients}-seed-${state.seed}`.replace(/[^\w.-]+/g, "-");
    const blob = kind === "PNG" ? await toPng(svg) : new Blob([svg], { type: "image/svg+xml" });
    offerFile(`${name}.${kind.toLowerCase()}`, blob);
  }

  /** What is on the screen, as `composePicture` takes it. What a lesson still covers is not in it. */
  function describePicture() {
    const style = getComputedStyle(body);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const isCovered = getComputedStyle(headline).visibility === "hidden";
    const hasImage = !oneImage.element.hidden;
    const { shown, cards, about } = oneImage.describe();
    const scores = isCovered || isStale(results) ? [] : results?.each ?? [];
    const rows = isCovered ? [] : bars.describe();
    const link = ["digits", "glyphs:16g"].includes(data.set) ? `playground.html${writeAddress(state, data.set)}` : "";
    return {
      headline: isCovered ? "" : headline.textContent,
      setting: describeSetting(state, data),
      link,
      wall: piles.describe(),
      flight: flight.describe(),
      owners: federation.piles.map((_, k) => ({ name: nameOwner(k), score: scores[k] === undefined ? "" : percent(scores[k]) })),
      bars: { title: nameBars(data.methods, people), rows, about: describeStored() },
      image: hasImage ? shown : null,
      about: hasImage ? about : "",
      servers: isCovered || !hasImage ? [] : cards.servers,
      clients: isCovered || !hasImage || state.clients > MOST_LIVE_CLIENTS ? [] : cards.clients,
      colours: { ground: colour("bg"), ink: colour("ink"), soft: colour("soft"), line: colour("line"), card: colour("card"), good: colour("good"), track: colour("card") },
      font: style.fontFamily,
    };
  }

  /** The client's letter; of many clients every tenth. */
  const nameOwner = (k) => (state.clients <= CROWD_OF_CLIENTS || k % 10 === 0 ? letter(k) : "");

  const revisionOf = (setting) => {
    const key = makeSettingKey(setting);
    if (!revisions.has(key)) revisions.set(key, revisions.size + 1);
    return revisions.get(key);
  };
  const isStale = (reply) => reply !== null && reply.revision !== revisionOf(state);

  function dispatch(event) {
    if (event.kind === "stop") return stop();
    if (PASSED_ON.includes(event.kind)) return transport.send(event);
    if (event.kind === "unfold") return unfold(event.method);
    if (event.kind === "method") return chooseMethod(event.value === getShownMethod() ? null : event.value);
    if (event.kind === "another") return dispatch({ kind: "image", value: nextImage() });
    const before = state;
    flight.close();
    flown = "";
    isFlightDue = event.kind === "run";
    state = reduce(state, event);
    if (event.kind === "image" || event.kind === "move") isImageKept = true;
    if (event.kind === "move") isNudged = true;
    const isOther = revisionOf(before) !== revisionOf(state);
    if (isOther) {
      askForFederation(event);
    }
    if (event.kind === "select") transport.send(event);
    else if (!isSameSelection(before, state)) announceSelection(element, state);
    const isThrow = isOther && (event.kind === "move" || event.kind === "undo");
    const isGesture = !isStrip && (event.kind === "run" || event.kind === "release" || isThrow);
    if (event.kind === "run" || (isGesture && state.clients <= MOST_LIVE_CLIENTS)) train(event.kind === "run");
    if (before.image !== state.image) ask();
    transport.send({ kind: "changed", state });
    draw();
    return undefined;
  }

  /** Handle a changed setting. If the engine has changed it, the engine also says who holds what. */
  function askForFederation({ kind, isFollowing = false }) {
    const about = { revision: revisionOf(state), setting: state };
    if (isFollowing) {
      transport.send({ kind: "follow", ...about });
      return;
    }
    if (job.isRunning && !isStrip && !(transport.keepsRuns && job.isRun)) stop();
    transport.send({ kind: "deal", ...about, isEcho: kind === "restore" });
  }

  /** The method that is shown: the one whose messages fly, else the one that a person has chosen; null: none. */
  const getShownMethod = () => flight.getMethod() ?? state.method;

  /** Show a method: what it sends, where that is known, and its answer to the image; null: none any more. */
  function chooseMethod(method) {
    flight.close();
    flown = "";
    state = reduce(state, { kind: "method", value: method });
    if (method !== null) flight.open(method);
    if (method !== null && unfolded !== "" && unfolded !== method) unfold(method);
    draw();
  }

  /** After Run, as soon as it is known what has been sent. */
  function showFlight() {
    if (!isFlightDue || flights === null || isStale(flights)) return;
    isFlightDue = false;
    flight.open(flight.chosen());
  }

  function train(isForced) {
    const isDone = results !== null && !isStale(results) && (results.isFinal || job.isRunning);
    if (isDone && !isForced) return;
    const setting = { revision: revisionOf(state), setting: state };
    if (job.isRunning && job.isRun && !isForced) { // it goes on, and the engine trains one seed after it
      transport.send({ kind: "train", ...setting, isRun: false, isAfterRun: true });
      return;
    }
    const text = data.trainsNetworks ? `Training ${plural(state.clients, "network")} …` : "Adding up the clients' sums …";
    job = { isRunning: true, isRun: isForced, share: 0, text };
    transport.send({ kind: "train", ...setting, isRun: isForced });
  }

  function stop() {
    transport.send({ kind: "stop" });
    job = { isRunning: false, share: 0, text: "Stopped." };
    draw();
  }

  function ask() {
    const { image } = lookedAt();
    transport.send({ kind: "ask", revision: revisionOf(state), image: state.image, pixels: image });
  }

  /** Show how a method comes to its answer to this image; called once more, hide it. */
  function unfold(method) {
    unfolded = unfolded === method ? "" : method;
    sum = null;
    askForSum();
    draw();
  }

  function askForSum() {
    if (unfolded === "") return;
    const pixels = isDrawing(state.image) ? Array.from(lookedAt().image) : [];
    transport.send({ kind: "explain", method: unfolded, image: state.image, pixels });
  }

  /** What the engine says; an answer to an older question is dropped. */
  function receive(message) {
    if (message.kind === "federation") {
      if (message.revision !== revisionOf(state)) return;
      const { labels } = data.train;
      const isFirst = federation === null;
      federation = {
        revision: message.revision,
        piles: orderPile(message.shards, labels),
        counts: countLabels(message.shards, labels, data.classes.length),
      };
      if (isFirst && !data.test.images) ask(); // the row is shown before anybody is trained
    } else if (message.kind === "setting") {
      dispatch({ kind: "restore", state: message.setting, isFollowing: true });
    } else if (message.kind === "results") {
      if (message.revision !== revisionOf(state) && !transport.keepsRuns) return;
      results = message;
      if (!transport.keepsRuns) {
        job = { isRunning: !message.isFinal, share: message.done / message.total, text: describeJob(message) };
      }
      if (message.isFinal && !isStale(message)) {
        recordScores(message);
        tellStory();
      }
    } else if (message.kind === "answers") {
      if (message.image !== state.image) return;
      answers = message;
      askForSum();
    } else if (message.kind === "sum") {
      if (message.method !== unfolded || message.image !== state.image) return;
      sum = message;
    } else if (message.kind === "flights") {
      flights = message;
    } else if (message.kind === "job") {
      job = message;
    } else if (message.kind === "words") {
      words = message;
    } else if (message.kind === "error") {
      job = { isRunning: false, share: 0, text: message.text };
    }
    draw();
  }

  /** Keep what each client alone gets right; after a move say what has become of it. */
  function recordScores({ revision, each = [], seeds }) {
    const scoresBefore = scores;
    scores = { setting: state, seeds, each };
    if (scoresBefore === null || !isNextMove(scoresBefore.setting, state)) return;
    effect = { revision, text: describeEffectOfMove(state.moves.at(-1), scores, scoresBefore) };
  }

  /** Whether a setting is the one before it with one move more. */
  function isNextMove(settingBefore, setting) {
    const key = makeSettingKey({ ...setting, moves: setting.moves.slice(0, -1) });
    return setting.moves.length > 0 && key === makeSettingKey(settingBefore);
  }

  function describeJob({ isFinal, seconds, done, total }) {
    if (!isFinal) return `Epoch ${done} of ${total} …`;
    const did = data.trainsNetworks ? `Trained ${plural(state.clients, "network")}` : `Added up the sums of ${plural(state.clients, "client")}`;
    return `${did} in ${fixed(seconds, 1)} s.`;
  }

  /** After the first run: an image on which its finding can be seen, and why it is shown. From then on it stays. */
  function tellStory() {
    if (!isImageKept && results.said) {
      isImageKept = true;
      const said = { ...results.said, truth: data.test.labels };
      const found = chooseStory(said, Number(state.image));
      if (found !== null && String(found) !== state.image) {
        state = { ...state, image: String(found) };
        story = { image: state.image, revision: results.revision, text: describeStory(said, found, people) };
      }
    }
    ask();
  }

  /** Why this image was chosen, as long as that is true; "" where nobody has. */
  function describeChoiceOfImage() {
    const isTrue = story?.image === state.image && story.revision === revisionOf(state);
    return isTrue ? ` ${story.text}` : "";
  }

  /** Say when the answers will appear; "" if the run is done and the answers are on their way. */
  function describeWhenAnswersCome() {
    if (job.isRunning) return " Everybody says what they see when the run ends.";
    if (results !== null && results.isFinal && !isStale(results)) return "";
    return " Press Run, and everybody says what they see.";
  }

  function nextImage() {
    const own = state.client === null ? null : federation.piles[state.client];
    if (own) return `t${own[(own.indexOf(Number(state.image.slice(1))) + 1) % own.length]}`;
    return String(((Number(state.image) || 0) + 1) % data.test.labels.length);
  }

  /** The image that is looked at: pixels, its class (null for a drawing), and what it is in words. */
  function lookedAt() {
    if (isDrawing(state.image)) {
      return { image: unpackImage(state.image), shape: { side: 8 }, truth: null, text: `Your drawing, as the networks see it.` };
    }
    const isTraining = state.image[0] === "t";
    const part = isTraining ? data.train : data.test;
    const i = Number(isTraining ? state.image.slice(1) : state.image);
    const { side, channels = 1 } = part;
    const pixels = side * side * channels;
    const image = part.images ? part.images.subarray(i * pixels, (i + 1) * pixels) : null;
    const truth = part.labels[i];
    const name = data.classes[truth].name;
    const owner = isTraining ? nameHolder(i) : null;
    const shape = { side, channels };
    return { image, shape, truth, text: describeSample(people, name, owner) };
  }

  /** The letter of the client that holds a training sample; null where nobody does. */
  function nameHolder(sample) {
    const k = federation.piles.findIndex((pile) => pile.includes(sample));
    return k < 0 ? null : letter(k);
  }

  /** {method: accuracy} without the methods whose accuracy is of an older setting than the others'. */
  function selectAccuraciesOfOneSetting({ accuracies = {}, older = [] } = {}) {
    return Object.fromEntries(Object.entries(accuracies).filter(([name]) => !older.includes(name)));
  }

  function describeStored() {
    const at = data.storedSetting(state);
    let own = "one seed";
    if (transport.keepsRuns) own = describeSeeds(results?.seeds ?? {});
    if (data.hidden?.includes("stored")) return own;
    const isTicked = Object.keys(before).length > 0;
    if (state.moves.length) return `${own} · ${isTicked ? "tick: before your last change" : "none stored for piles moved by hand"}`;
    if (at === null) return `${own} · nothing stored ${transport.data.table === null ? "for this setting" : "for this many clients"}`;
    const isExact = at.alpha === state.alpha;
    return `${own} · grey: mean of ${transport.data.storedSeeds} stored runs${isExact ? "" : ` at α = ${at.alpha}`}`;
  }

  /** Why nothing is stored of a method where others have a grey mark. */
  function describeLack() {
    if (data.hidden?.includes("stored")) return "";
    if (state.moves.length > 0) return "nothing is stored for piles moved by hand";
    return data.storedSetting(state) === null ? "nothing is stored for this setting" : "this method is not in the stored results";
  }

  /** How many seeds the bars rest on: "one seed", "3 seeds", "1 to 3 seeds". */
  function describeSeeds(counts) {
    const all = Object.values(counts);
    if (!all.length) return "not run yet";
    const [least, most] = [Math.min(...all), Math.max(...all)];
    if (most === 1) return "one seed";
    return least === most ? `${most} seeds` : `${least} to ${most} seeds`;
  }

  function stored(name) {
    const at = state.moves.length ? null : data.storedSetting(state);
    return at === null ? null : data.stored(name, at);
  }

  /** What to throw first, as {client, label}: a pile of a single class (label null), the largest first; where there is
      none, the largest class of a pile. */
  function chooseNudges() {
    if (isStrip || isNudged || state.moves.length || state.clients < 2) return [];
    const { counts } = federation;
    const whole = [];
    const parts = [];
    counts.forEach((row, client) => {
      const most = Math.max(...row);
      if (most === 0) return;
      const hasOneClass = row.filter(Boolean).length === 1;
      if (hasOneClass) whole.push({ client, label: null, most });
      else parts.push({ client, label: row.indexOf(most), most });
    });
    const compare = (one, other) => other.most - one.most || one.client - other.client;
    return [...whole.sort(compare), ...parts.sort(compare)];
  }

  /** What a client holds, in a sentence: "Office C holds 91 samples: 60 of “3”, 31 of “7”." */
  function describeClient(k) {
    const row = federation.counts[k];
    const held = [...row.keys()].filter((c) => row[c]).sort((p, q) => row[q] - row[p] || p - q);
    const parts = held.slice(0, 4).map((c) => `${row[c]} of “${data.classes[c].name}”`);
    if (held.length > 4) parts.push(plural(held.length - 4, `other ${people.kind}`));
    const name = `${people.one[0].toUpperCase()}${people.one.slice(1)} ${letter(k)}`;
    return `${name} holds ${plural(federation.piles[k].length, "sample")}: ${listed(parts)}.`;
  }

  /** The line under Run while nothing runs: what is older, and what a run would cost. */
  function describeIdle(isOlder) {
    if (job.isRunning || job.isAlert) return {};
    if (isOlder) return { share: 0, text: `These results are from an earlier setting. ${words.cost ?? ""}`.trim() };
    const cost = words.isComputed && job.text !== "" ? "" : words.cost; // what has just been said is enough
    return { share: 0, text: [job.text, cost].filter(Boolean).join(" ") };
  }

  /** What was moved last, and why a sample of it has stayed, where one has. */
  function describeLastMove(moves) {
    const isKept = isLastSampleKept(moves.at(-1), federation.piles, data.train.labels);
    const isEffectKnown = effect?.revision === revisionOf(state);
    return describeMoves(moves, data.classes, isKept ? people.one : "", isEffectKnown ? effect.text : "");
  }

  function drawHeadline() {
    const isFresh = results !== null && results.isFinal && !isStale(results);
    const ofOneSetting = { ...results, accuracies: selectAccuraciesOfOneSetting(results ?? {}) };
    const facts = { ...data, counts: federation.counts, results: isFresh ? ofOneSetting : null };
    const flying = flight.getMethod();
    const text = flying === null ? findHeadline(facts) : findHeadlineOfMethod(facts, flying);
    setText(headline, text ?? "");
    const moves = state.moves;
    const first = describeFirstSteps({
      about: data.about,
      canDragAlpha: !isStrip && !data.hidden?.includes("alpha"),
      needsRun: isStrip || state.clients > MOST_LIVE_CLIENTS || words.waitsForRun,
      isDone: isFresh || job.isRunning,
      trainsNetworks: data.trainsNetworks,
    });
    const usual = moves.length > 0 ? describeLastMove(moves) : first;
    const chosen = isStrip && state.client !== null ? describeClient(state.client) : "";
    setText(hint, flown || chosen || usual);
    undo.hidden = moves.length === 0;
    setText(undo, "↶ undo");
    return text ?? "";
  }

  /** Schedule one drawing for everything that a gesture and its answers change. */
  function draw() {
    if (isDrawn) queueMicrotask(drawNow);
    isDrawn = false;
  }

  function drawNow() {
    isDrawn = true;
    if (federation === null || isDestroyed) return;
    drawAll();
    showFlight();
  }

  function drawAll() {
    const staleResults = isStale(results);
    body.classList.toggle("waiting", staleResults);
    body.classList.toggle("crowd", state.clients > CROWD_OF_CLIENTS);
    const summary = drawHeadline();
    const isWanted = results === null || staleResults;
    const isShort = transport.keepsRuns && !job.isRun; // it ends by itself before a hand is at the button
    const runLabel = words.runLabel ?? "Run";
    controls.update(state, { ...job, ...describeIdle(staleResults), canStop: job.isRunning && !isShort, runLabel }, isWanted);
    piles.update({ ...federation, state, summary, each: results?.each ?? [], isStale: staleResults, nudges: chooseNudges() });
    legend.update(state.classIndex, isStrip || !piles.hasPictures()); // images say by themselves what they are
    const isFlightFresh = flights !== null && !isStale(flights);
    flight.update({
      flights: isFlightFresh ? flights.flights : {},
      counts: federation.counts,
      accuracies: staleResults ? {} : results?.accuracies ?? {},
      chosen: state.method,
    });
    const earlier = recordAccuracies(selectAccuraciesOfOneSetting(results ?? {}), staleResults);
    before = state.moves.length > 0 ? earlier : {};
    bars.update({ accuracies: results?.accuracies ?? {}, bands: results?.bands ?? {}, older: results?.older ?? [], isStale: staleResults, before, stored, about: describeStored(),
      reason: describeLack(),
      shown: getShownMethod(),
      flights: flights?.flights ?? data.flights ?? {},
      help: data.storedSeeds > 0 ? `Grey: the mean of ${data.storedSeeds} stored runs, each with the samples dealt anew; it is as wide as its 95 % band` : "",
    });
    const { image, shape, truth, text } = lookedAt();
    const isAnswered = answers !== null && answers.image === state.image;
    const hasRows = isAnswered && answers.rows.size > 0;
    const about = { key: state.image, isDrawing: isDrawing(state.image), row: isAnswered ? answers.row : [], curve: isAnswered ? answers.curve : null, text: `${text}${hasRows ? describeChoiceOfImage() : describeWhenAnswersCome()}` };
    const table = hasRows ? answers.rows : null;
    oneImage.update({ image, shape, label: text, truth, table, asked: data.trainsNetworks ? state.clients : 0, chosen: state.client, isStale: hasRows && isStale(answers), about,
      sums: answers?.sums, sum: sum?.image === state.image ? sum : null, unfolded, shownMethod: getShownMethod() });
  }

  function redrawTheme() {
    body.dataset.theme = isDark() ? "dark" : "light";
    piles.readTheme();
    piles.resize();
    drawNow();
    flight.resize();
  }

  const unwatch = watchTheme(redrawTheme);
  const unlink = watchSelection(element, (selection) => dispatch({ kind: "select", selection }));
  const observer = new ResizeObserver(() => {
    piles.resize();
    flight.resize();
  });
  body.dataset.theme = isDark() ? "dark" : "light";
  body.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !flight.isOpen()) return;
    event.stopPropagation();
    flight.close();
  });
  transport.connect(receive);
  transport.send({ kind: "deal", revision: revisionOf(state), setting: state, isEcho: true });
  piles.resize();
  observer.observe(body);

  return {
    update(next) {
      isImageKept ||= next.image !== undefined;
      dispatch({ kind: "restore", state: next });
    },
    /** Choose a client and a class, as another part of the panel says. */
    select: (selection) => dispatch({ kind: "select", selection }),
    getState: () => state,
    destroy() {
      isDestroyed = true;
      unwatch();
      unlink();
      observer.disconnect();
      piles.destroy();
      flight.destroy();
      transport.destroy();
      root.replaceChildren();
    },
  };
}
