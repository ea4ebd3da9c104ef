// What the widgets leave undone on the page: names and values of sliders, tabs by arrow keys, a focus that does not get lost,
// long sentences that a keyboard can scroll. One stands in every panel; it looks at the panel's own elements alone.

const ICONS = [[".fa-pause", "Pause"], [".fa-play", "Play"], [".fa-stop", "Back to the start"], [".fa-retweet, .fa-repeat", "Repeat"]];
const FIELDS = "select, input:not([type=checkbox]), textarea";
/** Say what an element does not say yet: what is left alone costs a page nothing. */
const put = (element, values) => { for (const name in values) if (element[name] !== values[name]) element[name] = values[name]; };
/** Names of sliders and fields: the label beside them; the value as the readout says it. */
function name(root) {
  for (const widget of root.querySelectorAll(".widget-slider, .widget-dropdown, .widget-text, .widget-inline-hbox")) {
    const label = widget.querySelector(".widget-label")?.textContent.trim();
    const readout = widget.querySelector(".widget-readout");
    for (const handle of widget.querySelectorAll(".noUi-handle")) {
      const value = [label?.replace(/ \(.*\)$/, ""), readout?.textContent.trim()].filter(Boolean).join(" = "); // α = 0.22
      put(handle, { ariaLabel: label || null, ariaValueText: value });
    }
    if (readout && label) put(readout, { ariaLabel: label });
    for (const field of widget.querySelectorAll(FIELDS)) {
      const said = label || field.title || field.placeholder || widget.title;
      const labelled = [...(field.labels ?? [])].some((one) => one.offsetParent && one.textContent.trim());
      if (!labelled && said) put(field, { ariaLabel: said });
    }
  }
  for (const button of root.querySelectorAll(":is(.widget-play, .jupyter-widget-play) button")) {
    const says = ICONS.find(([icon]) => button.querySelector(icon))?.[1];
    if (says) put(button, { ariaLabel: says });
  }
}
/** A sentence that is too long for its place scrolls: then a keyboard must reach it. */
function sentences(root) {
  for (const one of root.querySelectorAll(".fl-sentence")) {
    const reach = one.scrollHeight > one.clientHeight + 1 ? 0 : -1;
    if (one.clientHeight) put(one, { tabIndex: reach });
  }
}
/** A lab's own tabs stand in a row of their own, over those that every panel has: fl-split-4 says that the first row has
    four tabs; fl-own-last that a lab's own are in the second row. */
function group(row, buttons) {
  const split = Number([...row.classList].find((one) => one.startsWith("fl-split-"))?.slice(9));
  if (!split || row.querySelector(".fl-group-name")) return;
  const named = (textContent) => Object.assign(document.createElement("span"), { className: "fl-group-name", textContent });
  const [first, second] = row.classList.contains("fl-own-last") ? ["Compare", "More"] : ["This method", "Compare"];
  buttons[0].before(named(first));
  buttons[split].before(Object.assign(document.createElement("i"), { className: "fl-break" }), named(second));
}
/** Rows of tabs: one of them can be reached with Tab, arrow keys go on from there. */
function tabs(root) {
  for (const row of root.querySelectorAll(".fl-tabs")) {
    const buttons = [...row.querySelectorAll("button")];
    buttons[0]?.parentElement.setAttribute("role", "tablist");
    group(row, buttons);
    for (const button of buttons) {
      const on = button.classList.contains("mod-active");
      put(button, { role: "tab", ariaSelected: String(on), tabIndex: on ? 0 : -1 });
      if (!button.dataset.text) button.dataset.text = button.textContent.trim(); // keeps room for its bold form (theme.css)
    }
  }
}

function arrows(event) {
  const button = event.target.closest?.(".fl-tabs button");
  if (!button) return;
  const all = [...button.closest(".fl-tabs").querySelectorAll("button")];
  const at = all.indexOf(button);
  const to = { ArrowRight: (at + 1) % all.length, ArrowLeft: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  all[to].focus();
  all[to].click();
}
/** The view of the marked tab is seen, and no other one: neither after a click, before the kernel knows of it, nor when the
    kernel answers an earlier click meanwhile. Where it is out of date, its picture is dimmed until the kernel has drawn it. */
function showMarkedView(root) {
  const buttons = [...root.querySelectorAll(".fl-main > .fl-tabs button")];
  const views = [...root.querySelectorAll(".fl-main > .fl-view")];
  const marked = buttons.findIndex((button) => button.classList.contains("mod-active"));
  if (marked < 0 || views.length < buttons.length) return; // not all of them are there yet
  views.forEach((view, i) => {
    const display = i === marked ? "" : "none";
    if (view.style.display === display) return;
    view.style.display = display;
    if (i === marked && view.matches(".fl-old")) dimUntilDrawn(view);
  });
}
function dimUntilDrawn(view) {
  view.classList.add("fl-behind");
  setTimeout(() => view.classList.remove("fl-behind"), 5000); // what changes no picture
}
/** The keys of a classroom: P for a projector, G once everybody has guessed. */
function keys(event) {
  const button = { p: ".fl-to-guess", g: ".fl-reveal" }[event.key?.toLowerCase()];
  if (!button || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(FIELDS)) return;
  event.currentTarget.querySelector(button)?.click();
  event.preventDefault();
  event.stopPropagation();
}
/** A click on a covered picture is the guess's end: it uncovers the results. */
function uncover({ target, currentTarget }) {
  if (!currentTarget.matches(".fl-covering")) return;
  if (target.closest?.(".fl-view:not(.fl-view-partition) .fl-frame")) currentTarget.querySelector(".fl-reveal")?.click();
}
/** What a button of the stage opens stands below it, often out of sight: then the page scrolls to it. */
function makeScrollToSettings(root) {
  const isClosed = () => (root.querySelector(".fl-below-stage")?.style.display ?? "none") === "none";
  let wasClosed = isClosed();
  return () => {
    if (wasClosed === isClosed()) return;
    wasClosed = !wasClosed;
    const scroll = () => root.querySelector(".fl-below-stage")?.scrollIntoView({ block: "nearest" });
    if (!wasClosed) setTimeout(scroll, 200); // its parts open one after the other
  };
}
/** A slider that plays runs ahead of the kernel: a picture that is behind it is dimmed until its own is there (`Frame.drawn`). */
function markBehind(records) {
  for (const { target } of records) {
    const readout = target.parentElement && (target.closest?.(".widget-readout") ?? target.parentElement.closest(".widget-readout"));
    const view = readout?.closest(".fl-tools")?.closest(".fl-view");
    if (!view) continue;
    dimUntilDrawn(view);
  }
}
/** Follow the kernel: a panel whose kernel is gone sleeps (ipywidgets tells only of restarts that a person asks for). */
function follow(kernel, mark) {
  if (!kernel?.statusChanged) return () => {};
  let waiting = 0;
  const status = (_, now) => { if (["restarting", "autorestarting", "dead", "terminating"].includes(now)) mark("fl-asleep", true); };
  const connection = (_, now) => {
    clearTimeout(waiting);
    if (now === "connected") mark("fl-offline", false);
    else waiting = setTimeout(() => mark("fl-offline", true), 1500); // a short gap is none
  };
  kernel.statusChanged.connect(status);
  kernel.connectionStatusChanged.connect(connection);
  return () => { clearTimeout(waiting); kernel.statusChanged.disconnect(status); kernel.connectionStatusChanged.disconnect(connection); };
}

/** ipywidgets puts a number that is out of range to the end of the range, without a word: say so beside the field. */
function readNumber(field) {
  const text = (field.matches("input") ? field.value : field.textContent).trim().replaceAll(",", "");
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

/** The field of a number that an event is about; null where it is about something else. */
function findNumberField(event) {
  return event.target.closest?.(".widget-text input[type=number], .widget-readout[contenteditable=true]") ?? null;
}

/** Whether the slider of a readout stands at an end; a field without a slider has no other reason to change. */
function isAtEnd(field) {
  const handle = field.parentElement.querySelector(".noUi-handle");
  if (handle === null) return true;
  const now = handle.getAttribute("aria-valuenow");
  return now === handle.getAttribute("aria-valuemin") || now === handle.getAttribute("aria-valuemax");
}

function sayLimit(event) {
  const field = findNumberField(event);
  if (field === null || (event.type === "keydown" && event.key !== "Enter")) return;
  const typed = readNumber(field);
  setTimeout(() => {
    const now = readNumber(field);
    if (typed === null || now === null || Math.trunc(typed) === now || !isAtEnd(field)) return;
    forgetLimit(field);
    const note = document.createElement("span");
    note.className = "fl-limit";
    note.setAttribute("role", "status");
    note.textContent = `${typed > now ? "at most" : "at least"} ${now.toLocaleString("en")}`;
    field.parentElement.append(note);
    setTimeout(() => note.remove(), 8000); // it lies over what is below
  });
}

function forgetLimit(field) {
  field.parentElement.querySelector(".fl-limit")?.remove();
}

function retypeNumber(event) {
  const field = findNumberField(event);
  if (field !== null) forgetLimit(field);
}

function render({ model, el }) {
  el.hidden = true;
  let [root, watch, later] = [null, null, 0];
  const gone = new AbortController();
  let last = null; // Run or Stop, if it had the focus
  let scrollToSettings = () => {};
  const bring = () => {
    later = 0;
    for (const chore of [name, tabs, sentences]) chore(root);
  };
  const changed = (records) => {
    showMarkedView(root);
    scrollToSettings();
    if (records.every(({ attributeName }) => attributeName === "style")) return; // a slider that moves, too
    markBehind(records);
    later ||= setTimeout(bring, 200); // not while a hand waits: it makes the browser compute its layout
    if (last?.disabled && (document.activeElement === document.body || document.activeElement === last)) {
      root.querySelector(last.matches(".fl-run") ? ".fl-stop:not(:disabled)" : ".fl-run:not(:disabled)")?.focus();
    }
  };
  const focused = (event) => { last = event.target.closest?.(".fl-run, .fl-stop") ?? (event.target === document.body ? last : null); };
  const start = () => {
    root = el.closest(".fl-root");
    if (!root) return requestAnimationFrame(start);
    const { signal } = gone;
    scrollToSettings = makeScrollToSettings(root);
    root.addEventListener("keydown", arrows, { capture: true, signal });
    for (const [kind, heard] of [["keydown", keys], ["focusin", focused], ["click", uncover]]) root.addEventListener(kind, heard, { signal });
    for (const kind of ["change", "focusout", "keydown"]) root.addEventListener(kind, sayLimit, { capture: true, signal });
    root.addEventListener("input", retypeNumber, { signal });
    watch = new MutationObserver(changed);
    watch.observe(root, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class", "disabled", "style"] });
    return bring();
  };
  start();
  const unfollow = follow(model.widget_manager?.kernel, (name, on) => root?.classList.toggle(name, on));
  return () => { unfollow(); clearTimeout(later); watch?.disconnect(); gone.abort(); };
}
export default { render };
