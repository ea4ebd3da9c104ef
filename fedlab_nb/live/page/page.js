// The page round the stage: the stored results of all methods, the address, the theme. The stage says what is set; this
// follows.
const FIRST = ["fedavg", "ensemble", "fens", "fedlpa", "fusefl", "fedet", "coboosting"].filter((name) => METHOD.has(name));
const MOST = 7; // methods in colour: more cannot be told apart
const DRAW = { bars: drawBars, lines: drawLines, bytes: drawBytes };
const root = document.documentElement;

/** alpha, clients, seed, moves, client, image: the stage's state, as it was last told;  a, m: which stored α and M are
    nearest;  chosen: methods in colour;  held: a method. */
const state = { ...FIRST_STATE, a: 0, m: 0, chosen: FIRST, held: null };
let hovered = null; // the method under the pointer, or the one that has the focus
let stage = null;
let resting = 0; // the timer of the address
let frame = 0;
let isOld = true; // the stored pictures show another setting
let isSeen = false; // they are in the window

// -------------------------------------------------------------------------------------------------- state -> page
/** Change the state, and redraw what depends on it. */
function change(parts) {
  Object.assign(state, parts);
  hideTip();
  render();
  writeAddress();
}
/** The stage says what is set. The address follows once the controls rest, the stored pictures while they are visible. */
function follow({ alpha, clients: count, seed, moves, client, image }) {
  const isSame = alpha === state.alpha && count === state.clients && seed === state.seed && moves === state.moves;
  Object.assign(state, { alpha, clients: count, seed, moves, client, image });
  clearTimeout(resting);
  resting = setTimeout(writeAddress, 120);
  if (isSame) return;
  isOld = true;
  renderSeen();
}
function writeAddress() {
  try { history.replaceState(null, "", address(SET)); } catch { /* not every browser lets a file do so */ }
}
/** Draw the stored results anew if they are old and in the window, at the next frame. */
function renderSeen() {
  if (!isOld || !isSeen) return;
  isOld = false;
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(render);
}
function render() {
  [state.a, state.m] = [nearest(alphas, state.alpha), nearest(clients, state.clients)];
  const isExact = alphas[state.a] === state.alpha && clients[state.m] === state.clients;
  $("stored-at").textContent = `At α = ${alphas[state.a]} with ${plural(clients[state.m], "client")}${isExact ? "" : ", the stored setting nearest to the one above"}.`;
  for (const id of Object.keys(DRAW)) $(id).size ??= [$(id).parentElement.clientWidth, $(id).parentElement.clientHeight];
  for (const [id, draw] of Object.entries(DRAW)) {
    draw($(id));
    rove($(id));
  }
  drawHolding();
  for (const box of document.querySelectorAll("#groups input")) box.checked = state.chosen.includes(box.value);
  $("count").textContent = `${state.chosen.length} of at most ${MOST} in colour`;
  const run = state.chosen.length ? state.chosen.join(" ") : "all";
  const moves = state.moves.length ? ` --set "moves=${writeMoves(state.moves)}"` : "";
  $("command").textContent = `fedlab-nb run ${run} ${SET === "digits" ? "" : `--dataset ${SET} `}--alpha ${state.alpha} --clients ${state.clients} --seeds ${seeds.length}${moves}`;
  hold();
  emphasise();
}
/** Who holds what, in a sentence and as a table. */
function drawHolding() {
  const shards = applyMoves(deal(TRUTH.train, state.clients, state.alpha, state.seed), TRUTH.train, state.moves);
  const counts = countLabels(shards, TRUTH.train, classes.length);
  $("held-by-words").textContent = holdingWords(counts);
  const columns = ["client", "samples", ...classes.map((one) => `class ${one.name}`)];
  table($("held-by-words"), columns, () => counts.map((row, k) => [`client ${letter(k)}`, sum(row), ...row]));
}
/** Colour for the chosen, the held and the hovered method; the others step back while one is held or hovered. */
function emphasise() {
  const on = hovered ?? state.held;
  for (const element of document.querySelectorAll(".m")) {
    const name = element.dataset.m;
    element.classList.toggle("lit", state.chosen.includes(name) || name === on);
    element.classList.toggle("on", name === on);
    if (element.getAttribute("role") === "button") element.setAttribute("aria-pressed", name === state.held);
  }
  for (const id of ["bars", "lines", "bytes"]) $(id).classList.toggle("some", on !== null);
}
/** What is held, in words that stay while the sliders move. */
function hold() {
  const r = state.held && result(state.held, state.a, state.m);
  $("held").classList.toggle("some", Boolean(r));
  const words = () => `${METHOD.get(state.held).short}: ${exact(r)}\nseeds ${bySeed(r)}\n${dataSize(r.up)} up, ${dataSize(r.down)} down`;
  $("held").querySelector("p").textContent = r ? words() : "";
}
const letGo = () => change({ held: null });
/** The setting in the address, so that a link or a reload shows the same again. */
function address(data) {
  const { alpha, clients: m, seed, chosen, moves, image, client } = state;
  const words = { alpha, m, seed };
  if (data !== "digits") words.data = data;
  if (moves.length) words.moves = writeMoves(moves).replaceAll(" ", "");
  if (chosen.join() !== FIRST.join()) words.methods = chosen.join();
  if (image !== FIRST_STATE.image) words.image = image;
  if (client !== null) words.client = client;
  return `#${Object.entries(words).map((pair) => pair.join("=")).join("&")}`;
}
/** Read the setting from the address, for the page and for the stage. */
function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const outOfRange = [];
  function number(name, low, high, usual) {
    if (!words.has(name)) return usual;
    const value = Number(words.get(name));
    if (value >= low && value <= high && (name === "alpha" || value % 1 === 0)) return value;
    outOfRange.push(`“${name}=${words.get(name)}” (${low} to ${high})`);
    return usual;
  }
  const said = { alpha: number("alpha", 0.001, 1000, state.alpha), seed: number("seed", 0, MOST_SEED, state.seed) };
  said.clients = number(words.has("m") ? "m" : "clients", 1, 100, state.clients);
  said.client = number("client", 0, said.clients - 1, null);
  const { moves, leftOut } = readMoves(words.get("moves") ?? "", { clients: said.clients, classes: classes.length, seed: said.seed });
  said.moves = moves;
  const problems = [];
  if (outOfRange.length > 0) problems.push(`Out of range in the link, so the usual value is shown: ${listed(outOfRange)}.`);
  const parts = leftOut.map((part) => `“${part}”`);
  if (parts.length > 0) problems.push(`This page cannot show ${listed(parts)} of its link: what you see is without. fl.playground(link="…") in a notebook shows it whole.`);
  $("left-out").hidden = problems.length === 0;
  $("left-out").textContent = problems.join(" ");
  if (isImage(words.get("image") ?? "")) said.image = words.get("image");
  if (words.has("methods")) state.chosen = words.get("methods").split(",").filter((name) => METHOD.has(name)).slice(0, MOST);
  Object.assign(state, said);
  stage.update(said);
}

// ------------------------------------------------------------------------------------------------------- the tip
/** Show what `mark` says beside the pointer, or beside the mark itself. */
function showTip(mark, pointer) {
  const { m } = mark.dataset;
  const svg = mark.closest("svg");
  let a = state.a;
  if (svg.id === "lines" && pointer) {
    const ends = [...mark.querySelectorAll(".shape")].map((s) => Number(s.getAttribute("transform").match(/[\d.]+/)[0]) + svg.getBoundingClientRect().left);
    a = ends.map((x, i) => [Math.abs(x - pointer.clientX), i]).sort((p, q) => p[0] - q[0])[0][1];
  }
  const at = svg.id === "lines" ? `, α = ${alphas[a]}` : "";
  const tip = $("tip");
  tip.textContent = about_method(m, a, state.m).replace("\n", `${at}\n`);
  tip.hidden = false;
  const box = (mark.querySelectorAll(".shape")[svg.id === "lines" ? a : 0] ?? mark.firstElementChild).getBoundingClientRect();
  const from = pointer ? { x: pointer.clientX, y: pointer.clientY } : { x: box.right, y: box.top + box.height / 2 };
  const { width, height } = tip.getBoundingClientRect();
  const x = from.x + 16 + width > root.clientWidth - 8 ? from.x - 16 - width : from.x + 16;
  const y = from.y + 14 + height > innerHeight - 8 ? from.y - 14 - height : from.y + 14;
  tip.style.left = `${Math.min(Math.max(8, x), root.clientWidth - 8 - width)}px`;
  tip.style.top = `${Math.max(8, y)}px`;
}
const hideTip = () => { $("tip").hidden = true; };
const markOf = (event) => event.target.closest?.("[data-m]");

function hover(name) {
  if (name === hovered) return;
  hovered = name;
  emphasise();
}
const press = ({ dataset: { m } }) => change({ held: state.held === m ? null : m });

// ----------------------------------------------------------------------------------------- pointer and keyboard
/** One mark of each picture can be reached with Tab; arrows go on from there. */
function rove(svg) {
  const { pool } = svg.layers.marks;
  if (!pool.has(svg.current)) svg.current = svg.order.find((key) => key === state.chosen[0]) ?? svg.order[0];
  for (const [key, mark] of pool) mark.setAttribute("tabindex", key === svg.current ? 0 : -1);
}
for (const svg of Object.keys(DRAW).map($)) {
  svg.addEventListener("pointermove", (event) => {
    const mark = markOf(event);
    if (event.pointerType === "touch") return; // a finger hides what it points at: the strip below says it
    hover(mark?.dataset.m ?? null);
    if (mark) showTip(mark, event);
    else hideTip();
  });
  for (const end of ["pointerleave", "focusout"]) svg.addEventListener(end, () => { hover(null); hideTip(); });
  svg.addEventListener("click", (event) => {
    const mark = markOf(event);
    if (!mark) return letGo();
    svg.current = mark.dataset.m;
    press(mark);
    return event.pointerType === "touch" || showTip(mark, event);
  });
  svg.addEventListener("focusin", (event) => {
    const mark = markOf(event);
    if (!mark?.matches(":focus-visible")) return;
    svg.current = mark.dataset.m;
    rove(svg);
    hover(mark.dataset.m ?? null);
    showTip(mark);
  });
  svg.addEventListener("keydown", (event) => {
    const mark = markOf(event);
    if (!mark || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = svg.order.indexOf(mark.dataset.m);
    const key = svg.order[{ ArrowDown: at + 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: svg.order.length - 1 }[event.key]];
    if (event.key === "Enter" || event.key === " ") press(mark);
    else if (key === undefined) return;
    else svg.layers.marks.pool.get(key).focus();
    event.preventDefault();
    const now = markOf({ target: document.activeElement });
    if (now) showTip(now);
  });
}
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  hover(null);
  letGo();
});
addEventListener("scroll", hideTip, { passive: true });

// ------------------------------------------------------------------------------------------------------- controls
/** A method's box. */
function choice(method) {
  const box = html("input", { type: "checkbox", value: method.name, onchange: () => choose(method.name, box.checked) });
  const title = `${method.help} (${method.paper}; ${method.rounds})`;
  const on = { onpointerenter: () => hover(method.name), onpointerleave: () => hover(null) };
  const label = html("label", { className: "m", title, style: { "--hex": method.colour }, ...on }, box);
  const icon = add(label, "svg", { width: 26, height: 14, viewBox: "-13 -7 26 14", "aria-hidden": "true" });
  add(icon, "path", { class: "line", d: "M-13 0H13", "stroke-dasharray": method.dash });
  add(icon, "path", { class: "shape", d: method.outline });
  label.append(method.title);
  label.dataset.m = method.name;
  return label;
}
/** Give a method its colour, or take it away; with seven methods in colour, the one coloured first turns grey. */
function choose(name, wanted) {
  const chosen = state.chosen.filter((x) => x !== name);
  const gone = wanted && chosen.length >= MOST ? chosen.shift() : null;
  $("told").textContent = gone ? `At most ${MOST} have a colour: ${METHOD.get(gone).short} is grey now.` : "";
  change({ chosen: wanted ? [...chosen, name] : chosen });
}
function theme(dark, keep) {
  root.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light theme" : "Dark theme";
  if (!keep) return;
  kept = root.dataset.theme;
  try { localStorage.setItem("fedlab_nb-theme", kept); } catch { /* then it is chosen anew next time */ }
}
for (const [title, names] of Object.entries(groups)) {
  $("groups").append(html("fieldset", {}, html("legend", {}, title), ...names.map((name) => choice(METHOD.get(name)))));
}
$("stored").textContent = DATA.words;
$("down").textContent = `↓ ${methods.length} methods, stored results`;
$("down").addEventListener("click", () => $("stored-results-title").scrollIntoView());
theme(root.dataset.theme === "dark", false);
$("theme").addEventListener("click", () => theme(root.dataset.theme !== "dark", true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => kept ?? theme(event.matches, false));
$("held").querySelector("button").addEventListener("click", letGo);
for (const details of document.querySelectorAll("details:has(.scroll)")) details.addEventListener("toggle", () => details.fill());
$("link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
    setTimeout(() => { $("link").textContent = "Copy link"; }, 2000);
  } catch { prompt("The link:", location.href); } // not every page may copy
});
$("choice").open = root.clientWidth >= 1100;
const stylesheet = $("stage-style").textContent;
stage = createStage($("stage"), createWorkerTransport(stageData, engine, host), { stylesheet });
recall();
addEventListener("hashchange", () => {
  const name = new URLSearchParams(location.hash.slice(1)).get("data") ?? Object.keys(SETS)[0];
  if (name in SETS && name !== SET) return location.reload();
  recall();
  return change({});
});
new IntersectionObserver((entries) => {
  isSeen = entries.at(-1).isIntersecting;
  renderSeen();
}, { rootMargin: "200px" }).observe($("stored-part"));
new ResizeObserver(() => {
  for (const id of Object.keys(DRAW)) $(id).size = null;
  isOld = true;
  renderSeen();
}).observe($("pictures"));
