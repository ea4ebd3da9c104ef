// The frame of a picture: shows an SVG or words, tells its size, and lets marks answer: hover, focus, click, Escape. Where it
// is movable, marks of clients are dragged to another client's column, or go there with Shift and an arrow key.
// While a slider is dragged only what moves is sent (`moves`); while something plays it glides from step to step.
const STYLE = `
  svg { display: block; width: 100%; height: 100%; }
  .mark { cursor: pointer; outline: none; }
  .mark, .mark * { transition: opacity 0.12s; }
  .some .mark[data-method]:not(.on) { opacity: 0.22; }
  .movable .mark { cursor: grab; }
  .mark:hover { filter: drop-shadow(0 0 1.5px currentColor); }
  .mark:focus-visible { filter: drop-shadow(0 0 2px light-dark(#0072B2, #56B4E9)) drop-shadow(0 0 1px light-dark(#0072B2, #56B4E9)); }
  .touch { fill: none; stroke: transparent; stroke-width: 12px; pointer-events: stroke; }
  @media (prefers-reduced-motion: reduce) { .mark, .mark * { transition: none; } }`;
const DARK_IMAGES = "image:not([id^=photos] *) { filter: invert(1) hue-rotate(180deg) brightness(1.1); }";
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const FAR = 5; // pixels from which on a press is a drag
const REST = 60; // milliseconds after which marks that have moved answer again
const NEAR = 7; // pixels from the pointer at which a mark still answers
const NUMBER = /-?\d+(\.\d+)?(e-?\d+)?/g;
const byId = (svg, id) => svg.querySelector(`[id="${CSS.escape(id)}"]`);
/** Set attributes, those alone that say something else: what is left alone costs a page nothing. */
const put = (element, values) => { for (const name in values) if (element.getAttribute(name) !== values[name]) element.setAttribute(name, values[name]); };
const sum = (list) => list.reduce((a, b) => a + b, 0);
const members = (group) => [...group.querySelectorAll("use, path")].filter((one) => !one.closest("defs, .touch"));
const parsed = (text) => document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
/** Put what `from` defines (letters, clips) with the definitions of `svg`, so that any group can be replaced. */
function define(svg, from) {
  const defs = svg.querySelector(":scope > defs");
  const known = new Set([...defs.children].map(({ id }) => id));
  defs.append(...[...from.querySelectorAll("defs > [id]")].filter(({ id }) => !known.has(id)));
}
/** What brings `old` to the looks of `group`, at a share 0-1 of the way, number by number; null: it has another shape.
 * A line that has more points than before grows out of its old end. */
function glides(old, group) {
  const [now, then] = [old, group].map(members);
  const bones = (one) => [...one.querySelectorAll("g, use")].map((e) => ["transform", "xlink:href", "style"].map((name) => e.getAttribute(name))).join();
  if (now.length !== then.length || bones(old) !== bones(group)) return null;
  return then.flatMap((one, i) => ["d", "x", "y", "style"].flatMap((name) => {
    const [before, text] = [now[i], one].map((e) => e.getAttribute(name) ?? "");
    const [a, b] = [before, text].map((words) => (words.match(NUMBER) ?? []).map(Number));
    const touch = name === "d" && now[i].nextSibling?.matches?.(".touch") ? [now[i].nextSibling] : [];
    if (before === text) return [];
    const whole = name === "style" || !a.length || a.length > b.length;
    while (a.length < b.length) a.push(a.at(-2));
    return (share, k = 0) => {
      const value = whole || share === 1 ? text : text.replace(NUMBER, () => a[k] + share * (b[k] - a[k++]));
      for (const element of [now[i], ...touch]) element.setAttribute(name, value);
    };
  }));
}
/** The marks of a drawing: an element, what it says, what it stands for. */
function marksOf(svg, marks) {
  const made = [];
  for (const [id, about] of Object.entries(marks)) {
    const [group, many] = [byId(svg, id), Array.isArray(about.says)];
    const all = group && many ? members(group) : [group];
    if (!group || (many && all.length !== about.says.length)) continue;
    all.forEach((element, i) => {
      const own = Object.fromEntries(Object.entries(about).map(([name, list]) => [name, Array.isArray(list) ? list[i] : list]));
      if (own.says) made.push({ element, ...own });
    });
  }
  for (const { element, says, method, client, klass } of made) {
    element.classList.add("mark");
    put(element, { role: "button", tabindex: "-1", "aria-label": says.replaceAll("\n", "; ") });
    for (const [name, value] of Object.entries({ method, client, klass })) if (value !== undefined) element.dataset[name] = value;
    for (const line of element.querySelectorAll("path")) {
      if (!/fill: none/.test(line.getAttribute("style") ?? "") || line.closest("defs") || line.nextSibling?.matches?.(".touch")) continue;
      const touch = line.cloneNode();
      for (const name of ["style", "id"]) touch.removeAttribute(name);
      touch.setAttribute("class", "touch");
      line.after(touch);
    }
  }
  return made;
}

function render({ model, el }) {
  const box = (className) => Object.assign(document.createElement("div"), { className });
  const [words, picture, tip] = ["fl-said", "fl-picture", "fl-tip"].map(box);
  tip.hidden = true;
  el.replaceChildren(words, picture, tip);
  const shadow = picture.attachShadow({ mode: "open" });
  let [made, boxes, hovered, later, last, frame, gliding] = [[], null, null, 0, 0, 0, []];
  let [drag, follow, hands] = [null, null, []]; // what is in the hand; the client and class that the focus follows; sliders

  // ------------------------------------------------------------------------------------------------ what is shown
  function show() {
    const value = model.get("value");
    const drawing = value.startsWith("<svg");
    const focused = focusedAt();
    tip.hidden = true;
    words.hidden = drawing;
    picture.hidden = !drawing;
    words.innerHTML = drawing ? "" : value;
    made = [];
    boxes = null;
    if (!drawing) return shadow.replaceChildren();
    const svg = parsed(value);
    define(svg, svg);
    const style = document.createElement("style");
    style.textContent = STYLE + (getComputedStyle(el).colorScheme.includes("dark") ? DARK_IMAGES : "");
    shadow.replaceChildren(style, svg);
    svg.setAttribute("preserveAspectRatio", "xMinYMin meet");
    svg.classList.toggle("movable", model.get("movable"));
    picture.style.cssText = model.get("movable") ? "touch-action: pan-y pinch-zoom; user-select: none" : "";
    answer(svg, model.get("marks"), focused);
    if (!made.length) svg.setAttribute("aria-hidden", "true");
    move();
  }
  const focusedAt = () => made.findIndex(({ element }) => element === shadow.activeElement);
  /** Let the marks of a new drawing, or of its new parts, answer; `focused`: which one had the focus. */
  function answer(svg, marks, focused) {
    made = marksOf(svg, marks);
    boxes = null;
    picture.setAttribute("role", made.length ? "group" : "img");
    picture.setAttribute("aria-label", model.get("alt"));
    const there = follow ? made.findIndex(({ client, klass }) => client === follow.client && klass === follow.klass) : -1;
    if (there >= 0) [focused, follow] = [focused < 0 ? focused : there, null];
    if (made.length) made[Math.max(0, Math.min(focused, made.length - 1))].element.setAttribute("tabindex", "0");
    if (focused >= 0 && made.length) made[Math.min(focused, made.length - 1)].element.focus();
    emphasise();
  }
  /** Put what has moved since the drawing in its place; where motion is unwanted, once nothing plays any more. */
  function move() {
    const [moves, svg] = [model.get("moves"), shadow.querySelector("svg")];
    const parts = { ...model.get("rested"), ...moves.parts };
    clearTimeout(later);
    if (!svg || !moves.parts) return;
    const plays = el.closest(".fl-view")?.querySelector(".fa-pause");
    if (calm.matches && plays) return void (later = setTimeout(move, 200));
    const [focused, ways] = [focusedAt(), []];
    for (const [name, text] of Object.entries(parts)) {
      if (svg.moved?.[name] === text) continue;
      const part = parsed(text);
      define(svg, part);
      for (const group of part.querySelectorAll(":scope > g[id]")) {
        const old = byId(svg, group.id);
        const own = old && glides(old, group);
        if (own) ways.push(...own);
        else old?.replaceWith(group);
      }
    }
    svg.moved = parts;
    const [start, time] = [performance.now(), plays ? Math.min(performance.now() - last, 500) : 0];
    const step = () => {
      const share = time ? Math.min(1, (performance.now() - start) / time) : 1;
      for (const way of ways) way(share);
      if (share < 1) frame = requestAnimationFrame(step);
    };
    cancelAnimationFrame(frame);
    for (const way of gliding) way(1);
    [last, gliding] = [start, ways];
    step();
    share();
    const ask = () => answer(svg, { ...model.get("marks"), ...moves.marks }, focused);
    if (focused >= 0 || follow) ask();
    else later = setTimeout(ask, REST); // a hand on a slider does not wait for it
  }
  /** Bars of weights follow their sliders within a frame, before the kernel answers: together they stay as high as they are. */
  function share() {
    const [svg, weights] = [shadow.querySelector("svg"), hands.map((one) => one.get("value"))];
    if (!svg || !weights.length) return;
    const bars = Object.entries(model.get("marks")).flatMap(([id, { client, klass }]) => (client >= 0 && klass === undefined ? members(byId(svg, id)) : []));
    const ends = bars.map((bar) => bar.getAttribute("d").match(NUMBER).map(Number)); // left, bottom, right, …, top (, left)
    const scale = sum(ends.map((all) => all[1] - all.at(all.length % 2 ? -2 : -1))) / sum(weights);
    if (isFinite(scale)) ends.forEach(([left, low, right], i) => put(bars[i], { d: `M${left} ${low}H${right}V${low - scale * weights[i]}H${left}z` }));
  }
  function emphasise() {
    const on = hovered?.method ?? model.get("held");
    shadow.querySelector("svg")?.classList.toggle("some", Boolean(on) && made.some(({ method }) => method === on));
    for (const { element, method } of made) {
      element.classList.toggle("on", method !== undefined && method === on);
      put(element, { "aria-pressed": `${method !== undefined && method === model.get("held")}` });
    }
  }

  // ------------------------------------------------------------------------------------------------ pointer and keys
  function showTip(mark, pointer) {
    tip.textContent = mark.says;
    tip.hidden = false;
    const [frame, box] = [el.getBoundingClientRect(), mark.element.getBoundingClientRect()];
    const at = pointer ? { x: pointer.clientX, y: pointer.clientY } : { x: box.right, y: box.top + box.height / 2 };
    const x = at.x - frame.left + (at.x + 20 + tip.offsetWidth > Math.min(frame.right, innerWidth) ? -14 - tip.offsetWidth : 14);
    const y = Math.min(at.y - frame.top + 12, frame.height - tip.offsetHeight);
    tip.style.transform = `translate(${Math.round(Math.max(0, x))}px, ${Math.round(Math.max(0, y))}px)`;
  }
  /** The mark under the pointer, or the nearest one within a few pixels. */
  function under(event) {
    const target = event.composedPath()[0];
    const own = target.closest?.(".mark");
    if (own) return made.find(({ element }) => element === own);
    boxes ??= made.map(({ element }) => element.getBoundingClientRect());
    const [x, y] = [event.clientX, event.clientY];
    const far = boxes.map((b) => (b.width > 200 && b.height > 20 ? Infinity : Math.hypot(Math.max(b.left - x, 0, x - b.right), Math.max(b.top - y, 0, y - b.bottom))));
    const best = far.indexOf(Math.min(...far));
    return far[best] <= NEAR ? made[best] : undefined;
  }
  function hover(mark, pointer) {
    if (mark) showTip(mark, pointer);
    else tip.hidden = true;
    if (hovered === mark) return;
    hovered = mark;
    emphasise();
  }
  /** Tell Python what a hand has done; counted, so that the same once more is another time. */
  function tell(name, value) {
    model.set(name, { count: (model.get(name).count ?? 0) + 1, ...value });
    model.save_changes();
  }
  const pick = ({ method = null, client = null, klass = null, says } = {}) => tell("picked", { method, client, klass, none: !says });
  /** The bar of the client whose column is under a pointer at `x`. */
  const column = (x) => made.find(({ element, client, klass }) => {
    const { left, width } = element.getBoundingClientRect();
    return client !== undefined && klass === undefined && Math.abs(x - left - width / 2) < 0.72 * width;
  });
  /** Give what a mark stands for to the client `to`. */
  function drop({ client, klass }, to) {
    if (to === undefined || to === client) return;
    follow = { client: to, klass };
    tell("dropped", { client, klass: klass ?? null, to });
  }
  picture.addEventListener("pointerdown", (event) => {
    const mark = model.get("movable") && event.isPrimary && !event.button && under(event);
    drag = mark?.client >= 0 ? { mark, x: event.clientX, y: event.clientY } : null;
  });
  /** Let the mark in the hand follow the pointer; the tip says where it would go. */
  function carry(event) {
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.far && Math.hypot(x, y) < FAR) return;
    if (!drag.far) picture.setPointerCapture(event.pointerId);
    const { element, client, says } = drag.mark, scale = 1 / shadow.querySelector("svg").getScreenCTM().a;
    element.style.translate = `${x * scale}px ${y * scale}px`;
    Object.assign(drag, { far: true, goal: column(event.clientX) });
    const words = [says, ...(drag.goal && drag.goal.client !== client ? [drag.goal.says] : [])];
    showTip({ element, says: words.map((each) => each.split("\n")[0]).join(" → ") }, event);
  }
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => {
    if (!drag?.far) return void (drag = null);
    const { mark, goal } = drag;
    if (end === "pointerup") drop(mark, goal?.client);
    setTimeout(() => { mark.element.style.translate = ""; }, 300); // where nothing comes of it
    setTimeout(() => { drag = null; }); // after the click that a browser makes of it
  });
  picture.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) return carry(event);
    if (event.pointerType === "touch") return;
    hover(under(event), event);
  });
  for (const end of ["pointerleave", "focusout"]) picture.addEventListener(end, () => hover());
  picture.addEventListener("click", (event) => {
    const mark = drag?.far ? null : under(event);
    if (mark) pick(mark);
  });
  picture.addEventListener("focusin", (event) => {
    const mark = made.find(({ element }) => element === event.composedPath()[0]);
    if (mark?.element.matches(":focus-visible")) hover(mark);
  });
  picture.addEventListener("keydown", (event) => {
    const at = made.findIndex(({ element }) => element === shadow.activeElement);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: made.length - 1 }[event.key];
    if (at < 0) return;
    const beside = model.get("movable") && event.shiftKey && { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (beside) drop(made[at], made.find(({ client }) => client === made[at].client + beside)?.client);
    else if (event.key === "Enter" || event.key === " ") pick(made[at]);
    else if (event.key === "Escape") pick();
    else if (made[to]) {
      made[at].element.setAttribute("tabindex", "-1");
      made[to].element.setAttribute("tabindex", "0");
      made[to].element.focus();
    } else if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab has uses of its own for arrows and Enter
  });

  // ------------------------------------------------------------------------------------------------------- its size
  let waiting = 0;
  const watch = new ResizeObserver(() => {
    boxes = null;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const [width, height] = [Math.round(el.clientWidth), Math.round(el.clientHeight)];
      const [w, h] = model.get("size");
      if (el.querySelector(".fl-todo") || width < 80 || height < 80 || (Math.abs(width - w) < 3 && Math.abs(height - h) < 3)) return;
      model.set("size", [width, height]);
      model.save_changes();
    }, model.get("size")[0] ? 120 : 0);
  });
  watch.observe(el);
  const theme = new MutationObserver(() => show());
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  model.on("change:value", show);
  model.on("change:moves", move);
  model.on("change:held", emphasise);
  show();
  if (model.get("hands")) model.widget_manager.get_model(model.get("hands")).then((box) => {
    const listen = () => { hands = box.get("children"); for (const one of hands) one.on("change:value", share); };
    box.on("change:children", listen);
    listen();
  });
  return () => { watch.disconnect(); theme.disconnect(); clearTimeout(later); };
}
export default { render };
