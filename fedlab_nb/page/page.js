// The page: its state, the controls, and what happens on hover, click and key. One direction: control -> state -> pictures.
const FIRST = ["fedavg", "ensemble", "fens", "fedlpa", "fusefl", "fedet", "coboosting"].filter((name) => METHOD.has(name));
const MOST = 7; // methods in colour: more cannot be told apart
const DRAW = { bars: drawBars, lines: drawLines, bytes: drawBytes };
const root = document.documentElement;

const rising = (values) => [...new Set(values)].sort((p, q) => p - q);
const ALPHAS = rising([0.01, 0.1, 1, 10].flatMap((unit) => [1, 1.5, 2, 3, 5, 7].map((v) => Number((v * unit).toPrecision(2)))).filter((v) => v <= Math.max(10, ...alphas)).concat(alphas));
const COUNTS = rising([...Array(19).keys()].map((i) => i + 2).concat(clients));
const nearest = (values, v) => values.reduce((x, y, i) => (Math.abs(Math.log(y / v)) < Math.abs(Math.log(values[x] / v)) ? i : x), 0);
/** alpha, clients, seed: the federation;  a, m: which stored α and M are nearest;  chosen: methods in colour;
    held: a method;  client: one that is held;  image: what is looked at (live.js). */
const state = { alpha: 0.1, clients: 10, seed: 0, a: 0, m: 0, chosen: FIRST, held: null, client: null, image: "0" };
let hovered = null; // the method under the pointer, or the one that has the focus

// -------------------------------------------------------------------------------------------------- state -> page
/** Change the state, and draw what depends on it. */
function change(parts) {
  Object.assign(state, parts);
  hideTip();
  render();
  try { history.replaceState(null, "", address(SET)); } catch { /* not every browser lets a file do so */ }
  follow();
}
function render() {
  [state.a, state.m] = [nearest(alphas, state.alpha), nearest(clients, state.clients)];
  if (state.client >= state.clients) state.client = null;
  for (const [id, values, words] of [["alpha", ALPHAS, (v) => `α = ${v}`], ["clients", COUNTS, (v) => plural(v, "client")]]) {
    $(id).value = nearest(values, state[id]);
    $(id).setAttribute("aria-valuetext", words(state[id]));
    $(`${id}-now`).textContent = state[id];
    $(id).parentElement.querySelectorAll(".stops span").forEach((stop) => stop.classList.toggle("now", Number(stop.textContent) === state[id]));
  }
  $("seed").value = state.seed;
  drawLive();
  for (const id of Object.keys(DRAW)) $(id).size ??= [$(id).parentElement.clientWidth, $(id).parentElement.clientHeight];
  for (const [id, draw] of Object.entries(DRAW)) {
    draw($(id));
    rove($(id));
  }
  for (const box of document.querySelectorAll("#groups input")) box.checked = state.chosen.includes(box.value);
  $("count").textContent = `${state.chosen.length} of at most ${MOST} in colour`;
  const run = state.chosen.length ? state.chosen.join(" ") : "all";
  $("command").textContent = `fedlab-nb run ${run} ${SET === "digits" ? "" : `--dataset ${SET} `}--alpha ${state.alpha} --clients ${state.clients} --seeds ${seeds.length}`;
  hold();
  emphasise();
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
const letGo = () => change({ held: null, client: null });
/** The setting in the address, so that a link or a reload shows the same again. */
function address(data) {
  const { alpha, clients: m, seed, chosen, image, client } = state;
  const words = Object.entries({ data, alpha, m, seed, methods: chosen.join(), image, client: client ?? "" });
  return `#${words.filter(([, value]) => !["digits", FIRST.join(), "0", ""].includes(value)).map((pair) => pair.join("=")).join("&")}`;
}
function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name, low, high, usual) => {
    const value = Number(words.get(name) ?? NaN);
    return value >= low && value <= high && (name === "alpha" || value % 1 === 0) ? value : usual;
  };
  state.alpha = number("alpha", 0.001, 1000, state.alpha);
  state.clients = number(words.has("m") ? "m" : "clients", 1, 100, state.clients);
  state.seed = number("seed", 0, 2 ** 31, state.seed);
  state.client = number("client", 0, state.clients - 1, null);
  if (isImage(words.get("image") ?? "")) state.image = words.get("image");
  if (words.has("methods")) state.chosen = words.get("methods").split(",").filter((name) => METHOD.has(name)).slice(0, MOST);
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
function slider(id, values, labelled) {
  const input = $(id);
  const last = values.length - 1;
  input.max = last;
  input.addEventListener("input", () => change({ [id]: values[Number(input.value)] }));
  const stops = input.parentElement.querySelector(".stops");
  for (const value of labelled) {
    const left = `calc(11px + ${values.indexOf(value) / last} * (100% - 22px))`;
    stops.append(html("span", { style: { left }, onclick: () => change({ [id]: value }) }, value));
  }
}
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
/** Give a method its colour, or take it; with seven the one that has had it longest turns grey. */
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
// Another data set is another page: its address says which, and it is loaded anew (`hashchange`).
$("set").append(...Object.entries(SETS).map(([name, { title }]) => html("option", { value: name, selected: name === SET }, title)));
$("set").addEventListener("change", () => { location.hash = address($("set").value); });
slider("alpha", ALPHAS, alphas);
slider("clients", COUNTS, clients);
makeSheet();
for (const [title, names] of Object.entries(groups)) {
  $("groups").append(html("fieldset", {}, html("legend", {}, title), ...names.map((name) => choice(METHOD.get(name)))));
}
$("stored").textContent = DATA.words;
theme(root.dataset.theme === "dark", false);
$("theme").addEventListener("click", () => theme(root.dataset.theme !== "dark", true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => kept ?? theme(event.matches, false));
$("held").querySelector("button").addEventListener("click", letGo);
$("controls").addEventListener("submit", (event) => event.preventDefault());
for (const details of document.querySelectorAll(".card details")) details.addEventListener("toggle", () => details.fill());
$("run").addEventListener("click", start);
$("seed").addEventListener("change", () => change({ seed: Math.max(0, Math.round(Number($("seed").value))) || 0 }));
$("link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
    setTimeout(() => { $("link").textContent = "Copy link"; }, 2000);
  } catch { prompt("The link:", location.href); } // not every page may copy
});
$("wall").addEventListener("click", pointAt);
const drawn = pad($("ink"), {
  moved() { // what it costs to draw all else can wait
    state.image = packed(drawn.image());
    drawAnswers();
  },
  lifted: () => drawn.strokes.length && change({ image: packed(drawn.image()) }),
});
$("clear").addEventListener("click", drawn.clear);
$("another").addEventListener("click", another);
recall();
addEventListener("hashchange", () => {
  const name = new URLSearchParams(location.hash.slice(1)).get("data") ?? Object.keys(SETS)[0];
  if (name in SETS && name !== SET) return location.reload();
  recall();
  return change({});
});
new ResizeObserver(() => {
  for (const id of Object.keys(DRAW)) $(id).size = null;
  wall.places = null;
  render();
}).observe($("pictures"));
render();
