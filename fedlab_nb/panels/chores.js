// What the widgets leave undone on the page: names and values of sliders, tabs by arrow keys, a focus that does not get lost.
// One of these stands in every panel; it looks at the panel's own elements alone.

const FIELDS = "select, input:not([type=checkbox]), textarea";

/** Names of sliders and fields: the label beside them; the value as the readout says it. */
function name(root) {
  for (const widget of root.querySelectorAll(".widget-slider, .widget-dropdown, .widget-text, .widget-inline-hbox")) {
    const label = widget.querySelector(".widget-label")?.textContent.trim();
    const readout = widget.querySelector(".widget-readout");
    for (const handle of widget.querySelectorAll(".noUi-handle")) {
      const value = `${label ?? ""} ${readout?.textContent.trim() ?? ""}`.trim();
      if (label && handle.ariaLabel !== label) handle.ariaLabel = label;
      if (handle.ariaValueText !== value) handle.ariaValueText = value;
    }
    if (readout && label && readout.ariaLabel !== label) readout.ariaLabel = label;
    for (const field of widget.querySelectorAll(FIELDS)) {
      const said = label || field.title || widget.title;
      if (!field.labels?.length && !field.ariaLabel && said) field.ariaLabel = said;
    }
  }
}

/** Rows of tabs: one of them can be reached with Tab, arrow keys go on from there. */
function tabs(root) {
  for (const row of root.querySelectorAll(".fl-tabs")) {
    const buttons = [...row.querySelectorAll("button")];
    row.setAttribute("role", "tablist");
    for (const group of row.querySelectorAll(".widget-toggle-buttons, .widget-inline-hbox, div")) if (group.querySelector("button")) group.setAttribute("role", "presentation");
    for (const button of buttons) {
      const on = button.classList.contains("mod-active");
      if (button.getAttribute("role") !== "tab") button.setAttribute("role", "tab");
      if (button.ariaSelected !== String(on)) button.ariaSelected = String(on);
      if (button.tabIndex !== (on ? 0 : -1)) button.tabIndex = on ? 0 : -1;
      button.dataset.text = button.textContent.trim(); // keeps room for its bold form (theme.css)
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

function render({ el }) {
  el.hidden = true;
  let root = null;
  let watch = null;
  let due = false;
  let last = null; // Run or Stop, if it had the focus
  const bring = () => {
    due = false;
    name(root);
    tabs(root);
    if (last?.disabled && (document.activeElement === document.body || document.activeElement === last)) {
      root.querySelector(last.matches(".fl-run") ? ".fl-stop:not(:disabled)" : ".fl-run:not(:disabled)")?.focus();
    }
  };
  const focused = (event) => { last = event.target.closest?.(".fl-run, .fl-stop") ?? (event.target === document.body ? last : null); };
  const start = () => {
    root = el.closest(".fl-root");
    if (!root) return requestAnimationFrame(start);
    root.addEventListener("keydown", arrows, true);
    root.addEventListener("focusin", focused);
    watch = new MutationObserver(() => {
      if (!due) requestAnimationFrame(bring);
      due = true;
    });
    watch.observe(root, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class", "disabled"] });
    return bring();
  };
  start();
  return () => {
    watch?.disconnect();
    root?.removeEventListener("keydown", arrows, true);
    root?.removeEventListener("focusin", focused);
  };
}
export default { render };
