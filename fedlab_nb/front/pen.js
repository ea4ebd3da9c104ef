// A digit that a hand draws, as the networks know digits: 8×8 numbers from 0 to 1.
// The package's digits (UCI, "Optical recognition of handwritten digits") were bitmaps of 32×32: ink stretched to the whole
// height and about 20 columns, strokes made thinner or thicker until a third was black, black pixels counted in blocks of
// 4×4. A drawing goes the same way. The box round its ink is stretched to 32 rows and, by twice as much at most, to 20
// columns: a bare stroke stays slim. Strokes grow or shrink by `grow` pixels on each side, inside of that box, until
// there is as much ink as most training images have (mean ± a standard deviation). Ink and width are those of training
// images (tests/live/classroom/test_ink.py).
import { html } from "./dom.js";

const SIDE = 32, WIDE = 20, BLOCK = 4;
const INK = [278, 347], PEN = 0.085; // pixels; of the canvas's width
/** 64 numbers 0–1, row by row, of a greyscale `bitmap` (0–1, ink is 0.5 or more), row by row; null without ink. */
export function convertToDigit(bitmap, width, height) {
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (bitmap[y * width + x] >= 0.5) {
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x + 1), y + 1];
  }
  if (!right) return null;
  const box = { left, top, wide: right - left, high: bottom - top };
  const slim = Math.min(WIDE, (2 * SIDE * box.wide) / box.high);
  const drawn = (grow) => growInk(fitInkToBox(bitmap, width, box, Math.max(1, slim - 2 * grow), SIDE - 2 * grow), grow);
  const ink = (pixels) => pixels.reduce((sum, on) => sum + on, 0);
  let best = drawn(0);
  const wish = Math.min(INK[1], Math.max(INK[0], ink(best)));
  for (let grow = -4; grow <= 6 && ink(best) !== wish; grow += 0.5) {
    const other = drawn(grow);
    if (Math.abs(ink(other) - wish) < Math.abs(ink(best) - wish)) best = other;
  }
  return countInkInBlocks(best);
}
/** 32×32 pixels, 0 or 1: the box of the bitmap stretched to `wide` × `high` in the middle; on where half is ink. */
function fitInkToBox(bitmap, width, box, wide, high) {
  /** For each of 32 pixels the places of the bitmap that lie under it; none outside of the box. */
  const under = (size, start, length) => Array.from({ length: SIDE }, (_, i) => {
    const from = ((i - (SIDE - size) / 2) * length) / size, to = from + length / size;
    const middle = Math.floor((from + to) / 2);
    if (middle < 0 || middle >= length) return [];
    const [first, end] = length > size ? [Math.max(0, Math.round(from)), Math.min(length, Math.round(to))] : [middle, middle + 1];
    return Array.from({ length: end - first }, (_, k) => start + first + k);
  });
  const rows = under(high, box.top, box.high), columns = under(wide, box.left, box.wide);
  return Uint8Array.from({ length: SIDE * SIDE }, (_, i) => {
    const ys = rows[Math.floor(i / SIDE)], xs = columns[i % SIDE];
    let covered = 0;
    for (const y of ys) for (const x of xs) covered += bitmap[y * width + x] >= 0.5;
    return covered && 2 * covered >= ys.length * xs.length;
  });
}
/** The pixels at most `by` away from ink; with a negative number those more than -by away from any pixel without. */
function growInk(pixels, by) {
  const far = Math.abs(by), seek = Number(by > 0), span = [...Array(2 * Math.floor(far) + 1).keys()].map((i) => i - Math.floor(far));
  const disc = span.flatMap((v) => span.map((u) => [u, v])).filter(([u, v]) => Math.hypot(u, v) <= far);
  const is = (x, y) => x >= 0 && x < SIDE && pixels[y * SIDE + x] === seek; // above and below there is none
  return pixels.map((_, i) => disc.some(([u, v]) => is((i % SIDE) + u, Math.floor(i / SIDE) + v)) ? seek : 1 - seek);
}
/** The share of each block of 4×4 that is on. */
function countInkInBlocks(pixels) {
  const side = SIDE / BLOCK, image = new Float32Array(side * side);
  const block = (i) => Math.floor(i / SIDE / BLOCK) * side + Math.floor((i % SIDE) / BLOCK);
  pixels.forEach((on, i) => { image[block(i)] += on / BLOCK ** 2; });
  return image;
}
/** Paint an image of 8×8 on a canvas at (x, y), in a `colour` [R, G, B] that is the denser the more ink there is. */
export function paintDigit(canvas, image, colour = [0, 0, 0], x = 0, y = 0) {
  const picture = new ImageData(SIDE / BLOCK, SIDE / BLOCK);
  image.forEach((value, p) => picture.data.set([...colour, 255 * value], 4 * p));
  canvas.getContext("2d").putImageData(picture, x, y);
}
/** A small canvas that shows such an `image`, dark on white; `label`: what it is, for those who do not see it. */
export function picture(image, label) {
  const canvas = html("canvas", { width: SIDE / BLOCK, height: SIDE / BLOCK, role: "img", ariaLabel: label, style: { background: "#fff" } });
  paintDigit(canvas, image);
  return canvas;
}
const GAP = 25; // milliseconds between two looks at a stroke that grows
/** Lets a person draw on a `canvas` with mouse, pen or finger. `moved()` is called while a stroke grows, now and then;
    `lifted()` at its end, and when all is wiped out. `image()`: what `convertToDigit` says of it; `strokes`: lists of points [x, y];
    `repaint()`: anew, in the colour that the canvas has now. */
export function pad(canvas, { moved = () => {}, lifted = () => {} } = {}) {
  const strokes = [];
  let waiting = 0;
  const paint = (target, colour) => {
    const pen = target.getContext("2d", { willReadFrequently: true });
    pen.clearRect(0, 0, target.width, target.height);
    Object.assign(pen, { lineWidth: PEN * target.width, lineCap: "round", lineJoin: "round", strokeStyle: colour });
    for (const points of strokes) {
      pen.beginPath();
      pen.moveTo(points[0][0] * target.width + 0.1, points[0][1] * target.height); // so that a dot is a line, too
      for (const [x, y] of points) pen.lineTo(x * target.width, y * target.height);
      pen.stroke();
    }
    return pen;
  };
  const repaint = () => paint(canvas, getComputedStyle(canvas).color);
  const settle = () => {
    waiting = clearTimeout(waiting);
    lifted();
  };
  const follow = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    strokes.at(-1).push([(event.clientX - left) / width, (event.clientY - top) / height]);
    repaint();
    waiting ||= setTimeout(() => { waiting = 0; moved(); }, GAP);
  };
  canvas.style.touchAction = "none"; // a finger draws and does not scroll
  // Nor does it fling: for a second after a quick stroke a browser would take the next tap for the end of the fling.
  canvas.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary) return;
    canvas.setPointerCapture(event.pointerId);
    strokes.push([]);
    follow(event);
  });
  canvas.addEventListener("pointermove", (event) => { if (canvas.hasPointerCapture(event.pointerId)) follow(event); });
  canvas.addEventListener("lostpointercapture", settle);
  return {
    strokes,
    repaint,
    image() {
      const size = 128;
      const hidden = Object.assign(document.createElement("canvas"), { width: size, height: size });
      const { data } = paint(hidden, "#000").getImageData(0, 0, size, size);
      return convertToDigit(Float32Array.from({ length: size * size }, (_, i) => data[4 * i + 3] / 255), size, size);
    },
    clear() {
      strokes.length = 0;
      repaint();
      settle();
    },
  };
}
