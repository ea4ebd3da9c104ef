// The page: its state, the controls, and what happens on hover, click and key. One direction: control -> state -> pictures.
const FIRST = ["fedavg", "ensemble", "fens", "fedlpa", "fusefl", "fedet", "coboosting"].filter((name) => METHOD.has(name));
const MOST = 7; // methods in colour: more cannot be told apart
const HINT = "Point at a mark for its exact numbers. A click holds it in every picture, and Escape lets it go.\n"
  + "With the keyboard: Tab goes to a picture, the arrow keys go from mark to mark, and Enter holds a mark.";
const $ = (id) => document.getElementById(id);
const DRAW = { "held-by": drawHoldings, bars: drawBars, lines: drawLines, bytes: drawBytes };
const root = document.documentElement;

/** a, m: which stored α and M;  chosen: methods in colour;  others: the rest in grey;  held: a method;  cell: {k, c}. */
const state = { a: Math.max(0, alphas.indexOf(0.1)), m: Math.max(0, clients.indexOf(10)), chosen: FIRST, others: true, held: null, cell: null };
let hovered = null; // the method under the pointer, or the one that has the focus

// -------------------------------------------------------------------------------------------------- state -> page
/** Change the state, and draw what depends on it. */
function change(parts) {
  Object.assign(state, parts);
  if (state.cell?.k >= clients[state.m]) state.cell = null;
  hideTip();
  render();
  remember();
}
function render() {
  for (const [id, values, words] of [["alpha", alphas, (v) => `α = ${v}`], ["clients", clients, (v) => plural(v, "client")]]) {
    const at = id === "alpha" ? state.a : state.m;
    $(id).value = at;
    $(id).setAttribute("aria-valuetext", words(values[at]));
    $(`${id}-now`).textContent = values[at];
    $(id).parentElement.querySelectorAll(".stops span").forEach((stop, i) => stop.classList.toggle("now", i === at));
  }
  for (const id of Object.keys(DRAW)) $(id).size ??= [$(id).parentElement.clientWidth, $(id).parentElement.clientHeight];
  for (const [id, draw] of Object.entries(DRAW)) {
    draw($(id));
    rove($(id));
  }
  $("others").checked = state.others;
  for (const box of document.querySelectorAll("#groups input")) box.checked = state.chosen.includes(box.value);
  $("count").textContent = `${state.chosen.length} of at most ${MOST} in colour`;
  const run = state.chosen.length ? state.chosen.join(" ") : "all";
  $("command").textContent = `fedlab-nb run ${run} ${SET === "digits" ? "" : `--dataset ${SET} `}--alpha ${alphas[state.a]} --clients ${clients[state.m]} --seeds ${seeds.length}`;
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
  const words = [];
  if (state.held) {
    const r = result(state.held, state.a, state.m);
    words.push(`${METHOD.get(state.held).short}: ${exact(r)}`, `seeds ${bySeed(r)}`, `${dataSize(r.up)} up, ${dataSize(r.down)} down`);
  }
  if (state.cell) words.push(about_cell(state.cell.k, state.cell.c).replaceAll("\n", "; "));
  const some = words.length > 0;
  $("held").classList.toggle("some", some);
  $("held").querySelector("button").hidden = !some;
  $("held").querySelector("p").textContent = some ? words.join("\n") : HINT;
}
const letGo = () => change({ held: null, cell: null });

/** The setting in the address, so that a link or a reload shows the same again. */
const address = (set) => `#${set === "digits" ? "" : `data=${set}&`}alpha=${alphas[state.a]}&clients=${clients[state.m]}&methods=${state.chosen.join(",")}`;
function remember() {
  try { history.replaceState(null, "", address(SET)); } catch { /* not every browser lets a file do so */ }
}
function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const [a, m] = [alphas.indexOf(Number(words.get("alpha"))), clients.indexOf(Number(words.get("clients")))];
  if (a >= 0) state.a = a;
  if (m >= 0) state.m = m;
  if (words.has("methods")) state.chosen = words.get("methods").split(",").filter((name) => METHOD.has(name)).slice(0, MOST);
}

// ------------------------------------------------------------------------------------------------------- the tip
/** Show what `mark` says beside the pointer, or beside the mark itself. */
function showTip(mark, pointer) {
  const { m, k, c } = mark.dataset;
  const svg = mark.closest("svg");
  let a = state.a;
  if (svg.id === "lines" && pointer) {
    const ends = [...mark.querySelectorAll(".shape")].map((s) => Number(s.getAttribute("transform").match(/[\d.]+/)[0]) + svg.getBoundingClientRect().left);
    a = ends.map((x, i) => [Math.abs(x - pointer.clientX), i]).sort((p, q) => p[0] - q[0])[0][1];
  }
  const setting = svg.id === "lines" ? `, α = ${alphas[a]}` : "";
  const lines = m ? about_method(m, a, state.m).replace("\n", `${setting}\n`) : about_cell(Number(k), Number(c));
  const tip = $("tip");
  tip.textContent = lines;
  tip.hidden = false;
  const box = (mark.querySelectorAll(".shape")[svg.id === "lines" ? a : 0] ?? mark.firstElementChild).getBoundingClientRect();
  const at = pointer ? { x: pointer.clientX, y: pointer.clientY } : { x: box.right, y: box.top + box.height / 2 };
  const { width, height } = tip.getBoundingClientRect();
  const x = at.x + 16 + width > root.clientWidth - 8 ? at.x - 16 - width : at.x + 16;
  const y = at.y + 14 + height > innerHeight - 8 ? at.y - 14 - height : at.y + 14;
  tip.style.left = `${Math.min(Math.max(8, x), root.clientWidth - 8 - width)}px`;
  tip.style.top = `${Math.max(8, y)}px`;
}
const hideTip = () => { $("tip").hidden = true; };
const markOf = (event) => event.target.closest?.("[data-m],[data-k]");

function hover(name) {
  if (name === hovered) return;
  hovered = name;
  emphasise();
}
function press(mark) {
  const { m, k, c } = mark.dataset;
  if (m) return change({ held: state.held === m ? null : m });
  const cell = { k: Number(k), c: Number(c) };
  return change({ cell: state.cell?.k === cell.k && state.cell?.c === cell.c ? null : cell });
}

// ----------------------------------------------------------------------------------------- pointer and keyboard
const keyOf = (mark) => mark.dataset.m ?? `${mark.dataset.k} ${mark.dataset.c}`;
/** One mark of each picture can be reached with Tab; arrows go on from there. */
function rove(svg) {
  const { pool } = svg.layers.marks;
  if (!pool.has(svg.current)) svg.current = svg.order.find((key) => key === state.chosen[0]) ?? svg.order[0];
  for (const [key, mark] of pool) mark.setAttribute("tabindex", key === svg.current ? 0 : -1);
}
/** The mark that an arrow key leads to from `mark`, if any. */
function next(svg, mark, key) {
  const [order, rows] = [svg.order, classes.length + 1];
  const grid = svg.id === "held-by";
  const by = { ArrowDown: 1, ArrowUp: -1, ArrowRight: grid ? rows : 1, ArrowLeft: grid ? -rows : -1 }[key];
  const from = order.indexOf(keyOf(mark));
  if (key === "Home" || key === "End") return order.at(key === "Home" ? 0 : -1);
  if (by === undefined || (grid && Math.abs(by) === 1 && Math.floor(from / rows) !== Math.floor((from + by) / rows))) return undefined;
  return order[from + by];
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
    svg.current = keyOf(mark);
    press(mark);
    return event.pointerType === "touch" || showTip(mark, event);
  });
  svg.addEventListener("focusin", (event) => {
    const mark = markOf(event);
    if (!mark?.matches(":focus-visible")) return;
    svg.current = keyOf(mark);
    rove(svg);
    hover(mark.dataset.m ?? null);
    showTip(mark);
  });
  svg.addEventListener("keydown", (event) => {
    const mark = markOf(event);
    if (!mark || event.ctrlKey || event.altKey || event.metaKey) return;
    const aside = svg.id === "lines" && { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      press(mark);
    } else if (aside) {
      change({ a: Math.min(alphas.length - 1, Math.max(0, state.a + aside)) });
    } else {
      const key = next(svg, mark, event.key);
      if (key === undefined) return;
      svg.layers.marks.pool.get(key).focus();
    }
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
function slider(id, values, name) {
  const input = $(id);
  const last = values.length - 1;
  input.max = last;
  input.addEventListener("input", () => change({ [name]: Number(input.value) }));
  const stops = input.parentElement.querySelector(".stops");
  values.forEach((value, i) => {
    stops.append(html("span", { style: `left: calc(11px + ${last ? i / last : 0} * (100% - 22px))`, onclick: () => change({ [name]: i }) }, value));
  });
}
/** The data sets; another one is another page: its address says which, and it is loaded anew. */
function sets() {
  for (const [name, { title }] of Object.entries(SETS)) {
    $("set").append(html("option", { value: name, selected: name === SET }, title));
  }
  $("set").closest(".row").style.display = Object.keys(SETS).length < 2 ? "none" : "";
  $("set").addEventListener("change", () => { location.hash = address($("set").value); }); // `hashchange` opens it
}
/** A box a method, in groups. */
function choices() {
  for (const [title, names] of Object.entries(groups)) {
    $("groups").append(html("fieldset", {}, html("legend", {}, title), ...names.map((name) => choice(METHOD.get(name)))));
  }
}
function choice(method) {
  const box = html("input", { type: "checkbox", value: method.name, onchange: () => choose(method.name, box.checked) });
  const icon = document.createElementNS(NS, "svg");
  setAll(icon, { width: 26, height: 14, viewBox: "-13 -7 26 14", "aria-hidden": "true" });
  add(icon, "path", { class: "line", d: "M-13 0H13", "stroke-dasharray": method.dash });
  add(icon, "path", { class: "shape", d: method.outline });
  const label = html("label", { className: "m", title: `${method.help} (${method.paper}; ${method.rounds})` }, box, icon, method.title);
  label.dataset.m = method.name;
  label.style.setProperty("--hex", method.colour);
  return Object.assign(label, { onpointerenter: () => hover(method.name), onpointerleave: () => hover(null) });
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
sets();
slider("alpha", alphas, "a");
slider("clients", clients, "m");
choices();
$("stored").textContent = DATA.words;
theme(root.dataset.theme === "dark", false);
$("theme").addEventListener("click", () => theme(root.dataset.theme !== "dark", true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => kept ?? theme(event.matches, false));
$("others").addEventListener("change", () => change({ others: $("others").checked }));
$("first").addEventListener("click", () => {
  $("told").textContent = "";
  change({ chosen: FIRST, others: true });
});
$("held").querySelector("button").addEventListener("click", letGo);
$("controls").addEventListener("submit", (event) => event.preventDefault());
for (const details of document.querySelectorAll(".card details")) details.addEventListener("toggle", () => details.fill());
$("choice").open = innerWidth >= 1100;
recall();
addEventListener("hashchange", () => {
  const name = new URLSearchParams(location.hash.slice(1)).get("data") ?? Object.keys(SETS)[0];
  if (name in SETS && name !== SET) return location.reload();
  recall();
  return change({});
});
new ResizeObserver(() => {
  for (const id of Object.keys(DRAW)) $(id).size = null;
  render();
}).observe($("pictures"));
render();
