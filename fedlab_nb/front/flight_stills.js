// A flight in a few moments, two in a row, as SVG: for where nothing can move. Pure: the same ledger gives the same text.
// The picture brings its ground along, a card, so that it can be read on any page, and is dark where its <img> is.
import { paintScene } from "./flight_paint.js";
import { planFlight, summarise } from "./flight_plan.js";
import { makeScene } from "./flight_scene.js";
import { createSvgPen, escapeSvg } from "./svg_pen.js";

const STILLS = 4;
const COLUMNS = 2;
const STILL = { width: 280, height: 158, gap: 18 }; // pixels; the height is that below the captions
const LINE = 14; // pixels of a line of text
const LETTERS = 46; // of a line
const MARGIN = 14; // pixels of the card around the stills
const FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// The stage's colours, light and dark. They stand in the picture as light ones, so that a program that knows no style
// sheets shows it, too. The stage's `card` is the ground here, and its ground that of the server's box.
const COLOURS = {
  ground: { light: "#f5f7f9", dark: "#1a2027" },
  card: { light: "#ffffff", dark: "#12161b" },
  line: { light: "#dde2e7", dark: "#2a3138" },
  ink: { light: "#1c2024", dark: "#e9edf1" },
  quiet: { light: "#59636d", dark: "#a3adb8" },
  server: { light: "#0067a3", dark: "#56b4e9" },
  bad: { light: "#b3261e", dark: "#ff8a80" },
};

/** The four steps that are shown, from the first message of a client on. Of more not the gate that shuts (it is seen
    shut at the end), but the first two and the last two; where there are three, what each client does alone first.
    Each has the number that it has on the stage, so that one sees what is left out. */
export function chooseStills(plan) {
  const numbered = plan.steps.map((step, i) => ({ ...step, number: `${i + 1} of ${plan.steps.length}` }));
  const first = numbered.findIndex((step) => step.hops.some((hop) => hop.way === "up"));
  const steps = numbered.slice(first);
  if (steps.length < STILLS) return numbered.slice(numbered.findIndex(({ kind }) => kind === "work"));
  if (steps.length === STILLS) return steps;
  const others = steps.filter(({ kind }) => kind !== "gate");
  if (others.length === STILLS) return others;
  return [...others.slice(0, STILLS / 2), ...others.slice(-STILLS / 2)];
}

/** Words in lines of at most LETTERS; "10 × 26.3 kB" stays together. */
function wrapText(text) {
  const lines = [""];
  for (const word of text.replaceAll(" × ", "\u00a0×\u00a0").split(" ")) {
    const longer = lines.at(-1) === "" ? word : `${lines.at(-1)} ${word}`;
    if (longer.length <= LETTERS) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function writeCaption(step, left, top) {
  const words = escapeSvg(`${step.number}: ${step.title}`);
  const title = `<text x="${left}" y="${top + LINE}" font-weight="bold">${words}</text>`;
  const lines = wrapText(step.text).map((line, i) => {
    return `<text x="${left}" y="${top + LINE * (i + 2)}">${escapeSvg(line)}</text>`;
  });
  return title + lines.join("");
}

/** The light colours by name, as paintScene takes them. */
function listLightColours() {
  return Object.fromEntries(Object.entries(COLOURS).map(([name, { light }]) => [name, light]));
}

/** Where dark is wanted, each light colour gives way to its dark one. */
function writeDarkStyle() {
  const rules = Object.values(COLOURS).flatMap(({ light, dark }) => {
    return ["fill", "stroke", "color"].map((name) => `[${name}="${light}"]{${name}:${dark}}`);
  });
  return `<style>@media (prefers-color-scheme:dark){${rules.join("")}}</style>`;
}

/** What the stills say, for who cannot see them. */
function describeStills(steps) {
  return steps.map(({ number, title, text }) => `${number}, ${title}: ${text}`).join(" ");
}

/** The SVG of a flight's moments; its title is the flight in a sentence, its description the captions.
    name: the method's; flight: see front/flight.py; people: the data set's words; colours: of the clients, "#rrggbb". */
export function drawStills(name, flight, people, colours) {
  const plan = planFlight(flight, people);
  const steps = chooseStills(plan);
  const lines = Math.max(...steps.map((step) => wrapText(step.text).length)); // of the longest caption
  const captionHeight = LINE * (lines + 1) + 14;
  const height = captionHeight + STILL.height;
  const size = { width: STILL.width, height, top: captionHeight };
  const style = { ...listLightColours(), font: FONT };
  const pen = createSvgPen();
  const captions = [];
  steps.forEach((step, i) => {
    const left = MARGIN + (i % COLUMNS) * (STILL.width + STILL.gap);
    const top = MARGIN + Math.floor(i / COLUMNS) * (height + STILL.gap);
    const shapes = makeScene(plan, step.still, size, colours);
    paintScene(pen, shapes.map((shape) => moveShape(shape, left, top)), style);
    captions.push(writeCaption(step, left, top));
  });
  const rows = Math.ceil(steps.length / COLUMNS);
  const width = COLUMNS * (STILL.width + STILL.gap) - STILL.gap + 2 * MARGIN;
  const whole = rows * (height + STILL.gap) - STILL.gap + 2 * MARGIN;
  const box = `viewBox="0 0 ${width} ${whole}" width="${width}" height="${whole}"`;
  const font = `font-family="${escapeSvg(FONT)}" font-size="11"`;
  const about = `<title>${escapeSvg(summarise(plan, name))}</title><desc>${escapeSvg(describeStills(steps))}</desc>`;
  const edge = `x="0.5" y="0.5" width="${width - 1}" height="${whole - 1}" rx="8"`;
  const card = `<rect ${edge} fill="${style.ground}" stroke="${style.line}"/>`;
  const words = `<g fill="${style.ink}">${captions.join("")}</g>`;
  const content = `${about}${writeDarkStyle()}${card}${words}${pen.finish()}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box} ${font}>${content}</svg>\n`;
}

/** A shape so many pixels further right and down. */
function moveShape(shape, left, top) {
  const moved = { ...shape };
  if (shape.x !== undefined) Object.assign(moved, movePoint(shape, left, top));
  for (const name of ["from", "bend", "to"]) {
    if (shape[name]) moved[name] = movePoint(shape[name], left, top);
  }
  return moved;
}

const movePoint = ({ x, y }, left, top) => ({ x: x + left, y: y + top });
