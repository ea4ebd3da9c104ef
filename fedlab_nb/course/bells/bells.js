// The plane of three digits: regions as coloured dots, images as points, a bell as an ellipse at two standard deviations.
// A bell has three handles: its centre, the end of its long axis and the end of its short axis. They follow the pointer,
// and the arrow keys. What the classifier says of each place comes from Python.
const SVG = "http://www.w3.org/2000/svg";
const STEP = 0.1; // of an arrow key, in units of the plane
const DEVIATIONS = 2; // at which the ellipse is drawn
const LEAST = 0.08; // width of a bell

function make(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

/** Where the handles of a bell stand, in units of the plane. */
function handles(bell) {
  const length = Math.max(Math.hypot(bell.along_x, bell.along_y), LEAST);
  const normal = [-bell.along_y / length, bell.along_x / length];
  return {
    centre: [bell.x, bell.y],
    along: [bell.x + DEVIATIONS * bell.along_x, bell.y + DEVIATIONS * bell.along_y],
    across: [bell.x + DEVIATIONS * bell.across * normal[0], bell.y + DEVIATIONS * bell.across * normal[1]],
  };
}

/** The bell after its handle has been put to a place. */
function moved(bell, handle, [x, y]) {
  if (handle === "centre") return { ...bell, x, y };
  const dx = (x - bell.x) / DEVIATIONS;
  const dy = (y - bell.y) / DEVIATIONS;
  if (handle === "along") {
    return Math.hypot(dx, dy) < LEAST ? bell : { ...bell, along_x: dx, along_y: dy };
  }
  const length = Math.max(Math.hypot(bell.along_x, bell.along_y), LEAST);
  const across = Math.abs((-bell.along_y * dx + bell.along_x * dy) / length);
  return { ...bell, across: Math.max(across, LEAST) };
}

function render({ model, el }) {
  const [columns, rows, edge] = model.get("shape");
  const height = (edge * rows) / columns;
  const width = 640;
  const unit = width / (2 * edge);
  const frame = document.createElement("div");
  frame.style.cssText = "position:relative;max-width:640px;touch-action:none";
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  canvas.style.cssText = "position:absolute;inset:0;width:100%;height:100%;opacity:.28;border-radius:4px";
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${2 * height * unit}`);
  svg.style.cssText = "position:relative;display:block;width:100%;border:1px solid #8886;border-radius:4px";
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", "Three bells in the plane. Drag their handles, or use the arrow keys.");
  frame.append(canvas, svg);
  el.replaceChildren(frame);
  const toScreen = ([x, y]) => [(x + edge) * unit, (height - y) * unit];
  const colours = model.get("colours");
  const names = model.get("names");

  const dots = make("g", {}, svg);
  for (const [x, y, label] of model.get("points")) {
    const [cx, cy] = toScreen([x, y]);
    make("circle", { cx, cy, r: 2.4, fill: colours[label], opacity: 0.75 }, dots);
  }
  const parts = model.get("bells").map((_, index) => {
    const group = make("g", {}, svg);
    const ellipse = make("ellipse", { fill: colours[index], "fill-opacity": 0.12, stroke: colours[index], "stroke-width": 3 }, group);
    const ends = {};
    for (const handle of ["along", "across", "centre"]) {
      const words = { along: "long axis", across: "short axis", centre: "centre" }[handle];
      const circle = make("circle", {
        r: handle === "centre" ? 12 : 7,
        fill: handle === "centre" ? colours[index] : "#fff",
        stroke: colours[index],
        "stroke-width": 3,
        tabindex: 0,
        role: "button",
        "aria-label": `${words} of the bell of ${names[index]}`,
      }, group);
      circle.style.cursor = "grab";
      circle.addEventListener("pointerdown", (event) => grab(event, index, handle));
      circle.addEventListener("keydown", (event) => nudge(event, index, handle));
      ends[handle] = circle;
    }
    const name = make("text", { "text-anchor": "middle", "dominant-baseline": "central", "font-size": 14, "font-weight": 700, fill: "#fff", "pointer-events": "none" }, group);
    name.textContent = names[index];
    return { ellipse, ends, name };
  });

  function place() {
    model.get("bells").forEach((bell, index) => {
      const { ellipse, ends, name } = parts[index];
      const [cx, cy] = toScreen([bell.x, bell.y]);
      const angle = (-Math.atan2(bell.along_y, bell.along_x) * 180) / Math.PI;
      ellipse.setAttribute("rx", DEVIATIONS * Math.hypot(bell.along_x, bell.along_y) * unit);
      ellipse.setAttribute("ry", DEVIATIONS * bell.across * unit);
      ellipse.setAttribute("transform", `translate(${cx} ${cy}) rotate(${angle})`);
      for (const [handle, at] of Object.entries(handles(bell))) {
        const [x, y] = toScreen(at);
        ends[handle].setAttribute("cx", x);
        ends[handle].setAttribute("cy", y);
      }
      name.setAttribute("x", cx);
      name.setAttribute("y", cy);
    });
  }

  function paint() {
    const context = canvas.getContext("2d");
    [...model.get("regions")].forEach((label, at) => {
      context.fillStyle = colours[Number(label)];
      context.fillRect(at % columns, Math.floor(at / columns), 1, 1);
    });
  }

  function put(index, handle, at) {
    const bells = model.get("bells").map((bell, i) => (i === index ? moved(bell, handle, at) : bell));
    model.set("bells", bells);
    model.save_changes();
    place();
  }

  function grab(event, index, handle) {
    event.preventDefault();
    event.target.setPointerCapture(event.pointerId);
    const box = svg.getBoundingClientRect();
    const follow = (move) => {
      const x = ((move.clientX - box.left) / box.width) * 2 * edge - edge;
      const y = height - ((move.clientY - box.top) / box.height) * 2 * height;
      put(index, handle, [Math.max(-edge, Math.min(edge, x)), Math.max(-height, Math.min(height, y))]);
    };
    const release = () => {
      event.target.removeEventListener("pointermove", follow);
      event.target.removeEventListener("pointerup", release);
    };
    event.target.addEventListener("pointermove", follow);
    event.target.addEventListener("pointerup", release);
  }

  function nudge(event, index, handle) {
    const step = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = handles(model.get("bells")[index])[handle];
    put(index, handle, [at[0] + step[0], at[1] + step[1]]);
  }

  model.on("change:bells", place);
  model.on("change:regions", paint);
  place();
  paint();
}

export default { render };
