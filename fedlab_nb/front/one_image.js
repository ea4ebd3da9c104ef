// One image, and what everybody says of it: servers above, clients below, in the order of the piles. A pen draws another.
import { createArithmetic } from "./arithmetic.js";
import { html, keyed, setText } from "./dom.js";
import { pad } from "./pen.js";
import { drawRecording, drawSample } from "./sample.js";
import { letter, percent } from "./text.js";

const SHOWN_SIDE = 96; // pixels of the image
const MOST_LETTERS = 3; // of a class's name that has room in a client's card in large type

/** A drawing as text: a letter a pixel, "a" for 0 to "q" for 1. */
export function packImage(image) {
  return String.fromCharCode(...image.map((value) => 97 + Math.round(16 * value)));
}

export function unpackImage(text) {
  return Float32Array.from(text, (one) => (one.charCodeAt(0) - 97) / 16);
}

export function isDrawing(text) {
  return /^[a-q]{64}$/.test(text);
}

function largest(row) {
  let best = 0;
  row.forEach((value, c) => { if (value > row[best]) best = c; });
  return best;
}

/** The row of a table in place of an image: its most telling values, as they are sorted; all of them to a pointer. */
function drawRow(list, row) {
  const lines = row.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value)));
  list.replaceChildren(...lines);
  list.title = row.map((pair) => pair.join(" ")).join("\n");
}

export function createOneImage({ classes, methods, people, canDraw = true }, send) {
  const shown = html("canvas", { className: "shown", width: 8, height: 8 });
  shown.setAttribute("role", "img");
  const ink = html("canvas", { className: "ink", width: 256, height: 256, hidden: true });
  ink.setAttribute("role", "img");
  ink.setAttribute("aria-label", "A field to draw a digit in, with mouse, pen or finger");
  const facts = html("dl", { className: "facts", hidden: true, tabIndex: 0 }); // it scrolls
  const patch = html("div", { className: "patch", hidden: true });
  const draw = html("button", { type: "button", className: "link" }, "✎ draw");
  draw.hidden = !canDraw;
  const another = html("button", { type: "button", className: "link" }, "another");
  const words = html("p", { className: "about" });
  words.setAttribute("role", "status");
  const servers = html("ul", { className: "cards" });
  servers.setAttribute("aria-label", "What the servers' models say");
  const clients = html("ul", { className: "cards clients" });
  clients.setAttribute("aria-label", `What each of the ${people.many} says`);
  const arithmetic = createArithmetic({ classes, people }, send);
  const tools = html("div", { className: "tools" }, draw, another);
  const element = html("section", { className: "one" },
    html("div", { className: "picture" }, shown, facts, patch, ink, tools),
    html("div", { className: "votes" }, words, servers, clients, arithmetic.element));
  const longest = Math.max(...classes.map(({ name }) => name.length));
  element.classList.toggle("named", longest > MOST_LETTERS);
  let isOpen = false; // the pen's field
  let last = null;
  let shownSum = ""; // the method whose sum is unfolded below

  const drawing = pad(ink, {
    moved: () => send({ kind: "image", value: packImage(drawing.image()) }),
    lifted: () => drawing.strokes.length && send({ kind: "image", value: packImage(drawing.image()) }),
  });
  draw.addEventListener("click", () => {
    const wasOpen = isOpen;
    isOpen = true;
    if (wasOpen) drawing.clear();
    render();
  });
  another.addEventListener("click", () => {
    isOpen = false;
    drawing.clear();
    send({ kind: "another" });
  });

  /** Whether the pen's field is open and still empty, so that there are no answers yet. */
  const isEmpty = () => isOpen && drawing.strokes.length === 0;

  function drawPicture() {
    ink.hidden = !isOpen;
    if (isOpen) drawing.repaint(); // the theme may have changed
    setText(draw, isOpen ? "clear" : "✎ draw");
    element.classList.toggle("drawing", isOpen);
    const colour = getComputedStyle(shown).color.match(/\d+/g).slice(0, 3);
    const { image, shape, label, truth } = last;
    const { row = [], curve = null } = last.about;
    const isDrawn = image !== null || curve !== null;
    shown.hidden = !isDrawn || isEmpty();
    facts.hidden = isDrawn || row.length === 0;
    patch.hidden = isDrawn || row.length > 0;
    element.classList.toggle("rows", !facts.hidden);
    if (!patch.hidden) patch.style.background = classes[truth].colour;
    facts.setAttribute("aria-label", label);
    if (image === null && row !== facts.row) drawRow(facts, row);
    facts.row = row;
    if (image !== null) drawSample(shown, image, shape, colour.map(Number));
    else if (curve !== null) drawRecording(shown, curve, SHOWN_SIDE, colour.map(Number));
    shown.setAttribute("aria-label", label);
  }

  function makeCard() {
    return html("li", {}, html("small"), html("b"), html("i", {}, ...classes.map(({ colour }) => html("u", { style: { background: colour } }))));
  }

  /** A button over a card whose answer is a sum: a click unfolds it. */
  function offerSum(card, { key, name, hasSum, isUnfolded }) {
    let button = card.querySelector(".unfold");
    if (!hasSum) return void button?.remove();
    if (button === null) {
      button = html("button", { type: "button", className: "unfold", onclick: () => send({ kind: "unfold", method: key }) }, "Σ");
      card.append(button);
    }
    button.setAttribute("aria-expanded", String(isUnfolded));
    button.setAttribute("aria-label", `${name}: how it comes to this answer`);
    button.title = `How ${name} comes to this answer`;
    return undefined;
  }

  function fill(list, items, truth) {
    keyed(list, items, ({ key }) => key, makeCard, (card, item) => {
      const { name, row, isChosen } = item;
      const [small, bold, bars] = card.children;
      offerSum(card, item);
      const said = row === null ? null : largest(row);
      const verdict = said === null || truth === null ? "" : said === truth ? "right" : "wrong";
      card.className = `${verdict}${isChosen ? " chosen" : ""}`;
      setText(small, name);
      setText(bold, said === null ? "–" : classes[said].name);
      bold.style.setProperty("--hue", said === null ? "transparent" : classes[said].colour);
      card.title = said === null ? `${name}: not asked yet` : `${name}: ${classes[said].name}, ${percent(row[said])}`;
      card.setAttribute("aria-label", `${card.title}${verdict && `, ${verdict}`}`);
      [...bars.children].forEach((bar, c) => { bar.style.transform = `scaleY(${row === null ? 0 : row[c]})`; });
    });
  }

  function render() {
    const { truth, asked, chosen, isStale, about, sum = null, unfolded = "", shownMethod = null } = last;
    const table = isEmpty() ? null : last.table;
    const sums = isStale || table === null ? [] : last.sums ?? [];
    drawPicture();
    setText(words, isEmpty() ? `Draw a ${people.kind} in the field.` : about.text);
    element.classList.toggle("stale", isStale);
    element.classList.toggle("many", asked > 20);
    clients.tabIndex = asked > 20 ? 0 : -1; // it scrolls
    const rowOf = (key) => table?.get(key) ?? null;
    const cast = methods.filter(({ name }) => name !== "local");
    fill(servers, cast.map(({ name, short }) => ({ key: name, name: short, row: rowOf(name), hasSum: sums.includes(name), isUnfolded: name === unfolded, isChosen: name === shownMethod })), truth);
    const isSeen = sum !== null && sums.includes(sum.method);
    arithmetic.update(isSeen ? { ...sum, name: cast.find(({ name }) => name === sum.method).short } : null);
    const unfoldedNow = isSeen ? sum.method : "";
    if (unfoldedNow !== "" && unfoldedNow !== shownSum) arithmetic.element.scrollIntoView({ block: "nearest" });
    shownSum = unfoldedNow;
    const keys = Array.from({ length: asked }, (_, k) => k);
    fill(clients, keys.map((k) => ({ key: k, name: letter(k), row: rowOf(k), isChosen: k === chosen })), truth);
  }

  /** What the cards of a list say, as text. */
  function readCards(list) {
    return [...list.children].map((card) => {
      const [small, bold] = card.children;
      return { name: small.textContent, said: bold.textContent, verdict: card.className.split(" ")[0] };
    });
  }

  return {
    element,
    /** What is seen, for a picture: the address of the image or null, what it is, and the cards. */
    describe() {
      return {
        shown: shown.hidden ? null : shown.toDataURL(),
        about: words.textContent,
        cards: element.classList.contains("stale") ? { servers: [], clients: [] } : { servers: readCards(servers), clients: readCards(clients) },
      };
    },
    /** image [side * side * channels] of this shape, null where a sample has none; its label in words, truth (null for a drawing);
        about.row: [[name, value], …] of a table, empty where there is none; about.curve: a recording (sample.js), or null; table: rows by method name and by client, or null;
        asked: the clients' count; isStale: the rows are of an older setting; sums: the methods whose answer is a sum;
        shownMethod: the method that is shown on the stage, or null; unfolded: the one whose sum is looked at; sum: that (arithmetic.js), null until it is there. */
    update(next) {
      const isOther = last !== null && last.about.key !== next.about.key;
      if (isOther && !next.about.isDrawing) isOpen = false; // another image has come: the pen's field makes room
      last = next;
      render();
    },
  };
}
