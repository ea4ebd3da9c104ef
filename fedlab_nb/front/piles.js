// Piles of the samples themselves: a canvas, and beneath it a button a client. What is chosen opens beside its pile.
import { html, keyed, setText } from "./dom.js";
import { findAt, layOutPiles } from "./layout.js";
import { countInWords, letter, percent, plural } from "./text.js";

const WALK = 350; // milliseconds that tiles take to where they belong
const FIRST_STEP = 16; // milliseconds of it that the first frame shows: a hand sees at once that something moves
const DRAG = 6; // pixels after which a press is a drag
const NUDGE = { width: 104, height: 68 }; // pixels: two lines, and the numbers of the piles below it
const NEAR = 24; // pixels from a nudge to its pile, at most, where any pile has room for it
const FAINT = 0.15; // opacity of tiles of other classes than the one that is chosen
const NAMED_LETTERS = 8; // of a class that the nudge names
const NARROW = 30; // pixels of a column that has no room for a number
const LEAST_PICTURE = 10; // pixels of the screen: in a narrow column nobody sees on a smaller tile what its sample is

/** All thumbnails in their classes' colours in one picture, once; null where samples have no images. It is a bitmap:
    of a canvas, the browser would take a copy for each tile that is drawn from it. */
function makeSheet({ labels, images, side, channels = 1 }, groups, classes, columns) {
  if (!images) return null;
  const rows = Math.ceil(labels.length / columns);
  const sheet = new OffscreenCanvas(side * columns, side * rows);
  const pen = sheet.getContext("2d");
  const pixels = pen.createImageData(sheet.width, sheet.height);
  const colours = classes.map(({ colour }) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  labels.forEach((label, i) => {
    const [red, green, blue] = colours[groups[label]];
    const left = side * (i % columns);
    const top = side * Math.floor(i / columns);
    for (let p = 0; p < side * side; p++) {
      const at = 4 * ((top + Math.floor(p / side)) * sheet.width + left + (p % side));
      if (channels === 3) {
        for (let c = 0; c < 3; c++) pixels.data[at + c] = 255 * images[3 * (i * side * side + p) + c];
        pixels.data[at + 3] = 255;
        continue;
      }
      const ink = 0.16 + 0.84 * images[i * side * side + p];
      pixels.data[at] = red;
      pixels.data[at + 1] = green;
      pixels.data[at + 2] = blue;
      pixels.data[at + 3] = 255 * ink;
    }
  });
  pen.putImageData(pixels, 0, 0);
  return sheet.transferToImageBitmap();
}

/** A square in the colour of its class, on whole pixels of the screen: all are of one size, with one gap between. */
function drawSquare(pen, colour, x, y, side, scale) {
  const whole = Math.round(side * scale);
  const gap = whole < 4 ? 0 : Math.max(1, Math.round(whole / 9));
  pen.fillStyle = colour;
  pen.fillRect(Math.round(x * scale) / scale, Math.round(y * scale) / scale, (whole - gap) / scale, (whole - gap) / scale);
}

/** data: {train, classes, groups, shownClasses, people}; send(event): called with a gesture;   hasCard: whether what a chosen
    client holds opens beside its pile. */
export function createPiles(data, send, { hasCard = true } = {}) {
  const { train, classes, groups, shownClasses, people } = data;
  const canvas = html("canvas", { className: "wall" });
  canvas.setAttribute("role", "img");
  const owners = html("div", { className: "owners" });
  owners.setAttribute("role", "group");
  owners.setAttribute("aria-label", `${people.many}: arrows go from pile to pile, Shift and an arrow give a pile away`);
  const nudge = html("button", { className: "nudge", type: "button", hidden: true });
  const card = html("div", { className: "hand", hidden: true });
  card.setAttribute("role", "group");
  const note = html("p", { className: "note" });
  const foot = html("div", { className: "foot" }, note);
  const element = html("div", { className: "piles" }, html("div", { className: "field" }, canvas, nudge, card), owners, foot);
  const columns = Math.ceil(Math.sqrt(train.labels.length));
  const sheet = makeSheet(train, groups, shownClasses, columns);
  const isGrouped = shownClasses.length < classes.length;
  let places = new Float32Array(2 * train.labels.length).fill(NaN); // x and y of each tile, by its slot
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let view = null; // what is shown: {piles, counts, state, each, isStale, nudges}
  let layout = null;
  let hasPictures = sheet !== null; // the tiles are large enough for them
  let size = { width: 0, height: 0 };
  let colours = { ink: "", act: "", font: "" }; // of the theme
  let frame = 0;
  let drag = null; // {client, label, sample, x, y, toX, toY, isMoving}; by the nudge also isWhole
  let current = 0; // the pile that Tab goes to

  /** Give the canvas so many pixels, where it has others: each time it would be made anew. */
  function fitCanvas(width, height) {
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
  }

  /** Colours and type of the theme, once: each reading in the midst of a change makes the browser style the page. */
  function readTheme() {
    const style = getComputedStyle(canvas);
    colours = { ink: style.getPropertyValue("--ink"), act: style.getPropertyValue("--act"), font: style.fontFamily };
  }

  function paint() {
    const scale = devicePixelRatio || 1;
    const pen = canvas.getContext("2d");
    const { tiles, tops, column, side } = layout;
    fitCanvas(Math.round(size.width * scale), Math.round(size.height * scale));
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    pen.imageSmoothingEnabled = side * scale < 24;
    const target = drag?.isMoving ? findAt(layout, drag.toX, size.height - 1).client : -1;
    const marked = target >= 0 && target !== drag.client ? target : view.state.client;
    if (marked !== null && marked >= 0) {
      pen.globalAlpha = 0.14;
      pen.fillStyle = colours.act;
      pen.fillRect(column * marked, 0, column, size.height);
    }
    pen.globalAlpha = 1;
    const isFaint = ({ label }) => view.state.classIndex !== null && label !== view.state.classIndex;
    const isCarried = (tile) => drag?.isMoving && tile.client === drag.client && (drag.label === null || drag.label === tile.label);
    for (const isTop of [false, true]) {
      for (const tile of tiles) {
        if (Boolean(isCarried(tile)) !== isTop) continue;
        const x = places[2 * tile.slot] + (isTop ? drag.toX - drag.x : 0);
        const y = places[2 * tile.slot + 1] + (isTop ? drag.toY - drag.y : 0);
        pen.globalAlpha = isFaint(tile) ? FAINT : 1;
        if (!hasPictures) {
          drawSquare(pen, shownClasses[groups[tile.label]].colour, x, y, side, scale);
          continue;
        }
        const from = train.side * (tile.sample % columns);
        const top = train.side * Math.floor(tile.sample / columns);
        pen.drawImage(sheet, from, top, train.side, train.side, x, y, side, side);
      }
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colours.ink;
    pen.textAlign = "center";
    pen.font = `11px ${colours.font}`;
    view.piles.forEach((pile, k) => {
      if (column >= NARROW - 8) pen.fillText(pile.length, column * (k + 0.5), tops[k] - 6);
    });
    const looked = /^t(\d+)$/.exec(view.state.image);
    const seen = looked && tiles.find(({ sample }) => sample === Number(looked[1]));
    if (seen) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(places[2 * seen.slot], places[2 * seen.slot + 1], side, side);
    }
  }

  /** Reserve a place for every tile, also for those of copied samples. */
  function makeRoom() {
    const most = layout.tiles.reduce((last, { slot }) => Math.max(last, slot), -1);
    if (2 * most < places.length) return;
    const wider = new Float32Array(2 * most + 2).fill(NaN);
    wider.set(places);
    places = wider;
  }

  /** Move the tiles from where they are to their new places. */
  function walk() {
    cancelAnimationFrame(frame);
    const from = new Map();
    let isMoving = false;
    makeRoom();
    for (const { slot, x, y } of layout.tiles) {
      const isNew = Number.isNaN(places[2 * slot]);
      const start = isNew ? [x, y] : [places[2 * slot], places[2 * slot + 1]];
      from.set(slot, start);
      isMoving ||= Math.abs(start[0] - x) + Math.abs(start[1] - y) > 0.5;
    }
    const hasWay = isMoving && !still.matches;
    const begin = performance.now() - FIRST_STEP;
    const step = (now) => {
      const share = hasWay ? Math.min(1, Math.max(0, (now - begin) / WALK)) : 1;
      const left = (1 - share) ** 3;
      for (const { slot, x, y } of layout.tiles) {
        const [startX, startY] = from.get(slot);
        places[2 * slot] = x + (startX - x) * left;
        places[2 * slot + 1] = y + (startY - y) * left;
      }
      paint();
      if (share < 1) frame = requestAnimationFrame(step);
    };
    if (hasWay) frame = requestAnimationFrame(step);
    else step(begin);
  }

  function drawOwners() {
    const { piles, state, each, isStale } = view;
    current = Math.min(current, piles.length - 1);
    owners.classList.toggle("stale", isStale);
    owners.classList.toggle("roomy", layout.column > NARROW);
    owners.classList.toggle("scored", each.length > 0); // an empty box would look like a result that is missing
    const press = (k) => ({
      type: "button",
      onclick: () => send({ kind: "client", value: k }),
      onkeydown: (event) => onKey(event, k),
      onfocus: () => { current = k; rove(); },
    });
    const make = (k) => html("button", press(k), html("b", {}, letter(k)), html("span"));
    keyed(owners, [...piles.keys()], (k) => k, make, (button, k) => {
      const score = each[k] === undefined ? "" : percent(each[k]);
      const alone = score && `; alone it gets ${score} of the test ${people.things} right${isStale ? " (before the last change)" : ""}`;
      button.setAttribute("aria-expanded", state.client === k);
      button.title = `What ${people.one} ${letter(k)} holds`;
      button.setAttribute("aria-label", `${people.one} ${letter(k)}: ${plural(piles[k].length, "sample")}${alone}`);
      setText(button.firstChild, layout.column > 13 || k % 10 === 0 ? letter(k) : "");
      setText(button.lastChild, layout.column > NARROW ? score : "");
    });
    rove();
  }

  function rove() {
    [...owners.children].forEach((button, k) => { button.tabIndex = k === current ? 0 : -1; });
  }

  function onKey(event, k) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const last = view.piles.length - 1;
    if (step && event.shiftKey) send({ kind: "move", from: k, to: k + step, label: null });
    else if (step) owners.children[Math.min(last, Math.max(0, k + step))].focus();
    else if (event.key === "Home") owners.children[0].focus();
    else if (event.key === "End") owners.children[last].focus();
    else if (event.key === "Escape") send({ kind: "close" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Classes of which a client with these counts has no sample, in a sentence. */
  function describeLacking(row) {
    const missing = classes.filter((_, c) => row[c] === 0);
    if (missing.length === 1) return `It has never seen “${missing[0].name}”.`;
    return `It has never seen the other ${countInWords(missing.length).toLowerCase()} ${people.kinds}.`;
  }

  /** What the chosen client holds, beside its pile, with buttons that give it to a neighbour. */
  function drawCard() {
    const k = view.state.client;
    card.hidden = k === null || !hasCard;
    if (card.hidden) return card.replaceChildren();
    const row = view.counts[k];
    const held = row.map((_, c) => c).filter((c) => row[c]).sort((p, q) => row[q] - row[p] || p - q);
    const give = (label, to, text) => {
      const what = label === null ? "everything" : `${classes[label].name}`;
      const button = html("button", { type: "button", disabled: to < 0 || to >= view.piles.length });
      button.textContent = text;
      button.setAttribute("aria-label", `Give ${what} of ${letter(k)} to ${to >= 0 ? letter(to) : "nobody"}`);
      button.onclick = () => send({ kind: "move", from: k, to, label });
      return button;
    };
    const line = (label, name, count) => {
      const colour = label === null ? "none" : shownClasses[groups[label]].colour;
      const left = k > 0 ? `← ${letter(k - 1)}` : "";
      const right = k < view.piles.length - 1 ? `${letter(k + 1)} →` : "";
      return html("div", { className: "give" }, give(label, k - 1, left), html("i", { style: { background: colour } }),
        html("span", {}, name), html("b", {}, String(count)), give(label, k + 1, right));
    };
    const close = html("button", { type: "button", className: "close", onclick: () => send({ kind: "close" }) }, "×");
    close.setAttribute("aria-label", "Close");
    const shown = held.slice(0, 10);
    const title = html("p", {}, html("b", {}, `${people.one} ${letter(k)}`), close);
    const never = held.length < classes.length ? [html("p", { className: "quiet" }, describeLacking(row))] : [];
    card.setAttribute("aria-label", `What ${people.one} ${letter(k)} holds`);
    const lines = shown.map((c) => line(c, classes[c].name, row[c]));
    const whole = held.length > 1 ? [line(null, "all", view.piles[k].length)] : [];
    card.replaceChildren(title, ...whole, ...lines, ...never);
    const middle = layout.column * (k + 0.5);
    const isLeft = middle > size.width / 2;
    card.style.left = isLeft ? "auto" : `${Math.min(middle + layout.column / 2 + 4, size.width - 214)}px`;
    card.style.right = isLeft ? `${Math.min(size.width - middle + layout.column / 2 + 4, size.width - 214)}px` : "auto";
    return undefined;
  }

  /** Where the nudge of pile k would stand: over its column and what it covers of the others. */
  function placeNudge({ client: k, label }) {
    const left = Math.max(0, Math.min(size.width - NUDGE.width, layout.column * (k + 0.5) - NUDGE.width / 2));
    const right = left + NUDGE.width;
    const covered = layout.tops.filter((_, j) => (j + 1) * layout.column > left && j * layout.column < right);
    const top = Math.min(...covered) - NUDGE.height;
    return { k, label, left, top, gap: layout.tops[k] - NUDGE.height - top };
  }

  /** What can be thrown, in a word or two. */
  function nameNudge(label) {
    if (label === null) return "this pile";
    const { name, plural: several } = classes[label];
    const word = several ?? name;
    return word.length <= NAMED_LETTERS ? `the ${word}` : "this colour";
  }

  /** The first time, a hint says that piles can be thrown: at a pile with room above it, towards a neighbour. */
  function drawNudge() {
    const places = view.nudges.map(placeNudge);
    const free = places.filter(({ top }) => top >= 0);
    const nearest = (one, other) => (other.gap < one.gap ? other : one);
    // If all piles are high, it lies on one of them.
    const found = free.find(({ gap }) => gap <= NEAR) ?? (free.length > 0 ? free.reduce(nearest) : places[0]);
    nudge.hidden = found === undefined || view.state.client !== null || layout.column < 34;
    if (nudge.hidden) return;
    const { k, label, left, top } = found;
    const to = k > 0 ? k - 1 : k + 1;
    const what = nameNudge(label);
    nudge.textContent = to < k ? `drag ${what}\n← to ${letter(to)}` : `drag ${what}\nto ${letter(to)} →`;
    nudge.onclick = () => send({ kind: "move", from: k, to, label });
    nudge.pile = { client: k, label };
    nudge.style.setProperty("--at", `${layout.column * (k + 0.5) - left}px`);
    nudge.style.left = `${left}px`;
    nudge.style.top = `${Math.max(0, top)}px`;
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary || !layout) return;
    const [x, y] = place(event);
    const { client, label, sample } = findAt(layout, x, y);
    drag = { client, label, sample, x, y, toX: x, toY: y, isMoving: false };
  });
  // The nudge is a handle of its pile.
  nudge.addEventListener("pointerdown", (event) => {
    if (event.button || !event.isPrimary || !layout) return;
    const [x, y] = place(event);
    const { client, label } = nudge.pile;
    drag = { client, label, sample: null, x, y, toX: x, toY: y, isMoving: false, isWhole: label === null };
  });
  nudge.addEventListener("pointermove", (event) => { if (drag) follow(event); });
  nudge.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointermove", follow);

  function follow(event) {
    const [x, y] = place(event);
    if (!drag) {
      canvas.style.cursor = findAt(layout, x, y).label === null ? "pointer" : "grab";
      return;
    }
    drag.toX = x;
    drag.toY = y;
    if (!drag.isMoving && Math.abs(x - drag.x) > DRAG && drag.client >= 0 && (drag.label !== null || drag.isWhole)) {
      drag.isMoving = true;
      nudge.hidden = true;
      canvas.setPointerCapture(event.pointerId);
      canvas.style.cursor = "grabbing";
    }
    if (drag.isMoving) paint();
  }

  canvas.addEventListener("pointerup", () => {
    const { client, label, sample, isMoving, toX } = drag ?? { client: -1 };
    drag = null;
    if (client < 0) return;
    if (!isMoving) {
      if (sample !== null) send({ kind: "image", value: `t${sample}` });
      send({ kind: "client", value: client });
      return;
    }
    const to = findAt(layout, toX, size.height - 1).client;
    for (const tile of layout.tiles) {
      if (tile.client !== client || (label !== null && tile.label !== label)) continue;
      places[2 * tile.slot] += toX - layout.column * (client + 0.5);
    }
    if (to >= 0 && to !== client) {
      send({ kind: "move", from: client, to, label });
      return;
    }
    walk();
    drawNudge();
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
    paint();
    drawNudge();
  });
  card.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    const k = view.state.client;
    send({ kind: "close" });
    owners.children[k]?.focus();
  });

  /** In a pile the shown classes are blocks: the classes that are shown as "others" come last, together. */
  function sortByGroup(piles) {
    if (!isGrouped) return piles;
    const { labels } = train;
    const compare = (i, j) => groups[labels[i]] - groups[labels[j]] || labels[i] - labels[j] || i - j;
    return piles.map((pile) => [...pile].sort(compare));
  }

  function update(next) {
    view = next;
    if (!size.width) return;
    const { counts } = view;
    const piles = sortByGroup(view.piles);
    const scale = devicePixelRatio || 1;
    const layOut = (step) => layOutPiles({ piles, labels: train.labels, counts, ...size, head: 20, step });
    layout = layOut(0.5);
    const isLegible = layout.column >= NARROW - 8 || layout.side * scale >= LEAST_PICTURE;
    hasPictures = sheet !== null && isLegible;
    if (!hasPictures) layout = layOut(1 / scale); // squares have whole pixels
    const words = layout.many > 1 ? `One tile stands for ${layout.many} samples.` : "";
    setText(note, words);
    canvas.setAttribute("aria-label", `Piles of samples, one for each ${people.one}. ${view.summary} ${words}`);
    walk();
    drawOwners();
    drawCard();
    drawNudge();
  }

  return {
    element,
    foot,
    /** Whether the tiles show their samples; where they are too small, or there are no images, they are squares. */
    hasPictures: () => hasPictures,
    update,
    /** The canvas of the piles, for a picture. */
    describe: () => ({ address: canvas.toDataURL(), width: size.width, height: size.height }),
    /** The theme is another one; the next update paints in it. */
    readTheme,
    /** Measure again after the window has changed. */
    resize() {
      const width = canvas.clientWidth;
      const height = canvas.clientHeight;
      if (width === size.width && height === size.height) return;
      places.fill(NaN);
      size = { width, height };
      readTheme(); // before it had a size, it may not have been on the page
      if (view) update(view);
    },
    destroy() {
      cancelAnimationFrame(frame);
    },
  };
}
