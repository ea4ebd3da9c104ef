// The heart of the page: who holds which digits, one live run in a worker, and what its networks say of one image.
const LIVE = DATA.live; // null for a data set whose labels alone are in this page
/** Images as text: a letter a pixel, "a" for 0 to "q" for 1. */
const packed = (image) => String.fromCharCode(...image.map((value) => 97 + Math.round(16 * value)));
const pixels = (text) => Float32Array.from(text, (code) => (code.charCodeAt(0) - 97) / 16);
const TRUTH = { train: Array.from(DATA.labels, Number), test: Array.from(LIVE?.answers ?? "", Number) };
const IMAGES = { train: pixels(LIVE?.train ?? ""), test: pixels(LIVE?.test ?? "") };
const PREVIEWED = [0.01, 0.05, 0.3, 1.5, 10]; // as far from each other on the slider
const live = { at: "", shares: {}, each: [], made: null, workers: [] };
const ENGINE = URL.createObjectURL(new Blob([$("engine").textContent], { type: "text/javascript" }));
const CREWS = Math.min(4, navigator.hardwareConcurrency || 2); // workers that train
const setting = (alpha = state.alpha) => `${alpha} ${state.clients} ${state.seed}`;
const isFresh = () => live.at === setting();

const dealings = new Map();
/** The clients' samples [M, n_k], class by class. */
function dealt(alpha = state.alpha) {
  const key = setting(alpha);
  const byClass = (i, j) => TRUTH.train[i] - TRUTH.train[j] || i - j;
  if (!dealings.has(key)) dealings.set(key, deal(TRUTH.train, state.clients, alpha, state.seed).map((own) => own.sort(byClass)));
  return dealings.get(key);
}
/** Samples of each class that the clients hold, [M, C]. */
const counted = (shards) => shards.map((own) => classes.map((_, c) => own.filter((i) => TRUTH.train[i] === c).length));
const ACROSS = 40; // images in a row of the sheet
const sheet = document.createElement("canvas");
const wall = { places: null, goal: new Float32Array(2 * TRUTH.train.length), side: 0, column: 0 };
/** All training images in their classes' colours, once and for all; without images: squares. */
function makeSheet() {
  [sheet.width, sheet.height] = [8 * ACROSS, 8 * Math.ceil(TRUTH.train.length / ACROSS)];
  const colours = classes.map(({ colour }) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  TRUTH.train.forEach((label, i) => {
    const image = LIVE ? IMAGES.train.subarray(64 * i, 64 * i + 64).map((value) => 0.14 + 0.86 * value) : Array(64).fill(0.6);
    inked(sheet, image, colours[label], 8 * (i % ACROSS), 8 * Math.floor(i / ACROSS));
  });
}
/** A column a client, built of its samples; they walk to where they belong now. */
function drawWall() {
  const [shards, { clientWidth: width, clientHeight: height }] = [dealt(), $("wall")];
  wall.column = width / shards.length;
  wall.side = 24;
  const across = () => Math.max(1, Math.floor((wall.column - 3) / wall.side));
  while (wall.side > 2 && shards.some((own) => Math.ceil(own.length / across()) * wall.side > height - 18)) wall.side -= 0.5;
  shards.forEach((own, k) => own.forEach((i, at) => {
    wall.goal[2 * i] = wall.column * (k + 0.5) + (at % across() - across() / 2) * wall.side;
    wall.goal[2 * i + 1] = height - (Math.floor(at / across()) + 1) * wall.side;
  }));
  const [from, begin] = [wall.places ?? wall.goal.slice(), performance.now()];
  const moves = from.some((place, i) => place !== wall.goal[i]);
  wall.places = from.slice();
  const walk = (now) => {
    const share = still.matches || !moves ? 1 : Math.min(1, Math.max(0, (now - begin) / 350));
    wall.places.forEach((_, i) => { wall.places[i] = wall.goal[i] + (from[i] - wall.goal[i]) * (1 - share) ** 3; });
    paintWall(shards, height);
    if (share < 1) wall.walking = requestAnimationFrame(walk);
  };
  cancelAnimationFrame(wall.walking);
  walk(begin);
  const counts = counted(shards);
  $("held-by-words").textContent = holdingWords(counts, state.client);
  table($("wall"), ["client", "samples", ...classes.map((one) => `class ${one.name}`)], () => counts.map((row, k) => [`client ${letter(k)}`, sum(row), ...row]));
  const make = (k) => html("button", { type: "button", onclick: () => change({ client: state.client === k ? null : k }) }, html("b", {}, letter(k)), html("span"));
  keyed($("owners"), [...shards.keys()], (k) => k, make, (button, k) => {
    const alone = isFresh() && live.each[k] !== undefined ? percent(live.each[k]) : "";
    const about = `Client ${letter(k)}: ${plural(shards[k].length, "sample")}${alone && `; alone it has ${alone} of the test images right`}`;
    setAll(button, { "aria-pressed": state.client === k, "aria-label": about });
    button.lastChild.textContent = wall.column > 34 ? alone : "";
  });
}
function paintWall(shards, height) {
  const [canvas, { places, side, column }, scale] = [$("wall"), wall, devicePixelRatio];
  Object.assign(canvas, { width: canvas.clientWidth * scale, height: height * scale }); // which empties it, too
  const [pen, style] = [canvas.getContext("2d"), getComputedStyle(canvas)];
  pen.scale(scale, scale);
  Object.assign(pen, { imageSmoothingEnabled: side * scale < 20, fillStyle: style.borderTopColor, globalAlpha: 0.16, textAlign: "center", font: `11px ${style.fontFamily}` });
  if (state.client !== null) pen.fillRect(column * state.client, 0, column, height);
  Object.assign(pen, { globalAlpha: 1, fillStyle: style.color, strokeStyle: style.color, lineWidth: 2 });
  for (let i = 0; i < TRUTH.train.length; i++) pen.drawImage(sheet, 8 * (i % ACROSS), 8 * Math.floor(i / ACROSS), 8, 8, places[2 * i], places[2 * i + 1], side, side);
  shards.forEach((own, k) => column > 20 && pen.fillText(own.length, column * (k + 0.5), Math.min(...own.map((i) => places[2 * i + 1])) - 4));
  if (state.image[0] === "t") pen.strokeRect(places[2 * state.image.slice(1)], places[2 * state.image.slice(1) + 1], side, side);
}
/** Hold the client that is clicked, and look at the sample. */
function pointAt({ offsetX: x, offsetY: y }) {
  const k = Math.min(state.clients - 1, Math.floor(x / wall.column));
  const inside = (place, at) => at >= place && at < place + wall.side;
  const i = LIVE ? dealt()[k].find((own) => inside(wall.places[2 * own], x) && inside(wall.places[2 * own + 1], y)) : undefined;
  change(i === undefined ? { client: state.client === k ? null : k } : { client: k, image: `t${i}` });
}
/** Small partitions at the slider: a column a client, its classes on one another. */
function drawPreviews() {
  const make = (alpha) => html("canvas", { width: 44, height: 26, title: `α = ${alpha}`, onclick: () => change({ alpha }) });
  keyed($("previews"), PREVIEWED, (alpha) => alpha, make, (small, alpha) => {
    if (small.shown === setting(alpha)) return;
    small.shown = setting(alpha);
    const [pen, shards] = [small.getContext("2d"), dealt(alpha).slice(0, 11)];
    pen.clearRect(0, 0, 44, 26);
    shards.forEach((own, k) => own.forEach((i, at) => {
      pen.fillStyle = classes[TRUTH.train[i]].colour;
      pen.fillRect((k * 44) / shards.length, (at / own.length) * 26, 44 / shards.length - 1, 26 / own.length + 0.5);
    }));
  });
}
/** Train the clients of this setting, in workers of which each has about as many samples; what the `server`, one more,
    makes of their networks is drawn as it comes. */
function start() {
  stop();
  const parts = dealt().map((own, k) => split(Int32Array.from(own).sort(), state.seed, k));
  const crews = Array.from({ length: Math.min(CREWS, parts.length) }, () => []);
  const samples = (ks) => sum(ks.map((k) => parts[k].train.length));
  const largest = [...parts.keys()].sort((p, q) => samples([q]) - samples([p]));
  for (const k of largest) crews.reduce((a, b) => (samples(b) < samples(a) ? b : a)).push(k);
  const [server, ...trainers] = ["server", ...crews].map(() => new Worker(ENGINE));
  Object.assign(live, { at: setting(), done: 0, shares: {}, each: [], made: null, seconds: null, workers: [server, ...trainers] });
  const [begin, { seed }] = [performance.now(), state];
  server.onmessage = ({ data }) => {
    Object.assign(live, data, data.made && { seconds: (performance.now() - begin) / 1000 });
    if (data.made) stop();
    drawLive();
  };
  const task = { x: IMAGES.train, y: TRUTH.train, xTest: IMAGES.test, yTest: TRUTH.test, classes: classes.length, parts, seed };
  trainers.forEach((one, i) => {
    one.onmessage = ({ data }) => server.postMessage(data);
    one.postMessage({ ...task, clients: crews[i] });
  });
  server.postMessage(task);
  drawLive();
}
function stop() {
  for (const one of live.workers.splice(0)) one.terminate();
}
/** Runs by itself when the setting has changed for a while, once somebody has pressed Run. */
function follow() {
  clearTimeout(live.waiting);
  if (live.at && !isFresh()) live.waiting = setTimeout(start, 500);
}
function drawLive() {
  drawPreviews();
  drawWall();
  Object.assign($("run"), { disabled: !LIVE, textContent: LIVE ? "Run" : "Run: digits only" });
  for (const card of document.querySelectorAll(".live")) card.hidden = !LIVE;
  if (!LIVE) return;
  const fresh = isFresh();
  $("run").classList.toggle("wanted", !fresh);
  $("go").style.setProperty("--done", fresh ? live.done / RECIPE.epochs : 0);
  $("progress").textContent = !fresh ? "" : live.seconds ? `Trained ${plural(state.clients, "client")} in ${fixed(live.seconds, 1)} s.` : `Epoch ${live.done} of ${RECIPE.epochs} …`;
  drawShares(fresh);
  drawAnswers();
}
/** Accuracies of this run, beside what ten stored seeds had at the nearest stored setting. */
function drawShares(fresh) {
  const make = ({ short, colour }) => {
    const track = html("td", { className: "track" }, html("i", { className: "here" }), html("i", { className: "band" }));
    return html("tr", { className: "own", style: { "--hex": colour } }, html("th", { scope: "row" }, short), track, html("td"), html("td"));
  };
  keyed($("shares"), LIVE.rows, ({ name }) => name, make, (row, { name }) => {
    const [share, stored] = [fresh ? live.shares[name] : undefined, METHOD.has(name) && result(name, state.a, state.m)];
    const [, track, now, before] = row.children;
    const [bar, band] = track.children;
    bar.style.transform = `scaleX(${share ?? 0})`;
    band.hidden = !stored;
    if (stored) Object.assign(band.style, { left: `${100 * Math.max(0, stored.mean - stored.half)}%`, width: `${100 * Math.min(1, 2 * stored.half)}%` });
    now.textContent = share === undefined ? "–" : percent(share);
    before.textContent = stored ? banded(stored) : "–";
  });
  $("shares-words").textContent = `${fresh ? "" : "Press Run: the clients train in this page. "}A run is one seed, ${state.seed} now. Grey: `
    + `${seeds.length} stored seeds, mean ± 95 % band${alphas[state.a] === state.alpha && clients[state.m] === state.clients ? "" : `, at the nearest stored α = ${alphas[state.a]} and M = ${clients[state.m]}`}.`;
}
const isDrawn = (text) => /^[a-q]{64}$/.test(text);
const isImage = (text) => isDrawn(text) || Number(/^t?(\d+)$/.exec(text)?.[1]) < TRUTH[text[0] === "t" ? "train" : "test"].length;
/** What is looked at: `image` is a test image's number, "t" and a training image's, or 64 letters a-q of a drawing. */
function looked() {
  if (isDrawn(state.image)) return { x: pixels(state.image), words: "Your drawing, as the networks see it." };
  const [from, i] = state.image[0] === "t" ? ["train", state.image.slice(1)] : ["test", state.image];
  const truth = TRUTH[from][i];
  const owner = from === "train" && letter(dealt().findIndex((own) => own.includes(Number(i))));
  return { x: IMAGES[from].subarray(64 * i, 64 * i + 64), truth, words: owner ? `A ${truth}, which client ${owner} holds.` : `Test image ${i}, a ${truth}. No client has it.` };
}
function drawAnswers() {
  const { x, truth, words } = looked();
  inked($("seen"), x, getComputedStyle($("seen")).color.match(/\d+/g));
  const scores = isFresh() && live.made ? answers(live.made, x, classes.length) : null;
  $("image-words").textContent = `${words}${scores ? "" : " Press Run, and every client says what it sees."}`;
  const sure = (name, own) => (name === "ensemble" ? own : name === "afl" ? own.map((v) => Math.min(1, Math.max(0, v))) : softmax(own, classes.length));
  const items = scores ? [
    ...LIVE.rows.filter(({ name }) => scores[name]).map(({ name, short }) => ({ key: name, short, own: sure(name, scores[name]) })),
    ...scores.networks.map((own, k) => ({ key: k, short: letter(k), own: sure("", own) })),
  ] : [];
  const make = () => html("li", {}, html("b"), html("span"), html("i", {}, ...classes.map(({ colour: hex }) => html("u", { style: { background: hex } }))));
  keyed($("says"), items, ({ key }) => key, make, (item, { key, short, own }) => {
    const said = best(own, 0, classes.length);
    item.className = `${key >= 0 ? "client " : ""}${truth === undefined ? "" : said === truth ? "right" : "wrong"}${key === state.client ? " held" : ""}`;
    item.children[0].textContent = short;
    item.children[1].textContent = `${classes[said].name}${said === truth ? " ✓" : ""}`;
    item.title = `${short}: ${classes[said].name}, ${percent(own[said])}`;
    [...item.children[2].children].forEach((bar, c) => { bar.style.transform = `scaleY(${own[c]})`; });
  });
}
/** Another test image; of the client that is held, one of its own. */
function another() {
  const own = dealt()[state.client]; // none, where no client is held
  const image = own ? `t${own[(own.indexOf(Number(state.image.slice(1))) + 1) % own.length]}` : `${((Number(state.image) || 0) + 1) % TRUTH.test.length}`;
  change({ image });
}
