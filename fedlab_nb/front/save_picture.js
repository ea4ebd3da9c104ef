// The stage as it stands, as a picture to keep: its sentence, the piles with each client's score, the bars, what everybody
// says of the image, the setting, and a link that shows the same again. The PNG is drawn from an SVG.
import { writeMoves } from "./federation.js";
import { percent, plural } from "./text.js";

// All in pixels of the SVG.
const SAVED = {
  width: 1180,
  margin: 24,
  left: 286, // the column of bars
  gap: 30, // between that column and the piles
  line: 26, // of the headline
  row: 25, // of a bar
  card: 46, // its height
  image: 96, // the side of the image
};
SAVED.scene = SAVED.width - 2 * SAVED.margin - SAVED.left - SAVED.gap;
const TYPE = { small: 11, usual: 13, large: 20 };
const PNG_SCALE = 2;

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text) => String(text).replace(/[&<>"]/g, (one) => escapes[one]);

function write(x, y, text, { size = TYPE.usual, weight = 400, colour = "", anchor = "start" } = {}) {
  const fill = colour && ` fill="${colour}"`;
  return `<text x="${x}" y="${y}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}"${fill}>${escape(text)}</text>`;
}

/** The beginning of a text that fits into `width` pixels. */
function cut(text, width, size = TYPE.small) {
  const most = Math.max(1, Math.floor(width / (0.56 * size)));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A bold sentence in lines that have room in `width` pixels, broken between words. */
export function breakIntoLines(sentence, width, size) {
  const most = Math.floor(width / (0.66 * size));
  const lines = [];
  for (const word of sentence.split(" ")) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length > most) lines.push(word);
    else lines.splice(-1, 1, longer);
  }
  return lines;
}

const FLOWN_OVER = 0.13; // opacity of the piles under a flight, as on the screen

function drawBars(bars, top, { ink, soft, track }) {
  const parts = [write(SAVED.margin, top, bars.title, { weight: 700 })];
  bars.rows.forEach(({ short, colour, share, band, before }, i) => {
    const y = top + 12 + SAVED.row * (i + 1);
    const x = SAVED.margin + 112;
    const wide = SAVED.left - 112 - 46;
    parts.push(write(SAVED.margin, y, short));
    parts.push(`<rect x="${x}" y="${y - 11}" width="${wide}" height="12" rx="3" fill="${track}"/>`);
    if (band) {
      const low = Math.max(0, band.mean - band.half);
      const high = Math.min(1, band.mean + band.half);
      parts.push(`<rect x="${x + wide * low}" y="${y - 13}" width="${wide * (high - low)}" height="16" rx="3" fill="${soft}" opacity="0.45"/>`);
    }
    if (share !== null) parts.push(`<rect x="${x}" y="${y - 11}" width="${wide * share}" height="12" rx="3" fill="${colour}"/>`);
    if (before !== null) parts.push(`<rect x="${x + wide * before - 1}" y="${y - 14}" width="2" height="18" fill="${ink}"/>`);
    parts.push(write(SAVED.margin + SAVED.left, y, share === null ? "–" : percent(share), { weight: 700, anchor: "end" }));
  });
  parts.push(write(SAVED.margin, top + 12 + SAVED.row * (bars.rows.length + 1), bars.about, { size: TYPE.small, colour: soft }));
  return parts;
}

function drawCards(cards, x, y, wide, { line, card, good, soft }) {
  const each = wide / cards.length;
  return cards.map(({ name, said, verdict }, i) => {
    const at = x + each * i;
    const frame = verdict === "right" ? good : line;
    const inner = each - 13;
    return [
      `<rect x="${at}" y="${y}" width="${each - 5}" height="${SAVED.card}" rx="6" fill="${card}" stroke="${frame}"/>`,
      write(at + 6, y + 14, cut(name, inner), { size: TYPE.small, colour: soft }),
      write(at + 6, y + 36, cut(said, inner, TYPE.large), { size: TYPE.large, weight: verdict === "wrong" ? 400 : 700 }),
    ].join("");
  });
}

/** The SVG of a stage.
    headline, setting, link: sentences;   wall: {address, width, height} of the piles' canvas;   flight: {address, caption}
    of what flies over them, or null;   owners: [{name, score}];
    bars: {title, rows: [{short, colour, share 0-1 or null, band: {mean, half} or null, before: 0-1 or null}], about};   image: the address
    of the image that is looked at, or null;   about: what it is;   servers, clients: cards [{name, said, verdict}];
    colours: {ground, ink, soft, line, card, good, track};   font: its family. */
export function composePicture({ headline, setting, link, wall, flight = null, owners, bars, image, about, servers, clients, colours, font }) {
  const x = SAVED.margin + SAVED.left + SAVED.gap;
  const high = (SAVED.scene * wall.height) / wall.width;
  const lines = breakIntoLines(headline, SAVED.width - 2 * SAVED.margin, TYPE.large);
  const top = 74 + SAVED.line * (lines.length - 1);
  const foot = top + high + 40;
  const parts = lines.map((line, i) => write(SAVED.margin, 40 + SAVED.line * i, line, { size: TYPE.large, weight: 700 }));
  const place = `x="${x}" y="${top}" width="${SAVED.scene}" height="${high}"`;
  parts.push(`<image ${place} href="${wall.address}"${flight === null ? "" : ` opacity="${FLOWN_OVER}"`}/>`);
  if (flight !== null) {
    parts.push(`<image ${place} href="${flight.address}"/>`);
    parts.push(write(x, top + 13, cut(flight.caption, SAVED.scene)));
  }
  parts.push(`<path d="M${x} ${top + high}h${SAVED.scene}" stroke="${colours.line}"/>`);
  const column = SAVED.scene / owners.length;
  owners.forEach(({ name, score }, k) => {
    const middle = x + column * (k + 0.5);
    parts.push(write(middle, top + high + 16, name, { weight: 700, anchor: "middle" }));
    parts.push(write(middle, top + high + 30, score, { size: TYPE.small, colour: colours.soft, anchor: "middle" }));
  });
  if (bars.rows.length) parts.push(...drawBars(bars, top + 6, colours));
  const from = image === null ? x : x + SAVED.image + 14;
  const wide = SAVED.scene - (from - x) + 5;
  if (image !== null) {
    parts.push(`<image x="${x}" y="${foot}" width="${SAVED.image}" height="${SAVED.image}" style="image-rendering:pixelated" href="${image}"/>`);
    parts.push(`<rect x="${x}" y="${foot}" width="${SAVED.image}" height="${SAVED.image}" rx="6" fill="none" stroke="${colours.line}"/>`);
  }
  parts.push(write(from, foot + 10, about, { size: TYPE.small, colour: colours.soft }));
  if (servers.length) parts.push(...drawCards(servers, from, foot + 18, wide, colours));
  if (clients.length) parts.push(...drawCards(clients, from, foot + 24 + SAVED.card, wide, colours));
  const barsEnd = top + 20 + SAVED.row * (bars.rows.length + 1);
  const end = Math.max(foot + 30 + 2 * SAVED.card, barsEnd) + 26;
  parts.push(write(SAVED.margin, end, setting, { size: TYPE.small, colour: colours.soft }));
  parts.push(write(SAVED.width - SAVED.margin, end, link, { size: TYPE.small, colour: colours.soft, anchor: "end" }));
  const height = Math.ceil(end + 18);
  const size = `width="${SAVED.width}" height="${height}" viewBox="0 0 ${SAVED.width} ${height}"`;
  const ground = `<rect width="${SAVED.width}" height="${height}" fill="${colours.ground}"/>`;
  const style = `font-family="${escape(font)}" fill="${colours.ink}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${style}><title>${escape(headline)}</title>${ground}${parts.join("")}</svg>`;
}

/** Let the browser download a file. */
export function offerFile(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The SVG as a PNG of twice its size. */
export async function toPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PNG_SCALE * image.width;
  canvas.height = PNG_SCALE * image.height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

/** The setting in a line. */
export function describeSetting({ alpha, clients, seed, moves }, { set, sets, people }) {
  const moved = moves.length ? `, moved by hand: ${writeMoves(moves)}` : "";
  const title = sets.find(({ name }) => name === set)?.title ?? set;
  return `${title}, α = ${alpha}, ${plural(clients, people.one)}, seed ${seed}${moved}`;
}

/** The part of the page's address that shows this setting. */
export function writeAddress({ alpha, clients, seed, moves }, set) {
  const words = [`alpha=${alpha}`, `m=${clients}`, `seed=${seed}`];
  if (set !== "digits") words.push(`data=${set}`);
  if (moves.length) words.push(`moves=${writeMoves(moves).replaceAll(" ", "")}`);
  return `#${words.join("&")}`;
}
