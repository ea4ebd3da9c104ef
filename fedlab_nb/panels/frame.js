// The frame of a picture: shows an SVG or words, tells its size, and lets marks answer: hover, focus, click, Escape.
// The client and the class that are looked at are marked at once, wherever in the panel they were chosen.
const STYLE = `
  svg { display: block; width: 100%; height: 100%; }
  .mark { cursor: pointer; outline: none; }
  .mark, .mark * { transition: opacity 0.12s; }
  .some .mark[data-method]:not(.on) { opacity: 0.22; }
  .mark.chosen :is(path, rect, use), .mark.chosen:is(path, rect, use) { stroke: light-dark(#0067a3, #56b4e9) !important; stroke-width: 2px !important; stroke-opacity: 1 !important; vector-effect: non-scaling-stroke; }
  .mark.chosen.word use { fill: light-dark(#0067a3, #56b4e9); stroke-width: 9px !important; } /* a hundredth of a letter's height each */
  .mark.chosen .touch { stroke: transparent !important; stroke-width: 12px !important; }
  .mark:hover { filter: drop-shadow(0 0 1.5px currentColor); }
  .mark:focus-visible { filter: drop-shadow(0 0 2px light-dark(#0072B2, #56B4E9)) drop-shadow(0 0 1px light-dark(#0072B2, #56B4E9)); }
  .touch { fill: none; stroke: transparent; stroke-width: 12px; pointer-events: stroke; }
  @media (prefers-reduced-motion: reduce) { .mark, .mark * { transition: none; } }`;
const DARK_IMAGES = "image:not([id^=photos] *) { filter: invert(1) hue-rotate(180deg) brightness(1.1); }";
const still = matchMedia("(prefers-reduced-motion: reduce)");
const STILL_REST = 600; // milliseconds without another picture after which one is shown where motion is unwanted
const THUMBNAIL = 64; // pixels of the longer side of an image that a mark shows
const NEAR = 7; // pixels from the pointer at which a mark still answers
const byId = (svg, id) => svg.querySelector(`[id="${CSS.escape(id)}"]`);
/** Set attributes, those alone that say something else: what is left alone costs a page nothing. */
const put = (element, values) => { for (const name in values) if (element.getAttribute(name) !== values[name]) element.setAttribute(name, values[name]); };
/** Whether a mark stands for what is looked at: of what is chosen, all that the mark names, and at least one of both. */
const isChosen = (selection, mark) => {
  const named = ["client", "classIndex"].filter((name) => selection[name] !== null && mark[name] !== undefined);
  return named.length > 0 && named.every((name) => selection[name] === mark[name]);
};
const members = (group) => [...group.querySelectorAll("use, path")].filter((one) => !one.closest("defs, .touch"));
const parsed = (text) => document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
/** The marks of a drawing: an element, what it says, what it stands for. */
function marksOf(svg, marks) {
  const made = [];
  for (const [id, about] of Object.entries(marks)) {
    const [group, many] = [byId(svg, id), Array.isArray(about.says)];
    const all = group && many ? members(group) : [group];
    if (!group || (many && all.length !== about.says.length)) continue;
    all.forEach((element, i) => {
      const { class_index: classIndex, ...own } = Object.fromEntries(Object.entries(about).map(([name, list]) => [name, Array.isArray(list) ? list[i] : list]));
      if (own.says) made.push({ element, classIndex, ...own });
    });
  }
  for (const { element, says, method, client, classIndex } of made) {
    element.classList.toggle("word", element.id.startsWith("word-"));
    element.classList.add("mark");
    put(element, { role: "button", tabindex: "-1", "aria-label": says.replaceAll("\n", "; ") });
    for (const [name, value] of Object.entries({ method, client, classIndex })) if (value !== undefined) element.dataset[name] = value;
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
  const [words, picture, tip, text, thumbnail] = ["fl-said", "fl-picture", "fl-tip", "fl-tip-text", "fl-thumbnail"].map(box);
  tip.append(thumbnail, text);
  tip.hidden = true;
  el.replaceChildren(words, picture, tip);
  const shadow = picture.attachShadow({ mode: "open" });
  let [made, boxes, hovered] = [[], null, null];
  let selection = readSelection();

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
    const style = document.createElement("style");
    style.textContent = STYLE + (getComputedStyle(el).colorScheme.includes("dark") ? DARK_IMAGES : "");
    shadow.replaceChildren(style, svg);
    svg.setAttribute("preserveAspectRatio", "xMinYMin meet");
    answer(svg, model.get("marks"), focused);
    if (!made.length) svg.setAttribute("aria-hidden", "true");
  }
  const focusedAt = () => made.findIndex(({ element }) => element === shadow.activeElement);
  /** Let the marks of a new drawing answer; `focused`: which one had the focus. */
  function answer(svg, marks, focused) {
    made = marksOf(svg, marks);
    boxes = null;
    picture.setAttribute("role", made.length ? "group" : "img");
    picture.setAttribute("aria-label", model.get("alt"));
    if (made.length) made[Math.max(0, Math.min(focused, made.length - 1))].element.setAttribute("tabindex", "0");
    if (focused >= 0 && made.length) made[Math.min(focused, made.length - 1)].element.focus();
    emphasise();
    markSelection();
  }
  /** The client and the class that are looked at, as Python says. */
  function readSelection() {
    const { client = null, class_index: classIndex = null } = model.get("selection");
    return { client, classIndex };
  }
  function select(next) {
    selection = next;
    markSelection();
  }
  function markSelection() {
    for (const mark of made) mark.element.classList.toggle("chosen", isChosen(selection, mark));
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
    text.textContent = mark.says;
    showThumbnail(mark.thumbnail);
    tip.hidden = false;
    const [frame, box] = [el.getBoundingClientRect(), mark.element.getBoundingClientRect()];
    const at = pointer ? { x: pointer.clientX, y: pointer.clientY } : { x: box.right, y: box.top + box.height / 2 };
    const x = at.x - frame.left + (at.x + 20 + tip.offsetWidth > Math.min(frame.right, innerWidth) ? -14 - tip.offsetWidth : 14);
    const y = Math.min(at.y - frame.top + 12, frame.height - tip.offsetHeight);
    tip.style.transform = `translate(${Math.round(Math.max(0, x))}px, ${Math.round(Math.max(0, y))}px)`;
  }
  /** The image of what a mark stands for, from the sheet that all share. */
  function showThumbnail(number) {
    const { image, width, height, columns, rows } = model.get("thumbnails");
    thumbnail.hidden = number === undefined || image === undefined;
    if (thumbnail.hidden) return;
    const shownWidth = THUMBNAIL * Math.min(1, width / height);
    const shownHeight = THUMBNAIL * Math.min(1, height / width);
    const [left, top] = [(number % columns) * shownWidth, Math.floor(number / columns) * shownHeight];
    Object.assign(thumbnail.style, {
      width: `${shownWidth}px`,
      height: `${shownHeight}px`,
      backgroundImage: `url("${image}")`,
      backgroundSize: `${columns * shownWidth}px ${rows * shownHeight}px`,
      backgroundPosition: `-${left}px -${top}px`,
    });
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
  /** Tell Python what was chosen; counted, so that the same once more is another time. */
  function pick(mark = {}) {
    const count = (model.get("picked").count ?? 0) + 1;
    const { method = null, client = null, classIndex = null, says } = mark;
    select(says ? chooseMark(selection, { client, classIndex }, method) : NO_SELECTION);
    announceSelection(el, selection);
    model.set("picked", { count, method, client, class_index: classIndex, none: !says });
    model.save_changes();
  }
  picture.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    hover(under(event), event);
  });
  for (const end of ["pointerleave", "focusout"]) picture.addEventListener(end, () => hover());
  picture.addEventListener("click", (event) => {
    const mark = under(event);
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
    if (event.key === "Enter" || event.key === " ") pick(made[at]);
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
      if (el.querySelector(".fl-todo, .fl-words") || width < 80 || height < 80 || (Math.abs(width - w) < 3 && Math.abs(height - h) < 3)) return;
      model.set("size", [width, height]);
      model.save_changes();
    }, model.get("size")[0] ? 120 : 0);
  });
  watch.observe(el);
  const theme = new MutationObserver(() => show());
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  let restTimer = 0;
  /** Where motion is unwanted a picture that plays stands still, and shows where it is once it stops. */
  function showWhenWanted() {
    clearTimeout(restTimer);
    if (still.matches) restTimer = setTimeout(show, STILL_REST);
    else show();
  }
  model.on("change:value", showWhenWanted);
  for (const change of ["change:drawn", "change:value"]) { // a picture, or words in its place
    model.on(change, () => el.closest(".fl-view")?.classList.remove("fl-behind"));
  }
  model.on("change:alt", () => picture.setAttribute("aria-label", model.get("alt")));
  model.on("change:held", emphasise);
  model.on("change:selection", () => select(readSelection()));
  const unlink = watchSelection(el, select);
  show();
  return () => {
    watch.disconnect();
    theme.disconnect();
    unlink();
    clearTimeout(waiting);
    clearTimeout(restTimer);
    made = [];
    el.replaceChildren(); // JupyterLab holds on to `el` until its kernel ends
  };
}
