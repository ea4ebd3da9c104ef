// The canvas calls that a flight makes (flight_paint.js), written as SVG: a picture that needs no script. What stands
// between save() and restore() is a group; a group that is drawn again is written once and used again.
const OWN_COLOUR = "currentColor"; // of a group: the one that it strokes with, so that groups differ in it alone
const PRECISION = 100; // of coordinates: hundredths of a pixel

const round = (value) => Math.round(PRECISION * value) / PRECISION;
const points = (...values) => values.map(round).join(" ");

/** Text as it stands in SVG, in attributes too. */
export function escapeSvg(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => names[character]);
}

/** A pen for paintScene; finish() gives the elements that were drawn, as text, and starts anew. */
export function createSvgPen() {
  const start = {
    strokeStyle: "#000", fillStyle: "#000", lineWidth: 1, globalAlpha: 1, textAlign: "left", font: "",
  };
  const saved = [];
  let groups = []; // {content, colour, alpha, transform}, from back to front
  let path = [];

  const pen = {
    ...start,
    save() {
      const state = {};
      for (const name of Object.keys(start)) state[name] = pen[name];
      saved.push(state);
      groups.push({ content: "", colour: "", alpha: 1, transform: "" });
    },
    restore() {
      const group = groups.at(-1);
      group.colour = pen.strokeStyle;
      group.alpha = round(pen.globalAlpha);
      Object.assign(pen, saved.pop());
    },
    translate(x, y) {
      groups.at(-1).transform += `translate(${points(x, y)})`;
    },
    scale(x, y) {
      groups.at(-1).transform += x === y ? `scale(${points(x)})` : `scale(${points(x, y)})`;
    },
    beginPath() {
      path = [];
    },
    moveTo(x, y) {
      path.push(`M${points(x, y)}`);
    },
    lineTo(x, y) {
      path.push(`L${points(x, y)}`);
    },
    quadraticCurveTo(bendX, bendY, x, y) {
      path.push(`Q${points(bendX, bendY, x, y)}`);
    },
    /** A whole circle: a flight has no other arc. */
    arc(x, y, radius) {
      const half = `${points(radius, radius)} 0 1 0`;
      path.push(`M${points(x - radius, y)}A${half} ${points(x + radius, y)}A${half} ${points(x - radius, y)}Z`);
    },
    roundRect(x, y, width, height, radius) {
      const corner = (toX, toY) => `A${points(radius, radius)} 0 0 1 ${points(toX, toY)}`;
      const right = x + width;
      const bottom = y + height;
      path.push(
        `M${points(x + radius, y)}H${points(right - radius)}`, corner(right, y + radius),
        `V${points(bottom - radius)}`, corner(right - radius, bottom),
        `H${points(x + radius)}`, corner(x, bottom - radius),
        `V${points(y + radius)}`, corner(x + radius, y), "Z",
      );
    },
    fill() {
      write(`<path d="${path.join("")}" fill="${nameColour(pen.fillStyle)}"/>`);
    },
    stroke() {
      const colour = nameColour(pen.strokeStyle);
      write(`<path d="${path.join("")}" fill="none" stroke="${colour}" stroke-width="${round(pen.lineWidth)}"/>`);
    },
    fillRect(x, y, width, height) {
      const size = `width="${round(width)}" height="${round(height)}"`;
      write(`<rect x="${round(x)}" y="${round(y)}" ${size} fill="${nameColour(pen.fillStyle)}"/>`);
    },
    fillText(text, x, y) {
      const anchor = { left: "start", center: "middle", right: "end" }[pen.textAlign];
      const place = `x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"`;
      write(`<text ${place} fill="${nameColour(pen.fillStyle)}">${escapeSvg(text)}</text>`);
    },
    finish() {
      const text = writeGroups(groups);
      groups = [];
      return text;
    },
  };

  const nameColour = (colour) => (colour === pen.strokeStyle ? OWN_COLOUR : colour);

  function write(element) {
    groups.at(-1).content += element;
  }

  return pen;
}

/** Groups as text; contents that stand there more than once come first, as definitions. */
function writeGroups(groups) {
  const uses = new Map();
  for (const { content } of groups) uses.set(content, (uses.get(content) ?? 0) + 1);
  const names = new Map();
  for (const [content, count] of uses) {
    if (count > 1 && content !== "") names.set(content, `g${names.size}`);
  }
  const definitions = [...names].map(([content, name]) => `<g id="${name}">${content}</g>`);
  const body = groups.filter(({ content }) => content !== "").map(({ content, colour, alpha, transform }) => {
    const about = [`color="${colour}"`];
    if (alpha < 1) about.push(`opacity="${alpha}"`);
    if (transform !== "") about.push(`transform="${transform}"`);
    const name = names.get(content);
    if (name === undefined) return `<g ${about.join(" ")}>${content}</g>`;
    return `<use href="#${name}" ${about.join(" ")}/>`;
  });
  return `<defs>${definitions.join("")}</defs>${body.join("")}`;
}
